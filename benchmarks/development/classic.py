"""Functions of one to six dimensions with few hills, on the unit cube, to be maximised: (n, d) -> (n,)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]


def gramacy(X: Floats) -> Floats:
    x = 0.5 + 2 * X[:, 0]
    return -(np.sin(10 * np.pi * x) / (2 * x) + (x - 1) ** 4)


def camel(X: Floats) -> Floats:
    x, y = 6 * X[:, 0] - 3, 4 * X[:, 1] - 2
    return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)


def goldstein(X: Floats) -> Floats:
    x, y = (4 * X - 2).T
    first = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    second = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2)
    return -first * second


def levy(X: Floats) -> Floats:
    u = 1 + (20 * X - 11) / 4
    middle = ((u[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * u[:, :-1] + 1) ** 2)).sum(axis=1)
    last = (u[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * u[:, -1]) ** 2)
    return -(np.sin(np.pi * u[:, 0]) ** 2 + middle + last)


def griewank(X: Floats) -> Floats:
    u = 20 * X - 8
    return -((u**2).sum(axis=1) / 400 - np.cos(u / np.sqrt(np.arange(1, X.shape[1] + 1))).prod(axis=1) + 1)


def michalewicz(X: Floats) -> Floats:
    u = np.pi * X
    return (np.sin(u) * np.sin(np.arange(1, X.shape[1] + 1) * u**2 / np.pi) ** 4).sum(axis=1)


def styblinski(X: Floats) -> Floats:
    u = 10 * X - 5
    return -0.5 * (u**4 - 16 * u**2 + 5 * u).sum(axis=1)


def dixon(X: Floats) -> Floats:
    u = 10 * X - 5
    steps = np.arange(2, X.shape[1] + 1) * (2 * u[:, 1:] ** 2 - u[:, :-1]) ** 2
    return -((u[:, 0] - 1) ** 2 + steps.sum(axis=1))


def additive(X: Floats) -> Floats:
    centres = np.array([0.3, 0.7, 0.2, 0.5, 0.9, 0.4])
    return (np.cos(3 * (X - centres)) * np.linspace(1, 0.2, 6)).sum(axis=1) + 0.3 * np.sin(9 * X[:, 0])


def random_function(seed: int, dimension: int, lengthscale: float) -> Function:
    """A random function with the spectrum of a Matern 5/2 kernel."""
    rng, terms = np.random.default_rng(seed), 300
    tails = np.sqrt(5 / rng.chisquare(5, (terms, 1)))
    waves = rng.standard_normal((terms, dimension)) / lengthscale * tails
    phases, sizes = 2 * np.pi * rng.random(terms), rng.standard_normal(terms) * math.sqrt(2 / terms)
    return lambda X: np.cos(X @ waves.T + phases) @ sizes


CLASSIC: dict[str, tuple[Function, int]] = {
    "gramacy": (gramacy, 1),
    "random1": (random_function(5, 1, 0.1), 1),
    "camel": (camel, 2),
    "goldstein": (goldstein, 2),
    "levy2": (levy, 2),
    "random2": (random_function(1, 2, 0.2), 2),
    "random2-long": (random_function(6, 2, 0.35), 2),
    "griewank": (griewank, 3),
    "dixon": (dixon, 3),
    "random3": (random_function(7, 3, 0.3), 3),
    "styblinski4": (styblinski, 4),
    "random4": (random_function(2, 4, 0.5), 4),
    "levy5": (levy, 5),
    "michalewicz5": (michalewicz, 5),
    "additive": (additive, 6),
    "styblinski6": (styblinski, 6),
    "random6": (random_function(3, 6, 0.7), 6),
}
