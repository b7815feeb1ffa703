"""``noregret calibrate``: a command against itself, for the noise of this machine and the price of an answer on it.

The pairs are those of ``versus``. The number of pairs that a change would take is that of its bets, simulated: the
chance of a win is that of a difference of the pairs, with either sign and smoothed by a normal distribution, and the
change on top of it.
"""

from __future__ import annotations

import json
import math
from argparse import Namespace
from typing import Any, NamedTuple

import numpy as np

from noregret.comparison.comparison import MOST_PAIRS
from noregret.comparison.eprocess import expm1
from noregret.comparison.sequences import losses_allowed
from noregret.formatting import finite, number
from noregret.gp import functions as sp
from noregret.gp.posterior import Floats
from noregret.studies import words
from noregret.studies.study.study import StudyError
from noregret.studies.versus import Race, command_words, compared, prepared
from noregret.terminal import say

CHANGES = 0.01, 0.02, 0.05
"""Changes whose price is shown."""
PATHS = 200
"""Simulated comparisons for each change."""
DRIFT_LEVEL = 0.01
"""Probability of saying that a machine drifts that does not: Kendall's rank test of the runs in order."""


class Price(NamedTuple):
    """Pairs that a change takes to be shown: the median, and what is enough in nine of ten cases; None for too many."""

    change: float
    pairs: int | None
    enough: int | None


class Calibration(NamedTuple):
    """The noise, the drift and the price of a change, from runs of one command against itself."""

    race: Race
    noise: float
    """Standard deviation of one run within its pair, relative where the results are positive; from the median."""
    typical: float
    """Median of all runs."""
    drift: float | None
    """Change from the first third of the runs to the last, None if no trend is shown."""
    prices: list[Price]

    def as_json(self) -> dict[str, Any]:
        """All numbers."""
        comparison, change = self.race.comparison, self.race.comparison.change(1)
        return {
            "noise": self.noise,
            "relative": comparison.is_relative,
            "typical": self.typical,
            "drift": self.drift,
            "pairs": comparison.pairs,
            "seconds_per_pair": self.race.seconds / comparison.pairs,
            "prices": [price._asdict() for price in self.prices],
            "against_itself": {name: finite(value) for name, value in change._asdict().items()},
            "warnings": comparison.warnings,
            "summary": str(self),
        }

    def __str__(self) -> str:
        race, comparison = self.race, self.race.comparison
        percent = comparison.is_relative

        def size(value: float) -> str:
            return f"{number(100 * abs(value), 2)}%" if percent else f"{number(abs(value), 2)}{race.unit}"

        lines = [
            f"A run takes {race.shown(self.typical)}"
            if race.unit == " s"
            else f"A run gives {race.shown(self.typical)}",
            f"Noise of one run beside the other of its pair: {size(self.noise)} (standard deviation)",
            "Drift: none is shown"
            if self.drift is None
            else f"Drift: {size(self.drift)} {'up' if self.drift > 0 else 'down'} from the first third of the runs to "
            "the last; pairs cancel it, runs of A before runs of B would not",
        ]
        change = comparison.change(1)
        if change.lower > 0 or change.upper < 0:
            lines.append(f"It differs from itself: {race.difference(change)}. Find out why before you compare anything")
        else:
            lines.append(f"Against itself: {race.difference(change)}, no difference is shown")
        each = race.seconds / comparison.pairs
        lines.append(f"Pairs of runs until 'versus' shows a change, from {comparison.pairs} pairs:")
        for price in self.prices:
            needed = f"more than {MOST_PAIRS:,}"
            if price.pairs is not None:
                enough = f", in nine of ten cases at most {price.enough:,}" if price.enough else ""
                needed = f"{price.pairs:,} (about {words.duration(price.pairs * each)}){enough}"
            name = (
                f"{100 * price.change:g}%" if percent else f"{number(price.change * abs(self.typical), 2)}{race.unit}"
            )
            lines.append(f"  {name:>5}  {needed}")
        return "\n".join([*lines, *comparison.warnings])


def calibrate(args: Namespace) -> int:
    """Run a command against itself, and print the noise, the drift and the price of a change."""
    command_words("COMMAND", args.words, args.shell)
    args.commands = [args.words, args.words]
    race = prepared(args)
    race.is_fixed = race.is_itself = True
    compared(race, as_json=args.json)
    if race.comparison.pairs < race.fewest:
        raise StudyError(
            f"only {race.comparison.pairs} pairs of runs have ended, and it takes {race.fewest}: raise --budget"
        )
    calibration = calibrated(race)
    say(json.dumps(calibration.as_json()) if args.json else str(calibration))
    return 130 if race.stopped == "interrupted" else 0


def calibrated(race: Race) -> Calibration:
    """The noise and the price of a change, from runs of one command against itself."""
    evidence = race.comparison.evidence
    differences = evidence.differences()
    differences = differences[np.isfinite(differences)]
    if not len(differences):
        raise StudyError("no pair of runs has succeeded: there is nothing to learn about the noise")
    # the median size of a normal difference is 0.6745 standard deviations, which are sqrt(2) times those of one run
    noise = float(np.median(np.abs(differences))) / 0.6745 / math.sqrt(2)
    runs = evidence.values.mean(axis=1)
    runs = runs[np.isfinite(runs)]
    typical = float(np.median(evidence.values[np.isfinite(evidence.values)]))
    scale = 1.0 if evidence.is_relative else abs(typical)
    steps = [math.log1p(change) if evidence.is_relative else change * scale for change in CHANGES]
    prices = [
        Price(change, *pairs_needed(differences, step, race.comparison.confidence))
        for change, step in zip(CHANGES, steps, strict=True)
    ]
    return Calibration(
        race, noise, typical, _drift(np.log(runs) if evidence.is_relative else runs, evidence.is_relative), prices
    )


def pairs_needed(differences: Floats, change: float, confidence: float = 0.95) -> tuple[int | None, int | None]:
    """Median and 0.9-quantile of the number of pairs until a change is shown; None where it is above `MOST_PAIRS`.

    >>> noise = np.random.default_rng(0).normal(0, 0.02, size=100)
    >>> pairs_needed(noise, 0.02), pairs_needed(noise, 1e-5)
    ((16, 34), (None, None))
    """
    part = 1.06 * len(differences) ** -0.2  # the width of the smoothing, in standard deviations, which it keeps
    width = max(part * float(np.median(np.abs(differences))) / 0.6745, 1e-12)
    centres = np.concatenate([differences, -differences]) / math.hypot(1.0, part)
    chance = float(sp.ndtr((change + centres) / (width / math.hypot(1.0, part))).mean())
    counts = np.unique(np.geomspace(1, MOST_PAIRS, 300).astype(int))
    wins = (
        np.random.default_rng(0).binomial(np.diff(counts, prepend=0), chance, size=(PATHS, len(counts))).cumsum(axis=1)
    )
    most_losses = np.array([losses_allowed(int(count), confidence) for count in counts])
    is_shown = counts - wins <= most_losses
    first = np.where(is_shown.any(axis=1), counts[is_shown.argmax(axis=1)], MOST_PAIRS + 1)
    middle, enough = (int(np.quantile(first, share, method="higher")) for share in (0.5, 0.9))
    return (middle if middle <= MOST_PAIRS else None, enough if enough <= MOST_PAIRS else None)


def _drift(runs: Floats, is_relative: bool) -> float | None:
    """Change of the median from the first third to the last, None unless Kendall's test shows a trend."""
    count = len(runs)
    signs = np.sign(runs[None, :] - runs[:, None])[np.triu_indices(count, 1)]
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    if count < 6 or 2 * float(sp.ndtr(-abs(signs.sum()) / spread)) > DRIFT_LEVEL:
        return None
    third = count // 3
    change = float(np.median(runs[-third:]) - np.median(runs[:third]))
    return expm1(change) if is_relative else change
