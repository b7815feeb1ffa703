"""Climbing: the candidates that promise most, moved uphill by gradient.

What is climbed is ln EI, ln of the expected improvement on the best that was measured, which does not underflow. Its
slope is taken by differences, all of one step in one look at the belief, so that any belief will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from noregret.belief.posterior import Floats
from noregret.decision.rules import log_expected_improvement

STEP = 1e-5
"""In lengthscales, by which coordinates are moved to find a slope."""

Predict = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Climbing:
    """How many of the best candidates climb, and how many steps of L-BFGS they take."""

    starts: int = 4
    steps: int = 12

    def __call__(self, predict: Predict, points: Floats, lengthscales: Floats, incumbent: float) -> Floats:
        """Where the (n, d) points come to inside of the cube, moving by lengthscales, (d,)."""
        count, dimension = points.shape
        moves = STEP * np.vstack([np.zeros(dimension), np.diag(np.minimum(lengthscales, 1.0))])
        sizes = STEP * np.minimum(lengthscales, 1.0)

        def loss(flat: Floats) -> tuple[float, Floats]:
            at = flat.reshape(count, 1, dimension)
            inward = np.where(at > 0.5, -1.0, 1.0)
            mean, std = predict((at + inward * moves).reshape(-1, dimension))
            scores = log_expected_improvement(mean - incumbent, std).reshape(count, dimension + 1)
            slopes = (scores[:, 1:] - scores[:, :1]) / (inward[:, 0] * sizes)
            return -float(scores[:, 0].sum()), -slopes.ravel()

        found = minimize(
            loss, points.ravel(), jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * points.size, options={"maxiter": self.steps}
        )
        return np.asarray(found.x.reshape(points.shape))
