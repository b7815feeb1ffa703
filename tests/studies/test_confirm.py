"""Measuring the recommendation: the last evaluations of a budget, and ``noregret confirm``."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from tests.studies.made import outcome, record

from noregret.cli import main
from noregret.comparison import Comparison
from noregret.optimizer import LEVEL, Float, Int, Optimizer
from noregret.studies import confirm
from noregret.studies.confirm import Confirmation, Finalists, signed_rank_interval
from noregret.studies.display import conclusion
from noregret.studies.function import minimize
from noregret.studies.learning.findings import Findings, summary
from noregret.studies.learning.suggest import believed, replay_of
from noregret.studies.page.page import page
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
        records.append(record(len(records), found.params, "done", value, told=tuple(found.told), pair=found.pair))
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


BASELINE = {"x": 0.9, "n": 2}


def paired_study(tmp_path, **more):
    options = {"baseline": BASELINE, "budget": Budget(rounds=90)} | more
    return Study(tmp_path / "s.toml", ("m",), space=SPACE, **options)


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    """A study of 90 evaluations, and what was believed at its end."""
    study = paired_study(tmp_path_factory.mktemp("paired"))
    records, suggester = simulated(study, 90)
    suggester(records)
    return study, records, suggester.latest[1]


@pytest.mark.slow
def test_the_last_fifth_measures_the_recommendation_in_pairs_with_the_baseline(paired):
    _, records, optimizer = paired
    halves = [its for its in records if its.pair]
    assert len(halves) == 16
    assert min(its.number for its in halves) >= 0.8 * 90
    best, measured = optimizer.best().params, optimizer.gain().measured
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert one.pair == other.pair
        assert sorted([one.params == BASELINE, other.params == BASELINE]) == [False, True]
        assert best in (one.params, other.params)
    assert {its.params == BASELINE for its in halves[::2]} == {True, False}  # in random order
    differences = [
        sum((1 if its.params == BASELINE else -1) * its.value() for its in both)
        for both in zip(halves[::2], halves[1::2], strict=True)
    ]
    assert (measured.lower, measured.upper) == pytest.approx((min(differences), max(differences)))
    assert (measured.pairs, measured.lower > 0) == (8, True)


@pytest.mark.slow
def test_pairs_are_continued_after_a_crash_and_by_several_workers(paired):
    study, records, _ = paired
    places = [its.number for its in records if its.pair]
    for place in (places[0], places[1], places[7]):
        again = suggester_of(study)(records[:place])
        assert (again.params, again.pair) == (records[place].params, records[place].pair)
    running = replace(records[places[0]], state="running", readings={})
    second = suggester_of(study)([*records[: places[0]], running])
    assert (second.pair, second.params) == (running.pair, records[places[1]].params)
    both = [*records[: places[0]], running, replace(second, id=running.number + 1, state="running")]
    third = suggester_of(study)(both)
    assert third.pair.startswith("1 ")  # the next pair begins while the first one is measured


@pytest.mark.slow
def test_no_pairs_where_they_cannot_be_enough(tmp_path, paired):
    study, records, _ = paired
    begin = next(its.number for its in records if its.pair)
    for more in ({"confirm": 0}, {"budget": Budget(rounds=79)}, {"baseline": None}, {"budget": Budget(rounds=200)}):
        assert not suggester_of(paired_study(tmp_path, **more))(records[:begin]).pair, more
    assert suggester_of(study)(records[: begin + 1]).pair


@pytest.mark.slow
def test_a_stopping_rule_leaves_a_fifth_of_all_evaluations_for_pairs(tmp_path, paired):
    study = paired_study(tmp_path, stop=Stop(5.0), budget=Budget(rounds=1000))
    records, suggester = paired[1], suggester_of(study)
    assert suggester(records[:70]).pair
    early = suggester(records[:60])
    assert early is None or not early.pair


@pytest.mark.slow
def test_minimize_says_what_was_measured_first():
    rng = np.random.default_rng(0)
    result = minimize(
        lambda n: (2.0 if n == 1 else 1.0) * rng.lognormal(sigma=0.03),
        {"n": Int(1, 3)},
        evaluations=80,
        baseline={"n": 1},
        rng=0,
    )
    assert result.gain.measured.pairs == 8
    assert result.gain.measured.percent.lower < 50 < result.gain.measured.percent.upper
    assert (
        f"\nmeasured in 8 pairs: {str(result.gain.measured)[21:]} than your settings (at 95%); by the model 5"
        in str(result)
    )


@pytest.mark.slow
def test_every_output_of_a_study_has_what_was_measured(paired):
    study, records, optimizer = paired
    found = Findings(study, records, optimizer)
    told = json.loads(json.dumps(summary(found)))  # of ``report --json``
    measured = told["gain"]["measured"]
    assert (measured["pairs"], measured["level"]) == (8, 0.95)
    assert 0 < measured["lower"] <= measured["estimate"] <= measured["upper"]
    assert found.ending()["gain"]["measured"] == told["baseline"]["gain"]["measured"] == measured  # of ``tune --json``
    assert sum("pair" in trial for trial in told["trials"]) == 16
    said = f"{measured['text']} than your settings (at 95%); by the model "
    assert conclusion(found).startswith(said)
    assert said[1:] in page(found)
    assert said in repr(optimizer)


def race_of_rows(tmp_path, rows, goal="minimize"):
    """Finalists of a study with these results, a row for each round; the baseline is first."""
    study = Study(tmp_path / "s.toml", ("m",), space=SPACE, goal=goal, baseline=BASELINE)
    settings = [BASELINE, *({"x": 0.1 * place, "n": 1} for place in range(1, len(rows[0])))]
    found = SimpleNamespace(study=study, unit="")
    race = confirm.race_of(found, 99, list(map(str, range(len(settings)))), settings)
    for row in rows:
        while len(race.comparison.remaining) > 1:
            option = race.comparison.ask()
            race.comparison.tell(option, row[option])
            race.records[option].append(outcome(0, row[option]))
            if not race.comparison.awaited:
                break
    return Finalists(found, race)


def test_finalists_ties_go_to_the_baseline_and_the_best_that_is_shown_to_be_better_wins(tmp_path):
    noise = np.random.default_rng(0).lognormal(sigma=0.02, size=(40, 4))
    equal = race_of_rows(tmp_path, noise)
    assert (equal.choice, equal.better) == (0, [])
    assert "None of the 3 settings is shown to be better than the baseline: keep the baseline" in str(equal)
    one = race_of_rows(tmp_path, noise * [1.0, 1.0, 0.8, 0.95])
    assert (one.choice, one.comparison.best) == (2, 2)
    assert one.better == [2, 3]
    assert re.search(
        "^Setting 2 is better than the baseline: 19.* lower .*, and better than each of the others", str(one)
    )
    told = json.loads(json.dumps(one.as_json()))
    assert (told["choice"], told["is_best"], told["params"]) == (2, True, {"x": 0.2, "n": 1})
    assert [its["better"] for its in told["finalists"]] == [False, True, True]
    assert told["finalists"][1]["change"]["upper"] < 0
    higher = race_of_rows(tmp_path, noise * [1.0, 1.0, 0.8, 0.95], goal="maximize")
    assert (higher.choice, higher.better) == (0, [])
    tied = race_of_rows(tmp_path, noise * [1.0, 0.7, 0.7, 0.7])
    assert tied.choice in (1, 2, 3)
    assert "no other one is shown to be worse" in str(tied) or tied.comparison.best is None


def test_finalists_are_apart_and_as_many_as_there_are_settings(tmp_path):
    space = {"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}
    study = Study(tmp_path / "s.toml", ("m",), space=space, baseline={"x": 0.9, "y": 0.9})
    rng = np.random.default_rng(0)
    tried = [study.baseline, *({"x": x, "y": y} for x, y in rng.random((12, 2)))]
    tried += [{"x": 0.3 + dx, "y": 0.6 + dy} for dx, dy in rng.uniform(-0.01, 0.01, (12, 2))]
    records = [
        record(number, its, "done", (its["x"] - 0.3) ** 2 + (its["y"] - 0.6) ** 2) for number, its in enumerate(tried)
    ]
    found = Findings(study, records, believed(study, records, replay_of(study)))
    chosen = confirm.finalists(found, 4)
    points = np.array([[its["x"], its["y"]] for its in chosen])
    distances = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(4, 1)]
    assert len(chosen) == 4
    assert distances.min() >= 0.05 * np.sqrt(2)
    everything = confirm.finalists(found, 24)
    assert len(everything) == len({tuple(its.items()) for its in everything}) == 24
    assert chosen[0] == everything[0] == found.best.params


@pytest.mark.slow
def test_confirm_top_races_the_best_settings(tmp_path, capsys):
    path = written(tmp_path, rounds=14)
    assert main(["tune", str(path)]) == 0
    assert main(["report", str(path), "--json"]) == 0
    out = capsys.readouterr().out
    before = json.loads(out[out.index("\n{") :])
    assert main(["confirm", str(path), "--top", "2", "--pairs", "12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["finalists"][0]["params"] == before["best"]["params"]
    assert len(found["finalists"]) == 2
    assert (found["choice"] > 0, found["baseline"]["beaten"]) == (True, True)
    assert main(["confirm", str(path), "--top", "1", "--pairs", "3"]) == 0
    told = capsys.readouterr()
    assert "round 3 of 3: 2 of 2 not beaten" in told.out
    assert "--pairs 3: a verdict on 2 settings takes 7 at least" in told.err
    assert "keep the baseline" in told.out
    assert told.out.splitlines()[-1].endswith(" 0.9 2")


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
