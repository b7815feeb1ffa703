"""Updates that every posterior refuses; a refused update changes nothing."""

import math
import re

import numpy as np
import pytest

from noregret import (
    ClippedResiduals,
    Constant,
    ExactGP,
    Matern,
    MedianOfMeans,
    Nystrom,
    QuadratureFourier,
    SparseGP,
    SquaredExponential,
    TruncatedDirections,
    TruncatedRewards,
)
from noregret.bandits.belief.model_set import RidgeFamily

SE = SquaredExponential(0.3)
ARMS = np.linspace(0, 1, 20)[:, None]
MODELS = [
    ExactGP(SE, 0.1),
    ExactGP(SE, 0.0),
    ExactGP(SE, 0.1, Constant(2.0)),
    RidgeFamily(SE, (0.1, 0.01)),
    SparseGP(QuadratureFourier(SE, 24), 0.1),
    SparseGP(Nystrom(SE, 1.0), 0.1),
    SparseGP(Nystrom(SE, 1.0), 0.1, TruncatedRewards(Constant(2.0))),
    SparseGP(Nystrom(SE, math.inf), 0.1, ClippedResiduals(Constant(2.0), 0.5)),
    SparseGP(Nystrom(SE, 1.0, root="cholesky"), 0.1, TruncatedDirections(Constant(2.0))),
    SparseGP(Nystrom(SE, 1.0), 0.1, MedianOfMeans(3)),
    SparseGP(Nystrom(SE, 1.0, root="cholesky", coins="kept"), 0.1),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)


def told(model):
    belief = model.prior(ARMS, np.random.default_rng(1))
    belief.update([3, 5, 3], [1.0, -1.0, 0.5])
    belief.update(7, 0.3)
    return belief


def knowledge(belief):
    """All properties of a posterior, as numbers."""
    parts = [belief.mean, belief.std, belief.pulled, *belief.predict(0.9 * ARMS)]
    numbers = [belief.rounds, belief.ridge, belief.information_gain, belief.effective_dimension, belief.rank]
    numbers += [belief.claimed_gain, belief.misfit]
    return np.concatenate([*parts, numbers, belief.covariance(np.arange(4), np.arange(20)).ravel()])


BAD = [
    (([1, 2], [1.0]), "rewards must be one per arm, got 2 arms and 1 reward"),
    ((3, [1.0, 2.0]), "rewards must be one per arm, got 1 arm and 2 rewards"),
    (([1, 2, 3], 1.0), "rewards must be one per arm, got 3 arms and 1 reward"),
    (([], [1.0]), "rewards must be one per arm, got 0 arms and 1 reward"),
    ((np.arange(20) < 2, np.ones(20)), "arms must be indices, got a mask: pass np.flatnonzero(mask)"),
    ((True, 1.0), "arms must be indices, got a mask: pass np.flatnonzero(mask)"),
    ((0.5, 1.0), "arms must be whole numbers, got 0.5: name arms by their index"),
    (([1.0, 2.0], [1.0, 2.0]), "arms must be whole numbers, got 1.0: name arms by their index"),
    (("3", 1.0), "arms must be whole numbers, got '3': name arms by their index"),
    ((20, 1.0), "arms must be in 0..19, got 20"),
    (([3, -1], [1.0, 1.0]), "arms must be in 0..19, got -1"),
    ((3, math.nan), "reward of arm 3 is nan: drop it or pass a finite value"),
    (([3, 4], [0.0, math.inf]), "reward of arm 4 is inf: drop it or pass a finite value"),
    ((3, [None]), "reward of arm 3 is nan: drop it or pass a finite value"),
    ((3, "1"), "rewards must be real numbers, got '1'"),
    ((3, 1j), "rewards must be real numbers, got 1j"),
    ((3, 1.0, 0.0), "noise must be positive and finite, got 0.0"),
    (([3, 4], [1.0, 1.0], [1.0, -1.0]), "noise must be positive and finite, got -1.0"),
    ((3, None, math.nan), "noise must be positive and finite, got nan"),
    ((3, 1.0, math.inf), "noise must be positive and finite, got inf"),
    (([3, 4, 5], [1.0] * 3, [1.0, 2.0]), "noise must be one number or one per arm, got 2 for 3 arms"),
]


@every_model
def test_a_bad_update_is_refused_and_changes_nothing(model):
    belief, twin = told(model), told(model)
    for (arms, rewards, *noise), message in BAD:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            belief.update(arms, rewards, noise=noise[0] if noise else None)
        np.testing.assert_array_equal(knowledge(belief), knowledge(twin))
    for each in (belief, twin):
        each.update([4, 3], [0.1, 0.2])
    np.testing.assert_array_equal(knowledge(belief), knowledge(twin))


@every_model
def test_bad_rewards_of_points_are_refused_and_change_nothing(model):
    belief, twin = told(model), told(model)
    for points, rewards, noise, message in [
        ([[0.1, 0.2]], [1.0], None, "points must have 1 columns like the arms, got 2"),
        ([[0.1], [math.nan]], [1.0, 2.0], None, "arm 1 is not finite: drop it or fill its missing values"),
        ([[0.1], [0.2]], [1.0], None, "rewards must be one per arm, got 2 arms and 1 reward"),
        ([0.123], math.nan, None, "reward of arm 0 is nan: drop it or pass a finite value"),
        ([0.123], 1.0, -1.0, "noise must be positive and finite, got -1.0"),
    ]:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            belief.learn(points, rewards, noise)
    np.testing.assert_array_equal(knowledge(belief), knowledge(twin))


def test_points_outside_the_features_domain_are_refused_and_change_nothing():
    model = SparseGP(QuadratureFourier(SE, 24), 0.1)
    belief, twin = told(model), told(model)
    with pytest.raises(ValueError, match=r"^points must lie in the unit cube for QuadratureFourier"):
        belief.learn([[0.3], [1.5]], [1.0, 2.0])
    for each in (belief, twin):
        each.learn([[0.3], [0.31]], [1.0, 0.5])
    np.testing.assert_array_equal(knowledge(belief), knowledge(twin))


@every_model
def test_updates_with_nothing_in_them_change_nothing(model):
    belief, twin = told(model), told(model)
    belief.update([], [])
    belief.update(np.empty(0, int))
    np.testing.assert_array_equal(knowledge(belief), knowledge(twin))


class Failing:
    """A kernel or a level that raises, or gives nan, from some call on."""

    def __init__(self, function, result=None):
        self.function, self.result, self.broken = function, result, False

    def __call__(self, *given):
        if not self.broken:
            return self.function(*given)
        if self.result is None:
            raise RuntimeError("broken")
        return self.result * np.ones_like(self.function(*given))

    def diag(self, X):
        return np.ones(len(X))


def check_recovers(model, part, errors, arms):
    """An update while ``part`` is broken changes nothing, and later updates work as if it had not been called."""
    belief, twin = told(model), told(model)
    part.broken = True
    with pytest.raises(errors):
        belief.update(arms, np.linspace(-1, 1, np.size(arms)))
    part.broken = False
    np.testing.assert_array_equal(knowledge(belief), knowledge(twin))
    for each in (belief, twin):
        each.update([11, 3, 12], [0.1, 0.2, 0.3])
        each.update(13, 1.0)
    np.testing.assert_array_equal(knowledge(belief), knowledge(twin))


@pytest.mark.slow
@pytest.mark.parametrize("arms", [11, [11, 3, 12, 11], list(range(20))], ids=str)
@pytest.mark.parametrize("result", [None, math.nan, math.inf], ids=str)
@pytest.mark.parametrize(
    "build",
    [
        lambda k: ExactGP(k, 0.1),
        lambda k: ExactGP(k, 0.0),
        lambda k: RidgeFamily(ExactGP(k, 0.1).kernel, (0.1, 0.01)),
        lambda k: SparseGP(Nystrom(k, math.inf), 0.1),
        lambda k: SparseGP(Nystrom(k, math.inf, root="cholesky", coins="kept"), 0.1),
        lambda k: SparseGP(Nystrom(k, math.inf), 0.1, TruncatedRewards(Constant(2.0))),
    ],
    ids=["exact", "noise-free", "family", "sparse", "kept coins", "one by one"],
)
def test_a_kernel_that_breaks_loses_nothing(build, result, arms):
    kernel = Failing(SE, result)
    check_recovers(build(kernel), kernel, RuntimeError if result is None else ValueError, arms)


class FailingLate:
    """A kernel that raises at the arms from 0.5 on while it is broken."""

    broken = False

    def __call__(self, X, Y):
        if self.broken and len(Y) == 4 and Y.min() > 0.5:
            raise RuntimeError("broken")
        return SE(X, Y)

    def diag(self, X):
        return np.ones(len(X))


def test_a_kernel_that_breaks_half_way_through_the_arms_loses_nothing_or_says_so(monkeypatch):
    """Slabs of four arms: a block that fails in a late one adds no row, and a refactoring that does leaves nan."""
    slabs = [slice(start, start + 4) for start in range(0, 20, 4)]
    monkeypatch.setattr("noregret.bandits.belief.factor.slabs", lambda like, rows: slabs)
    monkeypatch.setattr("noregret.bandits.belief.exact.COLUMNS_KEPT", 0)
    kernel = FailingLate()
    belief, twin = told(ExactGP(kernel, 0.1)), told(ExactGP(SE, 0.1))
    kernel.broken = True
    with pytest.raises(RuntimeError):
        belief.update([11, 12], [1.0, 2.0])
    kernel.broken = False
    np.testing.assert_allclose(knowledge(belief), knowledge(twin), atol=1e-9)
    for each in (belief, twin):
        each.update([11, 12], [1.0, 2.0])
        for t in range(45):
            each.update(t % 3, 1.0)
    np.testing.assert_allclose(knowledge(belief), knowledge(twin), atol=1e-9)
    while not belief._conditioning._is_due():
        belief.update(belief.rounds % 3, 1.0)
    kernel.broken = True
    with pytest.raises(RuntimeError):
        belief.update(3, 1.0)
    assert np.isnan(belief.mean).all()


@pytest.mark.parametrize("arms", [11, [11, 3, 12, 11]], ids=str)
@pytest.mark.parametrize(
    "build",
    [
        lambda level: ExactGP(SE, 0.1, level),
        lambda level: SparseGP(Nystrom(SE, 1.0), 0.1, TruncatedRewards(level)),
        lambda level: SparseGP(QuadratureFourier(SE, 24), 0.1, ClippedResiduals(level, 0.5)),
    ],
    ids=["exact", "truncated", "clipped"],
)
def test_a_level_that_breaks_loses_nothing(build, arms):
    level = Failing(lambda belief: 2.0)
    check_recovers(build(level), level, RuntimeError, arms)


def test_a_level_that_breaks_within_a_block_loses_nothing():
    for build in (
        lambda level: ExactGP(SE, 0.1, level),
        lambda level: SparseGP(Nystrom(SE, 1.0), 0.1, TruncatedRewards(level)),
    ):
        calls = []

        def level(belief, calls=calls):
            calls.append(1)
            if len(calls) == 6:
                raise RuntimeError("broken")
            return 2.0

        belief, twin = told(build(level)), told(build(Constant(2.0)))
        with pytest.raises(RuntimeError):
            belief.update([1, 2, 3], [1.0, 1.0, 1.0])
        np.testing.assert_array_equal(knowledge(belief), knowledge(twin))


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_kernel_that_gives_nan_is_named(ridge):
    def kernel(X, Y):
        return np.where((X == 0.5) | (Y.T == 0.5), math.nan, SE(X, Y))

    kernel.diag = lambda X: np.ones(len(X))
    belief = ExactGP(kernel, ridge).prior([[0.0], [0.5], [1.0]])
    message = r"^the kernel must be finite, got nan for arms 0 and 1: fix the kernel, or drop an arm it cannot take$"
    with pytest.raises(ValueError, match=message):
        belief.update(0, 1.0)
    with pytest.raises(ValueError, match=r"^the kernel's variance must be finite and at least 0, got nan at arm 1: "):
        ExactGP(lambda X, Y: kernel(X, Y), ridge).prior([[0.0], [0.5], [1.0]])


def test_a_kernel_whose_diagonal_is_another_is_found_at_the_first_pull():
    from sklearn.gaussian_process import kernels as sk

    for model in (
        ExactGP(sk.RBF(0.3) + sk.WhiteKernel(0.5), 0.1),
        SparseGP(Nystrom(sk.RBF() + sk.WhiteKernel(0.5), 1), 0.1),
    ):
        belief = model.prior(ARMS)
        message = r"^the kernel's diag gives 1\.5 at arm 3, but k\(x, x\) there is 1: leave noise .* to the ridge"
        with pytest.raises(ValueError, match=message):
            belief.update(3, 1.0)
        assert belief.rounds == 0
    ExactGP(1.0 * sk.RBF(0.3), 0.1 + 0.5).prior(ARMS).update(3, 1.0)  # what the message advises


def test_rounding_on_the_diagonal_is_no_other_diagonal():
    def rounded(X, Y):
        return np.exp(-np.sqrt(np.maximum((X**2).sum(1)[:, None] + (Y**2).sum(1) - 2 * X @ Y.T, 0)))

    rounded.diag = lambda X: np.ones(len(X))
    arms = np.random.default_rng(0).random((50, 3))
    ExactGP(rounded, 0.1).prior(arms).update(range(50), np.zeros(50))
    ExactGP(Matern(0.5, 0.3), 0.1).prior(arms).update(range(50), np.zeros(50))
