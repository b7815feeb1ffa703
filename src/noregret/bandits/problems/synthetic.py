"""Synthetic problems: functions drawn from a kernel's space, test functions, and functions that change.

The defaults of the first two are the settings of the papers' experiments. Test functions are on the unit cube, (n, d)
-> (n,), to be maximised: Branin and the Hartmann functions in 4 and 6 dimensions are scaled as in the REDS paper
(App. C); Hartmann in 3 dimensions and Rosenbrock are the textbook functions with the opposite sign.

Problems change with a context that is shown before every round, or over time without being shown. Their functions are
drawn from the kernel, on evenly spaced arms of [0, 1]; the true means of every round are known, so regret is against
the best arm of the round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from noregret.bandits.problems.problem import Changing, Problem, Seed, rkhs_norm
from noregret.bandits.problems.rewards import Gaussian, Payoff, StudentT
from noregret.gp.kernels import Columns, Kernel, SquaredExponential
from noregret.gp.posterior import Floats, Rng

# Test functions

Function = Callable[[Floats], Floats]

_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_A3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_C3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
_A6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_C6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(X: Floats) -> Floats:
    """Branin, scaled: -((v - 5.1 u^2/(4 pi^2) + 5 u/pi - 6)^2 + (10 - 10/(8 pi)) cos u - 44.81) / 51.95.

    u = 15 x1 - 5 and v = 15 x2. Its largest value, 1.04739, is attained at three points.
    """
    x1, x2 = _columns(X, 2)
    u, v = 15 * x1 - 5, 15 * x2
    valley = v - 5.1 * u**2 / (4 * np.pi**2) + 5 * u / np.pi - 6
    return np.asarray(-(valley**2 + (10 - 10 / (8 * np.pi)) * np.cos(u) - 44.81) / 51.95)


def rosenbrock(X: Floats) -> Floats:
    """Rosenbrock, -(100 (v - u^2)^2 + (1 - u)^2) with (u, v) = 15 x - 5 in [-5, 10]^2.

    The domain is scaled to the unit square, the values are not: 0 at x = (0.4, 0.4), -1102581 at x = (1, 0).
    """
    u, v = 15 * _columns(X, 2) - 5
    return np.asarray(-(100 * (v - u**2) ** 2 + (1 - u) ** 2))


def hartmann3(X: Floats) -> Floats:
    """Hartmann in 3 dimensions, sum_i w_i exp(-sum_j A_ij (x_j - C_ij)^2). Largest value 3.86278."""
    return _hartmann(X, _A3, _C3)


def hartmann4(X: Floats) -> Floats:
    """Hartmann in 4 dimensions: the first four columns of the 6-dimensional function. Largest value 3.72984."""
    return _hartmann(X, _A6[:, :4], _C6[:, :4])


def hartmann6(X: Floats) -> Floats:
    """Hartmann in 6 dimensions, sum_i w_i exp(-sum_j A_ij (x_j - C_ij)^2). Largest value 3.32237."""
    return _hartmann(X, _A6, _C6)


MAXIMA: dict[Function, float] = {
    branin: 1.0473939,
    rosenbrock: 0.0,
    hartmann3: 3.8627798,
    hartmann4: 3.7298407,
    hartmann6: 3.3223680,
}
"""Largest value of each function on the whole unit cube; the best of finitely many arms is below it."""


def _hartmann(X: Floats, a: Floats, centres: Floats) -> Floats:
    x = _columns(X, a.shape[1])
    squares = [((x - c[:, None]) ** 2 * row[:, None]).sum(axis=0) for row, c in zip(a, centres, strict=True)]
    return np.asarray(_WEIGHTS @ np.exp(-np.array(squares)))


def _columns(X: Floats, dimension: int) -> Floats:
    """Columns of the points, (d, n)."""
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != dimension:
        raise ValueError(f"points must have shape (n, {dimension}), got {points.shape}")
    return points.T


# Problems that stay


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


# Problems that change

_SE = SquaredExponential(0.2)
_PRODUCT = Columns(_SE, (0,)) * Columns(_SE, (1,))
_NOISE = Gaussian(0.1)


def contextual(
    kernel: Kernel = _PRODUCT, *, points: int = 50, rounds: int = 1000, payoff: Payoff = _NOISE, rng: Seed = None
) -> Changing:
    """A smooth function of context and arm, the context uniform on [0, 1] in every round.

    The kernel is on rows (context, arm). f interpolates a draw at 60 random rows C: f(x) = k(x, C) K(C, C)^-1 draw, so
    its norm and the best arm of every context are known.
    """
    generator, arms = np.random.default_rng(rng), _line(points)
    centres = generator.random((60, 2))
    root = _root(kernel(centres, centres))
    normal, contexts = generator.standard_normal(root.shape[1]), generator.random((rounds, 1))
    weights = _weights(root) @ normal
    rows = np.column_stack([np.repeat(contexts[:, 0], points), np.tile(arms[:, 0], rounds)])
    means = np.concatenate([kernel(part, centres) @ weights for part in np.array_split(rows, rounds)])
    norm = float(np.linalg.norm(normal))
    return Changing("contextual", arms, means.reshape(rounds, points), kernel, payoff, norm, contexts)


def motion(
    kernel: Kernel = _SE,
    *,
    distance: float = 1.0,
    points: int = 50,
    rounds: int = 1000,
    payoff: Payoff = _NOISE,
    rng: Seed = None,
) -> Changing:
    """Smooth motion: a function that moves along the arms, by ``distance`` over all rounds."""
    generator, arms = np.random.default_rng(rng), _line(points)
    centres = np.linspace(0, 1 + distance, math.ceil(10 * (1 + distance)))[:, None]
    root = _root(kernel(centres, centres))
    normal = generator.standard_normal(root.shape[1])
    weights = _weights(root) @ normal
    means = [kernel(arms + distance * t / rounds, centres) @ weights for t in range(rounds)]
    return Changing("motion", arms, np.array(means), kernel, payoff, float(np.linalg.norm(normal)))


def jump(
    kernel: Kernel = _SE, *, points: int = 50, rounds: int = 1000, payoff: Payoff = _NOISE, rng: Seed = None
) -> Changing:
    """One jump: a function, and another one in the second half of the rounds."""
    late = np.arange(rounds) >= rounds // 2
    return _between_two("jump", late.astype(float), kernel, points, payoff, np.random.default_rng(rng))


def day_and_night(
    kernel: Kernel = _SE,
    *,
    period: int = 200,
    points: int = 50,
    rounds: int = 1000,
    payoff: Payoff = _NOISE,
    rng: Seed = None,
) -> Changing:
    """Return: from one function to another and back, as a cosine, in every ``period`` rounds."""
    night = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(rounds) / period)
    return _between_two("day and night", night, kernel, points, payoff, np.random.default_rng(rng))


def walk(
    kernel: Kernel = _SE,
    *,
    rate: float = 0.01,
    points: int = 50,
    rounds: int = 1000,
    payoff: Payoff = _NOISE,
    rng: Seed = None,
) -> Changing:
    """A stationary random walk of functions: f_(t+1) = sqrt(1 - rate) f_t + sqrt(rate) times a new draw."""
    if not 0 < rate < 1:
        raise ValueError(f"rate must be in (0, 1), got {rate}")
    generator, arms = np.random.default_rng(rng), _line(points)
    root = _root(kernel(arms, arms))
    steps = generator.standard_normal((rounds, root.shape[1]))
    for t in range(1, rounds):
        steps[t] = math.sqrt(1 - rate) * steps[t - 1] + math.sqrt(rate) * steps[t]
    return Changing("walk", arms, steps @ root.T, kernel, payoff, float(np.linalg.norm(steps, axis=1).max()))


def _between_two(name: str, share: Floats, kernel: Kernel, points: int, payoff: Payoff, rng: Rng) -> Changing:
    """Mixture of two drawn functions; ``share`` is the weight of the second in every round, (T,)."""
    arms = _line(points)
    root = _root(kernel(arms, arms))
    normal = rng.standard_normal((2, root.shape[1]))
    one, other = normal @ root.T
    means = np.outer(1 - share, one) + np.outer(share, other)
    return Changing(name, arms, means, kernel, payoff, float(np.linalg.norm(normal, axis=1).max()))


def _line(points: int) -> Floats:
    if points < 1:
        raise ValueError(f"points must be at least 1, got {points}")
    return np.linspace(0, 1, points)[:, None]


def _root(matrix: Floats) -> Floats:
    """Root R with R R' = K, (N, r), without directions in which K is numerically 0."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = eigenvalues > 1e-10 * eigenvalues[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))


def _weights(root: Floats) -> Floats:
    """Weights K^+ R, (N, r): with weights K^+ R z the sum of kernels has the values R z at the points and norm |z|."""
    return np.asarray(root / (root**2).sum(axis=0))
