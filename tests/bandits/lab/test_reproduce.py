"""Reproducing a toy figure: trials run, stored and found again, verdicts and files."""

import json
import os
import signal
from functools import partial

import numpy as np
import pytest

from noregret import algorithms
from noregret.bandits.lab import figures
from noregret.bandits.lab.figure import Below, Claim, Entrant, Figure, Scale, Setting, regret_tables, regrets
from noregret.bandits.lab.figure import ComparisonPanel as Comparison
from noregret.bandits.lab.figure import MeasurementPanel as Study
from noregret.bandits.lab.page import Report, found_in, runs_in
from noregret.bandits.lab.reproduce import Order, reproduce
from noregret.bandits.lab.trials import Engine, EngineFailed
from noregret.gp.kernels import SquaredExponential
from noregret.problems import rkhs

pytestmark = pytest.mark.slow

ENTRANTS = {name: Entrant(algorithms.NAMES[name], {"constants": "experiment"}) for name in ("igp-ucb", "random")}
PANEL = Comparison("toy", "Toy", partial(rkhs, SquaredExponential(0.2), points=20), ENTRANTS, watch=("rank",))


class Notes(list):
    """A watcher that remembers."""

    def begin(self, figure, trials, kept):
        self.append(("begin", figure.name, trials, kept))

    def advance(self, figure):
        self.append(("advance", figure.name))

    def finish(self, report):
        self.append(("finish", report.name))

    def note(self, text):
        self.append(("note", text))


def toy(name="toy/fig1", panels=(PANEL,), claims=None, **changes):
    fields = {
        "title": "A toy",
        "says": "IGP-UCB beats\n   chance.",
        "how": "On 20 arms.",
        "claims": [Claim("igp-ucb beats random", Below("toy", "igp-ucb", ["random"]))] if claims is None else claims,
        "draw": regrets,
        "tabulate": regret_tables,
        "scale": Scale(60, 4),
        "quick": Scale(20, 2),
        "minutes": 0.1,
    }
    return Figure(name, panels=panels, **(fields | changes))


@pytest.fixture
def known(monkeypatch):
    """Register toy figures with the page."""

    def tell(*toys):
        monkeypatch.setattr(figures, "FIGURES", {figure.name: figure for figure in toys})
        monkeypatch.setattr(figures, "PAPERS", {"toy": "A paper"})
        return toys

    return tell


def run(figures_, out, watcher=None, **options):
    options = {"engine": Engine(1)} | options
    return reproduce(Order(figures_, out, **options), Notes() if watcher is None else watcher)


def test_a_figure_is_run_judged_drawn_and_reported(tmp_path, known):
    notes = Notes()
    (report,) = run(known(toy()), tmp_path, notes)
    assert [v.outcome for v in report.verdicts] == ["as the paper says"]
    assert report.says == "IGP-UCB beats chance."
    assert (report.rounds, report.trials, report.small) == (60, 4, False)
    assert {p.name for p in (tmp_path / "toy/fig1").iterdir()} == {"report.json", "toy.png", "toy.svg"}
    assert report.tables[0].rows[0][0] == "igp-ucb"
    assert [(c.label, c.record[:10]) for c in report.curves] == [("igp-ucb", "Sequential"), ("random", "Sequential")]
    assert notes == [("begin", "toy/fig1", 8, 0), *[("advance", "toy/fig1")] * 8, ("finish", "toy/fig1")]
    (loaded,) = found_in(tmp_path, ["toy/fig1"])
    assert (loaded.verdicts, loaded.pictures, loaded.curves) == (report.verdicts, report.pictures, report.curves)
    (log,) = runs_in(tmp_path)
    assert (log["figures"], log["run"], log["kept"]) == (["toy/fig1"], 8, 0)


def trials_in(folder):
    return {path: path.stat().st_mtime_ns for path in (folder / "trials").rglob("*.npz")}


def test_finished_trials_are_not_run_again(tmp_path, known):
    run(known(toy()), tmp_path, trials=2)
    before = trials_in(tmp_path)
    notes = Notes()
    run(known(toy()), tmp_path, notes)
    after = trials_in(tmp_path)
    assert ("begin", "toy/fig1", 8, 4) in notes
    assert len(after) == 8
    assert {path: after[path] for path in before} == before


def test_a_damaged_trial_is_set_aside_and_run_again(tmp_path, known):
    (before,) = run(known(toy()), tmp_path)
    victim = sorted(trials_in(tmp_path))[0]
    whole = victim.read_bytes()
    victim.write_bytes(whole[:100])
    notes = Notes()
    (after,) = run(known(toy()), tmp_path, notes)
    assert victim.read_bytes() == whole
    assert victim.with_name(victim.name + ".damaged").read_bytes() == whole[:100]
    (note,) = [note[1] for note in notes if note[0] == "note"]
    assert victim.name in note
    assert "damaged" in note
    assert after.verdicts == before.verdicts


def test_an_error_in_a_drawing_stops_its_figure_only(tmp_path, known):
    def draw(figure, results):
        raise KeyError("colour")

    reports = run(known(toy("toy/bad", draw=draw), toy()), tmp_path)
    assert ["KeyError" in report.failure for report in reports] == [True, False]


def double(rounds, rng):
    """Twice a random number."""
    return {"number": np.array([2 * rng.random()])}


def test_studies_are_measured_kept_and_found_again(tmp_path, known):
    claim = Claim("the same", Below("study", "a", ["b"], 1.1, above=0.9, of=lambda trial: trial["number"][0]))
    figure = toy(
        panels=[Study("study", "Study", {"a": double, "b": double})],
        claims=[claim],
        draw=lambda figure, results: {},
        tabulate=lambda figure, results: (),
    )
    (report,) = run(known(figure), tmp_path)
    assert report.verdicts[0].outcome == "as the paper says"  # both labels of a trial have the same seed
    assert report.curves[0].record == "Twice a random number."
    (again,) = run(known(figure), tmp_path)
    assert again.verdicts == report.verdicts
    assert runs_in(tmp_path)[-1]["run"] == 0


def test_trials_are_paired_and_watch_what_they_are_told_to():
    tasks = PANEL.tasks(Setting(Scale(10, 2)))
    assert [task.label for task in tasks] == ["igp-ucb", "random"] * 2
    traces = [task.work() for task in tasks]
    assert traces[0].seed == traces[1].seed != traces[2].seed
    assert traces[0].watched["rank"].shape == (10,)


def kill_once(marker):
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def test_what_a_killed_process_was_doing_is_done_by_another(tmp_path):
    tasks = [partial(kill_once, tmp_path / "killed"), *[partial(abs, -i) for i in range(1, 6)]]
    results = dict(Engine(2).each(tasks))
    assert sorted(results) == [0, 1, 2, 3, 4, 5]
    assert results[0] != os.getpid()
    assert [results[i] for i in range(1, 6)] == [1, 2, 3, 4, 5]


def test_dask_and_its_scheduler_go_together():
    with pytest.raises(EngineFailed, match="needs the address"):
        Engine(backend="dask")
    with pytest.raises(EngineFailed, match="only dask"):
        Engine(scheduler="tcp://127.0.0.1:1")


def test_a_report_survives_its_file(tmp_path):
    report = Report("toy/x", "X", "says", "how", 1, 2, 3, 4, 0, failure="none")
    (tmp_path / "toy/x").mkdir(parents=True)
    report.save(tmp_path)
    (found,) = found_in(tmp_path, ["toy/absent", "toy/x"])
    assert (found.name, found.failure, found.small, found.versions) == ("toy/x", "none", True, report.versions)
    (tmp_path / "toy/x/report.json").write_text(json.dumps({"name": "toy/x"}))
    assert found_in(tmp_path, ["toy/x"]) == []
