"""`noregret.report`: the page of an optimizer in memory, and of an Optuna study of any sampler."""

import base64
import gzip
import math
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import optuna
import pytest
from tests.studies.made import record

from noregret import Choice, Float, Int, Optimizer, report
from noregret.integrations.optuna import NoRegretSampler
from noregret.optimizer import Estimate, Gain
from noregret.studies import words
from noregret.studies.display import conclusion
from noregret.studies.learning.findings import Findings, Wish, summary
from noregret.studies.learning.suggest import believed
from noregret.studies.page.page import page
from noregret.studies.page.reporting import _findings
from noregret.studies.study.results import LastNumber, MaxRss, UserTime, WallTime, possible
from noregret.studies.study.study import Study

optuna.logging.set_verbosity(optuna.logging.WARNING)


def written(subject, path):
    report(subject, path)
    return unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script)>.*?</\1>", "", path.read_text(), flags=re.S)))


def measured(space, rounds=25, value=lambda params: params["x"], rng=0, failing=()):
    """An optimizer that knows settings that it has not asked for: questions cost more than the page."""
    optimizer, noise = Optimizer(space, rng=rng), np.random.default_rng(rng)
    points = optimizer.space.decode(noise.random((rounds, len(space)))) if isinstance(space, dict) else space
    for i in range(rounds):
        params = points[i % len(points)]
        if i in failing:
            optimizer.fail(params)
        else:
            optimizer.tell(params, float(value(params) + 0.05 * noise.standard_normal()))
    return optimizer


@pytest.mark.slow
def test_an_optimizer_with_parameters_of_every_kind(tmp_path):
    space = {"x": Float(0.001, 1, log=True), "n": Int(1, 64), "kind": Choice(["<b>", None, 3])}
    optimizer = measured(space, failing=(3, 9))
    text = written(optimizer, tmp_path / "mine.html")
    assert "23 measurements, 2 failed runs" in text
    assert "reported as a failure" in text
    assert "Best setting, lowest expected result" in text
    assert "mine" in text
    assert "How it was measured" not in text  # not given
    assert "<b>" in text
    assert len(optimizer.answers) == 25  # and it was not changed


def test_without_a_path_a_notebook_shows_the_page_in_a_frame(tmp_path):
    optimizer = measured({"x": Float(0, 1)}, 5)
    shown = report(optimizer)
    report(optimizer, tmp_path / "optimizer.html")
    stamp = r"\d\d:\d\d\.</footer"  # a minute may end between the two
    assert re.sub(stamp, "", shown.html) == re.sub(stamp, "", (tmp_path / "optimizer.html").read_text())
    frame = shown._repr_html_()
    (inside,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert unescape(inside) == shown.html
    assert re.sub(r'srcdoc="[^"]*"', "", frame).count("<") == 2  # nothing of the page is outside of the frame
    assert "<" not in repr(shown)[1:]
    assert len(repr(shown)) < 100


class Display:
    """IPython's display, for a kernel that is not there."""

    def __init__(self):
        self.outputs = []

    def display(self, bundle, raw, display_id):
        assert raw
        assert display_id
        self.outputs.append(bundle)
        return self

    def update(self, bundle, raw):
        assert raw
        self.outputs[-1] = bundle


def test_the_page_in_a_notebook_is_brought_up_to_date(tmp_path, monkeypatch):
    notebook, opt = Display(), measured({"x": Float(0, 1)}, 5)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    page, before = opt.page(), len(opt.trials)
    page._ipython_display_()
    opt.tell({"x": 0.123}, 0.5)
    assert "0.123" not in notebook.outputs[0]["text/html"]
    assert page.refresh() is page
    (shown,) = notebook.outputs  # the same output of the same cell
    assert "0.123" in shown["text/html"]
    page.save(tmp_path / "mine.html")
    assert (tmp_path / "mine.html").read_text() == str(page) == page.html
    with pytest.raises(ValueError, match=r"path must end in \.html"):
        page.save(tmp_path / "mine.txt")
    assert len(opt.trials) == before + 1  # pages change nothing
    assert "Compared with the other" in str(opt.page(against=opt))


def test_there_is_a_page_before_there_are_values():
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    assert "<h1>Yield of step 3" in str(opt.page("Yield of step 3"))
    opt.ask(4)
    assert "<main" in str(opt.page().refresh())  # without a notebook, too


def downloaded(path):
    data = re.search(r'base64,([^"]*)', path.read_text())[1]
    return gzip.decompress(base64.b64decode(data)).decode().splitlines()


@pytest.mark.slow
def test_baseline_constraints_and_what_does_not_apply(tmp_path):
    space = {"x": Float(0, 1, step=0.1), "kind": Choice(["a", "b"]), "depth": Int(1, 9, when={"kind": "b"})}
    optimizer = Optimizer(space, rng=0, baseline={"x": 1.0, "kind": "a"}, constraints={"memory": ("<=", 5)})
    noise = np.random.default_rng(0)
    optimizer.tell(optimizer.baseline, 2.5, constraints={"memory": 10})
    for i, params in enumerate(optimizer.space.decode(noise.random((29, 3))), 1):
        value = 1 + params["x"] + 0.1 * params.get("depth", 5) + 0.02 * noise.standard_normal()
        optimizer.tell(params, value, constraints={"memory": None if i == 3 else 10 * params["x"]})
    text = written(optimizer, tmp_path / "p.html")
    assert re.search(r"[\d.]+% lower than your settings \(between [\d.]+% and [\d.]+%, at 95%\)", text)
    assert "It meets all constraints (probability" in text
    assert "a measurement that breaks a constraint" in text
    assert "10 ✗" in text
    header, *rows = (line.split(",") for line in downloaded(tmp_path / "p.html"))
    assert header == [
        "trial",
        "state",
        "value",
        "noise",
        "x",
        "kind",
        "depth",
        "constraint.memory",
        "started",
        "seconds",
    ]
    assert {(row[5], row[6] == "") for row in rows} == {("a", True), ("b", False)}
    assert [row[7] == "" for row in rows] == [i == 3 for i in range(30)]


def test_nothing_is_said_of_a_baseline_or_constraints_without_any(tmp_path):
    text = written(measured({"x": Float(0, 1)}, 5), tmp_path / "p.html")
    assert "your settings" not in text
    assert "constraint" not in text


def test_a_setting_that_breaks_a_constraint_is_no_rival_and_never_the_best_so_far(tmp_path):
    optimizer = Optimizer({"x": Float(0, 1)}, rng=0, constraints={"memory": ("<=", 5)})
    for x in np.linspace(0, 1, 21):
        optimizer.tell({"x": x}, x, constraints={"memory": 10 * (1 - x)})
    found = _findings(optimizer, "mine")
    assert found.best.params["x"] >= 0.5
    assert all(step.estimate.params["x"] >= 0.45 for step in found.best_so_far)
    assert sum(found.rivals) < 12
    assert found.infeasible == {record.number for record in found.records if record.params["x"] < 0.499}
    assert "settings measured that likely meet the constraints" in written(optimizer, tmp_path / "p.html")


def test_other_branches_are_drawn_where_they_are_at_their_best():
    optimizer = Optimizer({"kind": Choice(["a", "b"]), "depth": Int(1, 9, when={"kind": "b"})}, rng=0)
    for depth in (1, 3, 5, 7, 9):
        optimizer.tell({"kind": "b", "depth": depth}, 1.0 + abs(depth - 9))
        optimizer.tell({"kind": "a"}, 0.5)
    kind = next(effect for effect in _findings(optimizer, "mine").effects if effect.name == "kind")
    assert kind.estimate[kind.values.index("b")] < 3  # at depth 9, not in the middle of the range


def test_a_table_without_names_keeps_its_baseline_and_constraints(tmp_path):
    array = np.arange(24.0).reshape(12, 2)
    optimizer = Optimizer(array, rng=0, baseline=array[-1], constraints={"memory": (">=", 6)})
    for row in array:
        optimizer.tell(row, 10 + row[0], noise=0.1, constraints={"memory": row[0]})
    text = written(optimizer, tmp_path / "p.html")
    assert "lower than your settings" in text
    assert "0 ✗" in text


def test_optimizers_that_know_nothing_or_little(tmp_path):
    optimizer = Optimizer({"x": Float(0, 1)}, rng=0)
    assert "Nothing has been measured yet." in written(optimizer, tmp_path / "p.html")
    optimizer.tell({"x": 0.5}, 1.0)
    assert "too few results for an interval" in written(optimizer, tmp_path / "p.html")


def test_before_the_first_fit_nothing_is_said_about_other_settings(tmp_path):
    optimizer = Optimizer({"kind": Choice(["a", "b"])}, rng=0)
    for value in (1.0, 1.1, 0.9):
        for kind in ("a", "b"):
            optimizer.tell({"kind": kind}, value + (kind == "b"))
    page, terminal = written(optimizer, tmp_path / "p.html"), conclusion(_findings(optimizer, "mine"))
    for text in (page, terminal):
        assert not re.search("another setting|better setting|left to gain", text, re.IGNORECASE)


@pytest.mark.slow
def test_what_is_left_to_gain_is_said_after_the_first_fit(tmp_path):
    optimizer = measured({name: Float(0, 1) for name in "xyz"}, rounds=14)
    assert not optimizer.best().gap < np.inf
    said = optimizer.best().remaining_in_words()[1:]
    assert said in written(optimizer, tmp_path / "p.html")
    assert said in conclusion(_findings(optimizer, "mine"))


@pytest.mark.slow
def test_the_page_says_when_a_failed_setting_is_avoided(tmp_path):
    text = written(measured({"x": Float(0, 1)}, failing=(3,)), tmp_path / "p.html")
    assert "treated as a bad one if it is more likely broken than unlucky" in text


@pytest.mark.slow
def test_tables_with_and_without_names(tmp_path):
    rows = [{"x": float(i), "name": str(i)} for i in range(12)]
    assert "Of 12 candidates" in written(measured(rows), tmp_path / "p.html")
    array = np.arange(24.0).reshape(12, 2)
    text = written(measured(array, value=lambda row: row[0]), tmp_path / "p.html")
    assert "Of 12 candidates" in text
    assert "column 0" in text
    numbered = [{0: float(i), 1: str(i)} for i in range(12)]  # as a data frame without names has them
    text = written(measured(numbered, value=lambda row: row[0]), tmp_path / "p.html")
    assert "column 0" in text
    assert "column 1" in text


def objective(trial):
    x, kind = trial.suggest_float("x", 0.01, 1, log=True), trial.suggest_categorical("kind", ["a", None, 2])
    n = trial.suggest_int("n", 0, 100)
    if trial.number == 7:
        raise RuntimeError
    if trial.number == 8:
        trial.report(3.0, 1)
        raise optuna.TrialPruned
    return x + (kind is None) + 0.01 * n


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [optuna.samplers.TPESampler(seed=0), optuna.samplers.RandomSampler(seed=0)])
def test_an_optuna_study_of_any_sampler(tmp_path, sampler):
    study = optuna.create_study(study_name="<mine>", direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=30, catch=RuntimeError)
    text = written(study, tmp_path / "p.html")
    assert "29 measurements, 1 failed run" in text
    assert "Best setting, highest expected result" in text
    assert "<mine>" in text
    assert "Which parameters matter" in text


@pytest.mark.slow
def test_a_pruned_trial_counts_at_its_step_as_for_the_sampler(tmp_path):
    check_pruned(tmp_path, 0)


def check_pruned(tmp_path, seed):
    """Raise AssertionError unless `report` takes a pruned trial as the sampler does."""
    rng = np.random.default_rng(seed)

    def trained(trial):
        x = trial.suggest_float("x", 0, 1)
        for epoch in range(1, 11):
            value = (x - 0.3) ** 2 + math.exp(-epoch / 3) + 0.02 * rng.standard_normal()
            trial.report(value, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    sampler, pruner = optuna.samplers.TPESampler(seed=seed), optuna.pruners.MedianPruner(5, 1)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    study.optimize(trained, n_trials=60)
    pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    assert pruned > 30
    expected, found = NoRegretSampler(seed=0).best(study), _findings(study, "study")
    assert found.best.params["x"] == pytest.approx(expected.params["x"], abs=0.01)
    for name in ("estimate", "lower", "upper"):
        assert getattr(found.best, name) == pytest.approx(getattr(expected, name), abs=0.005)
    truth = (expected.params["x"] - 0.3) ** 2 + math.exp(-10 / 3)
    assert found.best.lower < truth < found.best.upper
    assert len(found.early) == pruned
    assert f"{pruned} at lower step" in written(study, tmp_path / "p.html")


def test_parameters_that_some_trials_have(tmp_path):
    def branching(trial):
        x, kind = trial.suggest_float("x", 0, 1, step=0.1), trial.suggest_categorical("kind", ["a", "b"])
        return x + (trial.suggest_int("depth", 1, 9, step=2) if kind == "b" else trial.suggest_int("k", 2, 2))

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(branching, n_trials=30)
    text = written(study, tmp_path / "p.html")
    assert "30 measurements" in text
    assert "depth" in text
    assert all(len(line.split(",")[5]) <= 3 for line in downloaded(tmp_path / "p.html"))  # 0.3, not 0.30000000000000004


def test_one_name_with_two_ranges(tmp_path):
    def branching(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float("x", 0, 1) if kind == "a" else trial.suggest_float("x", 5, 9)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(branching, n_trials=30)
    assert "x (2)" in written(study, tmp_path / "p.html")
    assert "x (2)" in downloaded(tmp_path / "p.html")[0]


def test_what_not_all_trials_have_is_left_out_with_a_warning(tmp_path):
    study = optuna.create_study()
    for x in range(6):
        own = {"y": optuna.distributions.FloatDistribution(0, 9)} if x == 3 else {}
        space = {"x": optuna.distributions.FloatDistribution(0, 9), **own}
        study.add_trial(optuna.create_trial(params=dict.fromkeys(space, x), distributions=space, value=float(x)))
    with pytest.warns(UserWarning, match="leaves out parameters of which it is not clear when trials have them: y"):
        text = written(study, tmp_path / "p.html")
    assert "6 measurements" in text


def test_what_is_refused(tmp_path):
    page = tmp_path / "p.html"
    with pytest.raises(ValueError, match="takes an Optimizer or an Optuna study, got dict"):
        report({}, page)
    with pytest.raises(ValueError, match=r"path must end in \.html"):
        report(measured({"x": Float(0, 1)}, 2), tmp_path / "p.pdf")
    for directions in (["minimize"], ["minimize", "maximize"]):
        with pytest.raises(ValueError, match="must have a completed trial with a parameter"):
            report(optuna.create_study(directions=directions), page)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_optimizer_needs_no_optuna(tmp_path):
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from noregret import Float, Optimizer, report\n"
        "optimizer = Optimizer({'x': Float(0, 1)}, rng=0)\n"
        "for x in (0.1, 0.2, 0.3): optimizer.tell({'x': x}, x)\n"
        f"report(optimizer, {str(tmp_path / 'p.html')!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "Best setting" in (tmp_path / "p.html").read_text()


def with_contexts(count=30, space=None, **options):
    """The best x is the load."""
    space = {"x": Float(0, 1), "y": Float(0, 1)} if space is None else space
    context = {"load": Float(0, 1), "region": Choice(["eu", "us"])}
    opt, rng = Optimizer(space, rng=0, context=context, **options), np.random.default_rng(0)
    for i in range(count):
        trial = opt.ask(context={"load": (i % 5) / 4, "region": "us" if i % 3 else "eu"})
        x = trial.params["x"] if isinstance(trial.params, dict) else trial.params[0]
        opt.tell(trial, 2 + (x - trial.context["load"]) ** 2 + 0.01 * rng.standard_normal())
    return opt


def html_of(opt, folder):
    report(opt, folder / "page.html")
    return (folder / "page.html").read_text()


def test_all_contexts_are_listed_where_they_are_few(tmp_path):
    opt = Optimizer({"x": Float(0, 1)}, rng=0, context={"region": Choice(["eu", "us"])})
    for region in ("us", "eu", "us"):
        opt.tell(opt.ask(context={"region": region}), 1.0)
    assert "The best setting in every measured context" in html_of(opt, tmp_path)


def test_a_table_without_names_has_a_page_with_contexts(tmp_path):
    rows = np.linspace(0, 1, 6)[:, None]
    text = html_of(with_contexts(12, space=rows, baseline=rows[0]), tmp_path)
    assert "The best setting by context" in text
    assert "<th>column 0</th>" in text


def from_few(result, goal="minimize"):
    """Findings of a study with four results that differ much."""
    study = Study(Path("s.toml"), ("m", "{x}"), space={"x": Float(0, 1)}, goal=goal, result=result, baseline={"x": 0.0})
    values = zip([0.0, 1.0, 0.1, 0.9], [0.6, 0.01, 0.5, 0.02], strict=True)
    records = [record(i, {"x": x}, "done", value) for i, (x, value) in enumerate(values)]
    return Findings(study, records, believed(study, records))


@pytest.mark.parametrize("result", [WallTime(), UserTime(), MaxRss()])
def test_times_and_memory_are_nowhere_less_than_0(result):
    assert from_few(LastNumber()).best.lower < 0  # it may be: nothing is known about the number
    found = from_few(result)
    ends = found.best.lower, found.gain.baseline.lower, *(its.lower for its in found.estimates)
    assert (found.best.lower, min(ends)) == (0.0, 0.0)
    assert found.best.upper == from_few(LastNumber()).best.upper
    assert min(min(its.estimate) for its in found.effects) >= 0
    assert min(min(its.lower) for its in found.effects) == 0
    interval = f"probably between 0 and {words.number(found.best.upper, 3)}{found.unit} (95%)"
    assert interval in conclusion(found)
    assert interval in unescape(page(found))
    told = summary(found)
    assert (told["best"]["lower"], told["best"]["upper"]) == (0.0, found.best.upper)
    assert told["baseline"]["lower"] >= 0


def gained(goal, result, best, baseline, relative):
    """Gain from the ends of two estimates, and of their relative difference."""
    low, high = (0.0, math.inf) if possible(result) == (0.0, None) else (-math.inf, math.inf)
    ends = [[min(max(end, low), high) for end in each] for each in (best, baseline)]
    best, baseline = Estimate({"x": 0}, *ends[0]), Estimate({"x": 1}, *ends[1])
    sign = -1 if goal == "minimize" else 1
    middle = sign * (best.estimate - baseline.estimate)
    return Gain(middle, middle - 2, middle + 2, best, baseline, goal, relative=relative).within(low, high)


def test_a_time_gets_at_most_100_percent_lower():
    few, usual = (0.1, -0.1, 0.4), (0.5, 0.3, 0.7)
    gain = gained("minimize", WallTime(), few, usual, (-0.2, 1.01))
    assert str(gain) == (
        "not shown to be better than your settings: 80% lower (between 100% lower and 20% higher, at 95%)"
    )
    assert (gain.lower, gain.upper, gain.best.lower) == (-0.4, 0.7, 0.0)  # if the baseline is 0, and if the best is
    assert gained("minimize", WallTime(), (-0.1, -0.2, 0.4), usual, (0.9, 1.3)).percent == (100, 90, 100)
    gain = gained("maximize", MaxRss(), few, usual, (-1.3, 0.2))
    assert gain.percent == pytest.approx((-80, -100, 20))
    assert (gain.lower, gain.upper) == (-0.7, 0.4)
    surely = gained("minimize", WallTime(), (0.1, 0.05, 0.2), usual, (0.6, 0.9))
    assert surely.percent == pytest.approx((80, 60, 90))


def test_a_number_of_either_sign_is_not_told_in_percent():
    few, usual = (0.1, -0.1, 0.4), (0.5, 0.3, 0.7)
    gain = gained("minimize", LastNumber(), few, usual, (-0.2, 1.01))
    assert str(gain) == (
        "not shown to be better than your settings: 0.4 lower (between 2.4 lower and 1.6 higher, at 95%)"
    )
    assert gained("minimize", LastNumber(), few, (-0.5, -0.7, -0.3), (-1.5, 0.2)).percent is None
    assert gained("minimize", LastNumber(), (-0.9, -1, -0.8), (-0.5, -0.7, -0.3), (0.3, 1.5)).percent is not None
    assert gained("minimize", LastNumber(), (-0.9, -1, -0.8), usual, (1.3, 3.0)).percent is not None


def test_the_times_of_a_front_are_at_least_0():
    goals, readers = {"time": "minimize", "loss": "minimize"}, {"time": WallTime()}
    study = Study(
        Path("s.toml"), ("m", "{x}"), space={"x": Float(0, 1)}, goals=goals, results=readers, baseline={"x": 0.0}
    )
    rows = [(0.0, 0.6, 0.01), (1.0, 0.01, 0.6), (0.1, 0.5, 0.02), (0.9, 0.02, 0.5)]
    records = [record(i, {"x": x}, "done", a, values={"time": a, "loss": b}) for i, (x, a, b) in enumerate(rows)]
    found = Findings(study, records, believed(study, records), wish=Wish({}, {"time": 1.0, "loss": 1.0}))
    assert min(its.lower["time"] for its in found.front) == 0.0
    assert min(its.lower["loss"] for its in found.front) < 0.0
    assert found.picked.lower["time"] >= 0
    assert found.gains["time"].best.lower >= 0
