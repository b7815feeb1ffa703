"""Functions of 10 to 50 dimensions on the unit cube, to be maximised: (n, d) -> (n,)."""

from __future__ import annotations

import numpy as np

from benchmarks.development.classic import Floats, Function, dixon, levy, random_function, styblinski
from benchmarks.development.hills import ackley, from_centre, waves


def ellipsoid(X: Floats) -> Floats:
    """A bowl whose coordinates matter from 100 to 1."""
    return -(10 ** np.linspace(2, 0, X.shape[1]) * from_centre(X) ** 2).sum(axis=1)


def chain(X: Floats) -> Floats:
    """A bowl in which every coordinate is tied to the next."""
    u = from_centre(X)
    return -((u[:, 1:] - u[:, :-1]) ** 2).sum(axis=1) - 0.5 * (u**2).sum(axis=1)


def hidden(function: Function, columns: list[int]) -> Function:
    """A function of a few of the coordinates; the others do nothing."""
    return lambda X: function(X[:, columns])


WIDE: dict[str, tuple[Function, int]] = {
    "levy10": (levy, 10),
    "dixon10": (dixon, 10),
    "hidden10": (hidden(levy, [1, 4, 8]), 10),
    "hidden12": (hidden(random_function(22, 2, 0.25), [3, 7]), 12),
    "styblinski12": (styblinski, 12),
    "waves12": (waves, 12),
    "ackley20": (ackley, 20),
    "ellipsoid20": (ellipsoid, 20),
    "chain20": (chain, 20),
    "hidden30": (hidden(random_function(21, 4, 0.5), [2, 9, 17, 28]), 30),
    "ellipsoid50": (ellipsoid, 50),
    "hidden50": (hidden(levy, [4, 11, 23, 37, 48]), 50),
}
