"""The exact posterior against direct solves, scikit-learn and its own contract."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from threadpoolctl import threadpool_limits

from noregret import ExactGP, Linear, Matern, RandomFourier, SparseGP, SquaredExponential, Tabular
from noregret.bandits.belief import exact
from noregret.bandits.belief.model_set import RidgeFamily
from noregret.bandits.belief.pulls import Directory, places_among
from noregret.gp import arrays
from noregret.gp.arrays import largest
from noregret.testing import check_model

ALGEBRA = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 2**32 - 1)
RIDGES = st.floats(1e-3, 10.0)
KERNELS = st.sampled_from(
    [SquaredExponential(0.3), Matern(1.5, 0.5), 4.0 * Matern(0.5, 0.2), Linear(0.5), SquaredExponential(0.2) + Linear()]
)
GRID = np.linspace(0, 1, 100)[:, None]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The reference solves are small, so one thread is fastest."""
    with threadpool_limits(1):
        yield


class Direct:
    """The textbook formulas, solved directly: K + diag(ridges) over every single observation."""

    def __init__(self, kernel, arms, pulls, rewards, ridges):
        points = arms[pulls]
        self.matrix, across = kernel(points, points), kernel(points, arms)
        noisy = self.matrix + np.diag(ridges)
        self.mean = across.T @ np.linalg.solve(noisy, rewards)
        self.covariance = kernel(arms, arms) - across.T @ np.linalg.solve(noisy, across)
        self.std = np.sqrt(np.maximum(self.covariance.diagonal(), 0.0))
        self.information_gain = 0.5 * np.linalg.slogdet(np.eye(len(pulls)) + self.matrix / ridges[:, None])[1]
        self.effective_dimension = np.trace(np.linalg.solve(noisy, self.matrix))
        self.misfit = rewards @ np.linalg.solve(noisy, rewards)


def assert_knows(belief, direct, tolerance=1e-8, shown=None):
    """The same knowledge; ``shown`` is how many of the arms of ``direct`` the belief shows, all by default."""
    for name in ("mean", "std", "information_gain", "effective_dimension", "misfit"):
        expected = getattr(direct, name)
        expected = expected[:shown] if np.ndim(expected) else expected
        np.testing.assert_allclose(getattr(belief, name), expected, rtol=tolerance, atol=tolerance, err_msg=name)


def assert_same(one, other, tolerance=1e-8):
    assert_knows(one, other, tolerance)
    assert (one.rounds, one.rank, sorted(one.pulled)) == (other.rounds, other.rank, sorted(other.pulled))


def history(seed, rounds):
    """Arms, and a history on them in which a few arms come back often."""
    rng = np.random.default_rng(seed)
    arms = rng.random((rng.integers(2, 13), 2))
    pulls = (len(arms) * rng.random(rounds) ** 2).astype(int)
    return arms, pulls, 3 * rng.standard_normal(rounds), np.exp(rng.uniform(-2, 2, rounds)), rng


def in_blocks(belief, rng, pulls, rewards, noise):
    """Tell it in pieces of 1 to 20, most of them single."""
    start = 0
    while start < len(pulls):
        end = start + int(rng.choice([1, 1, 1, 2, 20]))
        belief.update(pulls[start:end], rewards[start:end], noise=noise[start:end])
        start = end
    return belief


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(1, 150))
def test_updates_equal_a_direct_solve(seed, kernel, ridge, rounds):
    arms, pulls, rewards, noise, rng = history(seed, rounds)
    belief = in_blocks(ExactGP(kernel, ridge).prior(arms), rng, pulls, rewards, noise)
    direct = Direct(kernel, arms, pulls, rewards, ridge * noise)
    assert_knows(belief, direct)
    first, second = rng.integers(len(arms), size=3), np.arange(len(arms))
    np.testing.assert_allclose(belief.covariance(first, second), direct.covariance[first], atol=1e-8)
    assert belief.rounds == rounds
    assert belief.pulled.tolist() == list(dict.fromkeys(pulls.tolist()))
    assert belief.rank == len(set(pulls.tolist()))


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(1, 100))
def test_order_does_not_matter(seed, kernel, ridge, rounds):
    arms, pulls, rewards, noise, rng = history(seed, rounds)
    belief = in_blocks(ExactGP(kernel, ridge).prior(arms), rng, pulls, rewards, noise)
    other = rng.permutation(rounds)
    assert_same(belief, in_blocks(ExactGP(kernel, ridge).prior(arms), rng, pulls[other], rewards[other], noise[other]))


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(1, 60), st.integers(1, 60))
def test_n_pulls_equal_one_pull_at_ridge_over_n(seed, kernel, ridge, rounds, n):
    arms, pulls, rewards, noise, rng = history(seed, rounds)
    many, one = (in_blocks(ExactGP(kernel, ridge).prior(arms), rng, pulls, rewards, noise) for _ in range(2))
    values = rng.standard_normal(n)
    for value in values:
        many.update(1, value)
    one.update(1, values.mean(), noise=1 / n)
    for name in ("mean", "std", "information_gain", "effective_dimension"):
        np.testing.assert_allclose(getattr(many, name), getattr(one, name), rtol=1e-8, atol=1e-8)
    scatter = ((values - values.mean()) ** 2).sum() / ridge
    assert many.misfit == pytest.approx(one.misfit + scatter, rel=1e-8)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(1, 100))
def test_variance_never_grows_and_the_gain_never_shrinks(seed, kernel, ridge, rounds):
    arms, pulls, rewards, _, _ = history(seed, rounds)
    belief = ExactGP(kernel, ridge).prior(arms)
    for pull, reward in zip(pulls, rewards, strict=True):
        std, gain, misfit = belief.std, belief.information_gain, belief.misfit
        surprise = (reward - belief.mean[pull]) ** 2 / (ridge + std[pull] ** 2)
        belief.update(pull, reward)
        assert (belief.std <= std + 1e-9).all()
        assert belief.information_gain == pytest.approx(gain + 0.5 * math.log1p(std[pull] ** 2 / ridge), rel=1e-9)
        assert belief.misfit == pytest.approx(misfit + surprise, rel=1e-7)


@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(0, 80), st.integers(1, 40))
def test_an_update_without_rewards_changes_the_variance_only(seed, kernel, ridge, rounds, ahead):
    arms, pulls, rewards, noise, rng = history(seed, rounds)
    belief = in_blocks(ExactGP(kernel, ridge).prior(arms), rng, pulls, rewards, noise)
    planned = rng.integers(len(arms), size=ahead)
    mean, misfit, told = belief.mean.copy(), belief.misfit, belief.copy()
    belief.update(planned)
    told.update(planned, np.zeros(ahead))
    np.testing.assert_allclose(belief.std, told.std, atol=1e-10)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-9)
    assert belief.misfit == pytest.approx(misfit)
    assert belief.information_gain == pytest.approx(told.information_gain)
    assert belief.rounds == rounds


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(0, 120))
def test_predict_anywhere_equals_a_direct_solve(seed, kernel, ridge, rounds):
    arms, pulls, rewards, noise, rng = history(seed, rounds)
    belief = in_blocks(ExactGP(kernel, ridge).prior(arms), rng, pulls, rewards, noise)
    points = np.concatenate([arms, rng.random((9, 2)) * 3 - 1])
    direct = Direct(kernel, points, pulls, rewards, ridge * noise)
    mean, std = belief.predict(points)
    np.testing.assert_allclose(mean, direct.mean, atol=1e-8)
    np.testing.assert_allclose(std, direct.std, atol=1e-7)
    np.testing.assert_allclose(mean[: len(arms)], belief.mean, atol=1e-9)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(0, 80), st.integers(1, 60))
def test_moving_to_other_arms_keeps_what_was_learnt(seed, kernel, ridge, rounds, more):
    """Some arms stay, some go, some are new, some are duplicated; and learning continues."""
    arms, pulls, rewards, noise, rng = history(seed, rounds)
    arms[-1] = arms[0]
    belief = in_blocks(ExactGP(kernel, ridge).prior(arms), rng, pulls, rewards, noise)
    others = np.concatenate([rng.random((4, 2)), arms[rng.integers(len(arms), size=5)]])
    moved = belief.at(others)
    again, values = rng.integers(9, size=more), rng.standard_normal(more)
    assert_knows(moved, Direct(kernel, np.concatenate([others, arms]), pulls + 9, rewards, ridge * noise), shown=9)
    assert (moved.rounds, moved.arms.tolist()) == (rounds, others.tolist())
    assert set(moved.pulled) <= set(range(9))
    for pull, value in zip(again, values, strict=True):
        moved.update(pull, value)
    everything = np.concatenate([pulls + 9, again]), np.concatenate([rewards, values])
    ridges = ridge * np.concatenate([noise, np.ones(more)])
    assert_knows(moved, Direct(kernel, np.concatenate([others, arms]), *everything, ridges), shown=9)
    np.testing.assert_allclose(moved.predict(others), (moved.mean, moved.std), atol=1e-6)
    assert moved.sample(rng).shape == (9,)
    assert belief.rounds == rounds


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(0, 80), st.integers(1, 60))
def test_more_arms_behind_the_others_are_other_arms(seed, kernel, ridge, rounds, more):
    """Half of the observations are at points that are not arms at first; one of them is an arm later."""
    points, pulls, rewards, noise, rng = history(seed, rounds)
    half = len(points) // 2
    belief = ExactGP(kernel, ridge).prior(points[:half])
    for pull, reward, factor in zip(pulls, rewards, noise, strict=True):
        belief.learn(points[pull], reward, factor)
    arms = np.concatenate([points[: half + 1], rng.random((3, 2))])
    moved, again = belief.at(arms), rng.integers(len(arms), size=more)
    for pull, value in zip(again, values := rng.standard_normal(more), strict=True):
        moved.update(pull, value)
    everything = np.concatenate([pulls + len(arms), again]), np.concatenate([rewards, values])
    ridges = ridge * np.concatenate([noise, np.ones(more)])
    direct = Direct(kernel, np.concatenate([arms, points]), *everything, ridges)
    assert_knows(moved, direct, 1e-6, shown=len(arms))
    assert moved.sample(rng).shape == (len(arms),)
    assert len(belief.arms) == half
    assert belief.rounds == rounds


@pytest.mark.parametrize("rows_kept", [12, 200], ids=["few rows", "after many repeats"])
def test_equals_scikit_learns_posterior(rows_kept):
    rng = np.random.default_rng(3)
    arms = rng.random((40, 2))
    pulls, rewards = rng.integers(15, size=rows_kept), rng.standard_normal(rows_kept)
    theirs = GaussianProcessRegressor(1.7 * sk.Matern(0.4, nu=2.5), alpha=0.3, optimizer=None)
    theirs.fit(arms[pulls], rewards)
    belief = ExactGP(1.7 * Matern(2.5, 0.4), 0.3).prior(arms)
    for pull, reward in zip(pulls, rewards, strict=True):
        belief.update(pull, reward)
    points = np.concatenate([arms, rng.random((10, 2))])
    mean, std = theirs.predict(points, return_std=True)
    np.testing.assert_allclose(belief.mean, mean[:40], atol=1e-9)
    np.testing.assert_allclose(belief.std, std[:40], atol=1e-9)
    np.testing.assert_allclose(belief.predict(points), (mean, std), atol=1e-9)


def test_the_same_generator_gives_the_same_sample():
    belief = ExactGP(SquaredExponential(0.2), 0.1).prior(GRID)
    belief.update([3, 50], [1.0, -1.0])
    assert (belief.sample(np.random.default_rng(7)) == belief.copy().sample(np.random.default_rng(7))).all()


@pytest.mark.parametrize(
    "model",
    [
        ExactGP(SquaredExponential(0.3), 0.1),
        ExactGP(Matern(0.5, 1.0), 2.0),
        RidgeFamily(SquaredExponential(0.3), (0.1, 0.01, 1.0)),
    ],
    ids=str,
)
def test_keeps_the_contract(model):
    check_model(model, np.linspace(0, 1, 20)[:, None])


def test_keeps_the_contract_with_truncation_and_on_a_table():
    check_model(ExactGP(SquaredExponential(0.3), 0.1, lambda belief: 0.7), GRID[::5], linear=False)
    kernel = Tabular(Matern(0.5, 0.2)(GRID[::4], GRID[::4]))
    check_model(ExactGP(kernel, 0.1), kernel.arms)


def test_family_members_have_their_own_ridges():
    belief = RidgeFamily(SquaredExponential(0.2), (0.1, 0.01)).prior(GRID)
    belief.update([3, 3, 60], [1.0, 2.0, -1.0])
    for ridge, member in belief.members.items():
        alone = ExactGP(SquaredExponential(0.2), ridge).prior(GRID)
        alone.update([3, 3, 60], [1.0, 2.0, -1.0])
        assert_same(member, alone, 0)
    assert (belief.mean == belief.members[0.1].mean).all()


def kept(level, *blocks):
    """Values that the rewards of these blocks, each on its own arm, counted as."""
    n = sum(len(block) for block in blocks)
    belief = ExactGP(Tabular(np.eye(n)), 1.0, level).prior(np.arange(n)[:, None])
    start = 0
    for block in blocks:
        belief.update(range(start, start + len(block)), block)
        start += len(block)
    return (2 * belief.mean).round(12).tolist()


def test_truncation_drops_what_is_above_the_level_on_arrival():
    assert kept(lambda belief: 2.0, [1.0, 3.0, -2.5, 2.0, -2.0]) == [1.0, 0.0, 0.0, 2.0, -2.0]


@pytest.mark.parametrize("blocks", [([1.5, 1.5, 1.5, 3.0, 5.5],), ([1.5], [1.5, 1.5], [3.0, 5.5])])
def test_a_reward_meets_the_level_of_its_own_number(blocks):
    """Level b_t = t: 1.5 is dropped as the first reward and kept as the second, in any block."""
    assert kept(lambda belief: belief.rounds, *blocks) == [0.0, 1.5, 1.5, 3.0, 0.0]


def test_truncation_is_not_repeated_and_does_not_count_planned_pulls():
    levels = []

    def level(belief):
        levels.append(belief.rounds)
        return 10.0 / belief.rounds

    belief = ExactGP(Tabular(np.eye(2)), 1.0, level).prior([[0.0], [1.0]])
    belief.update(0, 10.0)
    belief.update([0, 1])
    for _ in range(100):
        belief.update(1, 9.0)
    assert levels == list(range(1, 102))
    assert belief.mean[0] == pytest.approx(5.0, rel=1e-9)


def test_truncation_takes_any_finite_reward():
    belief = ExactGP(Tabular(np.eye(2)), 1.0, lambda belief: 10.0).prior([[0.0], [1.0]])
    belief.update([0, 1, 0], [1.7e308, 4.0, -1.7e308])
    assert belief.mean.tolist() == pytest.approx([0.0, 2.0])
    assert belief.rounds == 3


@pytest.mark.parametrize("size", [1e99, -1e99])
def test_huge_rewards_leave_everything_finite(size):
    belief = ExactGP(SquaredExponential(0.2), 1e-4).prior(GRID)
    belief.update([0, 5, 0], [size, 1.0, size])
    for t in range(80):
        belief.update(t % 3, size)
    assert np.isfinite(belief.mean).all()
    assert math.isfinite(belief.misfit)
    with pytest.raises(ValueError, match=r"^reward of arm 7 is .*e\+101: least squares takes rewards up to 1e\+100"):
        belief.update([6, 7], [1.0, 100 * size])
    assert belief.rounds == 83


def test_truncation_at_infinity_is_least_squares():
    rng = np.random.default_rng(0)
    plain, cut = (ExactGP(Matern(1.5, 0.2), 0.1, level).prior(GRID) for level in (None, lambda belief: math.inf))
    for _ in range(30):
        pulls, rewards = rng.integers(100, size=3), rng.standard_t(1.5, size=3)
        plain.update(pulls, rewards)
        cut.update(pulls, rewards)
    assert_same(plain, cut, 0)


def smooth(x):
    """A function of the SE kernel's space."""
    return np.sin(6 * x[:, 0]) + 0.5 * np.cos(2 * x[:, 0])


@pytest.mark.parametrize("order", ["one block", "one at a time", "random blocks"])
def test_ridge_zero_interpolates_where_the_kernel_matrix_is_singular(order):
    """All 100 arms of a grid under SE l = 0.2: a matrix of numerical rank about 12."""
    belief = ExactGP(SquaredExponential(0.2), 0.0).prior(GRID)
    arms = np.random.default_rng(0).permutation(100)
    size = {"one block": 100, "one at a time": 1, "random blocks": 7}[order]
    for start in range(0, 100, size):
        belief.update(arms[start : start + size], smooth(GRID[arms[start : start + size]]))
    np.testing.assert_allclose(belief.mean, smooth(GRID), atol=1e-6)
    assert belief.std.max() < 1e-5
    assert 0 < belief.ridge < 1e-9
    between = GRID[:-1] + 0.005
    np.testing.assert_allclose(belief.predict(between)[0], smooth(between), atol=1e-6)
    assert math.isfinite(belief.information_gain)
    assert math.isfinite(belief.misfit)


def test_ridge_zero_on_well_separated_arms_is_exact():
    arms = np.arange(10.0)[:, None]
    kernel, values = Matern(0.5, 1.0), np.random.default_rng(0).standard_normal(10)
    belief = ExactGP(kernel, 0.0).prior(arms)
    belief.update(range(5), values[:5])
    direct = Direct(kernel, arms, np.arange(5), values[:5], np.zeros(5) + 1e-300)
    np.testing.assert_allclose(belief.mean, direct.mean, atol=1e-10)
    np.testing.assert_allclose(belief.std, direct.std, atol=1e-6)
    assert belief.misfit == pytest.approx(direct.misfit)


def test_ridge_zero_learns_nothing_from_a_repeated_pull():
    belief = ExactGP(SquaredExponential(0.2), 0.0).prior(GRID)
    belief.update([10, 50, 10], [1.0, -1.0, 7.0])
    mean, std, gain = belief.mean, belief.std, belief.information_gain
    for _ in range(50):
        belief.update(10, 1.0)
        belief.update([50, 10, 50], [-1.0, 1.0, -1.0])
    assert (belief.mean == mean).all()
    assert (belief.std == std).all()
    assert (belief.information_gain, belief.rank) == (gain, 2)
    assert belief.mean[10] == pytest.approx(1.0, abs=1e-9)
    assert belief.rounds == 203


def test_a_ridge_too_small_to_factor_says_what_to_do():
    belief = ExactGP(SquaredExponential(0.2), 1e-20).prior(GRID)
    with pytest.raises(
        ValueError, match=r"^ridge 1e-20 is too small for this kernel and \d+ distinct arms: raise it, or"
    ):
        belief.update(range(100), smooth(GRID))


def test_memory_grows_with_the_distinct_arms_and_not_with_all_arms_squared():
    arms = np.random.default_rng(0).random((20_000, 3))
    tracemalloc.start()
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(arms)
    for t in range(300):
        belief.update(t % 20, 1.0)
    belief.update(range(20, 40), np.ones(20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500 * arms.shape[0] * 8  # 40 distinct arms: some hundred rows; all arms would be 20,000 of them
    assert largest_array(belief) <= 150 * arms.shape[0]


@pytest.mark.slow
def test_many_arms_keep_their_rows_once():
    """40 rows of 200,000 arms, with room for 64, and no second table beside them, be it for kernel columns."""
    arms, rng = np.random.default_rng(0).random((200_000, 2)), np.random.default_rng(1)
    tracemalloc.start()
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(arms)
    for arm in rng.integers(200_000, size=40):
        belief.update(arm, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 200_000 * 8  # two tables are 160


def test_what_lies_in_several_blocks_and_slabs_is_the_same(monkeypatch):
    """Tables of a few numbers a block, carried to a few arms at a time, as where the arms are many."""
    arms, pulls, rewards, noise, rng = history(3, 120)
    plain = in_blocks(ExactGP(Matern(1.5, 0.5), 0.1).prior(arms), np.random.default_rng(0), pulls, rewards, noise)
    monkeypatch.setattr("noregret.bandits.belief.factor.BLOCK", 1)
    monkeypatch.setattr("noregret.bandits.belief.factor.FEWEST", 3)
    monkeypatch.setattr(arrays, "SLAB", 20)
    monkeypatch.setattr(exact, "COLUMNS_KEPT", 20)
    cut = in_blocks(ExactGP(Matern(1.5, 0.5), 0.1).prior(arms), np.random.default_rng(0), pulls, rewards, noise)
    assert_same(plain, cut, 1e-9)
    assert_same(plain.copy(), cut.copy(), 1e-9)
    others = np.concatenate([arms[::2], rng.random((5, 2))])
    assert_knows(cut.at(others), plain.at(others), 1e-9)
    longer = np.concatenate([arms, rng.random((5, 2))])
    assert_knows(cut.at(longer), plain.at(longer), 1e-9)
    everywhere = np.arange(len(arms))
    np.testing.assert_allclose(
        cut.covariance(everywhere, everywhere), plain.covariance(everywhere, everywhere), atol=1e-9
    )


class Counting:
    """A kernel that records the size of each request."""

    def __init__(self):
        self.sizes = []

    def __call__(self, X, Y):
        self.sizes.append((len(X), len(Y)))
        return SquaredExponential(0.3)(X, Y)

    def diag(self, X):
        return np.ones(len(X))


def test_other_arms_cost_their_own_columns_only():
    kernel, rng = Counting(), np.random.default_rng(0)
    belief = ExactGP(kernel, 0.01).prior(rng.random((30, 2)))
    belief.update(range(20), rng.standard_normal(20))
    kernel.sizes.clear()
    moved = belief.at(rng.random((7, 2)))
    assert kernel.sizes == [(20, 7)]
    kernel.sizes.clear()
    moved.update(3, 1.0)
    assert kernel.sizes == [(1, 7)]
    kernel.sizes.clear()
    belief.at(np.concatenate([belief.arms, rng.random((2, 2))]))
    assert kernel.sizes == [(20, 2)], "what is known about the others stays"


@ALGEBRA
@given(SEEDS, st.integers(1, 30), st.integers(0, 40), st.integers(1, 3))
def test_points_are_found_among_arms(seed, arms, points, columns):
    """Few values, so that many rows are equal, wholly or in some columns; -0.0 is 0.0."""
    rng = np.random.default_rng(seed)
    arms, points = (rng.choice([-1.0, -0.0, 0.0, 2.0], size=(n, columns)) for n in (arms, points))
    expected, free, missing = [], list(range(len(arms))), len(arms)
    for point in points:
        found = [row for row in free if (arms[row] == point).all()]
        if found:
            expected.append(found[0])
            free.remove(found[0])
        else:
            expected.append(missing)
            missing += 1
    directory = Directory(arms)
    for _ in range(3):  # it is in order from the second time on
        assert places_among(directory, points).tolist() == expected


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, RIDGES, st.integers(1, 60), st.integers(1, 60))
def test_points_that_are_no_arms_teach_as_much(seed, kernel, ridge, rounds, more):
    """Half of the points are arms; pulls of arms and of points take turns, and other arms come in between."""
    arms, pulls, rewards, noise, rng = history(seed, rounds + more)
    belief, start = ExactGP(kernel, ridge).prior(arms[::2]), 0
    while start < len(pulls):
        if start >= rounds and len(belief.arms) == len(arms[::2]):
            belief = belief.at(arms[1:])
        block = slice(start, start + int(rng.choice([1, 2, 7])))
        belief.learn(arms[pulls[block]], rewards[block], noise[block])
        known = np.flatnonzero((belief.arms[:, None] == arms[pulls[start]]).all(axis=2).any(axis=1))
        if known.size:
            belief.update(known[0], rewards[start], noise=1e9)  # almost no information
        start = block.stop
    direct = Direct(kernel, np.concatenate([belief.arms, arms]), pulls + len(belief.arms), rewards, ridge * noise)
    assert_knows(belief, direct, 1e-5, shown=len(belief.arms))
    assert belief.rank == len(set(pulls.tolist()))


def test_points_of_another_width_are_refused():
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(GRID)
    with pytest.raises(ValueError, match=r"^points must have 1 columns like the arms, got 2$"):
        belief.learn([[0.1, 0.2]], [1.0])
    with pytest.raises(ValueError, match=r"^reward of arm 0 is nan"):
        belief.learn([0.1], math.nan)
    assert (belief.rounds, belief.rank) == (0, 0)


def largest_array(thing):
    """Size of the largest array in an object and its parts."""
    if isinstance(thing, np.ndarray):
        return thing.size
    parts = thing if isinstance(thing, list) else getattr(thing, "__dict__", {}).values()
    return max((largest_array(part) for part in parts), default=0)


def test_a_thousand_pulls_of_few_arms_keep_few_rows():
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(GRID)
    for _ in range(1000):
        belief.update(7, 1.0)
    assert largest_array(belief) <= 100
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(GRID)
    for t in range(1000):
        belief.update(t % 3, 1.0)
    assert largest_array(belief) <= 100 * 128


def test_copies_are_independent():
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(GRID)
    belief.update(range(10), np.arange(10.0))
    twin, third = belief.copy(), belief.copy()
    for t in range(100):
        twin.update(t, 1.0)
    assert_same(belief, third, 0)
    for t in range(100):
        belief.update(t, 1.0)
    assert_same(belief, twin, 0)


def test_a_snapshot_of_mean_and_std_stays():
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(GRID)
    kept = []
    for t in range(60):
        belief.update(t % 7, float(t))
        kept.append((belief.mean, belief.mean.copy(), belief.std, belief.std.copy()))
    assert all((mean == a).all() and (std == b).all() for mean, a, std, b in kept)


def test_takes_lists_scalars_and_whole_numbers():
    one, other = (ExactGP(SquaredExponential(0.2), 0.01).prior(GRID.tolist()) for _ in range(2))
    one.update(3, 1)
    one.update([4, 5], [2, 3])
    other.update(np.array([3, 4, 5]), np.array([1.0, 2.0, 3.0]))
    assert_same(one, other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExactGP(Linear(), -0.1), r"^ridge must be positive, or 0 for noise-free rewards, got -0.1$"),
        (lambda: ExactGP(Linear(), math.nan), r"^ridge must be positive, or 0 for noise-free rewards, got nan$"),
        (lambda: ExactGP(Linear(), math.inf), r"^ridge must be positive, or 0 for noise-free rewards, got inf$"),
        (
            lambda: ExactGP(Linear(), 1).prior([1.0, 2.0]),
            r"^arms must be an \(N, d\) array, got shape \(2,\): .*None\]",
        ),
        (lambda: ExactGP(Linear(), 1).prior([]), r"^arms must be an \(N, d\) array, got shape \(0,\)"),
        (lambda: ExactGP(Linear(), 1).prior([[]]), r"^arms must be an \(N, d\) array, got shape \(1, 0\)"),
        (lambda: ExactGP(Linear(), 1).prior([[1.0], [math.nan]]), r"^arm 1 is not finite: drop it or fill its missing"),
        (lambda: ExactGP(Linear(), 1).prior([[1.0]]).predict([[math.inf]]), r"^arm 0 is not finite"),
    ],
)
def test_errors_say_what_must_hold_and_what_came(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("pulls", ["in blocks", "one arm's in blocks", "with little noise", "in a row"])
@pytest.mark.parametrize("seed", range(3))
def test_a_small_ridge_goes_on_however_many_pulls_are_pooled(pulls, seed):
    """Pooled pulls have less noise than rounding leaves: k(x, x) is 100, so 1e-10 / 2,000 is too little."""
    rng, ridge = np.random.default_rng(seed), 1e-10
    belief, blocks = ExactGP(100.0 * SquaredExponential(0.5), ridge).prior(GRID), 150 if pulls == "in a row" else 60
    for t in range(blocks):
        arms = {
            "in blocks": rng.integers(100, size=500) // 4 * 4,
            "one arm's in blocks": np.repeat(rng.integers(100), 4000),
            "with little noise": rng.integers(100, size=1),
            "in a row": np.full(1, 7 * (t // 30)),
        }[pulls]
        noise = 1e-4 if pulls in ("with little noise", "in a row") else 1.0
        values = smooth(GRID[arms]) + math.sqrt(noise * ridge) * rng.standard_normal(arms.size)
        belief.update(arms, values, noise=noise)
        assert np.abs(belief.mean - smooth(GRID))[arms].max() < 1e-4
    assert belief.std[belief.pulled].max() < 1e-5
    assert np.abs(belief.predict(GRID[belief.pulled])[0] - belief.mean[belief.pulled]).max() < 1e-3
    assert belief.ridge == ridge


@pytest.mark.parametrize("size", [1, 10, 60])
def test_a_ridge_that_is_refused_has_changed_nothing(size):
    belief, rng = ExactGP(SquaredExponential(0.5), 1e-20).prior(GRID), np.random.default_rng(0)
    for _ in range(400):
        arms, twin = rng.integers(100, size=size), belief.copy()
        try:
            belief.update(arms, smooth(GRID[arms]))
        except ValueError:
            assert_same(belief, twin, 0)
            return
    raise AssertionError("a ridge of 1e-20 was never refused")


def test_a_point_that_is_no_arm_learnt_again_and_again_is_as_good_as_an_arm():
    """Pulls in a row are pooled into one row, and points that return get another, until the factor is recomputed."""
    arms, rng = np.random.default_rng(0).random((30, 2)), np.random.default_rng(1)
    points, model = rng.random((4, 2)), ExactGP(Matern(2.5, 0.3), 0.01)
    whole, part = model.prior(np.vstack([arms, points])), model.prior(arms)
    for pull, place in enumerate(np.repeat(rng.integers(4, size=60), 3)):
        reward, noise = rng.standard_normal(), 1.0 + pull % 3
        whole.update(30 + place, reward, noise=noise)
        part.learn(points[place], reward, noise)
        assert part._conditioning.factor.rows == whole._conditioning.factor.rows
    expected = whole.at(arms)
    for name in ("mean", "std", "information_gain", "misfit", "claimed_gain", "effective_dimension"):
        np.testing.assert_allclose(getattr(part, name), getattr(expected, name), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [ExactGP(SquaredExponential(0.3), 0.01), SparseGP(RandomFourier(SquaredExponential(0.3), 20), 0.01)],
    ids=["exact", "sparse"],
)
def test_points_without_rewards_change_the_variance_only(model):
    arms, points = np.random.default_rng(0).random((30, 2)), np.random.default_rng(1).random((3, 2))
    whole, part = model.prior(np.vstack([arms, points])), model.prior(arms)
    for belief in (whole, part):
        belief.update([1, 2], [0.5, 1.0])
    whole.update([30, 31, 32, 3])
    part.learn(points)
    part.learn(arms[3])
    assert part.rounds == 2
    np.testing.assert_allclose(part.mean, whole.mean[:30], atol=1e-9)
    np.testing.assert_allclose(part.std, whole.std[:30], atol=1e-7)


def test_the_largest_numbers_come_in_falling_order_the_first_on_ties():
    numbers = np.array([3.0, 1.0, 3.0, 2.0, 2.0, 2.0, 3.0])
    for count in range(1, 9):
        places, values = largest(numbers, count)
        assert places.tolist() == [0, 2, 6, 3, 4, 5, 1][:count]
        assert values.tolist() == numbers[places].tolist()
