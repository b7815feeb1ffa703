"""Kernels: against scikit-learn's, their algebra, and their errors."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as sk

from noregret import (
    Columns,
    ExactGP,
    Kernel,
    Linear,
    Matern,
    Policy,
    RationalQuadratic,
    SquaredExponential,
    Tabular,
    algorithms,
)
from noregret.gp import kernels
from noregret.testing import check_kernel

RNG = np.random.default_rng(0)
X, Y = RNG.random((30, 3)), RNG.random((20, 3))
ARD = (0.3, 1.5, 0.7)

PAIRS = [
    (SquaredExponential(0.4), sk.RBF(0.4)),
    (SquaredExponential(ARD), sk.RBF(ARD)),
    *((Matern(nu, 0.4), sk.Matern(0.4, nu=nu)) for nu in (0.5, 1.5, 2.5, 0.8, 3.7)),
    (Matern(1.5, ARD), sk.Matern(ARD, nu=1.5)),
    (Matern(3.7, ARD), sk.Matern(ARD, nu=3.7)),
    (RationalQuadratic(0.6, 0.4), sk.RationalQuadratic(length_scale=0.4, alpha=0.6)),
    (Linear(), sk.DotProduct(0.0)),
    (Linear(2.0), sk.DotProduct(math.sqrt(2.0))),
    (SquaredExponential(0.4) + Matern(1.5, 0.2), sk.RBF(0.4) + sk.Matern(0.2, nu=1.5)),
    (SquaredExponential(0.4) * Linear(1.0), sk.RBF(0.4) * sk.DotProduct(1.0)),
    (3.0 * SquaredExponential(0.4), 3.0 * sk.RBF(0.4)),
    (Columns(Matern(1.5, 0.3), (1,)), sk.Matern((1e9, 0.3, 1e9), nu=1.5)),
    (
        2 * SquaredExponential(0.4) * Linear(1.0) + Matern(0.5, 1.0) * 0.5,
        2 * sk.RBF(0.4) * sk.DotProduct(1.0) + 0.5 * sk.Matern(1.0, nu=0.5),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda k: str(k)[:60])
def test_equals_scikit_learn(ours, theirs):
    np.testing.assert_allclose(ours(X, Y), theirs(X, Y), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.diag(X), theirs.diag(X), rtol=1e-12)
    check_kernel(ours, X)


def test_rational_quadratic_takes_a_lengthscale_per_dimension():
    scaled = RationalQuadratic(0.6, 1.0)
    np.testing.assert_allclose(RationalQuadratic(0.6, ARD)(X, Y), scaled(X / ARD, Y / ARD), rtol=1e-12)


def test_formulas_at_one_lengthscale():
    origin, one = np.zeros((1, 1)), np.full((1, 1), 0.7)
    assert SquaredExponential(0.7)(origin, one)[0, 0] == pytest.approx(math.exp(-0.5))
    assert Matern(0.5, 0.7)(origin, one)[0, 0] == pytest.approx(math.exp(-1))
    assert Matern(1.5, 0.7)(origin, one)[0, 0] == pytest.approx((1 + math.sqrt(3)) * math.exp(-math.sqrt(3)))
    expected = (1 + math.sqrt(5) + 5 / 3) * math.exp(-math.sqrt(5))
    assert Matern(2.5, 0.7)(origin, one)[0, 0] == pytest.approx(expected)
    assert RationalQuadratic(2.0, 0.7)(origin, one)[0, 0] == pytest.approx((1 + 1 / 4) ** -2)


@pytest.mark.parametrize("nu", [0.5, 0.8, 1.5, 2.5, 3.7, 30.0, 100.0])
def test_matern_is_one_at_distance_zero_and_next_to_it(nu):
    near = np.array([[0.0], [1e-300], [1e-12], [1e-9]])
    k = Matern(nu, 0.3)(near, near[:1])
    assert k[0, 0] == 1.0
    np.testing.assert_allclose(k, 1.0, atol=1e-4 if nu < 1 else 1e-8)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.floats(0.3, 6.0).filter(lambda nu: nu not in (0.5, 1.5, 2.5)), st.floats(0.05, 3.0))
def test_matern_of_any_smoothness_equals_scikit_learn(nu, lengthscale):
    points = np.linspace(0, 2, 15)[:, None]
    theirs = sk.Matern(lengthscale, nu=nu)(points, points)
    np.testing.assert_allclose(Matern(nu, lengthscale)(points, points), theirs, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_closed_forms_continue_the_bessel_form(nu):
    np.testing.assert_allclose(Matern(nu, 0.3)(X, Y), Matern(nu + 1e-9, 0.3)(X, Y), atol=1e-7)


def test_kernels_do_not_write_to_their_points():
    points = X.copy()
    points.setflags(write=False)
    for ours, _ in PAIRS:
        ours(points, points)
    assert (points == X).all()


def test_tabular_looks_its_matrix_up():
    root = RNG.standard_normal((6, 6))
    matrix = root @ root.T
    k = Tabular(matrix)
    assert k.arms.shape == (6, 1)
    np.testing.assert_array_equal(k(k.arms, k.arms), matrix)
    np.testing.assert_array_equal(k(k.arms[[4, 1]], k.arms[[0, 0, 5]]), matrix[np.ix_([4, 1], [0, 0, 5])])
    np.testing.assert_array_equal(k.diag(k.arms[[3]]), matrix[3:4, 3])
    check_kernel(k, k.arms)
    check_kernel(2.0 * k + SquaredExponential(3.0), k.arms)


def test_tabular_keeps_its_own_read_only_matrix():
    matrix = np.eye(3)
    k = Tabular(matrix)
    matrix[0, 0] = 7.0
    assert k.matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        k.matrix[0, 0] = 7.0


def test_tabular_takes_a_singular_matrix():
    column = np.arange(1.0, 6.0)[:, None]
    check_kernel(Tabular(column @ column.T), np.arange(5.0)[:, None])


def test_kernels_are_values():
    assert SquaredExponential(0.2) == SquaredExponential(0.2) != SquaredExponential(0.3)
    assert SquaredExponential([0.2, 0.3]) == SquaredExponential((0.2, 0.3)) == SquaredExponential(np.array([0.2, 0.3]))
    assert 2 * Matern(1.5, 1) + Linear() == Matern(1.5, 1.0) * 2.0 + Linear()
    assert Tabular(np.eye(2)) == Tabular(np.eye(2)) != Tabular(2 * np.eye(2))
    assert len({SquaredExponential(0.2), SquaredExponential(0.2), Tabular(np.eye(2)), Tabular(np.eye(2))}) == 2
    for k, _ in PAIRS:
        assert pickle.loads(pickle.dumps(k)) == k
        assert eval(repr(k), vars(__import__("noregret.gp.kernels", fromlist=["kernels"]))) == k


def test_factors_of_any_number_type():
    k = SquaredExponential(0.4)
    for factor in (3, 3.0, np.float64(3), np.int64(3)):
        np.testing.assert_allclose((factor * k)(X, Y), 3 * k(X, Y))
        np.testing.assert_allclose((k * factor).diag(X), 3 * k.diag(X))


def plain_callable(A, B):
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(-1) / 0.4**2)


@pytest.mark.parametrize("foreign", [plain_callable, sk.RBF(0.4)], ids=["function", "scikit-learn"])
def test_any_callable_is_a_kernel_everywhere(foreign):
    check_kernel(foreign, X)
    mine, theirs = (ExactGP(k, 0.1).prior(X) for k in (SquaredExponential(0.4), foreign))
    for belief in (mine, theirs):
        belief.update([3, 5, 3], [1.0, -1.0, 0.5])
    np.testing.assert_allclose(theirs.mean, mine.mean, atol=1e-12)
    np.testing.assert_allclose(theirs.std, mine.std, atol=1e-12)
    for combined in (foreign + Linear(), Linear() + foreign) if foreign is plain_callable else (Linear() + foreign,):
        np.testing.assert_allclose(combined(X, Y), plain_callable(X, Y) + X @ Y.T, atol=1e-12)
    np.testing.assert_allclose((Linear() * foreign)(X, Y), plain_callable(X, Y) * (X @ Y.T), atol=1e-12)


@pytest.mark.parametrize("foreign", [plain_callable, sk.RBF(0.4)], ids=["function", "scikit-learn"])
@pytest.mark.parametrize("builder", [algorithms.igp_ucb, algorithms.gp_ts, algorithms.amm_ucb, algorithms.dmm_ucb])
def test_builders_take_any_callable(builder, foreign):
    policies = [Policy(builder(k), X, rng=0) for k in (SquaredExponential(0.4), foreign)]
    for t in range(10):
        assert policies[0].ask().tolist() == policies[1].ask().tolist()
        for policy in policies:
            policy.tell(policy.ask(), [math.sin(t)])


def test_a_kernel_of_ones_own_needs_two_methods():
    class Cosine(Kernel):
        def __call__(self, X, Y):
            return np.cos(X - Y.T)

        def diag(self, X):
            return np.ones(len(X))

    check_kernel(Cosine() + SquaredExponential(1.0), np.linspace(0, 5, 9)[:, None])
    with pytest.raises(ValueError, match=r"^no growth rate of the information gain is known for .*Cosine.*gain='real"):
        algorithms.igp_ucb(Cosine(), constants="experiment")


def test_growth_rates():
    t, d = 50, 3
    assert SquaredExponential(0.2).gain_rate(t, d) == pytest.approx(math.log(t) ** (d + 1))
    assert Matern(2.5, 0.2).gain_rate(t, d) == pytest.approx(t ** (12 / (5 + 12)) * math.log(t))
    assert Linear().gain_rate(t, d) == pytest.approx(d * math.log(t))
    assert (5 * SquaredExponential(0.2)).gain_rate(t, d) == SquaredExponential(0.2).gain_rate(t, d)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SquaredExponential(0), r"^lengthscale must be positive, got 0$"),
        (lambda: SquaredExponential(-0.1), r"^lengthscale must be positive, got -0.1$"),
        (lambda: SquaredExponential(math.nan), r"^lengthscale must be positive, got nan$"),
        (lambda: SquaredExponential(math.inf), r"^lengthscale must be positive, got inf$"),
        (lambda: SquaredExponential((0.1, -0.2)), r"^lengthscale must be positive, got \(0.1, -0.2\)$"),
        (lambda: SquaredExponential(()), r"^lengthscale must be positive, got \(\)$"),
        (lambda: Matern(2.5, 0), r"^lengthscale must be positive, got 0$"),
        (lambda: Matern(0, 1.0), r"^nu must be in \(0, 100\], got 0$"),
        (lambda: Matern(math.inf, 1.0), r"^nu must be in \(0, 100\], got inf: take SquaredExponential"),
        (lambda: RationalQuadratic(-1.0, 1.0), r"^alpha must be positive, got -1.0$"),
        (lambda: RationalQuadratic(1.0, 0.0), r"^lengthscale must be positive, got 0.0$"),
        (lambda: Linear(-1.0), r"^offset must be finite and at least 0, got -1.0$"),
        (lambda: Linear(math.inf), r"^offset must be finite and at least 0, got inf$"),
        (lambda: Linear(math.nan), r"^offset must be finite and at least 0, got nan$"),
        (lambda: -2 * Linear(), r"^factor of a kernel must be positive, got -2.0$"),
        (lambda: Linear() * 0, r"^factor of a kernel must be positive, got 0.0$"),
        (lambda: Linear() + 3, r"^kernel must be a kernel object or a function \(n, d\), \(m, d\) -> \(n, m\), got 3$"),
        (lambda: ExactGP("rbf", 0.1), r"^kernel must be a kernel object or a function .*, got 'rbf'$"),
        (lambda: ExactGP(Matern, 0.1), r"^kernel must be a kernel object or a function .*, got <class .*Matern'>$"),
        (lambda: Tabular([1.0, 2.0]), r"^matrix must be square, got shape \(2,\)$"),
        (lambda: Tabular(np.ones((2, 3))), r"^matrix must be square, got shape \(2, 3\)$"),
        (lambda: Tabular(np.ones((0, 0))), r"^matrix must be square, got shape \(0, 0\)$"),
        (lambda: Tabular([[1.0, math.nan], [math.nan, 1.0]]), r"^matrix must be finite: fill or drop the rows with"),
        (lambda: Tabular([[1.0, 0.5], [0.4, 1.0]]), r"^matrix must be symmetric: pass \(M \+ M.T\) / 2"),
        (lambda: Tabular([[1.0, 2.0], [2.0, 1.0]]), r"^matrix must be positive semi-definite: .* negative eigenvalue$"),
        (lambda: Tabular(np.eye(2))(np.array([[0.5]]), np.zeros((1, 1))), r"are one column of whole numbers: pass ker"),
        (lambda: Tabular(np.eye(2))(np.zeros((1, 2)), np.zeros((1, 1))), r"are one column of whole numbers: pass ker"),
        (lambda: Tabular(np.eye(2))(np.array([[2.0]]), np.zeros((1, 1))), r"Tabular kernel must be in 0\.\.1$"),
        (lambda: Tabular(np.eye(2)).diag(np.array([[-1.0]])), r"Tabular kernel must be in 0\.\.1$"),
        (lambda: SquaredExponential((1.0, 2.0))(X, Y), r"^points have 3 dimensions but the kernel has 2 lengthscales$"),
        (
            lambda: ExactGP(lambda a, b: 1.0, 0.1).prior(np.zeros((3, 1))),
            r"give an \(n, m\) array, got shape \(\) for two",
        ),
        (lambda: Tabular(np.eye(2)).gain_rate(3, 1), r"^no growth rate .* Tabular\(<2 x 2 matrix>\): pass gain='real"),
        (lambda: (Linear() + Linear()).gain_rate(3, 1), r"^no growth rate of the information gain is known for Sum"),
    ],
)
def test_errors_say_what_must_hold_and_what_came(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("nu", [0.3, 1.0, 3.7, 20.0, 100.0])
@pytest.mark.parametrize("lengthscale", [1e-100, 1e-3, 0.01, 0.3])
def test_matern_falls_from_one_at_the_point_to_zero_far_away(nu, lengthscale):
    """No step where the Bessel function or its factor overflows: 0 at a distance of 1e5 and 1 at 1e-9 lengthscales."""
    distances = lengthscale * np.concatenate([[0.0], np.geomspace(1e-9, 1e5, 3000)])
    values = Matern(nu, lengthscale)(np.zeros((1, 1)), distances[:, None])[0]
    assert (np.diff(values) <= 1e-12).all()
    assert np.abs(np.diff(values)).max() < 0.03
    assert values[[0, -1]].tolist() == [1.0, 0.0]


def test_smooth_matern_is_close_to_its_series_where_the_bessel_function_overflows():
    """1 - z^2 / (4 (nu - 1)) + z^4 / (32 (nu - 1) (nu - 2)) - ..., at z = 0.05 as at z = 0.08, where it does not."""
    for z in (0.05, 0.08):
        quarter = z * z / 4
        expected = 1 - quarter / 99 * (1 - quarter / (2 * 98) * (1 - quarter / (3 * 97)))
        r = z / math.sqrt(200)
        assert Matern(100, 1.0)(np.zeros((1, 1)), np.array([[r]]))[0, 0] == pytest.approx(expected, abs=1e-13)
    assert Matern(100, 0.01)(np.zeros((1, 1)), np.ones((1, 1)))[0, 0] == 0.0


def test_large_matrices_are_those_of_their_rows():
    """They are computed in pieces, which changes no bit."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((300, 3)), rng.random((400, 3))
    kernel = 0.5 * Matern(2.5, (0.2, 0.3, 0.4)) + 0.3 * Columns(Matern(2.5, 0.2), (1,)) + SquaredExponential(0.5)
    assert X.shape[0] * Y.shape[0] > kernels.PIECE
    for each in (kernel, Matern(2.5, 0.3), Matern(0.5, 0.3)):
        np.testing.assert_array_equal(each(X, Y), np.vstack([each(x[None], Y) for x in X]))
        np.testing.assert_array_equal(each(Y, Y), np.vstack([each(y[None], Y) for y in Y]))


def test_columns_that_are_all_alike_are_computed_once():
    X, Y = np.random.default_rng(0).random((20, 2)), np.full((30, 2), 0.4)
    calls = []

    def counted(first, second):
        calls.append(len(second))
        return Matern(2.5, 0.3)(first, second)

    np.testing.assert_array_equal(Columns(counted, (1,))(X, Y), Matern(2.5, 0.3)(X[:, 1:], Y[:, 1:]))
    assert calls == [1]


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances_along_a_line_are_those_of_cdist(metric):
    X, Y = np.random.default_rng(1).normal(size=(50, 1)), np.random.default_rng(2).normal(size=(60, 1)) ** 9
    np.testing.assert_array_equal(kernels._apart(X, Y, metric), cdist(X, Y, metric))
    np.testing.assert_array_equal(kernels._apart(X, X, metric), cdist(X, X, metric))
