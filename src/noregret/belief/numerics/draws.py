"""Joint draws from a Gaussian on all arms."""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np
from scipy.linalg.blas import dger

from noregret.belief.arrays import Array, beside, namespace, numpy_of, slabs, zeros_like
from noregret.belief.kernels import Kernel, Matern, Product, RationalQuadratic, Scaling, SquaredExponential, Sum
from noregret.belief.numerics.linalg import pivoted_root
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Rng

FEW_ARMS = 500
"""Up to so many arms, draws come from a root of the posterior covariance, which a pull changes at O(N^2)."""

ROOT_ARMS = 2000
"""Up to so many arms, draws from the prior come from a root of the N x N kernel matrix, if it has a spectral law."""

FEWEST, MOST, COSINES = 128, 1024, 40_000_000
"""A draw on N points is a sum of COSINES / N waves, but never fewer or more than these."""

SINE = [(-1) ** n * math.tau ** (2 * n + 1) / math.factorial(2 * n + 1) for n in range(11)]
"""The Taylor series of sin(2 pi u), right to rounding for |u| <= 1/4."""


class CovarianceRoot:
    """S, (r, N), with S'S the covariance of N numbers."""

    def __init__(self, covariance: Floats) -> None:
        self._root = pivoted_root(covariance).T.copy()

    @property
    def size(self) -> int:
        """Multiply-adds of a draw, r N."""
        return self._root.size

    def draw(self, rng: Rng) -> Floats:
        """N numbers of mean 0 and this covariance, (N,)."""
        return np.asarray(rng.standard_normal(len(self._root)) @ self._root)

    def row(self, place: int) -> Floats:
        """The covariance of one of the numbers with all, (N,)."""
        return np.asarray(self._root[:, place] @ self._root)

    def condition(self, place: int, row: Floats, noise: float) -> None:
        """Make the covariance C what it is after one number was seen with this noise: C - c c' / (c_a + noise).

        ``row`` is c = C[a], a the place.
        """
        variance = float(row[place])
        if variance <= 0:
            return
        shrink = (1 - math.sqrt(noise / (variance + noise))) / variance
        direction = self._root[:, place].copy()
        self._root = np.asarray(dger(-shrink, row, direction, a=self._root.T, overwrite_a=1)).T

    def copy(self) -> Self:
        """An independent root of the same covariance."""
        twin = copy.copy(self)
        twin._root = self._root.copy()
        return twin


class PriorDraws:
    """Draws from the prior GP(0, k) on N points.

    On few points, or if the kernel is not made of those with a known spectral density, a draw is R z with R a root of
    the kernel matrix, and exact. On many it is a sum of m waves of random frequency, phase and size, at O(m N) and
    little memory: sqrt(2 v / m) sum_j e_j cos(w_j'x + b_j), v = k(x, x), with the w_j from the spectral density over
    v, e_j^2 exponential and b_j uniform (random Fourier features, Rahimi and Recht 2007).

    All waves are new in every draw. So the draws have exactly the prior's mean and covariance, and what is a linear
    map of them and of independent noise has the mean and covariance it should have: Matheron's rule gives those of the
    posterior. Every single f(x) is Gaussian under the prior. Several together are so given the frequencies only, with a
    covariance that is off by about v / sqrt(2 m) from draw to draw.
    """

    def __init__(self, kernel: Kernel, points: Array) -> None:
        self._kernel, self._points = kernel, points
        self._root: Floats | None = None

    def draw(self, rng: Rng, among: int | None = None) -> Array:
        """One function drawn from the prior where the points live, (N,).

        ``among`` is how many points there are in all, where these are some of them: others drawn by an equal generator
        are the same function there.
        """
        if self._root is None:
            count = among or len(self._points)
            if count > ROOT_ARMS and has_spectral_law(self._kernel):
                return waves(self._kernel, self._points, rng, among)
            if among:
                raise ValueError(
                    f"no draws on so many arms of a cluster are to be had from {self._kernel}: take a kernel made of "
                    "SquaredExponential, Matern and RationalQuadratic, or another rule than Thompson"
                )
            points = numpy_of(self._points)
            with threads_for(len(points) ** 3):
                self._root = pivoted_root(self._kernel(points, points))
        with threads_for(self._root.size):
            return beside(self._points, self._root @ rng.standard_normal(self._root.shape[1]))


def waves(kernel: Kernel, points: Array, rng: Rng, among: int | None = None) -> Array:
    """The sum of waves of `PriorDraws` at these points, (N, d) -> (N,), in blocks of points, where they live.

    ``among`` is the number of points in all, where these are some of them: there are as many waves as for these.
    """
    count = int(np.clip(COSINES // (among or len(points)), FEWEST, MOST))
    variance = float(kernel.diag(points[:1])[0])
    turns = spectral_frequencies(kernel, count, points.shape[1], rng).T / math.tau
    sizes, phases = np.sqrt(2 * variance / count * rng.standard_exponential(count)), rng.random(count)
    if isinstance(points, np.ndarray):
        draw, cosine, blocks = np.empty(len(points)), _cosine, slabs(points, count, 2**15)
    else:
        draw, cosine, blocks = zeros_like(points[:, 0]), _device_cosine, slabs(points, count)
        turns, phases, sizes = (beside(points, each) for each in (turns, phases, sizes))
    for block in blocks:
        draw[block] = cosine(points[block] @ turns + phases) @ sizes
    return draw


def has_spectral_law(kernel: Kernel) -> bool:
    """Whether `spectral_frequencies` can draw from this kernel's spectral density."""
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
            return np.asarray(frequencies * _frequency_scale(kernel, count, rng)[:, None])
    raise ValueError(f"no spectral density is known for {kernel!r}")


def _frequency_scale(kernel: SquaredExponential | Matern | RationalQuadratic, count: int, rng: Rng) -> Floats:
    """What a Gaussian frequency is multiplied by: these kernels are mixtures of SE kernels."""
    match kernel:
        case Matern():
            return np.sqrt(2 * kernel.nu / np.maximum(rng.chisquare(2 * kernel.nu, count), 1e-24))
        case RationalQuadratic():
            return np.sqrt(rng.gamma(kernel.alpha, 1 / kernel.alpha, count))
    return np.ones(count)


def _device_cosine(turns: Array) -> Array:
    """cos(2 pi turns) where they live."""
    return namespace(turns).cos(math.tau * turns)


def _cosine(turns: Floats) -> Floats:
    """cos(2 pi turns), written over ``turns``: in half the time of NumPy's, by a series on a quarter of a turn."""
    turns -= np.rint(turns)
    np.subtract(0.25, np.abs(turns, out=turns), out=turns)
    square = turns * turns
    sine = SINE[-1] * square
    for coefficient in SINE[-2:0:-1]:
        sine += coefficient
        sine *= square
    sine += SINE[0]
    return np.asarray(sine * turns)
