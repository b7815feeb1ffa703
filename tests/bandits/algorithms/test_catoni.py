"""Catoni's mean in elimination: the influence function, the mean and its bound by hand, coverage, absurd rewards."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from noregret import Box, Matern, Policy, SquaredExponential, bounds
from noregret.algorithms import catoni_bpe, catoni_reds, reds
from noregret.bandits.algorithms.catoni import CatoniWidth
from noregret.bandits.algorithms.heavy_tails import Tail
from noregret.bandits.belief import robust
from noregret.bandits.belief.robust import LADDER, CatoniGP, Sketch, groups
from noregret.gp.influence import influence
from noregret.gp.kernels import FunctionKernel
from noregret.testing import check_model

SE = SquaredExponential(0.2)
ARMS = np.random.default_rng(0).random((12, 1))


def constant_events(belief):
    """l = 4, whatever the belief."""
    return 4.0


@pytest.mark.parametrize("alpha", [1.0, 0.9, 0.5, 0.1, 1e-3])
def test_the_influence_function_is_what_the_proof_needs(alpha):
    """exp(psi(z)) <= 1 + z + |z|^p / p and exp(-psi(z)) <= 1 - z + |z|^p / p, from tiny to huge z of both signs."""
    p, size = 1 + alpha, np.concatenate([np.geomspace(1e-8, 1e4, 4001), np.linspace(0.5, 5, 4001)])
    for z in (size, -size):
        most = 1 + z + np.abs(z) ** p / p
        assert (np.exp(influence(z, alpha)) <= most * (1 + 1e-12)).all()
        np.testing.assert_allclose(influence(-z, alpha), -influence(z, alpha))
    assert np.isfinite(influence(np.array([1e300, -1e300]), alpha)).all()


def direct(points, noise, arms, ridge, alpha, norm=1.5, moment=0.02, events=4.0):
    """Weights (n, N), and the two parts of the half-widths (N,), by solving for every pull on its own."""
    p, K, columns = 1 + alpha, SE(points, points), SE(points, arms)
    weights = np.linalg.solve(K + ridge * np.diag(noise), columns)
    bias = np.sqrt(SE.diag(arms) - 2 * (weights * columns).sum(axis=0) + (weights * (K @ weights)).sum(axis=0))
    size = (np.abs(weights) ** p).sum(axis=0) ** (1 / p)
    return weights, norm * bias, moment ** (1 / p) * (p * events / alpha) ** (alpha / p) * size


@pytest.mark.parametrize("alpha", [1.0, 0.6])
def test_mean_and_half_widths_are_those_of_the_best_weights_of_all_pulls(alpha):
    rng = np.random.default_rng(1)
    pulls, rewards, noise = rng.integers(12, size=30), rng.standard_t(2, 30), 1 + rng.random(30)
    belief = CatoniGP(SE, 0.7, 1.5, 0.02, alpha, constant_events).prior(ARMS)
    np.testing.assert_allclose(belief.half_widths, 1.5)
    belief.update(pulls[:7], rewards[:7], noise=noise[:7])
    belief.update(pulls[7:], rewards[7:], noise=noise[7:])
    points, p = ARMS[pulls], 1 + alpha
    unit = 0.02 ** (2 / p) / 1.5**2 * 30 ** ((1 - alpha) / p)
    found = [direct(points, noise, ARMS, ridge, alpha) for ridge in (0.7, *(unit * LADDER[:-1]))]
    halves = np.array([bias + part for _, bias, part in found])
    assert len(set(halves.argmin(axis=0))) > 1
    np.testing.assert_allclose(belief.half_widths, halves.min(axis=0), rtol=1e-3)
    for arm, best in enumerate(halves.argmin(axis=0)):
        weights = found[best][0][:, arm]
        theta = (4 * p / (alpha * 0.02 * (np.abs(weights) ** p).sum())) ** (1 / p)
        expected = influence(theta * weights * rewards, alpha).sum() / theta
        np.testing.assert_allclose(belief.mean[arm], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(belief.predict(ARMS[:3])[0], belief.mean[:3])
    width = CatoniWidth(1.5, Tail(0.02, alpha), constant_events)
    assert (belief.half_widths <= width(belief) * belief.std).all()


def test_the_width_by_hand():
    """alpha = 1: sqrt(B^2 + 2 v l / ridge); alpha = 1/2 after 16 rewards: c = (v 2)^(2/3) (3 l)^(1/3)."""
    now = SimpleNamespace(ridge=0.5, rounds=16)
    assert CatoniWidth(2.0, Tail(3.0), constant_events)(now) == pytest.approx(1.001 * math.sqrt(4 + 2 * 3 * 4 / 0.5))
    c = (3.0 * 2) ** (2 / 3) * (3 * 4) ** (1 / 3)
    assert CatoniWidth(2.0, Tail(3.0, 0.5), constant_events)(now) == pytest.approx(1.001 * math.sqrt(4 + c**2 / 0.5))
    assert CatoniWidth(2.0, Tail(3.0), constant_events, scale=0.0)(now) == pytest.approx(2.002)


def test_without_outliers_and_with_a_generous_moment_it_is_least_squares():
    """As v and B grow, theta goes to 0 and psi(z) to z: every arm has least squares with one of the ridges, or 0."""
    rng = np.random.default_rng(2)
    pulls, rewards = rng.integers(12, size=30), rng.standard_normal(30)
    belief = CatoniGP(SE, 0.7, 1e6, 1e12, 1.0, constant_events).prior(ARMS)
    belief.update(pulls, rewards)
    means = [np.zeros(12)]
    for ridge in (0.7, *LADDER[:-1]):
        plain = reds(SE, ridge=ridge).model.prior(ARMS)
        plain.update(pulls, rewards)
        means.append(plain.mean)
    np.testing.assert_allclose(np.abs(np.array(means) - belief.mean).min(axis=0), 0, atol=2e-3)


def test_the_belief_keeps_the_contract():
    check_model(CatoniGP(SE, 0.5, 1.0, 2.0, 1.0, constant_events), ARMS, linear=False)


def test_one_absurd_reward_moves_the_mean_by_little():
    rng = np.random.default_rng(3)
    pulls, rewards = rng.integers(12, size=200), rng.standard_normal(200)
    means = []
    for reward in (rewards[0], 1e12, 1e300):
        belief = CatoniGP(SE, 1.0, 1.0, 1.0, 1.0, constant_events).prior(ARMS)
        belief.update(pulls, np.concatenate([[reward], rewards[1:]]))
        means.append(belief.mean)
    assert np.abs(means[1] - means[0]).max() < 5  # of the order of ln(1e24) / theta
    assert np.isfinite(means[2]).all()


@pytest.mark.parametrize("build", [catoni_reds, catoni_bpe])
def test_a_box_is_refused(build):
    with pytest.raises(ValueError, match="need finitely many arms"):
        Policy(build(SE, horizon=100), Box([[0, 1]]), rng=0).ask()


def test_a_planned_epoch_leaves_the_mean_alone():
    belief = CatoniGP(SE, 1.0, 1.0, 1.0, 1.0, constant_events).prior(ARMS)
    belief.update([0, 1], [1.0, 2.0])
    before = belief.mean.copy()
    belief.update([2, 3, 3])
    np.testing.assert_array_equal(belief.mean, before)


def test_a_coarse_sketch_never_understates_the_bias():
    """|k(x, .) - sum a_t k(x_t, .)| directly, for sketches of 1 to 12 features, at arms that were pulled or not."""
    rng = np.random.default_rng(4)
    kernel, points, counts = Matern(1.5, 0.1), ARMS[:9], rng.integers(1, 9, size=9).astype(float)
    K, k = kernel(points, points), kernel(points, ARMS)
    sizes = set()
    for least in (20.0, 10.0, 3.0, 0.3, 1e-9):
        sketch = Sketch(kernel, points, counts, least)
        sizes.add(len(sketch.values))
        features, rest = sketch.at(ARMS)
        shrunk = features / (1 + sketch.values[:, None] / 0.5)
        weights = sketch.left @ (shrunk / 0.5)
        a = counts[:, None] * weights
        true = np.sqrt(np.maximum(1 - 2 * (a * k).sum(axis=0) + (a * (K @ a)).sum(axis=0), 0))
        claimed = np.sqrt((shrunk**2).sum(axis=0) + (rest + sketch.strays @ np.abs(weights)) ** 2)
        assert (true <= claimed + 1e-9).all()
    np.testing.assert_allclose(true, claimed, atol=1e-6)  # of the exact weights
    np.testing.assert_allclose(a, np.linalg.solve(K + 0.5 * np.diag(1 / counts), k), atol=1e-6)
    assert len(sizes) >= 4


def test_arms_that_share_weights_have_valid_and_nearly_as_narrow_bands(monkeypatch):
    rng = np.random.default_rng(5)
    arms, pulls = np.sort(rng.random((400, 1)), axis=0), rng.integers(400, size=300)
    f, bands = 0.2 * SE(arms, np.array([[0.3]]))[:, 0], []
    for most in (2000, 200):
        monkeypatch.setattr(robust, "MOST_ESTIMATES", most)
        belief = CatoniGP(SE, 0.1, 2.0, 0.1, 0.5, constant_events).prior(arms)
        belief.update(pulls, f[pulls])
        bands.append((belief.mean, belief.half_widths))
    (mean, half), (shared, wider) = bands
    assert 1 < (wider / half).mean() < 1.2
    assert (np.abs(shared - f) <= wider).all()
    assert len(set(shared)) <= 201 < len(set(mean))


def test_the_moment_of_a_residual():
    """E|y - m|^p for y = f + two-point noise, p in (1, 2]: exact at p = 2, never above the bound."""
    for alpha in (1.0, 0.5, 0.1):
        p, low, high = 1 + alpha, -0.25, 4.0
        chance = -low / (high - low)  # mean 0
        noise = chance * high**p + (1 - chance) * abs(low) ** p
        model = CatoniGP(SE, 1.0, 1.0, 1.0, alpha, constant_events, noise_moment=noise)
        for error in (0.0, 0.1, 1.0, 30.0):
            largest = max(
                chance * abs(high + shift) ** p + (1 - chance) * abs(low + shift) ** p for shift in (error, -error)
            )
            assert largest <= model.residual_moment(error) * (1 + 1e-12)
            assert alpha < 1 or largest == pytest.approx(float(model.residual_moment(error)))


@pytest.mark.parametrize("alpha", [1.0, 0.5, 1e-3])
def test_more_than_half_of_the_groups_fail_with_the_probability_that_is_left(alpha):
    """The binomial tail by summation is 2 exp(-l), and no other odd k has a smaller (k^alpha / q)^(1 / p)."""
    number, share = groups(60, 6.0, alpha)
    tail = sum(
        math.comb(number, j) * share**j * (1 - share) ** (number - j) for j in range(number // 2 + 1, number + 1)
    )
    assert tail == pytest.approx(2 * math.exp(-6.0))
    assert number % 2 == 1
    assert number**alpha / share <= min(k**alpha / q for k, q in (groups(most, 6.0, alpha) for most in range(1, 60)))


@pytest.mark.parametrize("alpha", [1.0, 0.6])
def test_the_median_of_means_is_that_of_the_groups_solved_one_by_one(alpha):
    rng = np.random.default_rng(6)
    pulls, rewards = rng.integers(12, size=45), 5 + rng.standard_t(2, 45)
    belief = CatoniGP(SE, 0.7, 8.0, 1e6, alpha, constant_events, noise_moment=0.02).prior(ARMS)
    belief.update(pulls, rewards)
    number, share = groups(45, 4.0, alpha)
    assert number > 1
    order, p, means, errors = np.argsort(ARMS[pulls, 0], kind="stable"), 1 + alpha, [], []
    for group in (order[start::number] for start in range(number)):
        unit = 0.02 ** (2 / p) / 8.0**2 * len(group) ** ((1 - alpha) / p)
        found = []
        for ridge in (0.7, *(unit * LADDER[:-1])):
            weights, bias, _ = direct(ARMS[pulls[group]], np.ones(len(group)), ARMS, ridge, alpha, norm=8.0)
            size = (np.abs(weights) ** p).sum(axis=0)
            found.append((bias + (2 ** (2 - p) * 0.02 / share * size) ** (1 / p), weights.T @ rewards[group]))
        found.append((np.full(12, 8.0), np.zeros(12)))
        halves, sums = (np.array(each) for each in zip(*found, strict=True))
        best = halves.argmin(axis=0)
        means.append(sums[best, np.arange(12)])
        errors.append(halves.min(axis=0))
    np.testing.assert_allclose(belief.half_widths, np.max(errors, axis=0), rtol=2e-3)
    np.testing.assert_allclose(belief.mean, np.median(means, axis=0), rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(("alpha", "freedom", "noise"), [(1.0, 2.1, 21.0), (0.5, 1.6, 12.2)])
def test_the_median_of_means_covers_heavy_tails(alpha, freedom, noise):
    """Of 40 bands under Student-t noise at most one fails; with 0.02 of the part for the noise many do."""
    failed = {1.0: 0, 0.02: 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        f = SE(ARMS, ARMS[:3]) @ rng.uniform(-1, 1, 3)
        pulls = rng.integers(12, size=300)
        rewards = 100 + f[pulls] + 0.1 * rng.standard_t(freedom, 300)
        for scale in failed:
            kernel = FunctionKernel(lambda X, Y: 1e4 + SE(X, Y))
            moment = 0.1 ** (1 + alpha) * noise
            model = CatoniGP(kernel, 1.0, 4.0, 1e9, alpha, constant_events, scale, moment)
            belief = model.prior(ARMS)
            belief.update(pulls, rewards)
            failed[scale] += bool((np.abs(belief.mean - 100 - f) > belief.half_widths).any())
    assert failed[1.0] <= 1
    assert failed[0.02] >= 10


def latency(recentre, seed, horizon=3200):
    """Half-width of the last band and whether all bands held, for values near 100 with noise of variance 1."""
    rng = np.random.default_rng(seed)
    arms = np.linspace(0, 1, 30)[:, None]
    centres, weights = rng.random((5, 1)), rng.uniform(-1, 1, 5)
    wave = SE(arms, centres) @ weights
    means, size = 100 + wave / np.abs(wave).max(), math.sqrt(weights @ SE(centres, centres) @ weights)
    more = {"recentre": True, "noise_moment": 1.0} if recentre else {}
    norm = math.hypot(1.0, size / np.abs(wave).max())  # 100 is 1 unit of the constant part of the kernel
    kernel = FunctionKernel(lambda X, Y: 1e4 + SE(X, Y))
    algorithm = catoni_reds(kernel, norm=norm, moment=101.0**2 + 1, horizon=horizon, **more)
    play = algorithm.play(arms, rng)
    pull, held, spent = next(play), True, 0
    while spent < horizon:
        spent += len(pull.arms)
        pull = play.send((pull.arms, means[pull.arms] + rng.standard_t(2.1, len(pull.arms)) / math.sqrt(21)))
        lower, upper = algorithm.bounds(pull.belief)
        about = means if pull.about is None else means[pull.about]
        held &= bool(((lower <= about) & (about <= upper)).all())
    return float((upper - lower).mean() / 2), held


def test_recentring_pays_for_the_noise_not_for_the_values():
    """At values of 100 +- 1 and noise of variance 1 the band is 30 times narrower, and holds."""
    for seed in range(3):
        (plain, held), (narrow, held_too) = latency(False, seed), latency(True, seed)
        assert held
        assert held_too
        assert narrow < plain / 30


def test_recentring_needs_the_moment_of_the_noise():
    for given in ({"recentre": True}, {"noise_moment": 1.0}):
        with pytest.raises(ValueError, match="recentre and noise_moment must be given together"):
            catoni_bpe(SE, **given)


@pytest.mark.parametrize(("alpha", "exponent"), [(1.0, 1 / 2), (0.5, 2 / 3)])
def test_the_regret_bound_has_the_order_of_the_theorem(alpha, exponent):
    """T^(1 / (1 + alpha)) for the squared exponential kernel, times logarithms: less than T^0.06 from 10^8 to 10^12."""
    arms = np.linspace(0, 1, 40)[:, None]
    found = [bounds.catoni_bpe(SE, rounds, arms=arms, alpha=alpha) for rounds in (10**8, 10**12)]
    assert not any(bound.is_trivial for bound in found)
    assert exponent < math.log10(found[1].regret / found[0].regret) / 4 < exponent + 0.06
