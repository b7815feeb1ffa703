"""Findings of a study with several objectives: its front, the trade-offs in it, and a setting to pick from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

from noregret.formatting import number
from noregret.optimizer import (
    FEWEST,
    Gains,
    Hypervolume,
    JointEstimate,
    Measurement,
    Optimizer,
    Share,
    is_same_setting,
)
from noregret.tune.learning.findings import Findings, finite, percent_json, unit_of
from noregret.tune.store.records import Record
from noregret.tune.study.study import Study

MOST_TRADES = 6
"""Largest number of trade-offs between neighbours in words."""
SMALL = 0.0005
"""Difference between two values, as a share of them, that counts as none in words."""


@dataclass(frozen=True)
class Wish:
    """Limits on objectives, or weights of them, that pick a setting from a front; nothing is picked without any."""

    limits: Mapping[str, tuple[str, float]]
    weights: Mapping[str, float]

    def __bool__(self) -> bool:
        return bool(self.limits or self.weights)

    def __str__(self) -> str:
        said = [f"{name} {side} {number(bound)}" for name, (side, bound) in self.limits.items()]
        weights = [f"{name} {number(weight)}" for name, weight in self.weights.items()]
        return " and ".join([*said, *([f"weights {', '.join(weights)}"] if weights else [])])


NO_WISH = Wish({}, {})


@dataclass(frozen=True)
class Trade:
    """Change from one setting of the front to the next, in words, and whether noise alone may explain it."""

    start: int
    """Place of the setting in the front, from 0."""
    end: int
    given_up: tuple[str, ...]
    saved: tuple[str, ...]
    is_sure: bool
    """True if the intervals of all objectives that are named do not overlap."""

    def __str__(self) -> str:
        if not self.given_up:
            return f"{' and '.join(self.saved) or 'nothing changes'}, and nothing is given up"
        return f"giving up {' and '.join(self.given_up)} {' and '.join(self.saved) or 'brings nothing'}"


class FrontFindings(Findings):
    """Conclusions about a study with several objectives, each computed at its first use.

    There is no best setting, and none of its intervals, importance and effects: `front` has the settings to choose
    from, and `picked` the one that a wish names.

    Parameters
    ----------
    study, records, optimizer, stopped
        As for `Findings`.
    wish : Wish
        Picks a setting from the front.
    """

    def __init__(
        self,
        study: Study,
        records: Sequence[Record],
        optimizer: Optimizer,
        stopped: str | None = None,
        wish: Wish = NO_WISH,
    ) -> None:
        super().__init__(study, records, optimizer, stopped)
        self.wish, self.has_intervals = wish, False
        counts = (sum(its.values.get(name) is not None for its in self.done) for name in study.objectives)
        self._is_known = min(counts) >= FEWEST

    @cached_property
    def best(self) -> None:
        """None: no setting is the best in all objectives."""
        return None

    @cached_property
    def front(self) -> list[JointEstimate]:
        """The settings that are likely best in some trade-off, by the first objective; empty with too few results."""
        if not self._is_known:
            return []
        return self.optimizer.front(self.context)

    @cached_property
    def picked(self) -> JointEstimate | None:
        """The setting that the wish names, None without one."""
        if not self.wish or not self._is_known:
            return None
        limits, weights = self.wish.limits or None, self.wish.weights or None
        return self.optimizer.best(self.context, limits=limits, weights=weights)

    @cached_property
    def hypervolume(self) -> Hypervolume | None:
        """Hypervolume of the front with its interval, None with too few results."""
        return self.optimizer.hypervolume(context=self.context) if self._is_known else None

    @cached_property
    def gains(self) -> Gains | None:
        """Gain over the baseline in each objective: of the setting that was picked, else of one of the front.

        That one is better by most in the objective where it is by least. None before the baseline was measured.
        """
        measured = any(is_same_setting(record.params, self.study.baseline) for record in self.done)
        if not measured or not self._is_known:
            return None
        limits, weights = self.wish.limits or None, self.wish.weights or None
        return self.optimizer.gain(self.context, limits=limits, weights=weights)

    def units(self) -> dict[str, str]:
        """The unit of each objective with a space before it; empty where it is not known."""
        return {name: unit_of(its.result) for name, its in self.study.objectives.items()}

    @cached_property
    def trades(self) -> list[Trade]:
        """Changes between neighbours of a few settings that are spread over the front, and between its ends."""
        places = spread_over(len(self.front), MOST_TRADES + 1)
        ends = [(places[0], places[-1])] if len(places) > 2 else []
        return [self._trade(start, end) for start, end in [*pairwise(places), *ends]]

    def _trade(self, start: int, end: int) -> Trade:
        one, other = self.front[start], self.front[end]
        given_up, saved, is_sure = [], [], True
        for name, goal in self.study.goals.items():
            before, after = one.values[name], other.values[name]
            change = (after - before) * (1 if goal == "minimize" else -1)
            if abs(change) <= SMALL * max(abs(before), abs(after)):
                continue
            is_sure &= one.upper[name] < other.lower[name] or other.upper[name] < one.lower[name]
            is_relative = one.lower[name] > 0 or one.upper[name] < 0
            size = self._size(name, before, after, is_relative and before * after > 0)
            if change > 0:
                given_up.append(f"{size} {name}")
            else:
                saved.append(f"{'saves' if goal == 'minimize' else 'gains'} {size} {name}")
        return Trade(start, end, tuple(given_up), tuple(saved), is_sure)

    def _size(self, name: str, before: float, after: float, is_relative: bool) -> str:
        """Size of a change in percent of the value before it; as it is if that may be 0, or of the other sign."""
        if is_relative:
            return f"{number(100 * abs(after - before) / abs(before), 2)}%"
        return f"{number(abs(after - before), 2)}{self.units()[name]}"

    @cached_property
    def shares(self) -> dict[str, tuple[dict[str, Share], dict[str, Share]]]:
        """Importance of each parameter by objective, over the whole space and among the better half.

        Empty for a table, with contexts, and with too few results.
        """
        if not self._is_known or self.study.context or not isinstance(self.study.space, Mapping):
            return {}
        whole, better = self.optimizer.importance(), self.optimizer.importance(better_half=True)
        return {name: (whole[name], better[name]) for name in self.study.objectives}

    def ending(self) -> dict[str, Any]:
        """The front, its hypervolume, the setting that was picked, and why the study has ended, as JSON."""
        volume = self.hypervolume
        return {
            "front": [member_json(member) | {"command": self.command_of(member)} for member in self.front],
            "hypervolume": volume and {key: finite(getattr(volume, key)) for key in ("estimate", "lower", "upper")},
            "best": self.picked and member_json(self.picked),
            "command": self.picked and self.command_of(self.picked),
            "gain": self.gains and {name: percent_json(gain) for name, gain in self.gains.items()},
            "stopped": self.stopped,
        }

    def command_of(self, member: JointEstimate) -> str | None:
        """The command of a setting, ready for a shell; None if the study has none."""
        return self.study.shell_line(member.params) if self.study.command else None

    def _trust(self, its: Measurement) -> float:
        """Least weight of an observation in an objective."""
        by_objective = cast(Mapping[str, float], its.trust)
        return min(by_objective.values())

    @cached_property
    def kinds(self) -> dict[int, str]:
        """Kind of each observation, by trial: "odd", "broken", "yours", "chosen" (of the front), or "dot"."""
        key, found = self.study.settings.key, dict[int, str]()
        odd = {record.number for record in self.outliers}
        front = {key(member.params) for member in self.front}
        yours = None if self.study.baseline is None else key(self.study.baseline)
        for record in self.done:
            mine = key(record.params)
            kind = "yours" if mine == yours else "chosen" if mine in front else "dot"
            kind = "broken" if record.number in self.infeasible else kind
            found[record.number] = "odd" if record.number in odd else kind
        return found


def spread_over(count: int, most: int) -> list[int]:
    """At most ``most`` places of ``count``, evenly spread, with the first and the last.

    >>> spread_over(3, 5), spread_over(20, 5)
    ([0, 1, 2], [0, 5, 10, 14, 19])
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def findings_of(
    study: Study, records: Sequence[Record], optimizer: Optimizer, stopped: str | None = None, wish: Wish = NO_WISH
) -> Findings:
    """Findings of a study with one objective or several."""
    if study.objectives:
        return FrontFindings(study, records, optimizer, stopped, wish)
    return Findings(study, records, optimizer, stopped)


def member_json(member: JointEstimate) -> dict[str, Any]:
    """A setting of a front; numbers that are not finite are None."""
    numbers = {
        key: {name: finite(value) for name, value in getattr(member, key).items()}
        for key in ("values", "lower", "upper")
    }
    more = {"level": member.level, "feasible": member.feasible, "is_likeliest": member.is_likeliest}
    return {"params": member.params, **numbers, "probability": finite(member.probability), **more}
