"""Fidelity: the parameter that says how much one measurement costs and how well it tells about the highest value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats
from noregret.optimizer.space.parameters import Float, Int
from noregret.optimizer.space.space import Product

RUNGS = 5
"""Fidelities, evenly spaced on the parameter's own scale, at which questions are asked and reports are kept: a run
adds at most this many points to the model. In steps of three they span a factor of 81, as successive halving does."""


WARP = 3.0
"""Steepness of the fidelity's coordinate: a step at the lowest fidelity is exp(WARP) times as long as at the highest.
Of 0, 1, 2, 3 and 4 the one that predicts curves best, see decision 0210."""
SPAN = 0.5
"""Coordinate of the highest fidelity: the middle of the cube, as explorers avoid edges. Fits hardly depend on it."""


@dataclass(frozen=True)
class LevelledOff(Product):
    """Contexts, the last of which is a fidelity: its coordinate u becomes a (1 - exp(-c u)) / (1 - exp(-c)).

    c is `WARP` and a is `SPAN`.
    Curves level off, so equal steps matter less and less towards the highest fidelity; with this coordinate a
    stationary kernel says so.
    """

    def encode(self, params: Sequence[Any]) -> Floats:
        return _bent(super().encode(params))

    def decode(self, points: Floats) -> list[dict[str, Any]]:
        return super().decode(_straight(points))

    def snap(self, points: Floats) -> Floats:
        return _bent(super().snap(_straight(points)))

    def everything(self) -> Floats:
        return _bent(super().everything())


def _bent(points: Floats) -> Floats:
    return np.hstack([points[:, :-1], SPAN * np.expm1(-WARP * points[:, -1:]) / np.expm1(-WARP)])


def _straight(points: Floats) -> Floats:
    return np.hstack([points[:, :-1], -np.log1p(np.minimum(points[:, -1:] / SPAN, 1.0) * np.expm1(-WARP)) / WARP])


@dataclass(frozen=True)
class Fidelity:
    """One numeric parameter, such as the number of epochs. A measurement costs in proportion to its value."""

    name: str
    parameter: Float | Int

    @cached_property
    def product(self) -> Product:
        """Space of this one parameter."""
        return Product({self.name: self.parameter})

    @property
    def highest(self) -> dict[str, Any]:
        """The fidelity that recommendations are about."""
        return {self.name: self.parameter.high}

    @cached_property
    def rungs(self) -> list[dict[str, Any]]:
        """At most `RUNGS` fidelities from the lowest to the highest, ascending."""
        found = self.product.decode(np.linspace(0.0, 1.0, RUNGS)[:, None])
        return [{self.name: value} for value in sorted({its[self.name] for its in found})]

    def rung(self, fidelity: Mapping[str, Any]) -> int:
        """Number of rungs that are not above this fidelity."""
        return sum(its[self.name] <= fidelity[self.name] for its in self.rungs)

    def cost(self, fidelity: Mapping[str, Any]) -> float:
        """Cost of a measurement, in units of one at the highest fidelity."""
        return float(fidelity[self.name] / self.parameter.high)

    def checked(self, fidelity: Any, what: str = "fidelity") -> dict[str, Any]:
        """A fidelity as the optimizer returns it; ValueError if it is none."""
        return self.product.checked(fidelity, what)


def checked_fidelity(given: Any, taken: list[Any]) -> Fidelity | None:
    """Fidelity from ``{"epochs": Int(1, 81)}``; ValueError if it is none, or has one of the ``taken`` names."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError(f"fidelity must be a dict with one Int or Float, like {{'epochs': Int(1, 81)}}, got {given!r}")
    name, parameter = next(iter(given.items()))
    if not isinstance(name, str) or name in taken:
        raise ValueError(f"the fidelity's name must be text that no parameter or context has, got {name!r}: rename it")
    if not isinstance(parameter, Int | Float) or parameter.when:
        raise ValueError(f"fidelity {name!r} must be an Int or Float without a condition, got {parameter!r}")
    if parameter.low <= 0:
        raise ValueError(
            f"fidelity {name!r} must begin above 0, as a measurement costs in proportion to it, got {parameter!r}"
        )
    return Fidelity(name, parameter)
