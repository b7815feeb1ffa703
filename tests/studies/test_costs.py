"""Costs in studies: the seconds of a trial, if seconds are what the budget counts."""

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.studies.made import outcome, record, suggested

from noregret import Float, Optimizer, minimize
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import believed
from noregret.studies.page.page import page
from noregret.studies.page.reporting import report
from noregret.studies.running import suggester_of
from noregret.studies.store.store import Store
from noregret.studies.study.study import Budget, Study

SPACE = {"x": Float(0.0, 1.0)}
TIMED = Study(Path("s.toml"), ("m", "{x}"), space=SPACE, budget=Budget(seconds=100.0))
COUNTED = replace(TIMED, budget=Budget(rounds=100))


def records(count, cost=lambda x: 100.0**x):
    """Trials with costs that vary 100-fold."""
    places = [(7 * i % count) / count for i in range(count)]
    return [record(i, {"x": x}, "done", (x - 0.4) ** 2, seconds=cost(x), cost=cost(x)) for i, x in enumerate(places)]


@pytest.mark.parametrize(("budget", "weighs"), [(Budget(5), False), (Budget(5, 9.0), False), (Budget(None, 9.0), True)])
def test_costs_matter_if_seconds_are_what_the_budget_counts(budget, weighs):
    study = replace(TIMED, budget=budget)
    costs = [its.cost for its in believed(study, records(12)).answers]
    assert study.weighs_costs == weighs
    assert costs == ([its.value("cost") for its in records(12)] if weighs else [None] * 12)


def test_the_next_trial_fits_into_the_time_that_is_left(monkeypatch):
    suggest = suggester_of(replace(TIMED, confirm=0))
    for left in (100.0, 20.0, 4.0):
        monkeypatch.setattr(suggest, "begun", time.monotonic() - 100.0 + left)
        assert 100.0 ** suggest(records(16)).params["x"] < left


@pytest.mark.slow
def test_the_cost_of_a_trial_is_stored(tmp_path):
    study = replace(TIMED, storage=f"sqlite:///{tmp_path}/s.db")
    with Store(study) as store:
        for cost in (1.5, None):
            trial = store.claim(lambda _: suggested({"x": 0.5}, ())).trial
            store.tell(outcome(trial.number, 1.0, seconds=1.0, cost=cost))
    with Store(study, readonly=True) as store:
        assert [its.value("cost") for its in store.records()] == [1.5, None]


@pytest.mark.parametrize(
    ("budget", "has_costs"), [({"seconds": 0.3}, True), ({"seconds": 60.0, "evaluations": 5}, False)]
)
@pytest.mark.slow
def test_minimize_knows_the_time_of_each_call(budget, has_costs, tmp_path):
    for storage in (None, tmp_path / "study.db"):
        found = minimize(lambda x: time.sleep(0.01) or x, SPACE, storage=storage, rng=0, **budget)
        answers = found.optimizer.answers
        assert len(answers) >= 2
        assert all((its.cost is not None and its.cost >= 0.01) == has_costs for its in answers)
        assert found.optimizer.budget == (0.3 if has_costs else None)


def test_the_page_shows_what_was_spent(tmp_path):
    def section(study, told):
        found = re.search('<section id="costs">(.*?)</section>', page(Findings(study, told, believed(study, told))))
        return found and found[1]

    timed = section(TIMED, records(20))
    assert "Eight of ten trials cost between" in timed
    assert "Improvement was weighed by the expected cost" in timed
    assert "The budget counts evaluations" in section(COUNTED, records(20))
    assert section(COUNTED, records(20, lambda x: 1.0 + x)) is None, "they hardly differ"
    opt = Optimizer(SPACE, rng=0)
    for its in records(12):
        opt.tell(its.params, its.value(), cost=its.value("cost"))
    report(opt, tmp_path / "page.html")
    assert "cost spent" in (tmp_path / "page.html").read_text("utf-8")
