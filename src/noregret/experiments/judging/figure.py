"""The contract of a figure: what a paper claims, the trials that test it, and how their numbers decide.

A figure is one `Figure` in one short file of `noregret.experiments.figures`. Its panels say which trials there are; its
claims turn the finished trials into verdicts; its drawing turns them into pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from noregret.experiments.running.measurement import Measurement
from noregret.experiments.running.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

Results = Mapping[str, Mapping[str, Sequence[Any]]]
"""The finished trials: by the panel's key, then by the label of the curve, in the order of the trials."""

Decision = Literal["as the paper says", "against the paper", "undecided"]
"""The side that the numbers are on; undecided if their interval contains the threshold."""

Outcome = Decision | Literal["not comparable"]

OUTCOMES: Sequence[Outcome] = ("as the paper says", "against the paper", "undecided", "not comparable")


class Scale(NamedTuple):
    """How large an experiment is."""

    rounds: int
    trials: int


class Setting(NamedTuple):
    """What a figure is run with."""

    scale: Scale
    seed: int = 0
    data: Path | None = None
    """The folder of the measured data; None for those of the package."""


class Task(NamedTuple):
    """One trial that has to be run."""

    label: str
    """The name of the curve that the trial belongs to."""
    path: Path
    """The file of the trial's result, relative to the folder of all trials and without its ending."""
    work: Callable[[], Trace | Measurement]
    """A function that runs the trial; any process may call it."""
    kind: type[Trace] | type[Measurement] = Trace
    """What ``work`` returns."""


class Panel(Protocol):
    """One set of axes, and the trials behind it."""

    @property
    def key(self) -> str:
        """A short name, unique among all panels; panels of two figures that share trials have the same."""
        ...

    @property
    def title(self) -> str:
        """The title above the axes."""
        ...

    @property
    def files(self) -> Sequence[str]:
        """The names of the data files that must be there."""
        ...

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """The trials of the panel, all curves of one trial next to each other, so that they finish together."""
        ...


class Finding(NamedTuple):
    """What the numbers say about a claim."""

    outcome: Decision
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the test that decides it."""

    text: str
    judge: Callable[[Results], Finding]
    unlike: str = ""
    """The data or settings that are not to be had, without which nothing can be said; empty if all are there."""
    because: str = ""
    """The reason why it is not as the paper says at the full scale, if the reason is known."""


class Table(NamedTuple):
    """A table of numbers shown beside a picture."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Verdict(NamedTuple):
    """A claim together with what our numbers say about it."""

    claim: str
    outcome: Outcome
    numbers: str
    reason: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure or table of a paper."""

    name: str
    """The name on the command line, of the form ``paper/figure``."""
    title: str
    says: str
    """What the paper shows there, in a sentence or two."""
    how: str
    """How it is run here, and where that departs from the paper."""
    panels: Sequence[Panel]
    claims: Sequence[Claim]
    draw: Callable[[Figure, Results], Mapping[str, Picture]]
    """Pictures by the key of their panel, or by another short name."""
    scale: Scale
    """The full scale: the rounds that the paper used, and enough trials to decide; ours where it gives none."""
    quick: Scale
    minutes: float
    """The approximate time in minutes that the figure takes on two cores."""
    tabulate: Callable[[Figure, Results], Sequence[Table]] = lambda figure, results: ()
    """Tables of the numbers."""

    @property
    def files(self) -> list[str]:
        """The names of the data files that must be there."""
        return sorted({file for panel in self.panels for file in panel.files})

    def judge(self, results: Results, scale: Scale) -> list[Verdict]:
        """Decide every claim at this scale; reasons are about the full scale, and not given at a smaller one."""
        small = scale.rounds < self.scale.rounds or scale.trials < self.scale.trials
        return [_verdict(claim, claim.judge(results), small) for claim in self.claims]


def _verdict(claim: Claim, finding: Finding, small: bool) -> Verdict:
    if claim.unlike:
        return Verdict(claim.text, "not comparable", finding.numbers, f"{finding.outcome} here, but {claim.unlike}")
    reason = "" if small or finding.outcome == "as the paper says" else " ".join(claim.because.split())
    return Verdict(claim.text, finding.outcome, finding.numbers, reason)


def seeds(setting: Setting, count: int) -> list[np.random.SeedSequence]:
    """One seed per trial; a larger number of trials keeps the seeds of the first ones."""
    return np.random.SeedSequence(setting.seed).spawn(count)
