"""Changes: which values of the baseline to keep, and what each change of the others is worth.

A recommended setting has some value for every parameter, also for those that do not matter. Starting from it, changes
are undone one by one, each time the one that is least shown to help, as long as undoing it loses no more than the noise
allows: alone, and together with those that were undone before. So the recommended setting differs from the baseline
only where the observations show a reason. While noise alone may explain all observations, nothing does. Heuristic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from noregret.belief.posterior import Floats
from noregret.optimizer.answers.certificate import ROUNDING, WIDTH, Certificate
from noregret.optimizer.model.constraints import RECOMMEND
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.space.contexts import with_context
from noregret.optimizer.space.space import Product, Space

UNDONE = 1.28
"""Standard deviations of the joint posterior of a difference up to which a loss is not shown: those that noise exceeds
in a tenth of the cases. With 1.65, a twentieth, changes of numbers that do help are lost as well: see the decision."""


class Change(NamedTuple):
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
    """A setting with one parameter set back to the baseline's value, for each that differs.

    ``points`` are (n, d), and ``gains`` are by how much each is estimated to be worse, (n,).
    """

    names: list[str]
    before: list[Any]
    after: list[Any]
    points: Floats
    gains: Floats
    certificate: Certificate

    def changes(self, point: Floats) -> list[Change]:
        """Worth of each change at a (1, d) point, the largest first."""
        ends = self.certificate.differences(point, self.points, WIDTH) if self.names else []
        found = [
            Change(name, before, after, gain, min(lower, gain), max(upper, gain))
            for name, before, after, gain, (lower, upper) in zip(
                self.names, self.before, self.after, self.gains.tolist(), ends, strict=True
            )
        ]
        return sorted(found, key=lambda change: -change.estimate)


def differing(params: Any, baseline: Any) -> list[str]:
    """The names of the parameters with different values in both settings; none for rows without names."""
    if not isinstance(params, Mapping) or not isinstance(baseline, Mapping):
        return []
    return [name for name, value in params.items() if name in baseline and value != baseline[name]]


def reverted(space: Space, params: Any, baseline: Any, name: str) -> Any | None:
    """The params with the baseline's value of one parameter, and with what then applies; None if there are none."""
    values = {**baseline, **params, name: baseline[name]}
    names = space.applicable(values) if isinstance(space, Product) else values
    try:
        found = space.checked({each: values[each] for each in names if each in values})
    except ValueError:
        return None
    return None if space.violated(found) else found


def with_fewest_changes(state: Snapshot, space: Space, params: Any, baseline: Any) -> Any:
    """The params of a space, without a context, less the changes to the baseline that are not shown to help."""
    joint, history, current = state.belief.full.joint, state.history, params
    first = _encoded(state, [params])
    least = min(math.log(RECOMMEND), float(state.log_feasible_at(first)[0]))
    failed = set(history.unproven.tolist())
    while True:
        tried = [reverted(space, current, baseline, name) for name in differing(current, baseline)]
        found = [each for each in tried if each is not None and history.number(_whole(state, each)) not in failed]
        if not found:
            return current
        points = _encoded(state, found)
        losses = np.maximum(_losses(joint, _encoded(state, [current]), points), _losses(joint, first, points))
        losses[state.log_feasible_at(points) < least] = math.inf
        if losses.min() > UNDONE:
            return current
        current = found[int(np.argmin(losses))]


def one_by_one(state: Snapshot, space: Space, params: Any, baseline: Any) -> tuple[list[str], Floats]:
    """The parameters that differ from the baseline, and the (n, d) points with each of them set back alone.

    In a table such a point may be no row.
    """
    names, points = differing(params, baseline), []
    own, others = _encoded(state, [params, baseline]) if names else ((), ())
    for name in names:
        found = reverted(space, params, baseline, name)
        is_its = np.array(state.space.groups) == space.names.index(name)
        points.append(np.where(is_its, others, own) if found is None else _encoded(state, [found])[0])
    return names, np.array(points)


def _whole(state: Snapshot, params: Any) -> Any:
    return with_context(params, state.space)


def _encoded(state: Snapshot, params: list[Any]) -> Floats:
    return state.history.space.encode([_whole(state, each) for each in params])


def _losses(joint: Callable[[Floats], tuple[Floats, Floats]], first: Floats, points: Floats) -> Floats:
    """Loss of f from the first point to each of (n, d) points, in standard deviations of the difference, (n,)."""
    mean, covariance = joint(np.vstack([first, points]))
    variance = covariance.diagonal()
    spread = np.sqrt(np.maximum(variance[0] + variance[1:] - 2 * covariance[0, 1:], ROUNDING * variance[0]))
    return np.asarray((mean[0] - mean[1:]) / np.maximum(spread, 1e-300))
