"""Reproducing a toy figure: trials run, stored and found again, verdicts and files."""

import json
import os
import signal
from functools import partial

import numpy as np
import pytest

from noregret import algorithms
from noregret.belief.kernels import SquaredExponential
from noregret.experiments import figures
from noregret.experiments import trials as parallel
from noregret.experiments.claims import Below
from noregret.experiments.figure import Claim, Entrant, Figure, Scale, Setting, regret_tables, regrets
from noregret.experiments.figure import ComparisonPanel as Comparison
from noregret.experiments.figure import MeasurementPanel as Study
from noregret.experiments.page import Report, found_in, runs_in
from noregret.experiments.reproduce import Order, reproduce
from noregret.experiments.trials import Engine, EngineFailed
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


def test_a_small_scale_has_verdicts_of_its_own_and_says_so(tmp_path, known):
    quick = toy(quick=Scale(50, 3))
    (report,) = run(known(quick), tmp_path, quick=True)
    assert (report.rounds, report.trials) == (50, 3)
    assert [verdict.outcome for verdict in report.verdicts] == ["as the paper says"]
    assert report.summary() == "claims: 1 as the paper says (50 rounds, 3 trials; in full: 60 rounds, 4 trials)"
    page = (tmp_path / "index.html").read_text()
    assert "At a small scale: 50 rounds, 3 trials; in full: 60 rounds, 4 trials." in page
    assert "<b>1</b> as the paper says" in page
    (report,) = run(known(quick), tmp_path, trials=5)
    assert report.summary() == "claims: 1 as the paper says"
    assert "small scale" not in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(("scale", "reason"), [({}, "It is so."), ({"quick": True}, "")])
def test_reasons_are_about_the_full_scale(tmp_path, known, scale, reason):
    claim = Claim("random beats igp-ucb", Below("toy", "random", ["igp-ucb"]), because="It is\n   so.")
    (report,) = run(known(toy(claims=[claim], quick=Scale(50, 3))), tmp_path, **scale)
    (verdict,) = report.verdicts
    assert (verdict.outcome, verdict.reason) == ("against the paper", reason)
    (report,) = run(known(toy(claims=[claim])), tmp_path, trials=1)
    assert report.verdicts[0].outcome == "undecided"


def test_a_claim_that_our_experiment_cannot_decide_is_not_comparable(tmp_path, known):
    claim = Claim("as on Mars", Below("toy", "igp-ucb", ["random"]), unlike="this is Earth")
    (report,) = run(known(toy(claims=[claim])), tmp_path)
    assert report.verdicts[0].outcome == "not comparable"
    assert report.verdicts[0].reason == "as the paper says here, but this is Earth"
    (report,) = run(known(toy(claims=[claim])), tmp_path, quick=True)
    assert report.verdicts[0].outcome == "not comparable"


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


def test_other_settings_are_other_trials(tmp_path, known):
    run(known(toy()), tmp_path, trials=1)
    run(known(toy()), tmp_path, trials=1, seed=1)
    run(known(toy()), tmp_path, trials=1, rounds=30)
    wider = {"igp-ucb": Entrant(algorithms.igp_ucb, {"constants": "experiment", "scale": 2.0})}
    panel = Comparison("toy", "Toy", PANEL.problem, wider | {"random": ENTRANTS["random"]})
    run(known(toy(panels=[panel])), tmp_path, trials=1)
    assert len(trials_in(tmp_path)) == 7  # random is the same in the first and the last


def test_figures_share_the_trials_of_a_panel_of_the_same_key(tmp_path, known):
    notes = Notes()
    reports = run(known(toy("toy/fig1"), toy("toy/table1")), tmp_path, notes)
    assert [report.name for report in reports] == ["toy/fig1", "toy/table1"]
    assert len(trials_in(tmp_path)) == 8
    assert notes.count(("advance", "toy/fig1")) == notes.count(("advance", "toy/table1")) == 8


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


def test_an_error_in_a_trial_stops_its_figure_only(tmp_path, known):
    def broken(rng):
        raise ZeroDivisionError("no such world")

    bad = toy("toy/bad", panels=[Comparison("bad", "Bad", broken, ENTRANTS)])
    reports = {report.name: report for report in run(known(bad, toy()), tmp_path)}
    assert "ZeroDivisionError: no such world" in reports["toy/bad"].failure
    assert reports["toy/fig1"].verdicts[0].outcome == "as the paper says"
    assert "no such world" in (tmp_path / "index.html").read_text()
    again = run(known(toy("toy/bad")), tmp_path)  # fixed
    assert not again[0].failure


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


def test_the_same_on_two_processes(tmp_path, known):
    (one,) = run(known(toy()), tmp_path / "one")
    (two,) = run(known(toy()), tmp_path / "two", engine=Engine(2))
    assert one.verdicts == two.verdicts


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


def test_processes_that_keep_dying_are_given_up(monkeypatch):
    monkeypatch.setattr(parallel, "DEATHS", 2)
    with pytest.raises(EngineFailed, match="killed again and again"):
        list(Engine(2).each([die, die]))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


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
