"""Figures: a paper's claims, the trials that test them, and the pictures of the results.

A `Figure` has panels, claims and a drawing. Panels list the trials: `ComparisonPanel` runs algorithms on a problem, and
`MeasurementPanel` measures something else. Claims turn the finished trials into verdicts. `regrets` and `regret_tables`
are the drawing and the tables that most figures use.

The claim "A is below B" is about the ratio of the mean regret of A to that of B. It is as the paper says if the whole
95% interval of the ratio is below the threshold, against the paper if the whole interval is above it, and undecided if
the interval contains it. "A is no worse than B" has a threshold a little above 1. The trials are paired: A and B have
the same problem and the same noise. The interval is Fieller's: the ratios r for which a paired t test does not reject
that A - r B has mean 0.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits

from noregret.bandits.decision.loops import Algorithm
from noregret.bandits.lab import plot
from noregret.bandits.lab.trace import (
    Interval,
    Measurement,
    final_regret,
    fraction_interval,
    mean_interval,
    summarise,
)
from noregret.bandits.lab.trials import Task, build, played
from noregret.bandits.problems import Changing, Problem
from noregret.extra import version
from noregret.gp.posterior import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture


Pictures = Mapping[str, "Picture"]
"""Pictures by the key of their panel, or by another short name."""

Results = Mapping[str, Mapping[str, Sequence[Any]]]
"""Finished trials by the key of the panel, then by the label of the curve, in the order of the trials."""

Decision = Literal["as the paper says", "against the paper", "undecided"]
"""Outcome of a test; undecided if the confidence interval contains the threshold."""

Outcome = Decision | Literal["not comparable"]

OUTCOMES: Sequence[Outcome] = ("as the paper says", "against the paper", "undecided", "not comparable")


class Scale(NamedTuple):
    """Size of an experiment."""

    rounds: int
    trials: int


class Setting(NamedTuple):
    """Settings of one reproduction of a figure."""

    scale: Scale
    seed: int = 0
    data: Path | None = None
    """Folder of the measured data; None for the data of the package."""

    def seeds(self, count: int) -> list[np.random.SeedSequence]:
        """One seed per trial; with more trials the first seeds stay the same."""
        return np.random.SeedSequence(self.seed).spawn(count)


class Finding(NamedTuple):
    """Outcome of the test of a claim, and its numbers as text."""

    outcome: Decision
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and the test that decides it."""

    text: str
    judge: Callable[[Results], Finding]
    unlike: str = ""
    """Missing data or settings without which the claim cannot be tested; empty if nothing is missing."""
    because: str = ""
    """Known reason for a different outcome at the full scale."""


class Table(NamedTuple):
    """A table of numbers shown beside a picture."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Verdict(NamedTuple):
    """A claim with its outcome, the numbers behind it and, if known, the reason."""

    claim: str
    outcome: Outcome
    numbers: str
    reason: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure or table of a paper."""

    name: str
    """Name on the command line, of the form ``paper/figure``."""
    title: str
    says: str
    """Statement of the paper, in a sentence or two."""
    how: str
    """Description of the experiment here, with its departures from the paper."""
    panels: Sequence[Panel]
    claims: Sequence[Claim]
    scale: Scale
    """Full scale: the rounds of the paper, if it gives them, and enough trials to decide."""
    quick: Scale
    minutes: float
    """Approximate time on two cores, in minutes."""
    draw: Callable[[Figure, Results], Pictures] = lambda figure, results: regrets(figure, results)
    """Regret on logarithmic axes by default."""
    tabulate: Callable[[Figure, Results], Sequence[Table]] = lambda figure, results: regret_tables(figure, results)
    """Tables of the numbers; regret and time of every comparison by default."""

    @property
    def files(self) -> list[str]:
        """Names of the data files that are needed."""
        return sorted({file for panel in self.panels for file in panel.files})

    def judge(self, results: Results, scale: Scale) -> list[Verdict]:
        """Decide every claim at this scale. Reasons hold for the full scale and are left out at a smaller one."""
        small = scale.rounds < self.scale.rounds or scale.trials < self.scale.trials
        verdicts = []
        for claim in self.claims:
            outcome, numbers = claim.judge(results)
            if claim.unlike:
                verdict = Verdict(claim.text, "not comparable", numbers, f"{outcome} here, but {claim.unlike}")
            else:
                reason = "" if small or outcome == "as the paper says" else " ".join(claim.because.split())
                verdict = Verdict(claim.text, outcome, numbers, reason)
            verdicts.append(verdict)
        return verdicts


class Entrant(NamedTuple):
    """An algorithm of a comparison: its builder, and settings that are not facts of the problem."""

    builder: Callable[..., Algorithm]
    settings: Mapping[str, Any]
    problem: Callable[..., Problem | Changing] | None = None
    """Form of the problem with the same arms and rewards but another kernel, for an algorithm that needs it."""


@dataclass(frozen=True)
class ComparisonPanel:
    """Algorithms on one problem; in every trial all of them have the same instance and the same noise."""

    key: str
    """Short name, unique among all panels; panels of two figures that share trials have the same key."""
    title: str
    problem: Callable[..., Problem | Changing]
    """Function that makes the problem of a trial from ``rng``. If there are ``files``, it takes their folder first; if
    there are ``rows``, it also takes ``row``, the number of the trial."""
    entrants: Mapping[str, Entrant]
    files: Sequence[str] = ()
    rows: int | None = None
    """Number of instances, which is the largest number of trials."""
    watch: Sequence[str] = ()
    """Further quantities that every trace records, as in `noregret.run`."""

    def tasks(self, setting: Setting) -> list[Task]:
        """Trials to run, by number and then by algorithm, so that the curves of one trial finish together."""
        count, rounds, tasks = min(setting.scale.trials, self.rows or setting.scale.trials), setting.scale.rounds, []
        for i, seed in enumerate(setting.seeds(count)):
            for label, entrant in self.entrants.items():
                problem = entrant.problem or self.problem
                problem = partial(problem, setting.data) if self.files else problem
                problem = partial(problem, row=i) if self.rows else problem
                algorithm = partial(built, entrant, horizon=rounds)
                settings = {key: repr(value) for key, value in entrant.settings.items()}
                data = [str(setting.data)] if self.files and setting.data else []
                path = kept_at(self.key, label, i, [rounds, setting.seed, settings, *data])
                tasks.append(Task(label, path, partial(played, problem, algorithm, rounds, seed, self.watch)))
        return tasks


def built(entrant: Entrant, problem: Problem | Changing, horizon: int) -> Algorithm:
    """Build an algorithm as the paper ran it: the values that the paper passed override the facts of the problem."""
    passed = problem.paper if isinstance(problem, Problem) else {}
    return build(entrant.builder, problem, horizon, {**passed, **entrant.settings})


Measure = Callable[..., Mapping[str, Floats]]


@dataclass(frozen=True)
class MeasurementPanel:
    """Measurements of every trial that are not runs of an algorithm."""

    key: str
    title: str
    measures: Mapping[str, Measure]
    """Functions by label, from ``rounds`` and ``rng``, a Generator, to named arrays. All labels of a trial have the
    same seed."""
    files: Sequence[str] = field(default=(), init=False)

    def tasks(self, setting: Setting) -> list[Task]:
        """Tasks ordered by trial, and within a trial by measurement."""
        return [
            Task(
                label,
                kept_at(self.key, label, i, [setting.scale.rounds, setting.seed]),
                partial(measured, measure, setting.scale.rounds, seed),
                Measurement,
            )
            for i, seed in enumerate(setting.seeds(setting.scale.trials))
            for label, measure in self.measures.items()
        ]


Panel = ComparisonPanel | MeasurementPanel
"""One set of axes and its trials."""


def measured(measure: Measure, rounds: int, seed: np.random.SeedSequence) -> Measurement:
    """Make one measurement on one BLAS thread."""
    start = perf_counter()
    with threadpool_limits(1, user_api="blas"):
        arrays = measure(rounds=rounds, rng=np.random.default_rng(seed))
    about = getattr(measure, "func", measure)
    record = {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
    return Measurement(dict(arrays), perf_counter() - start, (about.__doc__ or "").strip(), record)


def kept_at(key: str, label: str, trial: int, depends: Sequence[Any]) -> Path:
    """Path of a trial, with a hash of everything that the trial depends on."""
    record = json.dumps([key, label, *depends, version()], sort_keys=True)
    return Path(key, f"{label}_{hashlib.sha256(record.encode()).hexdigest()[:8]}_{trial:04d}")


WIDTH, HEIGHT = 5.2, 4.4
"""Size of a picture with its legend, in inches; narrow enough for a phone."""


def axes(title: str) -> Axes:
    """Axes of a new picture for the page."""
    ax = plot.new_axes(WIDTH, HEIGHT)
    ax.set_title(title, loc="left", fontsize=11)
    return ax


def picture(ax: Axes) -> Picture:
    """Picture that holds these axes."""
    whole: Any = ax.figure
    held: Picture = whole
    return held


def finished(ax: Axes, note: str | None = None) -> Picture:
    """Picture with a frame, and with a legend below the axes that has this title."""
    plot.finish(ax, note, legend="below")
    return picture(ax)


def regrets(figure: Figure, results: Results, *, average: bool = False) -> Pictures:
    """Regret of every algorithm on logarithmic axes, or on linear ones divided by rounds, one picture per panel."""
    return {
        panel.key: picture(
            plot.regret(results[panel.key], ax=axes(panel.title), log=not average, average=average, legend="below")
        )
        for panel in figure.panels
    }


def regret_tables(figure: Figure, results: Results) -> list[Table]:
    """Final regret and time per round of every algorithm, one table per panel that compares algorithms."""
    return [
        Table(
            panel.title,
            ("algorithm", "regret", "sd", "µs/round"),
            [
                (row.algorithm, f"{row.regret:.4g}", f"{row.sd:.3g}", f"{row.microseconds:,.0f}")
                for row in summarise(results[panel.key])
            ],
        )
        for panel in figure.panels
        if isinstance(panel, ComparisonPanel)
    ]


# Tests of claims

Number = Callable[[Any], float]
"""Function from a finished trial to the number that is compared."""


def decided(interval: Interval, low: float, high: float) -> Decision:
    """Decide the claim that a number is between ``low`` and ``high`` from its confidence interval.

    Examples
    --------
    >>> [decided(Interval(value, value - 0.2, value + 0.2), 0.0, 1.0) for value in (0.5, 2.0, 1.1)]
    ['as the paper says', 'against the paper', 'undecided']
    """
    if low <= interval.low and interval.high < high:
        return "as the paper says"
    return "against the paper" if interval.high < low or interval.low > high else "undecided"


def ratio_of_means(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Interval:
    """Ratio of the means of paired nonnegative numbers, with Fieller's interval.

    The interval extends to infinity if the second mean may be 0. It is [0, infinity] if both means may be 0.

    Examples
    --------
    >>> str(ratio_of_means([1.0, 2.0, 3.0, 4.0], [2.1, 3.9, 6.2, 7.8]))
    '0.5 [0.423, 0.53]'
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    value = float(x.mean() / y.mean()) if y.mean() else math.inf
    if len(x) < 2:
        return Interval(value, 0.0, math.inf)
    k = float(stdtrit(len(x) - 1, (1 + confidence) / 2)) ** 2 / len(x)
    (vx, cxy), (_, vy) = np.cov(x, y)
    # r with (mx - r my)^2 <= k var(x - r y): a quadratic in r
    a, b, c = y.mean() ** 2 - k * vy, x.mean() * y.mean() - k * cxy, x.mean() ** 2 - k * vx
    if a <= 0 and c <= 0:
        return Interval(value, 0.0, math.inf)
    root = math.sqrt(max(b * b - a * c, 0.0))
    if a <= 0:  # (b - root) / a, written so that a may be 0
        return Interval(value, float(c / (b + root)) if b + root > 0 else math.inf, math.inf)
    return Interval(value, max(float((b - root) / a), 0.0), float((b + root) / a))


def seconds(trial: Any) -> float:
    """Seconds that a trial spent in the algorithm."""
    return float(trial.seconds)


TIME: Any = {"of": seconds, "what": "time"}
"""Arguments of `Below` and `less` that compare times."""


def less(text: str, panel: Panel, first: str, *others: str, because: str = "", unlike: str = "", **test: Any) -> Claim:
    """Claim of this text that one algorithm has less regret than each of the others; ``test`` as in `Below`."""
    return Claim(text, Below(panel.key, first, others, **test), unlike, because)


@dataclass(frozen=True)
class Below:
    """Claim that one algorithm has less of something, regret by default, than each of the others.

    It is as the paper says if the interval of every ratio is below ``bound`` and above ``above``, and against the paper
    if a whole interval is outside.
    """

    panel: str
    first: str
    others: Sequence[str]
    bound: float = 1.0
    above: float = 0.0
    of: Number = final_regret
    what: str = "regret"

    def __call__(self, results: Results) -> Finding:
        """Decide from the ratios of the first algorithm to each of the others; one refuted ratio refutes the claim."""
        numbers = {
            label: [self.of(trial) for trial in results[self.panel][label]] for label in (self.first, *self.others)
        }
        ratios = {other: ratio_of_means(numbers[self.first], numbers[other]) for other in self.others}
        outcomes = {decided(ratio, self.above, self.bound) for ratio in ratios.values()}
        order: tuple[Decision, ...] = ("against the paper", "undecided", "as the paper says")
        text = "; ".join(f"{self.first} / {other} = {ratio}" for other, ratio in ratios.items())
        needed = f"below {self.bound:.3g}" if not self.above else f"{self.above:.3g} to {self.bound:.3g}"
        return Finding(next(each for each in order if each in outcomes), f"{self.what}: {text}; {needed} needed")


@dataclass(frozen=True)
class MeanBelow:
    """Claim that the mean of a number over the trials is below ``bound``; the interval is Student's."""

    panel: str
    label: str
    of: Number
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """Decide from the mean and its interval."""
        interval = mean_interval([self.of(trial) for trial in results[self.panel][self.label]])
        outcome = decided(interval, -math.inf, self.bound)
        return Finding(outcome, f"{self.what} = {interval}; below {self.bound:.3g} needed")


@dataclass(frozen=True)
class Fraction:
    """Claim that a condition holds in more than a fraction ``bound`` of the trials of the curve ``label``.

    The interval is that of Clopper and Pearson.
    """

    panel: str
    label: str
    true: Callable[[Any], bool]
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """Decide from the fraction of the trials and its interval."""
        answers = [bool(self.true(trial)) for trial in results[self.panel][self.label]]
        n, yes = len(answers), sum(answers)
        interval = fraction_interval(yes, n)
        numbers = f"{self.what}: {yes} of {n} trials = {interval}; above {self.bound:.3g} needed"
        return Finding(decided(interval, self.bound, math.inf), numbers)
