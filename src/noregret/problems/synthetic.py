"""Synthetic problems: functions drawn from a kernel's space, and test functions on random points.

The defaults are the settings of the papers' experiments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from noregret.belief.kernels import Kernel, SquaredExponential
from noregret.belief.posterior import Floats, Rng
from noregret.problems.functions import Function, branin, hartmann3, hartmann4, hartmann6, rosenbrock
from noregret.problems.problem import Problem, Seed, rkhs_norm
from noregret.problems.rewards import Gaussian, Payoff, StudentT


def rkhs(
    kernel: Kernel, *, points: int = 100, dimension: int = 1, payoff: Payoff | None = None, rng: Seed = None
) -> Problem:
    """A smooth function of known norm: f = K (K + r I)^-1 y with y ~ N(0, K), on uniform points of the unit cube.

    Kernelized-bandits paper, Fig. 1. The paper takes the posterior mean of y but does not give the noise; here r is 1%
    of the range of y. B^2 = a'K a with f = K a (the paper prints f'K f). The noise has variance 1% of the range of f
    unless a payoff is given.
    """
    generator = np.random.default_rng(rng)
    arms = _uniform(points, dimension, generator)
    matrix = kernel(arms, arms)
    y, _ = _gaussian_process(matrix, generator)
    weights = np.linalg.solve(matrix + 0.01 * np.ptp(y) * np.eye(points), y)
    means = matrix @ weights
    return Problem("rkhs", arms, means, kernel, payoff or _one_percent(means), float(np.sqrt(weights @ means)))


def gp_draw(
    kernel: Kernel, *, points: int = 100, dimension: int = 1, payoff: Payoff | None = None, rng: Seed = None
) -> Problem:
    """A draw from a Gaussian process: f ~ N(0, K) on uniform points (kernelized-bandits paper, Fig. 2).

    On the N points, B^2 = f'K^-1 f has N degrees of freedom in theory; directions in which K is numerically 0 are left
    out of both f and B. The noise has variance 1% of the range of f unless a payoff is given.
    """
    generator = np.random.default_rng(rng)
    arms = _uniform(points, dimension, generator)
    means, norm = _gaussian_process(kernel(arms, arms), generator)
    return Problem("gp draw", arms, means, kernel, payoff or _one_percent(means), norm)


def rkhs_sum(
    kernel: Kernel,
    *,
    payoff: Payoff | None = None,
    coefficients: tuple[float, float] = (-1.0, 1.0),
    points: int = 100,
    terms: int = 100,
    rng: Seed = None,
) -> Problem:
    """A sum of kernels: f = sum_i a_i k(., x_i) / max|f|, on the arms 1/N, 2/N, ..., 1.

    Heavy-tails paper, Sec. 6, experiments (a) to (c): 100 terms with centres x_i among the arms, a_i uniform on
    [-1, 1], or on [0, 1] for Pareto rewards; Student-t noise of 3 degrees of freedom unless a payoff is given. ``norm``
    is the true RKHS norm; the paper passes B = max|f| = 1, which is not a bound on it and is in ``paper``.
    """
    generator = np.random.default_rng(rng)
    arms = np.arange(1, points + 1)[:, None] / points
    matrix = kernel(arms, arms)
    centres = generator.integers(points, size=terms)
    weights = np.zeros(points)
    np.add.at(weights, centres, generator.uniform(*coefficients, size=terms))
    weights /= np.abs(matrix @ weights).max()
    means = matrix @ weights
    norm = float(np.sqrt(weights @ means))
    return Problem("sum of kernels", arms, means, kernel, payoff or StudentT(3), norm, {"norm": 1.0})


def standard(
    function: Function,
    *,
    dimension: int | None = None,
    points: int | None = None,
    kernel: Kernel | None = None,
    payoff: Payoff | None = None,
    rng: Seed = None,
) -> Problem:
    """A test function: its values on uniform random points of the unit cube.

    For the functions of this package the defaults are those of the papers: Branin and Hartmann in 4 and 6 dimensions on
    2000, 7000 and 20000 points, SE kernel of lengthscale 0.2, 1 and 1, Gaussian noise of sd 0.2 (REDS paper, App. C);
    Rosenbrock and Hartmann in 3 dimensions on 100 d points, lengthscale 0.2, noise of variance 1% of the range of f
    (kernelized-bandits paper, Fig. 3). Rosenbrock's values are divided by their range on the whole domain, 1102581, so
    that they lie in [-1, 0]. For any other function pass at least ``dimension``.

    The norm is that of the smallest RKHS function through all points. Above 1000 points it is None.
    """
    setting = _SETTINGS.get(function)
    if setting is None:
        if dimension is None:
            raise ValueError("dimension must be given for a function that is not one of this package's own")
        setting = _Setting(dimension, 100 * dimension)
    generator = np.random.default_rng(rng)
    arms = _uniform(points or setting.points, dimension or setting.dimension, generator)
    means = np.asarray(function(arms), dtype=float) / setting.unit
    kernel = kernel or SquaredExponential(setting.lengthscale)
    norm = rkhs_norm(kernel(arms, arms), means) if len(arms) <= 1000 else None
    payoff = payoff or setting.payoff or _one_percent(means)
    return Problem(getattr(function, "__name__", "function"), arms, means, kernel, payoff, norm)


def _one_percent(means: Floats) -> Gaussian:
    """Gaussian noise with R^2 = 1% of the range of f."""
    return Gaussian(float(np.sqrt(0.01 * np.ptp(means))))


@dataclass(frozen=True)
class _Setting:
    """Setting of a test function in the papers."""

    dimension: int
    points: int
    lengthscale: float = 0.2
    payoff: Payoff | None = None
    unit: float = 1.0


_SETTINGS: dict[Function, _Setting] = {
    rosenbrock: _Setting(2, 200, unit=1102581.0),
    hartmann3: _Setting(3, 300),
    branin: _Setting(2, 2000, payoff=Gaussian(0.2)),
    hartmann4: _Setting(4, 7000, lengthscale=1.0, payoff=Gaussian(0.2)),
    hartmann6: _Setting(6, 20000, lengthscale=1.0, payoff=Gaussian(0.2)),
}


def _uniform(points: int, dimension: int, rng: Rng) -> Floats:
    """Uniform points of the unit cube, (points, dimension)."""
    if points < 1 or dimension < 1:
        raise ValueError(f"points and dimension must be at least 1, got {points} and {dimension}")
    return rng.random((points, dimension))


def _gaussian_process(matrix: Floats, rng: Rng) -> tuple[Floats, float]:
    """Draw f = K^(1/2) z from N(0, K), with its norm sqrt(f' K^+ f)."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = eigenvalues > len(matrix) * np.finfo(float).eps * eigenvalues[-1]
    z = vectors[:, kept].T @ rng.standard_normal(len(matrix))
    return vectors[:, kept] @ (np.sqrt(eigenvalues[kept]) * z), float(np.linalg.norm(z))
