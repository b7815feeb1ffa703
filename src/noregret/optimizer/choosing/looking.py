"""Looking: what a belief was asked about while candidates were drawn, so that these become its arms at little cost.

What a belief of r rows says about a point costs O(r^2), and its kernel with all rows costs more than that where there
are many parameters. Candidates are looked at when they are drawn, and become arms afterwards: here the one is kept for
the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from noregret.belief.drift.varying import VaryingPosterior
from noregret.belief.exact import ExactPosterior
from noregret.belief.posterior import Floats


class Looking:
    """A belief that keeps what it is asked about; everything else is the belief's own."""

    def __init__(self, belief: ExactPosterior) -> None:
        self._belief = belief
        self._points, self._lifted = [belief.arms], [belief.lifted_arms]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._belief, name)

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at (n, d) points."""
        lifted = self._belief.lifted(points)
        self._points.append(points)
        self._lifted.append(lifted)
        return self._belief.told(points, lifted)

    def looked(self) -> Looked:
        """What is known now."""
        return Looked(self._belief, np.vstack(self._points), np.hstack(self._lifted))


class Looked:
    """A belief, (n, d) points, and what connects the two, (r, n); it never changes."""

    def __init__(self, belief: ExactPosterior, points: Floats, lifted: Floats) -> None:
        self._belief, self._lifted = belief, lifted
        self._places = {point.tobytes(): place for place, point in enumerate(points + 0.0)}  # -0.0 becomes 0.0

    def at(self, arms: Floats) -> ExactPosterior:
        """The belief on these (N, d) arms, of which only those that are none of the points cost something."""
        places = np.array([self._places.get(arm.tobytes(), -1) for arm in arms + 0.0], dtype=np.intp)
        lifted = self._lifted[:, places]
        if (new := places < 0).any():
            lifted[:, new] = self._belief.lifted(arms[new])
        moved: ExactPosterior = self._belief.at(arms, lifted)
        return moved


def known_of_arms(belief: ExactPosterior | VaryingPosterior) -> Looked | VaryingPosterior:
    """The belief, which becomes one of other arms at little cost where these are its own."""
    return belief if isinstance(belief, VaryingPosterior) else Looking(belief).looked()
