"""Costs of trials: modelled, weighed against improvement, and kept within a budget."""

import copy
import math

import numpy as np
import pytest

from noregret import Float, Optimizer
from noregret.optimizer import Improve, Observation, OptimizerConfig, Replay
from noregret.optimizer.model.costs import COOLED_FROM, NO_BUDGET, CurrentCosts, prices_of

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def price(params):
    """A cost that varies 100-fold along x."""
    return 100.0 ** params["x"]


def value(params):
    return (params["x"] - 0.4) ** 2 + (params["y"] - 0.7) ** 2


def random_past(count, cost=price, seed=0, **options):
    """An optimizer that knows random settings of the past."""
    opt, rng = Optimizer(SPACE, rng=0, **options), np.random.default_rng(seed)
    for x, y in rng.random((count, 2)).tolist():
        params = {"x": x, "y": y}
        noise = 0.05 * rng.standard_normal(2)
        opt.tell(params, value(params) + noise[0], cost=cost(params) * math.exp(noise[1]) if cost else None)
    return opt


def played(opt, trials, cost=price):
    rng, asked = np.random.default_rng(1), []
    for _ in range(trials):
        trial = opt.ask()
        asked.append(trial.params)
        opt.tell(trial, value(trial.params) + 0.05 * rng.standard_normal(), cost=cost and cost(trial.params))
    return asked


def test_the_model_knows_the_logarithm_of_the_cost_in_spite_of_outliers():
    opt = random_past(40)
    for x in (0.2, 0.5, 0.8):  # stalls
        opt.tell({"x": x, "y": 0.5}, 0.1, cost=50 * price({"x": x}))
    points = np.random.default_rng(5).random((50, 2))
    mean, std = CurrentCosts(opt.calibration).model(opt._history).predict(points)
    wrong = mean - math.log(100) * points[:, 0]
    assert np.sqrt(np.mean(wrong**2)) < 0.15
    assert np.mean(np.abs(wrong) < 2 * std) > 0.9
    assert opt.predict({"x": 0.5, "y": 0.5}).cost == pytest.approx(10.0, rel=0.2)


def test_costs_of_failures_are_learnt_and_unknown_costs_are_not_needed():
    opt, rng = Optimizer(SPACE, rng=0), np.random.default_rng(0)
    for i, (x, y) in enumerate(rng.random((30, 2)).tolist()):
        params = {"x": x, "y": y}
        if i % 3 == 0:
            opt.tell(params, value(params))
        elif i % 3 == 1:
            opt.tell(params, value(params), cost=price(params))
        else:
            opt.fail(params, cost=price(params))
    assert opt.predict({"x": 0.8, "y": 0.5}).cost == pytest.approx(100**0.8, rel=0.3)
    assert opt._history.costs(30) == 20


def test_scores_are_divided_by_the_cost_to_an_exponent_that_cools():
    opt = random_past(20)
    model, arms = CurrentCosts(opt.calibration).model(opt._history), np.random.default_rng(2).random((30, 2))
    scores, allowed, mean = np.linspace(-3, 0, 30), np.ones(30, dtype=bool), model.predict(arms)[0]
    for left, exponent in ((1000.0, 1.0), (600.0, 1.0), (250.0, 0.25 / COOLED_FROM)):
        prices = prices_of(model, arms, allowed, left, 1000.0)
        assert prices.weighed(scores, None) == pytest.approx(scores - exponent * mean)
        assert prices.weighed(scores, 0.3) == pytest.approx(scores - 0.3 * mean)
    unknown = prices_of(model, arms, allowed, None, 0.0)
    assert unknown.weighed(scores, None) == pytest.approx(scores - NO_BUDGET * mean)


def test_what_does_not_fit_into_the_rest_of_the_budget_is_not_asked():
    opt = random_past(20)
    for left in (50.0, 10.0, 3.0):
        asked = opt.ask(5, left=left)
        assert all(price(trial.params) < left for trial in asked)
    assert price(opt.ask(left=1e-6).params) < 1.5, "the cheapest if nothing fits"


def test_the_budget_counts_trials_and_pending_ones_and_not_the_past():
    opt = random_past(20, budget=30.0)
    trial = opt.expect({"x": 0.5, "y": 0.5})
    assert price(opt.ask().params) < 20.0 * 1.2, "a pending trial is expected to cost 10"
    opt.tell(trial, 0.1, cost=10.0)
    opt.fail(opt.expect({"x": 0.5, "y": 0.1}), cost=15.0)
    assert opt._spent == 25.0
    assert price(opt.ask().params) < 5.0


@pytest.mark.slow
def test_equal_costs_change_nothing():
    """The null case: improvement per cost is improvement if all costs are equal."""
    with_costs, without = Optimizer(SPACE, rng=3), Optimizer(SPACE, rng=3)
    assert played(with_costs, 20, lambda params: 7.0) == played(without, 20, None)


@pytest.mark.slow
def test_cheap_settings_are_asked_for_where_improvement_is_alike():
    """The value does not depend on x, and the cost does."""

    def asked(exponent):
        improve, rng = Improve(cost_exponent=exponent, weighed_every=1), np.random.default_rng(0)
        opt = Optimizer(SPACE, rng=0, calibration=OptimizerConfig(questions=(improve,)))
        for x, y in rng.random((20, 2)).tolist():
            opt.tell({"x": x, "y": y}, (y - 0.7) ** 2 + 0.05 * rng.standard_normal(), cost=price({"x": x}))
        return np.mean([trial.params["x"] for trial in opt.ask(10)])

    assert asked(1.0) < 0.25 < asked(0.0)


def test_bad_costs_are_refused_and_change_nothing():
    opt = Optimizer(SPACE, rng=0)
    trial = opt.ask()
    for bad in (0, -1.0, math.nan, math.inf, "3", True):
        with pytest.raises(ValueError, match="cost must be a finite number above 0"):
            opt.tell(trial, 1.0, cost=bad)
        with pytest.raises(ValueError, match="cost must be"):
            opt.fail(trial, cost=bad)
        with pytest.raises(ValueError, match="row 0 of the frame: cost must be"):
            opt.tell_many([{"x": 0.1, "y": 0.2, "value": 1.0, "cost": bad if bad == bad else -1.0}])
    assert not opt.answers
    with pytest.raises(ValueError, match="budget must be a finite number above 0, got -1"):
        Optimizer(SPACE, budget=-1)
    with pytest.raises(ValueError, match="left must be"):
        opt.ask(left=0.0)


def test_costs_are_in_frames_and_come_back_from_them():
    opt = Optimizer(SPACE, rng=0)
    opt.tell({"x": 0.1, "y": 0.2}, 1.0)
    assert "cost" not in opt.to_frame()
    opt.tell({"x": 0.1, "y": 0.3}, 1.0, cost=2.0)
    opt.fail({"x": 0.1, "y": 0.4}, cost=3.0)
    frame, twin = opt.to_frame(), Optimizer(SPACE, rng=0)
    assert frame["cost"].tolist() == pytest.approx([math.nan, 2.0, 3.0], nan_ok=True)
    twin.tell_many(frame)
    assert [its.cost for its in twin.answers] == [None, 2.0, 3.0] == [its.cost for its in opt.answers]


def test_a_parameter_may_be_called_cost():
    opt = Optimizer({"cost": Float(0, 1)}, rng=0)
    opt.tell_many([{"cost": 0.5, "value": 1.0}])
    assert opt.to_frame()["cost"].tolist() == [0.5]
    opt.tell({"cost": 0.5}, 1.0, cost=2.0)
    frame, twin = opt.to_frame(), Optimizer({"cost": Float(0, 1)}, rng=0)
    assert frame["trial.cost"].tolist()[1:] == [2.0], "the column of a trial's cost has another name then"
    twin.tell_many(frame)
    assert twin.answers == opt.answers


@pytest.mark.slow
def test_a_saved_a_copied_and_a_replayed_optimizer_ask_the_same(tmp_path):
    opt = Optimizer(SPACE, rng=0, budget=500.0)
    played(opt, 14)
    opt.save(tmp_path / "opt.json")
    twins = [Optimizer.load(tmp_path / "opt.json"), copy.copy(opt)]
    assert [twin.budget for twin in twins] == [500.0, 500.0]
    assert [twin._spent for twin in twins] == [opt._spent] * 2
    asked = opt.ask().params
    assert [twin.ask().params for twin in twins] == [asked, asked]
    replayed = Replay(SPACE, "minimize", 0, budget=500.0)([its for its in opt.trials if its.is_finished])
    assert replayed.ask(left=500.0 - opt._spent).params == pytest.approx(asked, abs=1e-6)


def test_an_observation_has_its_cost_last():
    assert Observation({}, 1.0, None, {}).cost is None
