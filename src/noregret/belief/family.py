"""One kernel at several ridges: for bounds that choose the best of a family of posteriors."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

from noregret.belief.exact import ExactGP, ExactPosterior
from noregret.belief.kernels import Kernel
from noregret.belief.posterior import Rng


@dataclass(frozen=True)
class RidgeFamily:
    """Exact posteriors on the same data, one per ridge; the first is the one that is shown."""

    kernel: Kernel
    ridges: tuple[float, ...]

    def prior(self, arms: Any, rng: Rng | None = None) -> FamilyPosterior:
        """Belief about f on these (N, d) arms before any reward."""
        return FamilyPosterior([ExactGP(self.kernel, ridge).prior(arms) for ridge in self.ridges])


class FamilyPosterior:
    """The first of its ``members`` in all that is asked of it, and all of them at every update."""

    def __init__(self, members: list[ExactPosterior]) -> None:
        self.members = members

    def __getattr__(self, name: str) -> Any:
        if name == "members":  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.members[0], name)

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in rewards in every member; ``noise`` scales each member's own ridge."""
        for member in sorted(self.members, key=lambda member: member.ridge):  # what one refuses, the first refuses
            member.update(arms, rewards, noise=noise)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points in every member; ``noise`` scales each member's own ridge."""
        for member in sorted(self.members, key=lambda member: member.ridge):
            member.learn(points, rewards, noise)

    def at(self, arms: Any) -> FamilyPosterior:
        """The same knowledge about other (N, d) arms."""
        return FamilyPosterior([member.at(arms) for member in self.members])

    def copy(self) -> Self:
        """An independent family with the same knowledge."""
        twin = copy.copy(self)
        twin.members = [member.copy() for member in self.members]
        return twin
