"""Failures: settings that always fail, and those that failed at random.

A setting that has failed and never worked is either hopeless, it always fails, or flaky, it fails with a probability q
like any other. With f failures there and at the settings nearest to it, and s of these that work, the odds are

    hopeless : flaky = prior q^-f ((1 - q) / LEAKY)^-s,

and q is the share of failures among the answers, but for those at settings that are likely hopeless. The two are found
in turn, all being taken for hopeless at first. So one failure is enough where failures are rare, more are needed where
they are common or amid settings that work, and `FEWEST_OBSERVATIONS` are enough anywhere. Heuristic:
neighbours count for less the farther away they are.
"""

from __future__ import annotations

import math

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.model.evidence import FEWEST_OBSERVATIONS

LEAKY = 0.1
"""A neighbour of a hopeless setting works with this probability: hopeless regions have edges. Not measured: see
decision 0081."""

NEIGHBOUR_DISTANCE = 0.1
"""Distance in the unit cube at which a neighbour counts for e^(-1/2), times the root of the number of parameters. Not
measured."""

NEIGHBOURS = 5
"""Nearest settings that count around one that failed: the more were tried, the nearer they are. Not measured."""

ROUNDS = 20
"""Number of times that odds and q are found in turn. Not measured."""

SUPPOSED = (1.0, 5.0)
"""Failures and successes that are supposed before the first answer; a setting is hopeless with the same odds. Not
measured: see decision 0081."""


def hopeless(points: Floats, successes: Ints, failures: Ints, parameters: int) -> Ints:
    """The settings that have failed and never worked, and more likely than not never will.

    Parameters
    ----------
    points : (u, d) floats
        The distinct settings, in the unit cube.
    successes, failures : (u,) ints
        Number of times that each has worked and failed.
    parameters : int
        Number of parameters.
    """
    failed = np.flatnonzero((failures > 0) & (successes == 0))
    if not failed.size:
        return failed
    tried = np.flatnonzero(successes + failures)
    weights, near = _neighbours(points[tried], points[failed], NEIGHBOUR_DISTANCE * math.sqrt(parameters))
    works = successes[tried][near] > 0
    working = (weights * works).sum(axis=1)
    failing = failures[failed] + (weights * ~works).sum(axis=1)
    prior = SUPPOSED[0] / SUPPOSED[1]
    flaky = SUPPOSED[0] + float(failures[successes > 0].sum())
    steady = SUPPOSED[1] + float(successes.sum())
    certainty = np.ones(failed.size)  # that each is hopeless
    for _ in range(ROUNDS):
        unlikely = np.where(certainty < 0.5, 1 - certainty, 0.0)
        unexplained = flaky + float(unlikely @ failures[failed])
        rate = unexplained / (unexplained + steady)
        certainty = 1 / (1 + rate**failing * ((1 - rate) / LEAKY) ** working / prior)
    return failed[(certainty > 0.5) | (failures[failed] >= FEWEST_OBSERVATIONS)]


def _neighbours(points: Floats, centres: Floats, reach: float) -> tuple[Floats, Ints]:
    """Weights of the points nearest to each centre, itself left out, and their indices, two (n, k)."""
    count = min(NEIGHBOURS + 1, len(points))
    distances, near = map(np.asarray, sp.cKDTree(points).query(centres, k=np.arange(1, count + 1)))
    return np.exp(-0.5 * (distances[:, 1:] / reach) ** 2), near[:, 1:]
