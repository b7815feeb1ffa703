"""ThresholdTree, the loop of GP-ThreDS."""

import numpy as np
from tests.bandits.decision.test_elimination import KERNEL, bumps

from noregret import (
    Constant,
    ExactGP,
    SquaredExponential,
    ThresholdTree,
    algorithms,
    run,
)
from noregret.problems import Gaussian, Problem


def tree(problem, **changes):
    settings = {"interval": (0.0, 2.0), "points_per_cell": 50, "patience": 10} | changes
    return ThresholdTree(ExactGP(problem.kernel, 0.01), Constant(2.0), **settings)


def test_a_threshold_out_of_reach_falls():
    """The function is at most 1: searches for more than 5 end after one pull, until the threshold has come down."""
    problem = bumps()
    high, low = tree(problem, interval=(0.0, 10.0)), tree(problem)
    for algorithm in (high, low):
        assert run(algorithm, problem, 1500, rng=0).regret[-300:].mean() < 0.1


def test_cells_halve_and_hold_the_best_arm():
    problem = bumps(sd=0.02)
    sizes = []
    for seed in range(5):
        trace = run(tree(problem), problem, 600, rng=seed, watch=["active"])
        sizes.append(trace.watched["active"])
        assert (np.diff(trace.watched["active"]) <= 0).all()
        assert trace.regret[-100:].mean() < 0.02
    assert np.median([size[-1] for size in sizes]) < 30


def test_when_one_arm_is_left_it_is_pulled_for_ever():
    arms = np.array([[0.0], [0.45], [1.0]])
    problem = Problem("three", arms, [0.0, 1.0, 0.1], SquaredExponential(0.1), Gaussian(0.01))
    trace = run(tree(problem, interval=(0.0, 1.5)), problem, 400, rng=0)
    assert (trace.arms[-200:] == 1).all()
    assert trace.cumulative_regret[-1] > 0


def test_the_default_patience_fits_the_children_of_16_levels_into_the_run():
    two, six = algorithms.gp_threds(KERNEL, horizon=1000), algorithms.gp_threds(KERNEL)
    assert (two._patience(2), two._patience(6), six._patience(6)) == (15, 3, 12)


def test_arms_that_coincide_and_columns_that_are_constant():
    arms = np.column_stack([np.repeat([0.1, 0.9], 20), np.ones(40)])
    problem = Problem("two", arms, np.repeat([0.0, 1.0], 20), SquaredExponential(0.1), Gaussian(0.1))
    for name in ("reds", "bpe", "gp-threds"):
        algorithm = algorithms.NAMES[name](problem.kernel, norm=1, noise=0.1, horizon=500)
        assert run(algorithm, problem, 500, rng=0).regret[-100:].mean() < 0.1


def test_one_arm_is_enough():
    problem = Problem("one", [[0.5]], [1.0], KERNEL, Gaussian(0.1))
    for name in ("reds", "bpe", "gp-threds"):
        assert run(algorithms.NAMES[name](KERNEL, horizon=100), problem, 100, rng=0).regret.sum() == 0
