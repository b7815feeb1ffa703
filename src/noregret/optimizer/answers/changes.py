"""Changes: which values of the baseline to keep, and what each change of the others is worth.

A recommended setting has some value for every parameter, also for those that do not matter. Starting from it, changes
are undone one by one, each time the one that is least likely to help. A change stays if undoing it alone loses more
than the noise allows, if it is estimated to be worth much, or if all that is undone together were then. So the
recommended setting differs from the baseline only where the observations show a reason. While noise alone may explain
all observations, nothing does. Heuristic.

`ChangedParameter.lower` says more: that a change helps under every model that is not refuted, at 95%. As the rule it
would undo changes that do help where there is no noise, and leave as many that do not: see decision 237.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from noregret.gp.posterior import Floats
from noregret.optimizer.answers.certificate import AVERAGED, WIDTH, Certificate
from noregret.optimizer.model.candidates import spread_out
from noregret.optimizer.model.constraints import RECOMMEND
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.space.contexts import with_context
from noregret.optimizer.space.parameters import ROUNDING
from noregret.optimizer.space.space import ParameterSpace, Space

UNDONE = 1.28
"""Standard deviations of a difference under the fitted model up to which a loss is not shown: noise exceeds them in a
tenth of the cases. Decision 0237."""

MUCH = 0.1
"""A change that is not shown to help stays if it is estimated to be worth more than this part of the distance between
the recommended setting and an average one. All that is undone may be worth as much, or this part of the gain on the
baseline if that is more. Decision 0237."""


class ChangedParameter(NamedTuple):
    """A parameter whose recommended value is not the baseline's, and what that is worth.

    ``before`` is the baseline's value and ``after`` the recommended one, None where the parameter does not apply. The
    ``estimate`` is the gain of the recommended setting over the same setting with the baseline's value, above 0 if it
    is better, and ``lower`` and ``upper`` are its interval, in the units of the values. A change that the constraints
    need may be worth less than nothing.
    """

    name: str
    before: Any
    after: Any
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Reversions:
    """Changes to the baseline, still without intervals, and the (n, d) points with each of them taken back alone."""

    changed: list[ChangedParameter]
    points: Floats
    certificate: Certificate

    def changes(self, point: Floats) -> list[ChangedParameter]:
        """Worth of each change at a (1, d) point, the largest first."""
        ends = zip(self.changed, self.certificate.differences(point, self.points, WIDTH), strict=True)
        changes = [move._replace(lower=min(low, move.lower), upper=max(high, move.upper)) for move, (low, high) in ends]
        return sorted(changes, key=lambda change: -change.estimate)


def differing(params: Any, baseline: Any) -> list[str]:
    """The names of the parameters with different values in both settings; none for rows without names."""
    if not isinstance(params, Mapping) or not isinstance(baseline, Mapping):
        return []
    return [name for name, value in params.items() if name in baseline and value != baseline[name]]


def reverted(space: Space, params: Any, baseline: Any, name: str) -> Any | None:
    """The params with the baseline's value of one parameter, and with what then applies; None if there are none."""
    values = {**baseline, **params, name: baseline[name]}
    names = space.applicable(values) if isinstance(space, ParameterSpace) else values
    try:
        setting = space.checked({each: values[each] for each in names if each in values})
    except ValueError:
        return None
    return None if space.violated(setting) else setting


def with_fewest_changes(state: Snapshot, space: Space, params: Any, baseline: Any) -> Any:
    """The params of a space, without a context, less the changes to the baseline that are not shown to help."""
    process, history, current = state.belief.full, state.history, params
    both = _encoded(state, [params, baseline])
    best, before = process.predict(both)[0].tolist()
    average = float(process.predict(spread_out(state.space, AVERAGED, 0))[0].mean())
    much, least = MUCH * (best - average), min(math.log(RECOMMEND), float(state.log_feasible_at(both[:1])[0]))
    in_all = max(much, MUCH * (best - before))
    failed = set(history.unproven.tolist())
    while True:
        tried = [reverted(space, current, baseline, name) for name in differing(current, baseline)]
        known = [each for each in tried if each is not None]
        eligible = [each for each in known if history.number(with_context(each, state.space)) not in failed]
        if not eligible:
            return current
        points = _encoded(state, [current, *eligible])
        mean, covariance = process.joint(points)
        variance, worth = covariance.diagonal(), mean[0] - mean[1:]
        deviation = np.sqrt(np.maximum(variance[0] + variance[1:] - 2 * covariance[0, 1:], ROUNDING * variance[0]))
        shown = worth / np.maximum(deviation, 1e-300)
        is_needed = (worth > much) | (best - mean[1:] > in_all) | (state.log_feasible_at(points[1:]) < least)
        shown[is_needed] = math.inf
        if shown.min() > UNDONE:
            return current
        current = eligible[int(np.argmin(shown))]


def one_by_one(state: Snapshot, space: Space, params: Any, baseline: Any) -> tuple[list[str], Floats]:
    """The parameters that differ from the baseline, and the (n, d) points with each of them set back alone.

    In a table such a point may be no row.
    """
    names, points = differing(params, baseline), []
    own, others = _encoded(state, [params, baseline]) if names else ((), ())
    for name in names:
        setting = reverted(space, params, baseline, name)
        is_its = np.array(state.space.groups) == space.names.index(name)
        points.append(np.where(is_its, others, own) if setting is None else _encoded(state, [setting])[0])
    return names, np.array(points)


def _encoded(state: Snapshot, params: list[Any]) -> Floats:
    return state.history.space.encode([with_context(each, state.space) for each in params])
