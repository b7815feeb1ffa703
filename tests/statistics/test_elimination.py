"""Elimination over many seeds: the rate of random exploration, and the best arm at any time."""

from dataclasses import replace

import numpy as np
import pytest
from tests.bandits.decision.test_elimination import KERNEL, bumps

from noregret import (
    Box,
    ExactGP,
    Matern,
    MaxVarianceDesign,
    Policy,
    algorithms,
)


@pytest.mark.parametrize(("nu", "d"), [(1.5, 1), (2.5, 2)])
def test_random_points_explore_at_the_rate_of_the_theorem(nu, d):
    """Noise-free worst variance like n^(-2 nu / d): slopes of both designs within 35% of it, over 32 to 256 points."""
    model, sites = ExactGP(Matern(nu, 0.2 if d == 1 else 0.7), 0.0), np.random.default_rng(1).random((1500, d))
    sizes = np.array([32, 64, 128, 256])

    def slope(plan):
        worst, belief = [], model.prior(sites)
        for size in sizes:
            belief.update(plan[:size], None)
            worst.append(belief.std.max() ** 2)
        return np.polyfit(np.log(sizes), np.log(worst), 1)[0]

    at_random = np.median([slope(np.random.default_rng(s).permutation(1500)) for s in range(5)])
    greedy = slope(MaxVarianceDesign()(model, sites, 256, np.random.default_rng(0)))
    assert at_random == pytest.approx(-2 * nu / d, rel=0.35)
    assert greedy == pytest.approx(-2 * nu / d, rel=0.35)


@pytest.mark.parametrize("name", ["reds", "bpe", "gp-threds"])
def test_best_is_a_good_arm_at_any_time(name):
    problem, world = bumps(), np.random.default_rng(2)
    policy = Policy(algorithms.NAMES[name](KERNEL, norm=2, noise=0.1, horizon=2000), problem.arms, rng=0)
    for rounds in range(1, 2001):
        arms = policy.ask()[:1]
        policy.tell(arms, problem.rewards(arms, world))
        if rounds in (1, 2, 10) or rounds > 1000:
            best = policy.best()
            assert best.lower <= best.mean <= best.upper
    assert problem.means[policy.best().arm] > 0.9 * problem.means.max()
    assert policy.best().lower <= problem.means[policy.best().arm] <= policy.best().upper


@pytest.mark.parametrize("space", [np.linspace(0, 1, 100)[:, None], Box([[0.0, 1.0]])], ids=["arms", "box"])
@pytest.mark.parametrize("build", [algorithms.bpe, algorithms.reds], ids=["bpe", "reds"])
@pytest.mark.parametrize("horizon", [30, 271, 400])
def test_nothing_is_planned_or_asked_for_beyond_the_horizon(space, build, horizon):
    algorithm, planned = build(KERNEL, horizon=horizon, constants="experiment"), []

    class Counted:
        def __init__(self, design):
            self.design = design

        def __call__(self, model, arms, count, rng):
            planned.append(count)
            return self.design(model, arms, count, rng)

        def points(self, model, draw, count, rng):
            planned.append(count)
            return self.design.points(model, draw, count, rng)

    policy = Policy(replace(algorithm, design=Counted(algorithm.design)), space, rng=0)
    world, told = np.random.default_rng(1), 0
    while told < horizon:
        asked = policy.ask()
        assert told + len(asked) <= horizon
        assert sum(planned) < horizon + 10  # each of a few pieces of a box rounds up
        told += len(asked)
        policy.tell(asked, world.standard_normal(len(asked)))
    assert told == horizon
    assert len(policy.ask()) > 0, "the epoch can be finished"
