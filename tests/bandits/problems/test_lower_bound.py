"""The hard instance of the lower bound: its norm, its moments, its geometry and the print's errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from noregret.gp.kernels import Kernel, Linear, Matern, SquaredExponential
from noregret.problems import Problem, lower_bound, rkhs_norm

KERNELS = [SquaredExponential(0.2), SquaredExponential(0.15), Matern(2.5, 0.2), Matern(1.5, 0.3)]
ALPHAS = [0.2, 0.5, 1.0]
SPREAD = 2 * 0.446479313782  # zeta in one dimension
TOP = 0.443993816168  # h(0) in one dimension


def instance(kernel: Kernel, alpha: float, **changes) -> Problem:
    settings = {"norm": 2.0, "alpha": alpha, "moment": 1.5, "horizon": 5000, "rng": 0} | changes
    return lower_bound(kernel, **settings)


def cells_of(problem: Problem, points_per_cell: int = 5) -> int:
    return round(len(problem.arms) ** (1 / problem.arms.shape[1])) // points_per_cell


def spectrum(kernel: Kernel, w: float) -> float:
    """Spectral density in one dimension, k(x) = int S(w) exp(2 pi i w x) dw."""
    if isinstance(kernel, SquaredExponential):
        scale = kernel.lengthscale
        return math.sqrt(2 * math.pi) * scale * math.exp(-2 * (math.pi * scale * w) ** 2)
    nu, scale = kernel.nu, kernel.lengthscale
    return matern_constant(kernel) * (2 * nu / scale**2 + 4 * math.pi**2 * w**2) ** (-nu - 0.5)


def matern_constant(kernel: Matern) -> float:
    nu, scale = kernel.nu, kernel.lengthscale
    return 2 * math.sqrt(math.pi) * math.gamma(nu + 0.5) * (2 * nu) ** nu / (math.gamma(nu) * scale ** (2 * nu))


def bump_norm(kernel: Kernel, gap: float, width: float) -> float:
    """RKHS norm of g(x) = (2 gap / h(0)) h(x zeta / width) by the integral of |G|^2 / S."""
    stretch = SPREAD / width
    total = 2 * quad(lambda u: math.exp(-2 / (1 - u * u)) / spectrum(kernel, stretch * u), 0, 1 - 1e-12)[0]
    return 2 * gap / TOP * math.sqrt(total / stretch)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_spectral_density_is_the_kernel_s(kernel: Kernel) -> None:
    """A fine sum over frequencies up to 40; what lies above is below 1e-5 for these kernels."""
    w = np.arange(-40, 40, 1e-3) + 5e-4
    density = np.array([spectrum(kernel, f) for f in w])
    for x in (0.0, 0.1, 0.35):
        total = (density * np.cos(2 * math.pi * w * x)).sum() * 1e-3
        assert total == pytest.approx(kernel(np.zeros((1, 1)), np.full((1, 1), x))[0, 0], abs=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_norm_is_at_most_b_and_one_more_bump_would_break_it(kernel: Kernel, alpha: float) -> None:
    problem = instance(kernel, alpha)
    cells, gap = cells_of(problem), problem.means.max() / 2
    assert cells >= 2
    assert bump_norm(kernel, gap, 1 / cells) <= problem.norm * (1 + 1e-6)
    more = gap * ((cells + 1) / cells) ** (alpha / (1 + alpha))
    assert bump_norm(kernel, more, 1 / (cells + 1)) > problem.norm * (1 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_norm_by_interpolation(kernel: Kernel, alpha: float, seed: int) -> None:
    """The smallest function through f on the arms has norm at most B, and not less than a fifth of it."""
    problem = instance(kernel, alpha, rng=seed)
    norm = rkhs_norm(kernel(problem.arms, problem.arms), problem.means)
    assert problem.norm / 5 < norm <= problem.norm * (1 + 1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_two_lower_bumps_where_the_norm_allows_no_others(alpha: float) -> None:
    kernel = SquaredExponential(0.5)
    problem = instance(kernel, alpha, norm=1e-3)
    gap = problem.means.max() / 2
    assert cells_of(problem) == 2
    assert bump_norm(kernel, gap, 1 / 2) == pytest.approx(1e-3)
    assert problem.facts["moment"] == pytest.approx(1.5)
    assert gap < 0.5 * (2 / 20_000) ** (alpha / (1 + alpha)) * 1.5 ** (1 / (1 + alpha))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(2.5, 0.2)], ids=repr)
def test_two_dimensions(kernel: Kernel) -> None:
    """The good arms are the disc in the peak's own cell, and the norm by interpolation is at most B."""
    problem = instance(kernel, 1.0, dimension=2, norm=0.2, points_per_cell=5)
    cells = cells_of(problem)
    peak = problem.arms[np.argmax(problem.means)]
    far = np.linalg.norm(problem.arms - peak, axis=1) * cells
    assert problem.arms.shape == ((5 * cells) ** 2, 2)
    np.testing.assert_array_equal(problem.means > problem.means.max() / 2, far < 0.5)
    norm = rkhs_norm(kernel(problem.arms, problem.arms), problem.means)
    assert problem.norm / 10 < norm <= problem.norm * (1 + 1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_moment_and_gap(kernel: Kernel, alpha: float) -> None:
    """E|y|^(1 + alpha) reaches v at the best arm and exceeds it nowhere; Delta is that of eq. 21 with C = 1."""
    problem = instance(kernel, alpha)
    size, gap = problem.payoff.size, problem.means.max() / 2
    assert size == pytest.approx((1.5 / (2 * gap)) ** (1 / alpha))
    probability = np.abs(problem.means) / size
    assert (probability * size ** (1 + alpha)).max() == pytest.approx(1.5)
    assert problem.facts["moment"] == pytest.approx(1.5)
    assert problem.facts["alpha"] == alpha
    hits = cells_of(problem) / (4 * 5000)
    assert gap == pytest.approx(0.5 * hits ** (alpha / (1 + alpha)) * 1.5 ** (1 / (1 + alpha)))
    assert probability.max() == pytest.approx(hits)
    assert gap <= 1.5 ** (1 / (1 + alpha)) / 2


@pytest.mark.parametrize("seed", range(3))
def test_rewards_have_the_means(seed: int) -> None:
    """A short horizon makes hits frequent: mean of 100000 rewards within 5 standard errors."""
    problem = instance(Matern(2.5, 0.2), 0.5, horizon=50, norm=20.0)
    rng, n = np.random.default_rng(seed), 100_000
    for arm in (np.argmax(problem.means), np.argmin(problem.means)):
        y = problem.rewards(np.full(n, arm), rng)
        assert y.std() > 0
        assert abs(y.mean() - problem.means[arm]) < 5 * y.std() / math.sqrt(n)


def test_the_shape_is_the_inverse_fourier_transform_with_two_pi() -> None:
    problem = instance(SquaredExponential(0.2), 1.0, points_per_cell=21)
    cells, peak = cells_of(problem, 21), np.argmax(problem.means)
    for arm in range(0, len(problem.arms), 7):
        r = abs(problem.arms[arm, 0] - problem.arms[peak, 0]) * SPREAD * cells
        h = 2 * quad(lambda u: math.exp(-1 / (1 - u * u)) * math.cos(2 * math.pi * u * r), 0, 1, limit=200)[0]  # noqa: B023
        assert problem.means[arm] == pytest.approx(problem.means[peak] * h / TOP, abs=1e-8)


def test_printed_widths() -> None:
    """The print's sufficient widths, corrected, do keep the norm below B; uncorrected, Matern's leaves no bump."""
    gap, norm = 0.002, 1.0
    se, matern = SquaredExponential(0.2), Matern(2.5, 0.2)
    logarithm = math.log(norm * (2 * math.pi * 0.04) ** 0.25 * TOP / (2 * gap))
    assert bump_norm(se, gap, SPREAD * math.pi * 0.2 / math.sqrt(logarithm)) <= norm
    root = math.sqrt(matern_constant(matern))
    right, printed = (
        SPREAD * (2 * gap * (8 * math.pi**2) ** 1.5 / (norm * c * TOP)) ** (1 / 2.5) for c in (root, 1 / root)
    )
    assert bump_norm(matern, gap, right) <= norm
    assert right < 0.2
    assert printed > 1


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(2.5, 0.2)], ids=repr)
def test_the_regret_at_stake_grows_at_the_theorem_s_rate(kernel: Kernel, alpha: float) -> None:
    """T Delta grows at least like T^(1/(1 + alpha)), and slower than T."""
    short, long = (instance(kernel, alpha, horizon=t).means.max() * t for t in (10**4, 10**6))
    assert 100 ** (1 / (1 + alpha)) <= long / short * (1 + 1e-9)
    assert long / short < 100


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": -1.0}, "norm must be positive, got -1"),
        ({"moment": 0.0}, "moment must be positive, got 0"),
        ({"horizon": 0}, "horizon must be positive"),
        ({"alpha": 1.5}, r"alpha must be in \(0, 1\], got 1.5"),
        ({"points_per_cell": 4}, "points_per_cell must be odd"),
        ({"kernel": Linear()}, "kernel must be SquaredExponential or Matern"),
        ({"kernel": SquaredExponential((0.1, 0.2))}, "with one lengthscale"),
    ],
)
def test_errors(changes: dict, message: str) -> None:
    settings = {"kernel": SquaredExponential(0.2), "alpha": 0.5} | changes
    with pytest.raises(ValueError, match=message):
        instance(**settings)
