"""Functions of two to five dimensions with many hills, on the unit cube, to be maximised: (n, d) -> (n,).

On most of them the second best hill is more than 0.05 of a random point's regret below the best one, so that a run
which stays on it counts as stuck.
"""

from __future__ import annotations

import numpy as np

from benchmarks.development.classic import Floats, Function, levy, random_function

CENTRE = np.array([0.37, 0.64, 0.22, 0.71, 0.45])


def from_centre(X: Floats) -> Floats:
    return X - np.resize(CENTRE, X.shape[1])


def waves(X: Floats) -> Floats:
    """A quadratic bowl with cosine waves of period 0.3."""
    u = from_centre(X)
    return -(4 * u**2 + 0.3 * (1 - np.cos(2 * np.pi * u / 0.3))).sum(axis=1)


def rastrigin(X: Floats) -> Floats:
    u = 8 * from_centre(X)
    return -(u**2 + 10 * (1 - np.cos(2 * np.pi * u))).sum(axis=1)


def ackley(X: Floats) -> Floats:
    u = 10 * from_centre(X)
    bowl = 20 * (1 - np.exp(-0.2 * np.sqrt((u**2).mean(axis=1))))
    return -(bowl + np.e - np.exp(np.cos(2 * np.pi * u).mean(axis=1)))


def steep_griewank(X: Floats) -> Floats:
    """Griewank's function with a bowl ten times as steep, so that its hills differ."""
    u = 40 * from_centre(X)
    return -((u**2).sum(axis=1) / 400 - np.cos(u / np.sqrt(np.arange(1, X.shape[1] + 1))).prod(axis=1) + 1)


def schwefel(X: Floats) -> Floats:
    """Schwefel's function: the best hill is in a corner, far from the second best."""
    u = 1000 * X - 500
    return (u * np.sin(np.sqrt(np.abs(u)))).sum(axis=1)


def shubert(X: Floats) -> Floats:
    """Shubert's function in a bowl that leaves one of its equal hills the best."""
    u, numbers = 10 * X - 5, np.arange(1, 6)
    sums = (numbers * np.cos((numbers + 1) * u[..., None] + numbers)).sum(axis=-1)
    return -sums.prod(axis=1) - 150 * (from_centre(X) ** 2).sum(axis=1)


def sharp_michalewicz(X: Floats) -> Floats:
    u = np.pi * X
    return (np.sin(u) * np.sin(np.arange(1, X.shape[1] + 1) * u**2 / np.pi) ** 20).sum(axis=1)


def shekel(X: Floats) -> Floats:
    """Seven inverse-quadratic peaks in four dimensions, five times as wide as Shekel's, which are never found."""
    centres = np.array(
        [[4, 4, 4, 4], [1, 1, 1, 1], [8, 8, 8, 8], [6, 6, 6, 6], [3, 7, 3, 7], [2, 9, 2, 9], [5, 5, 3, 3]]
    )
    widths = np.array([0.5, 1.0, 1.0, 2.0, 2.0, 3.0, 1.5])
    return (1 / (((10 * X[:, None] - centres) ** 2).sum(axis=2) + widths)).sum(axis=1)


def well(X: Floats) -> Floats:
    """A broad bowl that leads away from a narrow well, the optimum."""
    narrow = np.exp(-0.5 * ((X - np.array([0.18, 0.83])) ** 2).sum(axis=1) / 0.06**2)
    return 1.6 * narrow - ((X - np.array([0.7, 0.3])) ** 2).sum(axis=1)


def bumps(seed: int, dimension: int, width: float) -> Function:
    """A random function with a narrow bump at a medium value; the top of the bump is the optimum."""
    base, rng = random_function(seed, dimension, 0.3), np.random.default_rng(seed)
    values = base(rng.random((4096, dimension)))
    places = 0.1 + 0.8 * rng.random((64, dimension))
    place = places[np.argsort(base(places))[32]]
    height = values.max() + 0.35 * (values.max() - values.mean()) - base(place[None])[0]
    return lambda X: base(X) + height * np.exp(-0.5 * ((X - place) ** 2).sum(axis=1) / width**2)


def peaks(seed: int, dimension: int, count: int = 21) -> Function:
    """The largest of many turned Gaussian peaks, after Gallagher: the best is 10 high, the others at most 8.5."""
    rng = np.random.default_rng(seed)
    places = 0.1 + 0.8 * rng.random((count, dimension))
    heights = np.concatenate([[10.0], np.linspace(8.5, 1.1, count - 1)])
    turns = [np.linalg.qr(rng.standard_normal((dimension, dimension)))[0] for _ in range(count)]
    scales = rng.uniform(0.12, 0.25, (count, dimension)) * np.sqrt(dimension / 2)

    def function(X: Floats) -> Floats:
        along = [((X - place) @ turn / scale) ** 2 for place, turn, scale in zip(places, turns, scales, strict=True)]
        return np.max([h * np.exp(-0.5 * a.sum(axis=1)) for h, a in zip(heights, along, strict=True)], axis=0)

    return function


HILLS: dict[str, tuple[Function, int]] = {
    "waves3": (waves, 3),
    "waves5": (waves, 5),
    "rastrigin2": (rastrigin, 2),
    "ackley3": (ackley, 3),
    "levy4": (levy, 4),
    "griewank2": (steep_griewank, 2),
    "schwefel2": (schwefel, 2),
    "schwefel3": (schwefel, 3),
    "shubert2": (shubert, 2),
    "michalewicz3": (sharp_michalewicz, 3),
    "shekel4": (shekel, 4),
    "well2": (well, 2),
    "bumps2": (bumps(11, 2, 0.06), 2),
    "bumps3": (bumps(12, 3, 0.1), 3),
    "peaks2": (peaks(13, 2), 2),
    "peaks5": (peaks(14, 5), 5),
}
