"""Costs of trials that vary 100-fold: more is found for the same cost, and an expensive best is not missed."""

import numpy as np
import pytest

from noregret import Float, Optimizer


def regret(cost, best_x, seed, knows_costs, budget):
    """Regret of the recommendation after this cost; the value at the best is 1, and its range 1."""
    opt = Optimizer(
        {"x": Float(0, 1), "y": Float(0, 1)}, goal="maximize", rng=seed, budget=budget if knows_costs else None
    )
    rng, spent = np.random.default_rng([seed, 1]), 0.0

    def value(params):
        off = ((params["x"] - best_x) / 0.5) ** 2 if best_x is not None else 0.0
        return np.exp(-off - ((params["y"] - 0.3) / 0.15) ** 2)

    for _ in range(60):
        trial = opt.ask()
        price = cost(trial.params) * np.exp(0.1 * rng.standard_normal())
        if spent + price > budget:
            break
        spent += price
        opt.tell(trial, value(trial.params) + 0.3 * rng.standard_normal(), cost=price if knows_costs else None)
    return 1.0 - value(opt.best().params)


def both(best_x, seeds, budget):
    """Mean regret with costs known and not known, on the same seeds."""

    def cost(params):
        return 100 ** params["x"]

    return [np.mean([regret(cost, best_x, seed, knows, budget) for seed in range(seeds)]) for knows in (True, False)]


@pytest.mark.slow
def test_more_is_found_for_the_same_cost_where_cheap_settings_are_as_good():
    """Only the cost depends on x: 0.0075 with costs and 0.0173 without."""
    known, unknown = both(None, 8, 300.0)
    assert known < 0.75 * unknown


@pytest.mark.slow
def test_an_expensive_best_is_not_missed():
    """The best setting costs 100 times as much as the cheapest: 0.15 with costs and 0.21 without."""
    known, unknown = both(1.0, 6, 1000.0)
    assert known < unknown + 0.03
