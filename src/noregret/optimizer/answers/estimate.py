"""Estimate: what is believed about some params."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from noregret.belief.posterior import Floats
from noregret.optimizer.answers.certificate import LEVEL, Certificate


@dataclass(frozen=True, repr=False)
class Estimate:
    """What is believed about some params.

    Parameters
    ----------
    params
    estimate : float
        The expected value.
    lower, upper : float
        The true value lies between them with probability ``level``.
    level : float
    feasible : float
        The probability that all constraints are met, 1 without any.
    is_likeliest : bool
        Whether it was recommended although it is not likely to meet all constraints, as nothing else is.
    """

    params: Any
    estimate: float
    lower: float
    upper: float
    level: float = LEVEL
    feasible: float = 1.0
    _certificate: Certificate | None = field(default=None, repr=False, compare=False)
    _point: Floats | None = field(default=None, repr=False, compare=False)
    is_likeliest: bool = field(default=False, repr=False, compare=False)

    def __repr__(self) -> str:
        shown = ", ".join(f"{part.name}={getattr(self, part.name)!r}" for part in fields(self) if part.repr)
        note = " <nothing is likely to meet all constraints: this is the likeliest>" if self.is_likeliest else ""
        return f"Estimate({shown}){note}"

    def as_likeliest(self) -> Estimate:
        """The same, recommended although it is not likely to meet all constraints, as nothing else is."""
        return replace(self, is_likeliest=True, _certificate=None)

    @property
    def has_gap(self) -> bool:
        """Whether anything is known about the other settings: after the first fit, if this one is likely feasible."""
        return self._certificate is not None

    @cached_property
    def gap(self) -> float:
        """How much better any other setting may be, in the units of the values, with probability ``level``.

        It is infinite before the first fit, while too many settings have no measurement near them, as what nobody has
        looked at may be much better, and where nothing is likely to meet the constraints. Computed when it is first
        looked at, as of when the estimate was made.
        """
        if self._certificate is None or self._point is None:
            return math.inf
        return self._certificate.gap(self._point)


def chance_in_words(probability: float) -> str:
    """A probability to two digits, and less than 0.01 where it is.

    >>> chance_in_words(0.953), chance_in_words(1e-30)
    ('0.95', 'less than 0.01')
    """
    return f"{probability:.2f}" if probability >= 0.01 else "less than 0.01"
