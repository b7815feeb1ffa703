"""Search for the highest score on a box, for loops that choose points one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from noregret.belief.box import Box
from noregret.belief.posterior import Floats
from noregret.decision.region import tops

Score = Callable[[Floats], Floats]
"""Function from (n, d) points to their scores, (n,)."""

STARTS = 4
"""Number of starting points: the highest of those above their neighbours."""
LISTED = 200
"""Number of the highest arms among which starting points are looked for."""
STEP = 1e-5
"""Step of the differences that give the gradient, as a share of the box's sides."""
ITERATIONS = 25
"""Largest number of steps of L-BFGS-B."""


def highest_point(score: Score, arms: Floats, scores: Floats, box: Box) -> tuple[Floats, float]:
    """Point of the box with the highest score that was found, (d,), and its score.

    The search is L-BFGS-B from the best of the (N, d) arms, whose (N,) scores are known, with gradients from central
    differences. All starts are one search for the largest sum of their scores, so that a step evaluates one block of
    points. A maximum that has no start nearby is missed.
    """
    listed = np.sort(np.argpartition(-scores, LISTED)[:LISTED]) if len(scores) > LISTED else np.arange(len(scores))
    listed = listed[np.lexsort((listed, -scores[listed]))]
    chosen = listed[tops(arms[listed], scores[listed], box, STARTS)]
    starts, d = (arms[chosen] - box.lower) / box.sides, box.dimension
    moves = STEP * np.vstack([np.zeros((1, d)), np.eye(d), -np.eye(d)])

    def descent(flat: Floats) -> tuple[float, Floats]:
        around = flat.reshape(-1, 1, d) + moves
        values = score(box.lower + box.sides * around.reshape(-1, d)).reshape(len(starts), -1)
        gradient = (values[:, 1 : d + 1] - values[:, d + 1 :]) / (2 * STEP)
        return -float(values[:, 0].sum()), -gradient.reshape(-1)

    limits: Any = [(0.0, 1.0)] * starts.size
    found = minimize(
        descent, starts.reshape(-1), jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": ITERATIONS}
    )
    points = box.lower + box.sides * np.clip(found.x.reshape(-1, d), 0.0, 1.0)
    points = np.clip(points, box.lower, [high for _, high in box.bounds])
    values = score(points)
    best = int(np.argmax(values))
    if values[best] > scores[chosen[0]]:
        return np.asarray(points[best]), float(values[best])
    return arms[chosen[0]], float(scores[chosen[0]])
