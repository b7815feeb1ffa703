"""Measuring the recommendation: the last evaluations of a budget, and ``noregret confirm``."""

import json
import re
from contextlib import nullcontext
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from tests.studies.made import outcome, record

from noregret.cli import main
from noregret.comparison import Comparison
from noregret.optimizer import LEVEL, Float, Int, Optimizer
from noregret.studies import confirm
from noregret.studies.confirm import Confirmation, signed_rank_interval
from noregret.studies.running import suggester_of
from noregret.studies.session import Plan
from noregret.studies.study.reading import load
from noregret.studies.study.study import Budget, Stop, Study

NOISY = "import random, sys; print((float(sys.argv[1]) - 0.3) ** 2 + int(sys.argv[2]) + random.gauss(0, 0.05))"
STUDY = """
command = ["python3", "-c", {program}, "{{x}}", "{{n}}"]
{more}
[budget]
evaluations = {rounds}
{baseline}
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[parameters.n]
type = "int"
low = 1
high = 9
"""


def written(folder, rounds=20, more="", baseline="[baseline]\nx = 0.9\nn = 2", program=NOISY):
    path = folder / "s.toml"
    path.write_text(STUDY.format(program=json.dumps(program), rounds=rounds, more=more, baseline=baseline))
    return path


def simulated(study, count, noise=0.05):
    """Records of a study whose suggestions are followed."""
    rng, suggester, records = np.random.default_rng(0), suggester_of(study), []
    while len(records) < count:
        found = suggester(records)
        if found is None:
            break
        value = (found.params["x"] - 0.3) ** 2 + found.params["n"] + noise * rng.standard_normal()
        records.append(record(len(records), found.params, "done", value, told=tuple(found.told)))
    return records, suggester


def times(records, params):
    return sum(record.params == params for record in records)


SPACE = {"x": Float(0.0, 1.0), "n": Int(1, 9)}


@pytest.mark.slow
def test_the_recommendation_has_been_measured_when_the_budget_is_used(tmp_path):
    study = Study(tmp_path / "s.toml", ("m",), space=SPACE, budget=Budget(rounds=30))
    records, suggester = simulated(study, 30)
    suggester(records)
    assert times(records, suggester.latest[1].best().params) >= 3
    after_a_kill = suggester_of(study)(records[:27])
    assert after_a_kill.params == records[27].params


@pytest.mark.slow
def test_a_study_that_is_precise_enough_measures_its_recommendation_first(tmp_path):
    study = Study(tmp_path / "s.toml", ("m",), space={"x": Int(0, 1), "n": Int(1, 2)}, stop=Stop(5.0), confirm=4)
    records, suggester = simulated(study, 60)
    assert len(records) < 60
    suggester(records)
    assert times(records, suggester.latest[1].best().params) >= 4


def test_confirming_is_left_to_the_end_and_counts_pending_trials():
    opt = Optimizer({"x": Int(1, 3)}, rng=0)

    def confirming(left, budget, times, pending=()):
        return Plan(Budget(budget), confirm=times)._confirmed(opt, left, budget, pending)

    assert confirming(1, 40, 3) is None  # nothing is known
    for x in (1, 2, 3, 1, 2, 3):
        opt.tell({"x": x}, float(x))
    best = opt.best().params
    assert confirming(6, 40, 3) == best
    assert confirming(7, 40, 3) is None
    assert confirming(1, 40, 2) is None  # it has two results already
    assert confirming(1, 40, 3, pending=[best]) is None
    assert confirming(1, 40, 0) is None
    assert [confirming(1, budget, 3) for budget in (4, 5)] == [None, best]


def test_the_interval_has_its_exact_level():
    rng = np.random.default_rng(0)
    for count in (1, 2, 5, 6, 10):
        values = rng.standard_normal(count)
        found = signed_rank_interval(values)
        means = [0.5 * (values[i] + values[j]) for i in range(count) for j in range(i + 1)]
        inside = []  # whether the interval holds 0, for every choice of signs of the differences
        for signs in product((-1, 1), repeat=count):
            its = signed_rank_interval(values * signs)
            inside.append(its.lower <= 0 <= its.upper)
        assert np.mean(inside) == pytest.approx(found.level) or count == 1
        assert found.estimate == pytest.approx(np.median(means))
        assert found.level >= 0.95 or count < 6
    assert signed_rank_interval([1.0]).level == 0.0


@pytest.mark.slow
def test_confirm_compares_best_and_baseline_in_pairs_and_leaves_the_study_alone(tmp_path, capsys):
    path = written(tmp_path, rounds=12)
    assert main(["tune", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    best = out[-1]
    assert best.startswith("python3 -c ")
    assert main(["report", str(path), "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    assert before["command"] == best
    assert main(["confirm", str(path), "--pairs", "6"]) == 0
    said = capsys.readouterr().out
    assert len(re.findall(r"^pair \d of 6: baseline \S+, best \S+$", said, re.MULTILINE)) == 6
    assert re.search(r"^[\d.]+% lower than the baseline, between [\d.]+% and [\d.]+% \(96.9%\)$", said, re.MULTILINE)
    assert "from 6 pairs of new runs in random order, which are not part of the study" in said
    assert main(["confirm", str(path), "--pairs", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gain"]["lower"] <= found["gain"]["estimate"] <= found["gain"]["upper"]
    assert found["gain"]["level"] == 0.5
    assert len(found["pairs"]) == 2
    assert found["command"] == best
    assert main(["report", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == before


@pytest.mark.slow
def test_confirm_says_what_it_needs(tmp_path, capsys):
    path = written(tmp_path, rounds=3, baseline="")
    assert main(["confirm", str(path)]) == 2
    assert "add a [baseline] table with a value for each parameter" in capsys.readouterr().err
    path = written(tmp_path, rounds=3)
    assert main(["confirm", str(path)]) == 2
    assert "does not exist yet" in capsys.readouterr().err
    assert main(["tune", str(path)]) == 0
    written(tmp_path, rounds=3, program="raise SystemExit(4)")
    text = path.read_text().replace("[budget]", 'name = "another"\n[budget]')
    path.write_text(text)
    assert main(["tune", str(path)]) == 3
    assert main(["confirm", str(path)]) == 2
    assert "no result yet: run 'noregret tune' first" in capsys.readouterr().err


def test_the_key_confirm(tmp_path, capsys):
    assert load(written(tmp_path)).confirm == 3
    assert load(written(tmp_path, more="confirm = 0")).confirm == 0
    written(tmp_path, more="confirm = -1")
    assert main(["tune", str(tmp_path / "s.toml"), "--dry-run"]) == 2
    assert "confirm: must be a whole number" in capsys.readouterr().err


def confirmation(tmp_path, usual, best, is_complete=True, goal="minimize"):
    """The confirmation of a study with these results of baseline and best setting."""
    study = Study(tmp_path / "s.toml", ("m",), space=SPACE, goal=goal, baseline={"x": 0.9, "n": 2})
    best_one = SimpleNamespace(params={"x": 0.3, "n": 1})
    found = SimpleNamespace(study=study, best=best_one, unit="", command="m", measures=study.measures)
    outcomes = [[outcome(0, value, "" if value else "exit code 1") for value in each] for each in (usual, best)]
    return Confirmation(found, raced(study, outcomes, "pairs" if is_complete else "interrupted"))


def raced(study, outcomes, stopped):
    comparison = Comparison(confidence=LEVEL, goal=study.goal, rng=0)
    for pair in zip(*outcomes, strict=True):
        for option, run in enumerate(pair):
            comparison.tell(option, run.value())
    return SimpleNamespace(comparison=comparison, records=outcomes, stopped=stopped)


def test_a_confirmation_that_was_stopped_has_an_interval_for_every_stopping_time(tmp_path):
    rng = np.random.default_rng(0)
    usual, best = rng.lognormal(sigma=0.1, size=(2, 10)) * [[2.0], [1.0]]
    planned, stopped = (confirmation(tmp_path, usual, best, flag).percent for flag in (True, False))
    assert planned.level == pytest.approx(0.951, abs=0.001)
    assert stopped.level == LEVEL
    assert stopped.lower < planned.lower < planned.upper < stopped.upper
    ratios = np.sort(best / usual)
    assert (stopped.lower, stopped.upper) == pytest.approx((100 * (1 - ratios[-1]), 100 * (1 - ratios[0])))
    assert confirmation(tmp_path, usual[:6], best[:6], False).percent.upper == np.inf


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_a_failed_run_of_a_confirmation_loses_its_pair(tmp_path, goal):
    usual, best = [2.0 + 0.01 * i for i in range(20)], [1.1 - 0.003 * i for i in range(20)]
    failed = confirmation(tmp_path, usual, [None, *best[1:]], goal=goal)
    assert failed.percent.lower < confirmation(tmp_path, usual, best, goal=goal).percent.lower
    assert failed.percent.lower > -np.inf
    assert failed.as_json()["failures"] == {"baseline": 0, "best": 1}
    assert "baseline 0, best 1 of 20" in str(failed)
    assert "exit code 1" in str(failed)
    often = confirmation(tmp_path, usual, [None] * 12 + best[12:], goal=goal)
    assert (often.percent.estimate, often.percent.lower) == (-np.inf, -np.inf)
    assert str(often).startswith("most pairs have a failed run, so there is no estimate of the gain")
    assert ": the best setting fails more often" in str(often)
    assert often.as_json()["gain"]["lower"] is None
    both = confirmation(tmp_path, [None, None, *usual[2:]], [None, 1.0, None, *best[3:]], goal=goal)
    assert "nan" not in str(both)


def test_results_that_pass_or_fail_are_confirmed_by_means(tmp_path):
    found = confirmation(tmp_path, [1.0, 0.0] * 20, [1.0] * 40, goal="maximize")
    assert found.as_json()["quantity"] == "difference of means"
    assert (found.percent, found.difference.estimate) == (None, 0.5)
    assert str(found).startswith("50 points more runs pass (")


def test_ctrl_c_stops_a_confirmation(tmp_path, monkeypatch, capsys):
    """The exit code is 130, and the interval is that for every stopping time."""
    made = confirmation(tmp_path, [2.0 + 0.1 * i for i in range(8)], [1.0] * 8, is_complete=False)
    found = made.found
    monkeypatch.setattr(confirm, "check_command", lambda study: None)
    monkeypatch.setattr(confirm, "Store", lambda study, readonly: nullcontext())
    monkeypatch.setattr(confirm, "findings", lambda study, store: found)
    monkeypatch.setattr(confirm, "measured", lambda found, pairs, quiet: made)
    assert confirm.confirm(found.study, 10, as_json=True) == 130
    said = json.loads(capsys.readouterr().out)["gain"]
    assert (said["level"], said["lower"]) == (LEVEL, pytest.approx(50.0))
