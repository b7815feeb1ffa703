"""Features against the kernels they approximate."""

import math

import numpy as np
import pytest
from scipy.special import eval_hermite

from noregret import (
    Linear,
    Matern,
    Nystrom,
    QuadratureFourier,
    RandomFourier,
    RationalQuadratic,
    SquaredExponential,
    Tabular,
)
from noregret.bandits.belief.features import quadrature_error, sufficient_order

RNG = np.random.default_rng


def table(features, points, rng=0):
    at_work = features.on(np.asarray(points, float), 1.0, RNG(rng))
    return at_work.table if at_work.span is None else at_work.span @ at_work.table


def gap(features, points, rng=0):
    """Largest difference between phi'phi and the kernel."""
    phi = table(features, points, rng)
    return np.abs(phi.T @ phi - features.kernel(points, points)).max()


@pytest.mark.parametrize(("lengthscale", "order"), [(0.5, 16), (0.2, 32), (0.1, 64)])
@pytest.mark.parametrize("folded", [True, False])
def test_quadrature_reaches_the_kernel(lengthscale, order, folded):
    points = np.linspace(0, 1, 101)[:, None]
    features = QuadratureFourier(SquaredExponential(lengthscale), order, folded)
    assert gap(features, points) < 1e-9
    assert len(table(features, points)) == (1 if folded else 2) * order


@pytest.mark.slow
@pytest.mark.parametrize("order", [16, 17])
@pytest.mark.parametrize("lengthscale", [0.5, (0.5, 0.8)])
def test_quadrature_in_two_dimensions_uses_the_whole_grid(order, lengthscale):
    points = RNG(0).random((60, 2))
    features = QuadratureFourier(SquaredExponential(lengthscale), order)
    assert gap(features, points) < 1e-9
    assert len(table(features, points)) == order**2


def test_quadrature_in_three_dimensions():
    assert gap(QuadratureFourier(SquaredExponential(0.9), 11), RNG(1).random((40, 3))) < 1e-9


def test_only_positive_nodes_per_axis_would_be_wrong_in_two_dimensions():
    """Folding keeps half of the grid, not the quarter where both nodes are positive."""
    nodes, weights = np.polynomial.hermite.hermgauss(16)
    points, kernel = RNG(0).random((60, 2)), SquaredExponential(0.5)
    positive = np.array([(a, b) for a in nodes for b in nodes if a > 0 and b > 0])
    weight = np.array([v * w for a, v in zip(nodes, weights, strict=True) for b, w in zip(nodes, weights, strict=True)
                       if a > 0 and b > 0])  # fmt: skip
    angles = math.sqrt(2) / 0.5 * (points[:, None] - points[None]) @ positive.T
    quarter = np.cos(angles) @ (weight / weight.sum())
    assert np.abs(quarter - kernel(points, points)).max() > 0.1


@pytest.mark.parametrize("order", [16, 17])
def test_folded_and_unfolded_say_the_same(order):
    points, kernel = RNG(2).random((30, 2)), SquaredExponential(0.5)
    one, two = (table(QuadratureFourier(kernel, order, folded), points) for folded in (True, False))
    np.testing.assert_allclose(one.T @ one, two.T @ two, atol=1e-12)


def test_quadrature_weights_are_the_papers():
    """2^(n-1) n! / (n^2 H_(n-1)(z)^2) (heavy-tails paper, eq. 1), and phi(x)'phi(x) = 1."""
    order, points = 9, np.array([[0.0], [0.3]])
    phi = table(QuadratureFourier(SquaredExponential(1.0), order, folded=False), points)
    nodes, _ = np.polynomial.hermite.hermgauss(order)
    weights = 2.0 ** (order - 1) * math.factorial(order) / (order * eval_hermite(order - 1, nodes)) ** 2
    np.testing.assert_allclose(phi[:order, 0] ** 2, weights, rtol=1e-10)
    np.testing.assert_allclose((phi**2).sum(axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("lengthscale", [1.0, 0.3, 0.1, 0.03])
def test_sufficient_order_is_the_smallest(lengthscale):
    order = sufficient_order(lengthscale, 1e-6)
    assert quadrature_error(lengthscale, order) <= 1e-6 < quadrature_error(lengthscale, order - 1)


def test_an_order_too_small_says_which_would_do():
    with pytest.raises(ValueError, match=r"order 20 is too small for lengthscale 0.1.*order 5\d would do"):
        QuadratureFourier(SquaredExponential(0.1), 20)
    with pytest.raises(ValueError, match=r"lengthscale 0\.1"):
        QuadratureFourier(SquaredExponential((0.5, 0.1)), 20)
    QuadratureFourier(SquaredExponential(0.1), sufficient_order(0.1))


@pytest.mark.parametrize("kernel", [Matern(2.5, 0.5), Linear(), 2.0 * SquaredExponential(0.5), RationalQuadratic(1, 1)])
def test_quadrature_is_for_the_se_kernel_only(kernel):
    with pytest.raises(ValueError, match=r"needs a SquaredExponential kernel, got .*Nystrom"):
        QuadratureFourier(kernel, 32)


@pytest.mark.parametrize("order", [0, -3, 7.5])
def test_order_is_a_whole_number(order):
    with pytest.raises(ValueError, match="order must be a whole number from 1"):
        QuadratureFourier(SquaredExponential(2.0), order)


def test_quadrature_needs_the_unit_cube():
    features = QuadratureFourier(SquaredExponential(0.5), 16)
    with pytest.raises(ValueError, match=r"unit cube.*from -1 to 2.*scale"):
        features.on(np.array([[-1.0], [2.0]]), 1.0, RNG(0))
    at_work = features.on(np.array([[0.0], [1.0]]), 1.0, RNG(0))
    with pytest.raises(ValueError, match="unit cube"):
        at_work.at(np.array([[1.1]]))


def test_too_many_features_are_refused_before_they_are_made():
    with pytest.raises(ValueError, match="at most 20000 features, got 16777216"):
        QuadratureFourier(SquaredExponential(0.5), 16).on(RNG(0).random((3, 6)), 1.0, RNG(0))
    with pytest.raises(ValueError, match="lower the count"):
        RandomFourier(SquaredExponential(0.5), 20_000)


def test_random_frequencies_are_drawn_from_the_generator():
    points, features = RNG(5).random((9, 1)), RandomFourier(SquaredExponential(0.2), 10)
    assert np.array_equal(table(features, points, 1), table(features, points, 1))
    assert not np.array_equal(table(features, points, 1), table(features, points, 2))


@pytest.mark.parametrize("bad", [lambda: RandomFourier(Linear(), 10), lambda: RandomFourier(SquaredExponential(1), 0)])
def test_random_fourier_says_what_it_needs(bad):
    with pytest.raises(ValueError, match=r"needs a SquaredExponential, Matern or Rational|whole number from 1"):
        bad()


@pytest.mark.parametrize("root", ["symmetric", "cholesky"])
@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(2.5, 0.2), 3.0 * Matern(0.5, 0.5)])
def test_nystrom_is_exact_on_its_dictionary_and_never_above_the_kernel(root, kernel):
    arms = RNG(6).random((40, 1))
    at_work = Nystrom(kernel, math.inf, root=root).on(arms, 1.0, RNG(0))
    inside = np.arange(0, 40, 3)
    assert at_work.redraw(inside, np.ones(inside.size), np.ones(inside.size), 0) == 0
    assert at_work.members.tolist() == inside.tolist()
    phi, matrix = at_work.table, kernel(arms, arms)
    np.testing.assert_allclose(phi.T @ phi[:, inside], matrix[:, inside], atol=1e-6)
    np.testing.assert_allclose(at_work.unexplained, np.maximum(np.diag(matrix) - (phi**2).sum(axis=0), 0), atol=1e-12)
    assert np.linalg.eigvalsh(matrix - phi.T @ phi).min() > -1e-6
    unexplained = at_work.unexplained_covariance(inside, np.arange(40), phi[:, inside], phi)
    np.testing.assert_allclose(unexplained, 0, atol=1e-6)


def test_nystrom_roots_span_the_same_features():
    arms, kernel = RNG(7).random((50, 2)), SquaredExponential(0.3)
    both = [Nystrom(kernel, math.inf, root=root).on(arms, 1.0, RNG(0)) for root in ("symmetric", "cholesky")]
    for at_work in both:
        at_work.redraw(np.arange(20), np.ones(20), np.ones(20), 0)
    one, two = (at_work.table for at_work in both)
    np.testing.assert_allclose(one.T @ one, two.T @ two, atol=1e-6)


def test_nystrom_takes_any_kernel_and_repeated_points():
    table_kernel = Tabular(np.eye(5) + 1.0)
    at_work = Nystrom(table_kernel, math.inf).on(table_kernel.arms, 1.0, RNG(0))
    at_work.redraw(np.array([0, 3]), np.ones(2), np.ones(2), 3)
    assert at_work.unexplained[[0, 3]] == pytest.approx(0, abs=1e-12)
    twins = np.array([[0.5], [0.5], [0.1]])
    at_work = Nystrom(SquaredExponential(0.2), math.inf).on(twins, 1.0, RNG(0))
    at_work.redraw(np.arange(3), np.ones(3), np.ones(3), 0)
    np.testing.assert_allclose(at_work.unexplained, 0, atol=1e-12)


@pytest.mark.parametrize(("counting", "expected"), [("each", 1 - 0.9**7), ("sum", 0.7), ("once", 0.1)])
def test_an_arm_is_kept_as_often_as_its_leverage_says(counting, expected):
    """p = q s^2 / ridge = 2 * 0.1 / 2, seven pulls; 4000 draws, so 5 standard errors are below 0.04."""
    at_work = Nystrom(SquaredExponential(0.2), 2.0, counting).on(RNG(0).random((4000, 1)), 2.0, RNG(1))
    chance = at_work._chance(np.full(4000, 7.0), np.full(4000, 0.1))
    np.testing.assert_allclose(chance, expected, rtol=1e-12)


def test_the_leverage_is_divided_by_the_ridge():
    """The heavy-tails paper prints p = q s^2; with ridge 0.01 that would keep a hundredth of what is needed."""
    at_work = Nystrom(SquaredExponential(0.2), 5.0).on(np.zeros((1, 1)), 0.01, RNG(0))
    assert at_work._chance(np.ones(1), np.full(1, 0.001)) == pytest.approx(0.5)


def test_the_dictionary_is_never_empty():
    at_work = Nystrom(SquaredExponential(0.2), 1e-12).on(np.linspace(0, 1, 9)[:, None], 1.0, RNG(0))
    at_work.redraw(np.arange(6), np.ones(6), np.ones(6), 4)
    assert at_work.members.tolist() == [4]


def test_kernel_columns_are_computed_once_and_the_embedding_only_for_a_new_dictionary():
    asked = []

    def kernel(X, Y):
        asked.append((len(X), len(Y)))
        return SquaredExponential(0.2)(X, Y)

    kernel.diag = lambda X: np.ones(len(X))
    at_work = Nystrom(kernel, math.inf).on(np.linspace(0, 1, 30)[:, None], 1.0, RNG(0))
    rounds = [[0], [0, 4], [0, 4], [0, 4, 9], [9, 4]]
    unchanged = [at_work.redraw(np.array(r), np.ones(len(r)), np.ones(len(r)), 0) for r in rounds]
    assert unchanged == [0, 0, 2, 0, 0]
    assert asked == [(1, 30)] * 3


@pytest.mark.parametrize("bad", [{"oversampling": 0}, {"counting": "twice"}, {"root": "square"}, {"variance": "none"},
                                 {"coins": "lost"}])  # fmt: skip
def test_nystrom_says_what_it_needs(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        Nystrom(**({"kernel": SquaredExponential(0.2), "oversampling": 5.0} | bad))
