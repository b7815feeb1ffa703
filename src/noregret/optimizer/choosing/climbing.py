"""Climbing: the candidates that promise most, moved uphill by gradient.

What is climbed is ln EI, the logarithm of the expected improvement on the best that was measured: it has a slope where
EI itself underflows. Slopes are taken by differences, all of a step in one look at the belief, so that any belief will
do. All candidates climb at once: their scores do not depend on each other, so the slope of the sum is that of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize

from noregret.belief.posterior import Floats, Posterior
from noregret.decision.rules import log_expected_improvement
from noregret.optimizer.spaces.space import Space

DIFFERENCE = 1e-5
"""By how much a coordinate is moved to find a slope, in lengthscales."""


@dataclass(frozen=True)
class Climbing:
    """How many candidates climb by how many steps of L-BFGS, in at least so many coordinates.

    With fewer coordinates the clouds of `Candidates` come as high.
    """

    starts: int = 4
    steps: int = 8
    coordinates: int = 4

    def __call__(
        self, space: Space, belief: Posterior, starts: Floats, lengthscales: Floats, incumbent: float
    ) -> Floats:
        """Where (n, d) points of the space come to, (n, d). Choices and whole numbers stay: near them nothing slopes.

        ``lengthscales``, (d,), are those of the coordinates, and ``incumbent`` is the best mean that was measured.
        """
        (count, dimension), sizes = starts.shape, DIFFERENCE * np.minimum(lengthscales, 1.0)
        moves = np.vstack([np.zeros(dimension), np.diag(sizes)])

        def loss(flat: Floats) -> tuple[float, Floats]:
            at = flat.reshape(count, 1, dimension)
            inward = np.where(at > 0.5, -1.0, 1.0)
            mean, std = belief.predict(space.snap((at + inward * moves).reshape(-1, dimension)))
            scores = log_expected_improvement(mean - incumbent, std).reshape(count, dimension + 1)
            slopes = (scores[:, 1:] - scores[:, :1]) / (inward[:, 0] * sizes)
            return -float(scores[:, 0].sum()), -slopes.ravel()

        cube = Bounds(np.zeros(starts.size), np.ones(starts.size))
        found = minimize(
            loss, starts.ravel(), jac=True, method="L-BFGS-B", bounds=cube, options={"maxiter": self.steps}
        )
        return space.snap(found.x.reshape(starts.shape))
