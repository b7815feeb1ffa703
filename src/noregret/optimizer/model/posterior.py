"""Looking: what a belief said about points, so that nothing is asked twice, and points become its arms at little cost.

What a belief of r rows says about a point costs O(r^2), and its kernel with all rows costs more than that where there
are many parameters. Candidates are looked at when they are drawn, and become arms afterwards: here the one is kept for
the other.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from noregret.belief.drift import VaryingPosterior
from noregret.belief.exact import ExactPosterior
from noregret.belief.posterior import Floats, Ints


class Looking:
    """A belief that keeps what it says about points, its arms from the start; what it has learnt stays as it is."""

    def __init__(self, belief: ExactPosterior) -> None:
        self._belief = belief
        self._places: dict[bytes, int] = {}  # of the points known, in the arrays below
        self._mean, self._std = np.empty(0), np.empty(0)
        self._lifted: list[Floats] = []
        self._keep(belief.arms, belief.lifted_arms, belief.mean, belief.std)

    @property
    def arms(self) -> Floats:
        """The belief's arms, (N, d)."""
        return self._belief.arms

    @property
    def pulled(self) -> Ints:
        """The distinct arms pulled, in the order of their first pulls."""
        return self._belief.pulled

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at (n, d) points."""
        places = self._places_of(points)
        if (new := places < 0).any():
            lifted = self._belief.lifted(points[new])
            places[new] = self._keep(points[new], lifted, *self._belief.told(points[new], lifted))
        return self._mean[places], self._std[places]

    def at(self, arms: Floats) -> ExactPosterior:
        """The belief on these (N, d) arms, of which only those that nobody has asked about cost much."""
        places = self._places_of(arms)
        lifted = np.hstack(self._lifted)[:, places]
        if (new := places < 0).any():
            lifted[:, new] = self._belief.lifted(arms[new])
        moved: ExactPosterior = self._belief.at(arms, lifted)
        return moved

    def _places_of(self, points: Floats) -> Ints:
        """Where each of (n, d) points is kept, -1 if it is not, (n,)."""
        return np.array([self._places.get(point.tobytes(), -1) for point in points + 0.0], dtype=np.intp)  # no -0.0

    def _keep(self, points: Floats, lifted: Floats, mean: Floats, std: Floats) -> Ints:
        """Keep what was said about (n, d) points; where it is kept, (n,)."""
        places = len(self._mean) + np.arange(len(points))
        self._places |= zip((point.tobytes() for point in points + 0.0), places.tolist(), strict=True)
        self._mean, self._std = np.append(self._mean, mean), np.append(self._std, std)
        self._lifted.append(lifted)
        return places


def looking(belief: ExactPosterior | VaryingPosterior) -> ExactPosterior | VaryingPosterior:
    """The same belief, `Looking` if f stays as it is."""
    return belief if isinstance(belief, VaryingPosterior) else cast(ExactPosterior, Looking(belief))
