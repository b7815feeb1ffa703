"""Functions that change: posteriors against direct solves, bounded memory, and the purpose of each algorithm."""

import math

import numpy as np
import pytest

from noregret import Columns, ExactGP, Matern, SquaredExponential, algorithms, problems, run
from noregret.bandits.algorithms.contexts_and_drift import BayesianWidth, DriftWidth
from noregret.bandits.algorithms.tighter_widths import AYWidth
from noregret.bandits.belief.drift import Discount, Discounted, Recent, Restarts, VaryingGP, Window
from noregret.bandits.belief.robust import ConjugateGP
from noregret.testing import check_model

KERNEL, RIDGE = SquaredExponential(0.2), 0.04
ARMS = np.random.default_rng(0).random((9, 2))
EXACT = ExactGP(KERNEL, RIDGE)
PULLS = np.random.default_rng(1).integers(9, size=60)
REWARDS = np.random.default_rng(2).standard_normal(60)
MODELS = {
    "window": Recent(EXACT, Window(7)),
    "restarts": Recent(EXACT, Restarts(7)),
    "discounted": Discounted(EXACT, 0.8),
    "varying": VaryingGP(KERNEL, RIDGE, 0.5),
}
FORGETS_NOTHING = {
    "window": Recent(EXACT, Window(50)),
    "restarts": Recent(EXACT, Restarts(50)),
    "discounted": Discounted(EXACT, 1 - 1e-12),
    "varying": VaryingGP(KERNEL, RIDGE, 1e-12),
    "robust": Recent(ExactGP(KERNEL, RIDGE, truncation=lambda belief: 1e9), Window(50)),
}


def told(model, count, arms=ARMS):
    belief = model.prior(arms)
    belief.update(PULLS[:count], REWARDS[:count])
    return belief


def solved(matrix, columns, rewards, ridges, prior=1.0):
    """Mean and std by a direct solve: K, (t, t); K(rows, points), (t, n); y and the ridge of each row."""
    inverse = np.linalg.inv(matrix + np.diag(ridges))
    return columns.T @ inverse @ rewards, np.sqrt(prior - np.einsum("ij,ij->j", columns, inverse @ columns))


def same(belief, mean, std):
    np.testing.assert_allclose(belief.mean, mean, atol=1e-7)
    np.testing.assert_allclose(belief.std, std, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGETS_NOTHING)
def test_with_nothing_to_forget_it_keeps_the_contract(name):
    check_model(FORGETS_NOTHING[name], ARMS)


@pytest.mark.parametrize("count", [1, 7, 8, 20])
def test_a_window_is_a_posterior_on_the_last_rewards(count):
    belief, fresh = told(MODELS["window"], count), EXACT.prior(ARMS)
    fresh.update(PULLS[:count][-7:], REWARDS[:count][-7:])
    same(belief, fresh.mean, fresh.std)
    assert belief.information_gain == pytest.approx(fresh.information_gain)
    assert (belief.rounds, belief.remembered, fresh.rounds) == (count, min(count, 7), min(count, 7))


@pytest.mark.parametrize("count", [3, 7, 14, 20])
def test_restarts_begin_a_posterior_anew(count):
    belief, fresh = told(MODELS["restarts"], count), EXACT.prior(ARMS)
    last = count % 7
    if last:
        fresh.update(PULLS[count - last : count], REWARDS[count - last : count])
    same(belief, fresh.mean, fresh.std)
    assert belief.remembered == last


def test_weights_keep_the_rewards_that_count_more_than_1e_8():
    assert [Discount(0.5).kept(rounds) for rounds in (3, 27, 10**6)] == [3, 27, 27]  # 0.5**26 > 1e-8 > 0.5**27


def test_weights_against_a_direct_solve():
    pulled, ages = ARMS[PULLS[:30]], np.arange(30)[::-1]
    matrix, columns = KERNEL(pulled, pulled), KERNEL(pulled, ARMS)
    mean, _ = solved(matrix, columns, REWARDS[:30], RIDGE * 0.8**-ages)
    _, std = solved(matrix, columns, REWARDS[:30], RIDGE * 0.8 ** (-2.0 * ages))
    belief = told(MODELS["discounted"], 30)
    same(belief, mean, std)
    weights = 0.8**ages
    scaled = weights[:, None] * matrix * weights / RIDGE
    assert belief.information_gain == pytest.approx(0.5 * np.linalg.slogdet(np.eye(30) + scaled)[1])


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_a_walk_against_a_direct_solve_with_time_in_the_kernel(rate):
    """With a rate of 0.5 only 20 to 39 rewards are remembered, and the rest is below exp(-6) in correlation."""
    rows = np.column_stack([ARMS[PULLS], np.arange(60)])
    now = np.column_stack([ARMS, np.full(9, 60)])
    timed = Columns(KERNEL, (0, 1)) * Columns(Matern(0.5, -2 / math.log(1 - rate)), (2,))
    mean, std = solved(timed(rows, rows), timed(rows, now), REWARDS, np.full(60, RIDGE))
    belief = told(VaryingGP(KERNEL, RIDGE, rate), 60)
    assert belief.rank == (60 if rate == 0.05 else 20)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-7 if rate == 0.05 else 0.005)
    np.testing.assert_allclose(belief.std, std, atol=1e-7 if rate == 0.05 else 1e-5)
    if rate == 0.05:
        assert belief.information_gain == pytest.approx(
            0.5 * np.linalg.slogdet(np.eye(60) + timed(rows, rows) / RIDGE)[1]
        )


@pytest.mark.parametrize("name", MODELS)
def test_one_reward_at_a_time_is_a_block(name):
    block, single = told(MODELS[name], 50), MODELS[name].prior(ARMS)
    for arm, reward in zip(PULLS[:50], REWARDS[:50], strict=True):
        single.update(arm, reward)
    same(single, block.mean, block.std)
    assert single.pulled.tolist() == block.pulled.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_rewards_of_points_that_are_no_arms_tell_the_same_and_are_forgotten_as_well(name):
    whole, part = told(MODELS[name], 60), MODELS[name].prior(ARMS[::2])
    part.learn(ARMS[PULLS[:33]], REWARDS[:33])
    part.learn(ARMS[PULLS[33:]], REWARDS[33:])
    same(part, whole.mean[::2], whole.std[::2])
    same(whole.at(ARMS[::2]), part.mean, part.std)
    moved = told(MODELS[name], 40).at(ARMS[::2]).at(ARMS)
    moved.update(PULLS[40:], REWARDS[40:])
    same(moved, whole.mean, whole.std)


@pytest.mark.parametrize("name", MODELS)
def test_a_plan_lowers_the_std_and_leaves_the_mean(name):
    belief = told(MODELS[name], 30)
    ahead = belief.copy()
    ahead.update([0, 1])
    np.testing.assert_allclose(ahead.mean, belief.mean, atol=1e-9)
    assert (ahead.std[:2] < belief.std[:2]).all()
    assert ahead.rounds == belief.rounds
    same(belief, *belief.predict(ARMS))


def test_draws_under_weights_have_the_mean_of_the_one_and_the_std_of_the_other():
    belief, rng = told(MODELS["discounted"], 30), np.random.default_rng(0)
    draws = np.array([belief.sample(rng) for _ in range(3000)])
    assert (np.abs(draws.mean(axis=0) - belief.mean) < 5 * belief.std / math.sqrt(3000)).all()
    np.testing.assert_allclose(draws.std(axis=0), belief.std, rtol=0.08)


@pytest.mark.parametrize("name", MODELS)
def test_a_bad_reward_changes_nothing(name):
    belief, other = told(MODELS[name], 10), told(MODELS[name], 10)
    for bad in (math.nan, 1e200, [1.0, 2.0]):
        with pytest.raises(ValueError, match="reward"):
            belief.update(0, bad)
    with pytest.raises(ValueError, match="points must have 2 columns"):
        belief.learn([[0.1]], 1.0)
    for each in (belief, other):
        each.update(3, 0.5)
    same(belief, other.mean, other.std)
    assert belief.rounds == other.rounds == 11


def test_a_robust_belief_can_forget_too():
    """An outlier is down-weighted while it is remembered, and gone afterwards."""
    belief = Recent(ConjugateGP(KERNEL, RIDGE), Window(5)).prior(ARMS)
    belief.update([0, 0, 0, 0], [1.0, 1.1, 0.9, 1e6])
    assert belief.mean[0] == pytest.approx(1.0, abs=0.2)
    belief.update([1] * 5, [0.5] * 5)
    assert (belief.rank, belief.pulled.tolist()) == (1, [1])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Window(0), "size must be a whole number from 1, got 0"),
        (lambda: Window(2.5), "size must be a whole number from 1, got 2.5"),
        (lambda: Restarts(-1), "period must be a whole number from 1, got -1"),
        (lambda: Discount(1.0), r"factor must be in \(0, 1\), got 1.0"),
        (lambda: VaryingGP(KERNEL, 0.1, 1.0), r"rate must be in \(0, 1\), got 1.0"),
        (lambda: VaryingGP(KERNEL, 0.0, 0.1), "ridge must be positive, got 0.0"),
        (lambda: algorithms.sw_gp_ucb(KERNEL, ridge=0), "ridge must be positive where f changes, got 0: pass a small"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("name", ["tv-gp-ucb", "sw-gp-ucb", "r-gp-ucb", "wgp-ucb"])
def test_a_small_ridge_does_where_there_is_no_noise(name):
    problem = problems.walk(points=10, rounds=60, payoff=problems.Gaussian(0.0), rng=0)
    trace = run(algorithms.NAMES[name](KERNEL, noise=0.0, ridge=1e-4), problem, 60, rng=0)
    assert trace.regret.mean() < (problem.means.max(axis=1, keepdims=True) - problem.means).mean()


# The algorithms


def test_widths():
    belief = told(MODELS["window"], 20)
    gain = belief.information_gain
    plain = 2.0 + 0.5 * math.sqrt(2 * (gain + math.log(10)) / RIDGE)
    assert AYWidth(2.0, 0.5, 0.1)(belief) == pytest.approx(plain)
    assert DriftWidth(2.0, 0.5, 0.1)(belief) == pytest.approx(plain)
    assert DriftWidth(2.0, 0.5, 0.1, variation=0.3)(belief) == pytest.approx(plain + 0.3 * math.sqrt(7 / RIDGE))
    expected = math.sqrt(2 * math.log(9 * math.pi**2 * 21**2 / (3 * 0.1)))
    assert BayesianWidth(0.1)(told(MODELS["varying"], 20)) == pytest.approx(expected)
    assert BayesianWidth(0.1, scale=0.5)(told(MODELS["varying"], 20)) == pytest.approx(0.5 * expected)


DRIFT = {
    "tv-gp-ucb": {"rate": 0.5},
    "sw-gp-ucb": {"window": 20},
    "r-gp-ucb": {"period": 20},
    "wgp-ucb": {"discount": 0.5},
}


def numbers_in(thing):
    """Count of numbers in all reachable arrays, lists and dicts."""
    if isinstance(thing, np.ndarray):
        return thing.size
    parts = vars(thing).values() if hasattr(thing, "__dict__") else thing
    parts = parts.values() if isinstance(parts, dict) else parts
    inside = isinstance(parts, list | tuple | dict | set | type({}.values()))
    return sum(map(numbers_in, parts)) if inside else 1
