"""Estimators against the plain formulas over the whole history, and against outliers."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from noregret import (
    ClippedResiduals,
    Constant,
    Estimator,
    ExactGP,
    LeastSquares,
    Linear,
    MedianOfMeans,
    Nystrom,
    Policy,
    QuadratureFourier,
    RandomFourier,
    Sequential,
    SparseGP,
    SquaredExponential,
    TruncatedDirections,
    TruncatedRewards,
)
from noregret.bandits.belief.estimators import SortedRewards
from noregret.testing import check_model

SE = SquaredExponential(0.2)
GRID = np.linspace(0, 1, 30)[:, None]
QFF = QuadratureFourier(SE, 32)
FEATURES = [
    QFF,
    QuadratureFourier(SE, 25, folded=False),
    RandomFourier(SE, 12),
    Nystrom(SE, 2.0),
    Nystrom(SE, math.inf),
]
ALGEBRA = settings(derandomize=True, deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def level(belief):
    """A level that grows, as it does for alpha below 1."""
    return 0.1 + 0.05 * belief.rounds**0.2


ROBUST = [
    TruncatedRewards(level),
    TruncatedDirections(level),
    TruncatedDirections(level, root="cholesky"),
    MedianOfMeans(5),
    ClippedResiduals(level, 1.0, 0.0),
]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def data(seed, size=80, dof=1.5):
    rng = np.random.default_rng(seed)
    return rng.integers(len(GRID), size=size), rng.standard_t(dof, size), rng.uniform(0.3, 3, size)


def told(estimator, features, pulls, rewards, noise=None, ridge=0.7, pieces=(5, 1, 9)):
    belief = SparseGP(features, ridge, estimator).prior(GRID, np.random.default_rng(1))
    for block in np.split(np.arange(len(pulls)), np.cumsum(pieces)):
        belief.update(pulls[block], rewards[block], noise=None if noise is None else noise[block])
    return belief


def plain_truncation(belief, pulls, rewards, noise, cut, root):
    """Alg. 2 of the heavy-tails paper, line by line, over every single reward."""
    phi = belief._map.at(GRID)[0]
    phi = phi if belief.span is None else belief.span @ phi
    Phi, y = (phi[:, pulls] / np.sqrt(noise)).T, rewards / np.sqrt(noise)
    V = Phi.T @ Phi + belief.ridge * np.eye(len(phi))
    values, vectors = np.linalg.eigh(V)
    W = vectors @ np.diag(values**-0.5) @ vectors.T if root == "symmetric" else np.linalg.inv(np.linalg.cholesky(V))
    u = W @ Phi.T
    r = np.array([sum(ui * yi for ui, yi in zip(row, y, strict=True) if abs(ui * yi) <= cut) for row in u])
    return phi.T @ (W.T @ r)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_truncated_directions_equal_the_plain_sum_after_thousands_of_rounds(alpha):
    """Few arms, many pulls, one at a time, with the level of the paper at the end of it."""
    rng = np.random.default_rng(0)
    pulls, rewards = rng.integers(6, size=5000), rng.standard_t(2, 5000).round(1)

    def cut(belief):
        return (4 / 12) ** (1 / (1 + alpha)) * belief.rounds ** ((1 - alpha) / (2 * (1 + alpha)))

    belief = told(TruncatedDirections(cut), QFF, pulls, rewards, pieces=range(1, 100))
    expected = plain_truncation(belief, pulls, rewards, np.ones(5000), cut(belief), "symmetric")
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-8, atol=1e-8)


def test_an_arm_without_features_teaches_nothing_and_breaks_nothing():
    """k(0, 0) = 0 under a linear kernel: the first dictionary has rank 0."""
    model = SparseGP(Nystrom(Linear(), 5.0), 1.0, TruncatedDirections(Constant(0.8)))
    belief = model.prior([[0.0], [1.0]])
    belief.update(0, 7.0)
    np.testing.assert_array_equal((belief.mean, belief.std), [[0, 0], [0, 1]])
    belief.update(1, 1.0)
    np.testing.assert_allclose((belief.mean, belief.std), [[0, 0.5], [0, math.sqrt(0.5)]], atol=1e-12)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, st.sampled_from(FEATURES))
def test_no_direction_of_a_pulled_arm_is_longer_than_its_reach(seed, features):
    """Arms whose largest reward times reach is within the level are skipped: none of their rewards may be cut."""
    pulls, rewards, noise = data(seed)
    belief = told(LeastSquares(), features, pulls, rewards, noise)
    length = np.sqrt(np.einsum("ij,ij->j", belief.seen, np.linalg.solve(belief.gram, belief.seen)))
    assert (belief.norm_bounds >= length).all()
    np.testing.assert_allclose(belief.norm_bounds, length, rtol=1e-6, atol=1e-5)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, st.sampled_from(FEATURES), st.sampled_from(["symmetric", "cholesky"]))
def test_truncation_at_infinity_is_least_squares(seed, features, root):
    pulls, rewards, noise = data(seed)
    expected = told(LeastSquares(), features, pulls, rewards, noise).mean
    for estimator in (TruncatedDirections(Constant(math.inf), root), TruncatedRewards(Constant(math.inf)),
                      MedianOfMeans(1), ClippedResiduals(Constant(math.inf), 1.0, 0.0)):  # fmt: skip
        got = told(estimator, features, pulls, rewards, noise).mean
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6, err_msg=str(estimator))


@pytest.mark.parametrize("seed", range(3))
def test_folded_features_truncate_as_the_papers_do_at_a_level_larger_by_root_two(seed):
    """For an even order; the zero node of an odd one is not doubled, so its direction keeps the level."""
    pulls, rewards, _ = data(seed)
    one = told(TruncatedDirections(Constant(0.3 * math.sqrt(2))), QFF, pulls, rewards)
    two = told(TruncatedDirections(Constant(0.3)), QuadratureFourier(SE, 32, folded=False), pulls, rewards)
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-9)
    same_level = told(TruncatedDirections(Constant(0.3)), QFF, pulls, rewards)
    assert np.abs(same_level.mean - two.mean).max() > 1e-3


def test_the_roots_are_two_estimators():
    pulls, rewards, _ = data(0)
    one, two = (told(TruncatedDirections(level, root), QFF, pulls, rewards).mean for root in ("symmetric", "cholesky"))
    assert np.abs(one - two).max() > 1e-3
    with pytest.raises(ValueError, match="root must be 'symmetric' or 'cholesky', got 'lu'"):
        TruncatedDirections(level, root="lu")


@pytest.mark.slow
def test_a_reward_exactly_at_the_level_is_kept():
    """For any rounding of u y: the cut is looked up by division, and must agree with |u y| <= b."""
    rng = np.random.default_rng(0)
    for weight, reward in zip(rng.random(3000), rng.standard_t(2, 3000), strict=True):
        memory = SortedRewards()
        memory.take(np.zeros(4, int), np.array([reward, 3 * reward, reward, -7 * reward]))
        cut = abs(weight * reward)
        assert memory.kept(np.array([0]), np.array([[weight]]), cut)[0] == pytest.approx(2 * weight * reward)
        assert memory.kept(np.array([0]), np.array([[weight]]), np.nextafter(cut, 0))[0] == 0
    belief = SparseGP(QFF, 1.0, TruncatedRewards(Constant(2.0))).prior(GRID)
    belief.update([3, 9], [2.0, np.nextafter(2.0, 3)])
    assert belief._memory.total.tolist() == [2.0, 0.0]


def test_sorted_rewards_equal_sums_over_all():
    rng = np.random.default_rng(1)
    memory, slots, values = SortedRewards(), rng.integers(7, size=900), rng.standard_t(1.2, 900)
    for block in np.split(np.arange(900), [1, 5, 300]):
        memory.take(slots[block], values[block])
    weights = rng.standard_normal((11, 7))
    for cut in (0.0, 0.1, 1.0, 30.0, math.inf):
        products = weights[:, slots] * values
        expected = np.where(np.abs(products) <= cut, products, 0).sum(axis=1)
        np.testing.assert_allclose(memory.kept(np.arange(7), weights, cut), expected, rtol=1e-10, atol=1e-10)
        some = np.array([4, 1])
        expected = np.where((np.abs(products) <= cut) & np.isin(slots, some), products, 0).sum(axis=1)
        np.testing.assert_allclose(memory.kept(some, weights[:, some], cut), expected, rtol=1e-10, atol=1e-10)


def test_truncated_rewards_are_those_of_the_exact_model():
    pulls, rewards, noise = data(2)
    belief = told(TruncatedRewards(level), Nystrom(SE, math.inf, root="cholesky"), pulls, rewards, noise)
    exact = ExactGP(SE, 0.7, level).prior(GRID)
    exact.update(pulls, rewards, noise=noise)
    np.testing.assert_allclose((belief.mean, belief.std), (exact.mean, exact.std), atol=1e-8)


def test_clipped_residuals_are_the_one_pass_recursion():
    """theta += V^-1 (phi / sigma) clip((y - phi'theta) / sigma, -tau, tau), V += phi phi' / sigma^2.

    tau = b sqrt(1 + w^2) / w, with w the norm of phi / sigma under the V^-1 of before.
    """
    pulls, rewards, _ = data(3)
    belief = told(ClippedResiduals(level, 0.8, 1.3), QFF, pulls, rewards, pieces=[1] * 79)
    phi, ridge = belief._map.table, 0.7
    V, theta, clipped = ridge * np.eye(len(phi)), np.zeros(len(phi)), 0
    for t, (arm, y) in enumerate(zip(pulls, rewards, strict=True), start=1):
        x, b = phi[:, arm], 0.1 + 0.05 * t**0.2
        norm = math.sqrt(x @ np.linalg.solve(V, x))
        sigma = max(0.8, 1.3 * norm)
        w = norm / sigma
        tau = b * math.sqrt(1 + w * w) / w
        V += np.outer(x, x) / sigma**2
        residual = (y - x @ theta) / sigma
        clipped += abs(residual) > tau
        theta = theta + np.linalg.solve(V, x / sigma * np.clip(residual, -tau, tau))
    np.testing.assert_allclose(belief.mean, theta @ phi, atol=1e-9)
    assert 10 < clipped < 70


def test_median_of_means_chooses_the_group_nearest_to_the_others():
    """Five pulls in a row give each group one: its estimate is a ridge regression on every fifth reward."""
    rng = np.random.default_rng(4)
    arms, k = rng.integers(len(GRID), size=12), 5
    pulls, rewards = np.repeat(arms, k), rng.standard_t(1.5, 60)
    belief = told(MedianOfMeans(k), QFF, pulls, rewards)
    phi = belief._map.table
    V = phi[:, arms] @ phi[:, arms].T + 0.7 * np.eye(len(phi))
    thetas = [np.linalg.solve(V, phi[:, arms] @ rewards[j::k]) for j in range(k)]
    distance = [sorted(math.sqrt((a - b) @ V @ (a - b)) for b in thetas)[k // 2] for a in thetas]
    np.testing.assert_allclose(belief.mean, thetas[int(np.argmin(distance))] @ phi, atol=1e-9)


@pytest.mark.parametrize("groups", [2, 3, 4, 5, 8])
def test_median_of_means_stays_by_the_sound_groups_while_they_are_more_than_half(groups):
    rng = np.random.default_rng(groups)
    pulls, rewards = np.repeat(np.arange(10), groups), rng.standard_normal(10 * groups)
    for spoilt in range((groups + 1) // 2):
        wild = rewards.copy()
        for j in range(spoilt):
            wild[j::groups] = 1e300 * (-1) ** j
        belief = told(MedianOfMeans(groups), QFF, pulls, wild)
        sound = [told(MedianOfMeans(groups), QFF, pulls, np.repeat(rewards[j::groups], groups)).theta
                 for j in range(spoilt, groups)]  # fmt: skip
        V = 0.7 * np.eye(belief.rank) + (belief.gram - 0.7 * np.eye(belief.rank)) / groups
        norm = [[math.sqrt(max((a - b) @ V @ (a - b), 0)) for b in sound] for a in [*sound, belief.theta]]
        assert max(norm[-1]) <= 2 * max(map(max, norm[:-1])) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("features", [QFF, Nystrom(SE, math.inf), Nystrom(SE, 3.0)])
@pytest.mark.parametrize("estimator", ROBUST)
def test_keeps_the_contract(estimator, features):
    fixed = features is not FEATURES[3] and getattr(features, "oversampling", math.inf) == math.inf
    check_model(SparseGP(features, 0.7, estimator), GRID[::2], linear=False, fixed=fixed)


@pytest.mark.parametrize("estimator", ROBUST)
def test_a_block_is_as_good_as_one_reward_at_a_time(estimator):
    pulls, rewards, noise = data(5)
    one, two = (told(estimator, QFF, pulls, rewards, noise, pieces=pieces) for pieces in ([], range(1, 80)))
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-9)


def test_the_harm_at_arrival_is_what_the_one_pass_estimator_states():
    pulls, rewards, _ = data(7, dof=3)
    belief = told(ClippedResiduals(level, 0.8, 0.5), QFF, pulls, rewards)
    before, std, arm = belief.mean, belief.std, 4
    belief.update(arm, 1e300)
    bound = level(belief) * std / math.sqrt(0.7)
    assert (np.abs(belief.mean - before) <= bound + 1e-12).all()
    assert np.abs(belief.mean - before)[arm] > 0.8 * bound[arm]


def test_one_pass_estimators_keep_no_history_and_the_others_only_the_arms_own_rewards():
    pulls, rewards = np.random.default_rng(8).integers(10, size=4000), np.zeros(4000)
    for estimator, words in ((LeastSquares(), 10), (ROBUST[0], 10), (ROBUST[4], 10), (ROBUST[3], 60)):
        memory = told(estimator, QFF, pulls[:500], rewards[:500])._memory
        held = sum(array.size for array in vars(memory).values() if isinstance(array, np.ndarray))
        assert words <= held <= 2 * words  # with room to grow
    memory = told(ROBUST[1], QFF, pulls, rewards)._memory
    held = sum(array.size for name in ("_sizes", "_sums") for array in vars(memory)[name])
    assert 2 * 4000 <= held <= 4 * 4000 + 200  # sizes and running sums, with room to grow


@dataclass(frozen=True)
class Winsorised(Estimator):
    """Rewards beyond the level count as the level: an example of a new estimator."""

    level: float
    one_by_one: ClassVar[bool] = True

    def arrive(self, belief, arm, reward):
        return float(np.clip(reward, -self.level, self.level)), 1.0


ANY = [*ROBUST[:4], ClippedResiduals(Constant(1.0), 0.3), Winsorised(2.0)]


def check_despite_spikes(features, estimator, rule):
    """Spikes of +-1e6 in 5% of the rewards; the best arms found are on average in the best third of -1 to 1."""
    f, found = np.sin(6 * GRID[:, 0]), []
    for seed in range(4):
        world = np.random.default_rng(seed)
        policy = Policy(Sequential(SparseGP(features, 0.04, _loose(estimator)), rule), GRID, rng=seed)
        for _ in range(150):
            arms = policy.ask()
            spikes = 1e6 * world.choice([-1, 0, 1], p=[0.025, 0.95, 0.025], size=arms.size)
            policy.tell(arms, f[arms] + 0.2 * world.standard_normal(arms.size) + spikes)
        found.append(f[policy.best().arm])
    assert np.mean(found) > 0.33


def _loose(estimator):
    """Levels that let the function itself pass: it has size 1."""
    match estimator:
        case TruncatedRewards():
            return TruncatedRewards(Constant(2.0))
        case TruncatedDirections(root=root):
            return TruncatedDirections(Constant(1.0), root)
    return estimator


def test_least_squares_says_what_happened_and_changes_nothing():
    belief = told(LeastSquares(), QFF, *data(9)[:2])
    mean, rounds = belief.mean, belief.rounds
    with pytest.raises(ValueError, match=r"reward of arm 7 is -1e\+300: least squares takes rewards up to 1e\+100"):
        belief.update([3, 7], [1.0, -1e300])
    assert belief.rounds == rounds
    np.testing.assert_array_equal(belief.mean, mean)
    belief.update([3, 7], [1e100, -1e100])
    assert np.isfinite(belief.mean).all()


@pytest.mark.parametrize("groups", [0, 2.5])
def test_groups_are_a_whole_number(groups):
    with pytest.raises(ValueError, match="groups must be a whole number from 1"):
        MedianOfMeans(groups)
