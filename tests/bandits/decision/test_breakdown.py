"""Breakdown norm, certified gap and realised regret bound: against direct solves and the truth."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from noregret import Box, ExpectedImprovement, Policy, Sequential, SquaredExponential, algorithms, bounds
from noregret.bandits.decision.breakdown import RIDGES, breakdown

NOISE, DELTA = 0.1, 0.1
KERNEL = SquaredExponential(0.1)
ARMS = np.linspace(0, 1, 80)[:, None]
CONSTANTS = {"norm": 1.5, "noise": NOISE, "delta": DELTA}


def function(rng, norm=1.5):
    """Values on the arms of a function of this norm."""
    centres, weights = rng.random((20, 1)), rng.standard_normal(20)
    weights *= norm / math.sqrt(weights @ KERNEL(centres, centres) @ weights)
    return KERNEL(ARMS, centres) @ weights


def told(algorithm, f, rounds, seed=0):
    """Policy after so many rounds, and the arms it pulled."""
    policy, world, pulled = Policy(algorithm, ARMS, rng=seed), np.random.default_rng(seed), []
    while len(pulled) < rounds:
        arms = policy.ask()
        policy.tell(arms, f[arms] + NOISE * world.standard_normal(len(arms)))
        pulled += arms.tolist()
    return policy, np.array(pulled)


def test_norms_are_those_of_a_direct_solve_by_sequential_quadratic_programming():
    """The least norm subject to the misfit and to the claim's violation, over values at the pulled and two arms."""
    rng, arms = np.random.default_rng(3), ARMS[::8]
    f = function(rng)[::8]
    places = np.r_[rng.integers(len(arms), size=12), np.full(12, f.argmax())]
    factors = rng.choice([0.25, 1.0, 2.0], size=24)
    values = f[places] + NOISE * np.sqrt(factors) * rng.standard_normal(24)
    arm, within = int(f.argmax()), 0.15
    found = breakdown(KERNEL, (arms[places], values, factors), NOISE, DELTA, arms, arm, within)

    K = KERNEL(arms[places], arms[places])  # Q_t from the matrices of all pulls, one ridge after the other
    log_mixture = []
    for ridge in NOISE**2 * RIDGES[:, 0]:
        full = K / np.sqrt(np.outer(factors, factors)) + ridge * np.eye(24)
        scaled = values / np.sqrt(factors)
        misfit = ridge * scaled @ np.linalg.solve(full, scaled)
        log_mixture.append(-misfit / (2 * NOISE**2) - 0.5 * np.linalg.slogdet(full / ridge)[1])
    largest = 2 * NOISE**2 * (math.log(1 / DELTA) + math.log(len(RIDGES)) - np.logaddexp.reduce(log_mixture))

    root = np.linalg.cholesky(KERNEL(arms, arms) + 1e-10 * np.eye(len(arms)))  # g = root u has the norm |u|

    def least(other):
        fits = {
            "type": "ineq",
            "fun": lambda u: largest - (((root @ u)[places] - values) ** 2 / factors).sum(),
            "jac": lambda u: -2 * root[places].T @ (((root @ u)[places] - values) / factors),
        }
        apart = root[other] - root[arm]
        violates = {"type": "ineq", "fun": lambda u: apart @ u - within, "jac": lambda u: apart}
        start = np.linalg.lstsq(np.vstack([root[places], 10 * apart]), np.r_[values, 10 * within], rcond=None)[0]
        solved = minimize(
            lambda u: u @ u,
            start,
            jac=lambda u: 2 * u,
            constraints=[fits] if other == arm else [fits, violates],
            method="SLSQP",
            options={"maxiter": 2000, "ftol": 1e-10},
        )
        if fits["fun"](solved.x) < -0.1 * largest:
            return math.inf  # no function that fits violates the claim about this arm
        assert solved.success
        return math.sqrt(solved.fun)

    direct = min(least(other) for other in range(len(arms)) if other != arm)
    assert direct > 1.05 * least(arm)  # so that the two are told apart
    assert 0.99 * direct <= found.norm <= 1.0001 * direct  # a grid of ridges gives a lower bound
    assert 0.99 * least(arm) <= found.least <= 1.0001 * least(arm)
    assert found.ratio == found.norm / found.least


@pytest.mark.slow
def test_a_false_claim_has_a_breakdown_norm_below_that_of_f_at_every_look():
    """Half random pulls and half greedy ones; `benchmarks.coverage` has 200 runs."""
    certified = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        f = function(rng)
        policy = Policy(algorithms.amm_ucb(KERNEL, **CONSTANTS), ARMS, rng=seed)
        for pull in range(1, 321):
            arm = int(rng.integers(80)) if pull % 2 else int(policy.belief.mean.argmax())
            policy.tell(arm, f[arm] + NOISE * rng.standard_normal())
            if pull % 40 == 0:
                best = policy.best(within=0.15)
                found = best.breakdown
                assert found.norm <= 1.5 or f.max() - f[best.arm] <= 0.15
                assert found.least <= 1.5
        certified += found.norm > 1.5
    assert certified >= 5


def test_best_is_four_numbers_with_a_gap_that_holds():
    f = function(np.random.default_rng(1))
    policy, _ = told(algorithms.dmm_ucb(KERNEL, **CONSTANTS), f, 60)
    best = policy.best()
    arm, _, lower, upper = best
    ends = policy.algorithm.bounds(policy.belief)
    assert (lower, upper) == (ends[0][arm], ends[1][arm])
    assert best.gap == np.delete(ends[1], arm).max() - lower
    assert f.max() - f[arm] <= best.gap < 0.5
    assert best.breakdown.within == NOISE  # unless given
    assert policy.best(within=0.3).breakdown.norm > best.breakdown.norm >= best.breakdown.least > 0


def test_the_gap_of_an_empty_band_is_infinite():
    policy = Policy(algorithms.dmm_ucb(KERNEL, norm=0.01, noise=NOISE), ARMS)
    policy.tell([0, 40, 79], [1.0, -1.0, 1.0])
    with pytest.warns(UserWarning, match="no function fits"):
        assert policy.best().gap == math.inf
    assert policy.best().breakdown.least > 0.01  # which needs no norm, and refutes this one


def test_a_breakdown_is_of_the_rewards_when_it_was_asked_for():
    f = function(np.random.default_rng(2))
    policy, _ = told(algorithms.amm_ucb(KERNEL, **CONSTANTS), f, 30)
    policy.tell([3, 3, 50], f[[3, 3, 50]])  # held until the round ends, or learnt at once: both count
    best, before = policy.best(), policy.best().breakdown
    policy.tell(np.arange(80), f + 0.05)
    assert best.breakdown == before != policy.best().breakdown


def test_one_breakdown_whatever_chose_the_arms():
    """It follows from kernel, noise, delta and rewards alone, so a sketch and an elimination give the same."""
    f, pulls = function(np.random.default_rng(4)), np.random.default_rng(5).integers(80, size=50)
    rewards = f[pulls] + NOISE * np.random.default_rng(6).standard_normal(50)
    data = (ARMS[pulls], rewards, np.ones(50))
    for build in (algorithms.dmm_ucb, algorithms.mini_gp_ucb, algorithms.bpe, algorithms.gp_ei):
        policy = Policy(build(KERNEL, **CONSTANTS), ARMS, rng=0)
        policy.tell(pulls, rewards)
        best = policy.best(within=0.2)
        if best.breakdown is None:  # bpe takes no rewards that it did not ask for: nothing is known yet
            assert build is algorithms.bpe
        else:
            assert best.breakdown == breakdown(KERNEL, data, NOISE, DELTA, ARMS, best.arm, 0.2)


def test_rewards_stay_at_their_points_when_arms_change():
    f = function(np.random.default_rng(4))
    policy = Policy(algorithms.amm_ucb(KERNEL, **CONSTANTS), ARMS, rng=0)
    policy.tell(np.arange(0, 80, 4), f[::4], noise_factor=0.5)
    policy.change_arms(ARMS[::2])
    policy.tell([1, 2], f[[2, 4]])
    points, values = np.vstack([ARMS[::4], ARMS[[2, 4]]]), np.r_[f[::4], f[[2, 4]]]
    best = policy.best()
    rewards = (points, values, np.r_[np.full(20, 0.5), 1.0, 1.0])
    assert best.breakdown == breakdown(KERNEL, rewards, NOISE, DELTA, ARMS[::2], best.arm, NOISE)
    with pytest.raises(ValueError, match="after change_arms"):
        policy.regret_bound()


def test_norms_grow_with_the_rewards():
    """Ridges are parts of R^2, not of the kernel, so it is true up to the grid."""
    rng = np.random.default_rng(7)
    places, f = rng.integers(80, size=40), function(rng)
    rewards = f[places] + NOISE * rng.standard_normal(40)
    small, large = (
        breakdown(KERNEL, (ARMS[places], unit * rewards, np.ones(40)), unit * NOISE, DELTA, ARMS, 9, unit * 0.3)
        for unit in (1, 1000)
    )
    assert large.norm == pytest.approx(1000 * small.norm, rel=0.01)
    assert large.least == pytest.approx(1000 * small.least, rel=0.01)


def test_one_arm_and_rewards_near_0():
    rewards = (ARMS[:1], np.zeros(1), np.ones(1))
    alone = breakdown(KERNEL, rewards, NOISE, DELTA, ARMS[:1], 0, 0.1)
    assert alone.norm == math.inf
    assert alone.least == 0
    assert math.isnan(alone.ratio)


@pytest.mark.parametrize(
    "algorithm",
    [
        algorithms.tgp_ucb(KERNEL),  # R is unknown
        algorithms.sw_gp_ucb(KERNEL, window=20),  # f changes
        algorithms.gp_ucb(KERNEL),
    ],
)
def test_no_breakdown_without_the_noise_or_an_exact_history(algorithm):
    policy = Policy(algorithm, ARMS, rng=0)
    policy.tell([0, 1], [0.1, 0.2])
    assert policy.best().breakdown is None


def test_no_breakdown_before_the_first_reward_and_on_a_box():
    assert Policy(algorithms.amm_ucb(KERNEL), ARMS).best().breakdown is None
    policy = Policy(algorithms.igp_ucb(KERNEL), Box([(0, 1)]), rng=0)
    policy.tell([[0.5]], [0.1])
    assert policy.best().breakdown is None
    assert policy.best().gap is None
    with pytest.raises(ValueError, match="finite arms"):
        policy.regret_bound()


def test_within_must_be_a_size():
    with pytest.raises(ValueError, match="within must be finite and at least 0"):
        Policy(algorithms.amm_ucb(KERNEL), ARMS).best(within=-1.0)


@pytest.mark.parametrize("name", ["igp_ucb", "ay_ucb", "amm_ucb", "dmm_ucb", "gp_ts", "mini_gp_ucb", "bbkb"])
@pytest.mark.parametrize("seed", range(3))
def test_the_realised_bound_is_between_the_regret_and_the_sum_of_widths(name, seed):
    rounds = 150
    horizon = {"horizon": rounds} if name in ("igp_ucb", "gp_ts", "bbkb") else {}
    algorithm = getattr(algorithms, name)(KERNEL, **CONSTANTS, **horizon)
    f, world = function(np.random.default_rng(seed)), np.random.default_rng(seed)
    policy, regret, widths = Policy(algorithm, ARMS, rng=seed), 0.0, 0.0
    while policy.belief.rounds < rounds:
        arms = policy.ask()
        lower, upper = algorithm.bounds(policy.belief)
        widths += (upper.max() - lower[arms]).sum()  # 2 width_t std_t(x_t) for UCB
        policy.tell(arms, f[arms] + NOISE * world.standard_normal(len(arms)))
        regret += (f.max() - f[arms]).sum()
        if policy.belief.rounds % 30 == 0:
            assert regret <= policy.regret_bound()
    assert regret <= policy.regret_bound() <= 0.8 * widths
    if name == "igp_ucb":
        before = bounds.igp_ucb(KERNEL, rounds, arms=ARMS, **CONSTANTS).regret
        assert widths < before


def test_the_realised_bound_is_0_before_the_first_reward_and_counts_rewards_of_any_arm():
    policy = Policy(algorithms.amm_ucb(KERNEL, **CONSTANTS), ARMS, rng=0)
    assert policy.regret_bound() == 0
    policy.tell([5, 5], [0.0, 0.1])
    lower, upper = policy.algorithm.bounds(policy.belief)
    assert policy.regret_bound() == pytest.approx(2 * (upper.max() - lower[5]))


@pytest.mark.parametrize(
    "algorithm",
    [
        algorithms.bpe(KERNEL),  # its belief forgets the arms that it has eliminated
        algorithms.sw_gp_ucb(KERNEL, window=20),
        algorithms.amm_ucb(KERNEL, scale=0.5),
        algorithms.igp_ucb(KERNEL, constants="experiment"),
        algorithms.bkb(KERNEL, constants="experiment"),
        Sequential(algorithms.amm_ucb(KERNEL).model, ExpectedImprovement()),  # mean +- 2 std
    ],
)
def test_no_realised_bound_without_a_band_about_all_rounds(algorithm):
    policy = Policy(algorithm, ARMS, rng=0)
    policy.tell(policy.ask(), np.zeros(len(policy.ask())))
    with pytest.raises(ValueError, match="regret_bound needs a band with a probability"):
        policy.regret_bound()
