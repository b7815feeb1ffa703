"""REDS, BPE and GP-ThreDS over many seeds: coverage of bands, and regret against random choice."""

import numpy as np
import pytest
from tests.bandits.algorithms.test_domain_shrinking import KERNEL
from tests.bandits.decision.test_elimination import epochs

from noregret import (
    Constant,
    Matern,
    algorithms,
    run,
)
from noregret.problems import Gaussian, Problem, StudentT, branin, rkhs, rkhs_sum


@pytest.mark.parametrize("name", ["reds", "bpe"])
@pytest.mark.parametrize("kernel", [KERNEL, Matern(2.5, 0.2)], ids=str)
def test_the_best_arm_is_never_eliminated(name, kernel):
    """At delta = 0.1, in at least 9 of 10 runs; while in most runs 40 of the 100 arms are."""
    lost, left = 0, []
    for seed in range(20):
        problem = rkhs(kernel, rng=seed)
        facts = {"norm": problem.norm, "noise": problem.facts["noise"], "delta": 0.1, "horizon": 800}
        pull = epochs(algorithms.NAMES[name](kernel, first_epoch=50, **facts), problem, 4, seed)[-1]
        lost += int(np.argmax(problem.means)) not in pull.active
        left.append(len(pull.active))
    assert lost <= 2
    assert np.median(left) < 60


def test_a_width_that_is_no_confidence_width_loses_the_best_arm():
    """The test above can fail: a twentieth of a standard deviation is not enough."""
    lost = 0
    for seed in range(20):
        problem = rkhs(KERNEL, rng=seed)
        pull = epochs(algorithms.reds(KERNEL, constants="experiment", scale=0.05, ridge=0.04), problem, 5, seed)[-1]
        lost += int(np.argmax(problem.means)) not in pull.active
    assert lost >= 5


@pytest.mark.parametrize("keep", ["upper", "mean"])
def test_without_noise_the_bounds_always_hold(keep):
    """|f - mean| <= B s in every epoch, to rounding, so the best arm stays; and soon it is the only one."""
    for seed in range(10):
        problem = rkhs(Matern(2.5, 0.2), payoff=Gaussian(0.0), rng=seed)
        reds = algorithms.reds(problem.kernel, norm=problem.norm, noise=0, first_epoch=10, keep=keep)
        for pull in epochs(reds, problem, 7, seed):
            lower, upper = reds.bounds(pull.belief)
            means = problem.means[pull.about]
            assert (lower <= means + 1e-6).all()
            assert (means <= upper + 1e-6).all()
            assert np.argmax(problem.means) in pull.active
        assert len(pull.active) <= 2


def test_without_noise_and_a_smooth_kernel_regret_stops_growing():
    """Cor. 4.4, nu > d: less than 2% of the regret of 3000 rounds comes in the last 2000."""
    for seed in range(5):
        problem = rkhs(Matern(2.5, 0.2), points=500, payoff=Gaussian(0.0), rng=seed)
        reds = algorithms.reds(problem.kernel, norm=problem.norm, noise=0)
        regret = run(reds, problem, 3000, rng=seed).cumulative_regret
        assert regret[-1] - regret[999] < 0.02 * regret[-1]


@pytest.mark.parametrize(("name", "margin"), [("reds", 0.35), ("bpe", 0.4), ("gp-threds", 0.3)])
def test_regret_on_branin(name, margin):
    """1000 rounds on 500 points, below this part of the regret of random arms, over 5 seeds."""
    extra = {"gp-threds": {"bounds": (0.5, 1.2), "points_per_cell": 100}, "bpe": {"first_epoch": 50}}.get(name, {})
    parts = []
    for seed in range(5):
        arms = np.random.default_rng(seed).random((500, 2))
        problem = Problem("branin", arms, branin(arms), KERNEL, Gaussian(0.2))
        algorithm = algorithms.NAMES[name](problem.kernel, constants="experiment", horizon=1000, **extra)
        chance = 1000 * (problem.means.max() - problem.means.mean())
        parts.append(run(algorithm, problem, 1000, rng=seed).cumulative_regret[-1] / chance)
    assert np.mean(parts) < margin


def test_truncated_reds_beats_plain_reds_where_the_variance_is_infinite():
    """Student-t with 1.5 degrees of freedom, 24 paired runs: mean regret below 0.6 of plain's, better in 15 or more."""
    plain = algorithms.reds(KERNEL, constants="experiment")
    cut = algorithms.reds(KERNEL, constants="experiment", truncation=Constant(4.0))
    regret = np.array(
        [
            [run(reds, rkhs_sum(KERNEL, payoff=StudentT(1.5), rng=s), 2000, rng=s).cumulative_regret[-1]]
            for s in range(24)
            for reds in (plain, cut)
        ]
    ).reshape(24, 2)
    assert regret[:, 1].mean() < 0.6 * regret[:, 0].mean()
    assert (regret[:, 1] < regret[:, 0]).sum() >= 15
