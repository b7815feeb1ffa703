"""The hard instance behind the lower bound on regret under heavy tails (heavy-tails paper, Thm 2 and App. C).

=========  ========================================================================================
paper      here
=========  ========================================================================================
B          ``norm``
v          ``moment``
T          ``horizon``
d          ``dimension``
M          ``cells ** dimension``: the number of bumps, of which f is one
w          1 / ``cells``: distance between neighbouring bumps
Delta      ``gap``: the mean of the best arm is 2 Delta, and Delta above any arm near another bump
H, h       the bump exp(-1 / (1 - |u|^2)) on the unit ball, and its inverse Fourier transform
zeta       ``_Bump.spread``
=========  ========================================================================================

The Fourier transform is the one with exp(2 pi i u.x). Four things differ from the paper:

- zeta is twice the radius at which h falls to h(0)/2. The paper takes once that radius, so that a point half way
  between two bumps is good for both.
- The width w is the smallest 1/cells at which the norm of the bump, an integral, is at most B. The printed formulas are
  sufficient for small Delta/B only, and have the Matern constant c in the wrong place.
- M is the number of cells of side w, floor(1/w)^d.
- C, an unnamed constant of the proof (eq. 20), is 1.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, hyp0f1, logsumexp, roots_legendre

from noregret.bandits.problems.problem import Problem, Seed
from noregret.bandits.problems.rewards import TwoPoint
from noregret.gp.kernels import Kernel, Matern, SquaredExponential
from noregret.gp.posterior import Floats


def lower_bound(
    kernel: Kernel,
    *,
    norm: float,
    alpha: float,
    moment: float,
    horizon: int,
    dimension: int = 1,
    points_per_cell: int = 5,
    rng: Seed = None,
) -> Problem:
    """The hard instance of the lower bound: regret grows like T^(1/(1+alpha)) or faster, on average over ``rng``.

    f is one of M shifted copies of a bump of height 2 Delta and RKHS norm at most ``norm``; a pull returns
    sign(f) (v / 2 Delta)^(1/alpha) with probability (2 Delta / v)^(1/alpha) |f|, else 0, so that E|y|^(1+alpha) <= v.
    Delta = 1/2 min(1/2, M / 4T)^(alpha/(1+alpha)) v^(1/(1+alpha)): in T pulls of the best arm about M/4 rewards differ
    from 0. If the norm does not allow two such bumps, there are two with a smaller Delta.

    Parameters
    ----------
    kernel : SquaredExponential or Matern, with one lengthscale
    norm, alpha, moment, horizon
        B, alpha in (0, 1], v and T.
    dimension : int
        d; the arms are a grid in [0, 1]^d.
    points_per_cell : int
        Arms along each axis of a cell, odd so that the centre is an arm.
    rng
        Chooses the bump.
    """
    for name, value in {"norm": norm, "moment": moment, "horizon": horizon, "dimension": dimension}.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive, got {value}")
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha}")
    if points_per_cell < 1 or points_per_cell % 2 == 0:
        raise ValueError(f"points_per_cell must be odd, so that every bump's peak is an arm, got {points_per_cell}")
    bump = _Bump(kernel, dimension)

    def largest_gap(cells: int) -> float:  # eq. 20
        hits = min(0.5, cells**dimension / (4 * horizon))
        return 0.5 * math.pow(hits**alpha * moment, 1 / (1 + alpha))

    limit = math.floor((2 * horizon) ** (1 / dimension))
    cells = bisect_right(range(1, limit + 1), norm, key=lambda n: largest_gap(n) * bump.norm(1 / n))
    cells = max(cells, 2)
    gap = min(largest_gap(cells), norm / bump.norm(1 / cells))
    axis = (np.arange(cells * points_per_cell) + 0.5) / (cells * points_per_cell)
    arms = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    centre = (np.random.default_rng(rng).integers(cells, size=dimension) + 0.5) / cells
    means = gap * bump(np.linalg.norm(arms - centre, axis=1), 1 / cells)
    payoff = TwoPoint(math.pow(moment / (2 * gap), 1 / alpha), alpha)
    return Problem("lower bound", arms, means, kernel, payoff, norm)


@dataclass(frozen=True)
class _Bump:
    """The bump g(x) = (2 / h(0)) h(x zeta / w) in d dimensions, for Delta = 1, and its RKHS norm."""

    kernel: Kernel
    dimension: int

    @cached_property
    def _rule(self) -> tuple[Floats, Floats, Floats]:
        """Gauss-Legendre nodes u on (0, 1), log H(u), and the log of the weights times u^(d-1)."""
        nodes, weights = roots_legendre(400)
        u = (nodes + 1) / 2
        return u, -1 / (1 - u * u), np.log(weights / 2) + (self.dimension - 1) * np.log(u)

    @cached_property
    def spread(self) -> float:
        """Zeta, twice the radius at which h falls to h(0)/2."""
        return 2 * float(brentq(lambda r: self.shape(np.array([r]))[0] - 0.5, 0.0, 2.0))

    def shape(self, radii: Floats) -> Floats:
        """Ratio h(r) / h(0), (n,) -> (n,): the Fourier transform of a radial function is a Bessel integral."""
        u, log_height, log_weight = self._rule
        weight = np.exp(log_weight + log_height)
        distinct, where = np.unique(radii.round(12), return_inverse=True)
        near = distinct[distinct <= 100]  # beyond, |h| is below 1e-12 h(0) and 400 nodes are too few
        values = np.zeros(len(distinct))
        values[: len(near)] = hyp0f1(self.dimension / 2, -((np.pi * np.outer(near, u)) ** 2)) @ weight / weight.sum()
        return np.asarray(values[where])

    def __call__(self, radii: Floats, width: float) -> Floats:
        """Value of g at these distances from its centre, (n,) -> (n,)."""
        return 2 * self.shape(radii * self.spread / width)

    def norm(self, width: float) -> float:
        """RKHS norm of g: the square is the integral of |G|^2 / S, G its transform and S the spectral density.

        With u in the unit ball and s = zeta / w it is (2 / h(0))^2 s^-d int H(u)^2 / S(s u) du.
        """
        u, log_height, log_weight = self._rule
        stretch, d = self.spread / width, self.dimension
        sphere = math.log(2) + d / 2 * math.log(math.pi) - gammaln(d / 2)
        top = sphere + logsumexp(log_weight + log_height)
        energy = sphere + logsumexp(log_weight + 2 * log_height - _log_spectrum(self.kernel, stretch * u, d))
        square = 2 * (math.log(2) - top) - d * math.log(stretch) + energy
        return float(np.exp(min(square / 2, 700.0)))


def _log_spectrum(kernel: Kernel, frequency: Floats, d: int) -> Floats:
    """Log of the spectral density S at these radii: k(x) = int S(u) exp(2 pi i u.x) du."""
    match kernel:
        case SquaredExponential(lengthscale=float(scale)):
            return np.asarray(d / 2 * math.log(2 * math.pi * scale**2) - 2 * (math.pi * scale * frequency) ** 2)
        case Matern(nu=nu, lengthscale=float(scale)):
            top = d / 2 * math.log(4 * math.pi) + gammaln(nu + d / 2) - gammaln(nu) + nu * math.log(2 * nu / scale**2)
            return np.asarray(top - (nu + d / 2) * np.log(2 * nu / scale**2 + (2 * math.pi * frequency) ** 2))
    raise ValueError(f"kernel must be SquaredExponential or Matern with one lengthscale, got {kernel}")
