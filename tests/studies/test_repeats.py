"""A range of repeats: the results decide how often a trial runs."""

from pathlib import Path

import numpy as np
import pytest
from tests.studies.made import outcome, suggested
from tests.studies.made import record as made

from noregret import Float, Optimizer
from noregret.studies.learning.findings import Findings, summary
from noregret.studies.learning.suggest import believed
from noregret.studies.running import suggester_of
from noregret.studies.session import Target, target_of
from noregret.studies.store.store import Store
from noregret.studies.study.results import LastNumber
from noregret.studies.study.study import Budget, Study

SPACE = {"x": Float(0, 1)}


def record(number, x, runs):
    return made(number, {"x": x}, "done", runs=tuple(runs))


@pytest.mark.parametrize(("goal", "sign"), [("minimize", 1), ("maximize", -1)])
def test_a_trial_is_out_of_reach_if_its_median_is_worse_by_its_standard_error(goal, sign):
    target = Target(sign * 10.0, noise=2.0, goal=goal)
    assert not target.is_out_of_reach([sign * 11.9])
    assert target.is_out_of_reach([sign * 12.1])
    assert target.is_out_of_reach([sign * 11.5] * 2)  # 2 / sqrt(2) = 1.41
    assert not target.is_out_of_reach([sign * 11.4] * 3)  # 1.2533 * 2 / sqrt(3) = 1.447
    assert target.is_out_of_reach([sign * 11.5] * 3)
    assert not target.is_out_of_reach([sign * each for each in (11, 12, 5, 30, 13)]), "the runs show more noise"


def test_settings_as_good_as_the_best_are_run_more_often_than_bad_ones():
    """Under normal noise the first run of an equal setting is worse by a standard deviation with probability 0.16."""
    rng, target = np.random.default_rng(0), Target(0.0, noise=1.0, goal="minimize")

    def runs(shift):
        values = [shift + rng.standard_normal()]
        while len(values) < 10 and not target.is_out_of_reach(values):
            values.append(shift + rng.standard_normal())
        return len(values)

    equal, bad = (np.array([runs(shift) for _ in range(2000)]) for shift in (0.0, 3.0))
    assert np.mean(equal == 1) == pytest.approx(0.159, abs=0.03)
    assert np.mean(equal) > 6
    assert np.mean(bad == 1) == pytest.approx(0.977, abs=0.015)


def test_the_target_is_the_recommended_setting_with_the_noise_of_one_run():
    rng, opt = np.random.default_rng(0), Optimizer(SPACE, rng=0)
    assert target_of(opt) is None
    for x in np.linspace(0, 1, 60):
        opt.tell({"x": float(x)}, 5 + (x - 0.3) ** 2 + 0.2 * rng.standard_normal())
    target = target_of(opt)
    assert target.estimate == opt.best().estimate
    assert target.noise == pytest.approx(0.2, rel=0.4)


def test_each_run_is_told_and_stored(tmp_path):
    study = Study(tmp_path / "s.toml", ("true",), space=SPACE, budget=Budget(rounds=3), repeats=(1, 10))
    first = outcome(0, runs=(1.0, 2.0, 9.0))
    with Store(study) as store:
        for x in (0.2, 0.7):
            store.claim(lambda records, x=x: suggested({"x": x}, []))
        assert store.tell(first)
        assert store.tell(outcome(1, 3.0))
        assert store.tell(first), "the same outcome twice counts once"
        found = store.records()
    assert found[0].readings == first.readings
    known = believed(study, found)
    assert [answer.value for answer in known.answers] == [1.0, 2.0, 9.0, 3.0]
    findings = Findings(study, found, known)
    assert findings.weights.keys() == {0, 1}
    assert [its.get("runs") for its in summary(findings)["trials"]] == [[1.0, 2.0, 9.0], None]


def test_numbers_of_constraints_are_medians_and_come_once():
    study = Study(Path("s.toml"), (), space=SPACE, result=LastNumber(), constraints={"memory": ("<=", 9.0)})
    found = believed(study, [made(0, {"x": 0.5}, "done", constraints={"memory": 7.0}, runs=(1.0, 2.0))])
    assert [dict(its.constraints) for its in found.answers] == [{"memory": 7.0}, {"memory": None}]


def test_one_run_is_enough_until_there_is_something_to_compare_with(tmp_path):
    study = Study(tmp_path / "s.toml", ("true",), space=SPACE, repeats=(1, 10))
    suggest = suggester_of(study)
    assert suggest.is_enough([1.0])
    suggest([record(number, x, [5 + x, 5.1 + x]) for number, x in enumerate(np.linspace(0.05, 0.95, 19))])
    assert not suggest.is_enough([5.0])
    assert suggest.is_enough([9.0])
