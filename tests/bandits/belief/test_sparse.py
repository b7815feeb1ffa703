"""The posterior on features against direct solves, the exact posterior and its contract."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from noregret import (
    UCB,
    Constant,
    ExactGP,
    Matern,
    Nystrom,
    Policy,
    QuadratureFourier,
    RandomFourier,
    Sequential,
    SparseGP,
    SquaredExponential,
    Thompson,
)
from noregret.testing import check_model

ALGEBRA = settings(derandomize=True, deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)
SE = SquaredExponential(0.2)
GRID = np.linspace(0, 1, 40)[:, None]
EXACT = [
    QuadratureFourier(SE, 32),
    QuadratureFourier(SE, 33),
    QuadratureFourier(SE, 32, folded=False),
    Nystrom(SE, math.inf),
    Nystrom(SE, math.inf, root="cholesky"),
    Nystrom(Matern(1.5, 0.3), math.inf),
]
FIXED = [*EXACT, RandomFourier(SE, 15)]
SKETCH = [Nystrom(SE, 0.5), Nystrom(SE, 2.0, root="cholesky"), Nystrom(Matern(2.5, 0.3), 1.0, "once"),
          Nystrom(SE, 1.0, "sum", variance="subset-of-regressors"),
          Nystrom(SE, 2.0, root="cholesky", coins="kept"), Nystrom(Matern(1.5, 0.1), 1.0, "sum", coins="kept"),
          Nystrom(Matern(1.5, 0.1), 1.0, "sum", "cholesky", "subset-of-regressors", coins="kept")]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def data(seed, arms=40, size=60):
    rng = np.random.default_rng(seed)
    return rng.integers(arms, size=size), 3 * rng.standard_normal(size), rng.uniform(0.3, 3, size)


def told(features, ridge, pulls, rewards, noise=None, pieces=(5, 1, 9), arms=GRID):
    belief = SparseGP(features, ridge).prior(arms, np.random.default_rng(1))
    for block in np.split(np.arange(len(pulls)), np.cumsum(pieces)):
        belief.update(pulls[block], rewards[block], noise=None if noise is None else noise[block])
    return belief


def direct(belief, pulls, rewards, noise):
    """Mean, std, gain, misfit and effective dimension on the belief's own features, by the textbook formulas."""
    table, unexplained = belief._map.at(GRID)
    weighted = table[:, pulls] / noise
    gram = weighted @ table[:, pulls].T + belief.ridge * np.eye(len(table))
    mean = np.linalg.solve(gram, weighted @ rewards) @ table
    variance = unexplained + belief.ridge * (table * np.linalg.solve(gram, table)).sum(axis=0)
    gain = 0.5 * (np.linalg.slogdet(gram)[1] - len(table) * math.log(belief.ridge))
    explained = weighted @ rewards @ np.linalg.solve(gram, weighted @ rewards)
    return {"mean": mean, "std": np.sqrt(variance), "information_gain": gain,
            "misfit": (rewards @ (rewards / noise) - explained) / belief.ridge,
            "effective_dimension": (variance[pulls] / noise).sum() / belief.ridge}  # fmt: skip


@ALGEBRA
@given(SEEDS, st.sampled_from(FIXED + SKETCH), st.floats(0.01, 10))
def test_updates_equal_a_direct_solve(seed, features, ridge):
    pulls, rewards, noise = data(seed)
    belief = told(features, ridge, pulls, rewards, noise)
    for name, expected in direct(belief, pulls, rewards, noise).items():
        np.testing.assert_allclose(getattr(belief, name), expected, rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("features", [EXACT[0], EXACT[4], SKETCH[0], SKETCH[4]], ids=str)
def test_single_pulls_that_are_looked_at_equal_a_direct_solve(features):
    """Arms come several times in a row, and the mean is read after every reward, so that it is changed in place."""
    pulls, rewards, noise = data(7, size=240)
    pulls = np.repeat(pulls[::3], 3)
    belief = SparseGP(features, 0.05).prior(GRID, np.random.default_rng(1))
    for arm, reward, factor in zip(pulls, rewards, noise, strict=True):
        belief.update(arm, reward, noise=factor)
        assert belief.mean.shape == (40,)
    for name, expected in direct(belief, pulls, rewards, noise).items():
        np.testing.assert_allclose(getattr(belief, name), expected, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, st.sampled_from(EXACT), st.floats(0.01, 10))
def test_exact_features_give_the_exact_posterior(seed, features, ridge):
    pulls, rewards, noise = data(seed)
    belief, exact = told(features, ridge, pulls, rewards, noise), ExactGP(features.kernel, ridge).prior(GRID)
    exact.update(pulls, rewards, noise=noise)
    for name in ("mean", "std", "information_gain", "effective_dimension", "misfit"):
        got, expected = getattr(belief, name), getattr(exact, name)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6, err_msg=name)
    points = np.random.default_rng(seed).random((9, 1))
    np.testing.assert_allclose(belief.predict(points), exact.predict(points), atol=1e-6)
    some, others = np.arange(7), np.arange(5, 30)
    np.testing.assert_allclose(belief.covariance(some, others), exact.covariance(some, others), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("features", FIXED)
def test_keeps_the_contract(features):
    check_model(SparseGP(features, 0.1), GRID[::2])


@pytest.mark.slow
@pytest.mark.parametrize("features", [f for f in SKETCH if f.variance == "full"])
def test_a_sketch_keeps_the_contract_too(features):
    check_model(SparseGP(features, 0.1), GRID[::2], fixed=False)


@pytest.mark.slow
@pytest.mark.parametrize("features", [EXACT[0], Nystrom(SE, 2.0)])
def test_samples_have_the_posteriors_covariance(features):
    """5000 draws; the entries of their covariance are off by at most 6 standard errors, sqrt(2 / 5000) at most."""
    belief = told(features, 0.1, *data(0, 20, 30)[:2], arms=GRID[::2])
    rng, all_arms = np.random.default_rng(0), np.arange(20)
    draws = np.array([belief.sample(rng) for _ in range(5000)])
    expected = belief.covariance(all_arms, all_arms)
    assert np.abs(np.cov(draws.T) - expected).max() < 6 * math.sqrt(2 / 5000) * expected.max()
    np.testing.assert_allclose(np.sqrt(expected.diagonal()), belief.std, atol=1e-9)


@pytest.mark.parametrize("features", [EXACT[0], RandomFourier(SE, 15), Nystrom(SE, 2.0)])
def test_moving_to_other_arms_keeps_what_was_learnt(features):
    pulls, rewards, noise = data(3)
    belief = told(features, 0.1, pulls, rewards, noise)
    others = np.vstack([GRID[7:20], np.random.default_rng(0).random((15, 1)), GRID[7:9]])
    moved = belief.at(others)
    np.testing.assert_allclose((moved.mean, moved.std), belief.predict(others), atol=1e-8)
    assert moved.arms.shape == others.shape
    assert moved.rounds == belief.rounds
    assert {tuple(moved.arms[i]) for i in moved.pulled} <= {tuple(GRID[i]) for i in pulls}
    np.testing.assert_allclose(moved.information_gain, belief.information_gain, rtol=1e-9)
    np.testing.assert_allclose(moved.effective_dimension, belief.effective_dimension, rtol=1e-6)
    back = moved.at(GRID)
    np.testing.assert_allclose((back.mean, back.std), (belief.mean, belief.std), atol=1e-8)
    moved.update([0, 14], [1.0, 2.0])
    assert moved.rounds == belief.rounds + 2
    assert back.rounds == belief.rounds


@pytest.mark.parametrize("seed", range(3))
def test_the_dictionary_is_drawn_from_the_variance_before_the_round(seed):
    """Replay of BKB, Alg. 1: probabilities 1 - (1 - min(1, q s^2 / ridge))^n with the s of before the reward."""
    features, ridge = Nystrom(SE, 1.5), 0.5
    belief = SparseGP(features, ridge).prior(GRID, np.random.default_rng(seed))
    twin, counts, order = np.random.default_rng(seed), np.zeros(40), []
    for arm, reward in zip(*data(seed)[:2], strict=True):
        before = belief.std**2
        belief.update(arm, reward)
        counts[arm] += 1
        order += [] if arm in order else [arm]
        p = np.minimum(1, 1.5 * before[order] / ridge)
        kept = np.array(order)[twin.random(len(order)) < 1 - (1 - p) ** counts[order]]
        np.testing.assert_array_equal(belief.dictionary, GRID[kept if kept.size else [arm]])
        assert belief.rank == len(belief.dictionary)


@pytest.mark.slow
@pytest.mark.parametrize("root", ["symmetric", "cholesky"])
@pytest.mark.parametrize("seed", range(3))
def test_kept_coins_are_tossed_once_and_an_eighth_of_the_dictionary_may_linger(seed, root):
    """Replay: an arm is in while its one number is below its probability; those that leave do so together."""
    features, ridge = Nystrom(SE, 1.5, root=root, coins="kept"), 0.5
    belief = SparseGP(features, ridge).prior(GRID, np.random.default_rng(seed))
    twin, counts, coins, lingered, left = np.random.default_rng(seed), np.zeros(40), {}, 0, 0
    for arm, reward in zip(*data(seed, size=300)[:2], strict=True):
        before, dictionary = belief.std**2, set(belief.dictionary[:, 0])
        belief.update(arm, reward)
        counts[arm] += 1
        if arm not in coins:
            coins[arm] = twin.random()
        p = np.minimum(1, 1.5 * before / ridge)
        drawn = {GRID[i, 0] for i, coin in coins.items() if coin < 1 - (1 - p[i]) ** counts[i]} or {GRID[arm, 0]}
        now = set(belief.dictionary[:, 0])
        assert now in (drawn, drawn | dictionary)
        assert len(now - drawn) <= len(dictionary) / 8
        lingered, left = lingered + len(now - drawn), left + len(dictionary - now)
    assert lingered
    assert left


@pytest.mark.slow
def test_a_sketch_with_kept_coins_makes_few_features_anew():
    """Rounds, of 600, in which all features are new; with fresh coins it is nearly every round."""
    arms, rng = np.random.default_rng(0).random((300, 2)), np.random.default_rng(1)
    afresh = {}
    for coins in ("fresh", "kept"):
        belief = SparseGP(Nystrom(SE, 2.0, root="cholesky", coins=coins), 0.01).prior(arms, np.random.default_rng(2))
        redraw, unchanged = belief._map.redraw, []
        belief._map.redraw = lambda *given, redraw=redraw, unchanged=unchanged: (
            unchanged.append(redraw(*given)) or unchanged[-1]
        )
        for arm in rng.integers(0, 300, 600):
            belief.update(arm, 0.0)
        afresh[coins] = unchanged.count(0)
    assert afresh["kept"] < 60 < 400 < afresh["fresh"]


@pytest.mark.parametrize("root", ["symmetric", "cholesky"])
def test_coins_go_with_their_arms(root):
    """With the same random numbers, a posterior moved to the same arms in another order keeps the same dictionary."""
    features, order = Nystrom(SE, 1.5, root=root, coins="kept"), np.random.default_rng(0).permutation(40)
    belief = told(features, 0.1, *data(5)[:2])
    moved, place = belief.at(GRID[order]), np.argsort(order)
    for arm in belief.pulled[::2]:
        belief.update(arm, 1.0)
        moved.update(place[arm], 1.0)
        assert {*moved.dictionary[:, 0]} == {*belief.dictionary[:, 0]}
    np.testing.assert_allclose(moved.mean, belief.mean[order], atol=1e-7)


def test_thinking_ahead_keeps_the_dictionary_and_disturbs_nothing():
    belief = told(Nystrom(SE, 1.0), 0.1, *data(1)[:2])
    twin = told(Nystrom(SE, 1.0), 0.1, *data(1)[:2])
    ahead = twin.copy()
    ahead.update([39, 0, 39])
    assert np.array_equal(ahead.dictionary, twin.dictionary)
    ahead.update([38, 1], [1.0, 2.0])
    for arm in range(10):
        belief.update(arm, 1.0)
        twin.update(arm, 1.0)
    np.testing.assert_array_equal(belief.mean, twin.mean)
    np.testing.assert_array_equal(belief.std, twin.std)


@pytest.mark.parametrize("coins", ["fresh", "kept"])
@pytest.mark.parametrize("root", ["symmetric", "cholesky"])
def test_a_copy_and_the_original_learn_about_new_arms_apart(root, coins):
    """Both meet arms of which neither has the kernel columns yet, and append features to the same ones."""
    model = SparseGP(Nystrom(SE, math.inf, root=root, coins=coins), 0.1)
    belief, control = model.prior(GRID), model.prior(GRID)
    for one in (belief, control):
        one.update([0, 5, 9], [1.0, 2.0, 3.0])
        one.update(3, 4.0)  # now there is room for more columns
    twin = belief.copy()
    for arm in range(10, 20):
        belief.update(arm, 1.0)
        twin.update(arm + 20, -1.0)
        control.update(arm, 1.0)
        belief.update(0, 1.0)
        control.update(0, 1.0)
    np.testing.assert_array_equal(belief.mean, control.mean)
    np.testing.assert_array_equal(belief.predict(GRID), control.predict(GRID))


@pytest.mark.slow
@pytest.mark.parametrize("rule", [UCB(Constant(1.0)), Thompson(Constant(1.0))])
@pytest.mark.parametrize("features", [QuadratureFourier(SE, 32), Nystrom(SE, 5.0), RandomFourier(SE, 30)])
def test_policies_find_the_top_on_features(features, rule):
    f, world = np.sin(6 * GRID[:, 0]), np.random.default_rng(0)
    policy = Policy(Sequential(SparseGP(features, 0.04), rule), GRID, rng=0)
    for _ in range(150):
        arms = policy.ask()
        policy.tell(arms, f[arms] + 0.2 * world.standard_normal(arms.size))
    assert f[policy.best().arm] > 0.95


@pytest.mark.parametrize("features", FIXED + SKETCH[:3])
def test_before_any_reward_the_belief_is_the_prior(features):
    belief = SparseGP(features, 0.1).prior(GRID)
    points = np.random.default_rng(0).random((7, 1))
    np.testing.assert_allclose(belief.predict(points), [np.zeros(7), np.ones(7)], atol=1e-9)
    np.testing.assert_allclose((belief.mean, belief.std), [np.zeros(40), np.ones(40)], atol=1e-9)
    assert belief.sample(np.random.default_rng(0)).shape == (40,)
    np.testing.assert_allclose(belief.at(points).std, np.ones(7), atol=1e-9)
    assert len(belief.dictionary) == 0


def test_without_a_generator_the_draws_are_the_same_every_time():
    model = SparseGP(RandomFourier(SE, 5), 1.0)
    assert np.array_equal(model.prior(GRID).std, model.prior(GRID).std)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((EXACT[0], 0.0), "ridge must be positive, got 0"),
        ((EXACT[0], math.inf), "ridge must be positive"),
        ((SE, 1.0), "features must be such as"),
        ((EXACT[0], 1.0, "median"), "estimator must be an Estimator"),
    ],
)
def test_says_what_it_needs(arguments, message):
    with pytest.raises(ValueError, match=message):
        SparseGP(*arguments)


@pytest.mark.parametrize("features", [QuadratureFourier(SE, 32), RandomFourier(SE, 60)])
def test_points_off_the_span_of_the_arms_features_are_predicted_by_the_whole_regression(features):
    """On ten arms the features are kept in ten coordinates; elsewhere they have a part beyond these."""
    arms, points = GRID[::4], np.random.default_rng(1).random((7, 1))
    pulls, rewards = np.random.default_rng(2).integers(10, size=30), np.random.default_rng(3).standard_normal(30)
    belief = SparseGP(features, 0.3).prior(arms, np.random.default_rng(0))
    belief.update(pulls, rewards)
    assert belief.gram.shape == (10, 10)
    assert belief.rank > 30
    everywhere = features.on(np.linspace(0, 1, 2000)[:, None], 0.3, np.random.default_rng(0))
    lift = np.asarray if everywhere.span is None else everywhere.span.__matmul__
    phi, new = (lift(everywhere.at(x)[0]) for x in (arms, points))
    V = 0.3 * np.eye(len(phi)) + phi[:, pulls] @ phi[:, pulls].T
    mean = new.T @ np.linalg.solve(V, phi[:, pulls] @ rewards)
    std = np.sqrt(0.3 * np.einsum("ij,ij->j", new, np.linalg.solve(V, new)))
    np.testing.assert_allclose(belief.predict(points), (mean, std), atol=1e-7)


@pytest.mark.parametrize("features", SKETCH, ids=repr)
def test_more_arms_behind_the_present_ones(features):
    """Extended by 5 arms, and then updated, a sketch equals one on all arms from the start."""
    arms = np.random.default_rng(0).random((30, 1))
    few, whole = (SparseGP(features, 0.1).prior(each, np.random.default_rng(1)) for each in (arms[:25], arms))
    pulls, rewards = np.random.default_rng(2).integers(25, size=12), np.random.default_rng(3).standard_normal(12)
    for t, (arm, reward) in enumerate(zip(pulls, rewards, strict=True)):
        few.update(arm, reward)
        whole.update(arm, reward)
        if t == 7:
            few = few.at(arms)
    for name in ("mean", "std", "information_gain", "effective_dimension", "claimed_gain", "misfit"):
        assert getattr(few, name) == pytest.approx(getattr(whole, name), abs=1e-7), name
    few.update([28, 3], [1.0, 2.0])
    whole.update([28, 3], [1.0, 2.0])
    assert few.mean == pytest.approx(whole.mean, abs=1e-7)
