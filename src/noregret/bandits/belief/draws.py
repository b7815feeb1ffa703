"""Joint draws from a Gaussian on all arms."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dger

from noregret.gp.arrays import Array, beside, namespace, numpy_of, slabs, zeros_like
from noregret.gp.kernels import Kernel, Matern, Product, RationalQuadratic, Scaling, SquaredExponential, Sum
from noregret.gp.linalg import pivoted_root
from noregret.gp.posterior import Copyable, Floats, Rng
from noregret.gp.threads import threads_for

FEW_ARMS = 500
"""Up to this number of arms, draws use a root of the posterior covariance, which a pull updates at O(N^2)."""

ROOT_ARMS = 2000
"""Up to this number of arms, prior draws use a root of the N x N kernel matrix for any kernel."""

FEWEST, MOST, COSINES = 128, 1024, 40_000_000
"""A draw on N points is a sum of COSINES / N waves, at least FEWEST and at most MOST."""

SINE = [(-1) ** n * math.tau ** (2 * n + 1) / math.factorial(2 * n + 1) for n in range(11)]
"""Taylor coefficients of sin(2 pi u), exact up to rounding for |u| <= 1/4."""


class CovarianceRoot(Copyable):
    """Root S, (r, N), with S'S the covariance of N numbers."""

    OWN = ("_root",)

    def __init__(self, covariance: Floats) -> None:
        self._root = pivoted_root(covariance).T.copy()

    @property
    def size(self) -> int:
        """Multiply-adds of a draw, r N."""
        return self._root.size

    def draw(self, rng: Rng) -> Floats:
        """Draw N numbers with mean 0 and this covariance, (N,)."""
        return np.asarray(rng.standard_normal(len(self._root)) @ self._root)

    def row(self, place: int) -> Floats:
        """Covariance of one of the numbers with all, (N,)."""
        return np.asarray(self._root[:, place] @ self._root)

    def condition(self, place: int, row: Floats, noise: float) -> None:
        """Condition the covariance C on one number observed with this noise variance: C - c c' / (c_a + noise).

        ``row`` is c = C[a] for a = ``place``.
        """
        variance = float(row[place])
        if variance <= 0:
            return
        shrink = (1 - math.sqrt(noise / (variance + noise))) / variance
        direction = self._root[:, place].copy()
        self._root = np.asarray(dger(-shrink, row, direction, a=self._root.T, overwrite_a=1)).T


class PriorDraws:
    """Draws from the prior GP(0, k) on N points.

    On few points, or for a kernel without a known spectral density, a draw is R z with R a root of the kernel matrix;
    this is exact. On many points it is a sum of m waves of random frequency, phase and size, at O(m N) and little
    memory: sqrt(2 v / m) sum_j e_j cos(w_j'x + b_j), v = k(x, x), with the w_j from the spectral density over v, e_j^2
    exponential and b_j uniform (random Fourier features, Rahimi and Recht 2007).

    All waves are new in every draw, so the draws have exactly the prior's mean and covariance. A linear map of them and
    of independent noise has the right mean and covariance too: Matheron's rule gives those of the posterior. Each f(x)
    is Gaussian under the prior. Several values are jointly Gaussian only given the frequencies, with a covariance that
    deviates by about v / sqrt(2 m) from draw to draw.
    """

    def __init__(self, kernel: Kernel, points: Array) -> None:
        self._kernel, self._points = kernel, points
        self._root: Floats | None = None

    def draw(self, rng: Rng, among: int | None = None) -> Array:
        """Draw one function from the prior at the points, (N,).

        ``among`` is the total number of points if these are a part of them. An equal generator draws the same function
        on the other parts.
        """
        if self._root is None:
            count = among or len(self._points)
            if count > ROOT_ARMS and has_spectral_law(self._kernel):
                return waves(self._kernel, self._points, rng, among)
            if among:
                raise ValueError(
                    f"a kernel with a spectral density is needed to draw on {among} arms of a cluster, got "
                    f"{self._kernel}: take one made of SquaredExponential, Matern and RationalQuadratic, or another "
                    "rule than Thompson"
                )
            points = numpy_of(self._points)
            with threads_for(len(points) ** 3):
                self._root = pivoted_root(self._kernel(points, points))
        with threads_for(self._root.size):
            return beside(self._points, self._root @ rng.standard_normal(self._root.shape[1]))


def waves(kernel: Kernel, points: Array, rng: Rng, among: int | None = None) -> Array:
    """Sum of waves of `PriorDraws` at these points, (N, d) -> (N,), in blocks of points, in their place.

    ``among`` is the total number of points if these are a part of them; it sets the number of waves.
    """
    count = int(np.clip(COSINES // (among or len(points)), FEWEST, MOST))
    return Waves(kernel, points[:1], count, rng)(points)


class Waves:
    """Sum of ``count`` waves of `PriorDraws`: one function, defined at all points.

    ``origin`` is any (1, d) point; the kernel is stationary.
    """

    def __init__(self, kernel: Kernel, origin: Array, count: int, rng: Rng) -> None:
        variance = float(kernel.diag(origin)[0])
        self._turns = spectral_frequencies(kernel, count, origin.shape[1], rng).T / math.tau
        self._sizes = np.sqrt(2 * variance / count * rng.standard_exponential(count))
        self._phases = rng.random(count)

    def __call__(self, points: Array) -> Array:
        """Values at these (n, d) points, (n,), in blocks of points, in their place."""
        turns, phases, sizes, count = self._turns, self._phases, self._sizes, len(self._sizes)
        draw, is_here = zeros_like(points[:, 0]), isinstance(points, np.ndarray)
        turns, phases, sizes = (beside(points, each) for each in (turns, phases, sizes))
        for block in slabs(points, count, 2**15) if is_here else slabs(points, count):
            angles = points[block] @ turns + phases
            draw[block] = (_cosine(angles) if is_here else namespace(angles).cos(math.tau * angles)) @ sizes
        return draw


def has_spectral_law(kernel: Kernel) -> bool:
    """True if `spectral_frequencies` can draw from this kernel's spectral density."""
    match kernel:
        case Scaling():
            return has_spectral_law(kernel.kernel)
        case Sum() | Product():
            return has_spectral_law(kernel.left) and has_spectral_law(kernel.right)
    return isinstance(kernel, SquaredExponential | Matern | RationalQuadratic)


def spectral_frequencies(kernel: Kernel, count: int, dimension: int, rng: Rng) -> Floats:
    """Frequencies w with E cos(w'(x - y)) = k(x, y) / k(x, x), (count, d)."""
    match kernel:
        case Scaling():
            return spectral_frequencies(kernel.kernel, count, dimension, rng)
        case Product():  # the spectral density of a product is a convolution
            left = spectral_frequencies(kernel.left, count, dimension, rng)
            return left + spectral_frequencies(kernel.right, count, dimension, rng)
        case Sum():  # and that of a sum is a mixture
            origin = np.zeros((1, dimension))
            share = kernel.left.diag(origin) / kernel.diag(origin)
            left = spectral_frequencies(kernel.left, count, dimension, rng)
            right = spectral_frequencies(kernel.right, count, dimension, rng)
            return np.asarray(np.where(rng.random((count, 1)) < share, left, right))
        case SquaredExponential() | Matern() | RationalQuadratic():
            frequencies = rng.standard_normal((count, dimension)) / np.asarray(kernel.lengthscale)
            if isinstance(kernel, Matern):  # this and the next are mixtures of SE kernels
                scale = np.sqrt(2 * kernel.nu / np.maximum(rng.chisquare(2 * kernel.nu, count), 1e-24))
            elif isinstance(kernel, RationalQuadratic):
                scale = np.sqrt(rng.gamma(kernel.alpha, 1 / kernel.alpha, count))
            else:
                scale = np.ones(count)
            return np.asarray(frequencies * scale[:, None])
    raise ValueError(f"no spectral density is known for {kernel!r}")


def _cosine(turns: Floats) -> Floats:
    """cos(2 pi turns), written over ``turns``; a series on a quarter turn takes half the time of NumPy's cosine."""
    turns -= np.rint(turns)
    np.subtract(0.25, np.abs(turns, out=turns), out=turns)
    square = turns * turns
    sine = SINE[-1] * square
    for coefficient in SINE[-2:0:-1]:
        sine += coefficient
        sine *= square
    sine += SINE[0]
    return np.asarray(sine * turns)
