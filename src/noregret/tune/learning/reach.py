"""How many measurements a stopping rule takes at least."""

from __future__ import annotations

import math
from collections.abc import Mapping

from noregret.optimizer.choosing.exploring import unexplored_from
from noregret.optimizer.spaces.parameters import Choice, Float, Int
from noregret.tune.study.study import Study


def least_rounds(study: Study) -> int:
    """The measurements without which the stopping rule cannot hold; 0 where that is not known.

    The rule wants a measurement near all but a share of (1 - confidence) / 2 of the settings. One is near to what lies
    within r = 0.075 sqrt(d) of it, d the number of parameters. That is at most the product of the ball's volume in the
    c real numbers, pi^(c/2) r^c / Gamma(c/2 + 1), and the share of the values within r of each other parameter.
    """
    if study.stop is None or not isinstance(study.space, Mapping) or any(its.when for its in study.space.values()):
        return 0
    reach, parameters = unexplored_from(len(study.space)), list(study.space.values())
    real = sum(math.isinf(parameter.count) for parameter in parameters)
    ball = (math.sqrt(math.pi) * reach) ** real / math.gamma(real / 2 + 1)
    near = min(ball, 1.0) * math.prod(_share_near(its, reach) for its in parameters if math.isfinite(its.count))
    return math.ceil((1 + study.stop.confidence) / 2 / near)


def _share_near(parameter: Float | Int | Choice, reach: float) -> float:
    """The share of the values of a parameter that lie within reach of one of them, at most."""
    if isinstance(parameter, Choice):
        return 1 / parameter.count
    return min((2 * math.floor(reach * (parameter.count - 1)) + 1) / parameter.count, 1.0)
