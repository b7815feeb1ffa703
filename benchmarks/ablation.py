"""Effects of the mechanisms of `Optimizer`, each removed or made smaller alone.

    python -m benchmarks.ablation --out .benchmarks/ablation

plays problems of the development suite with one mechanism switched off, by a setting of `OptimizerConfig` or by a
patch, and unchanged on the same problem, noise and seed. It prints a Markdown table per suite: the regret without the
mechanism less the unchanged one, recommended and on the way, with standard errors over problems. Regrets are in units
of a random point's. ``--tables`` prints the tables of the finished runs and plays nothing.

Every suite lists its problems under a first and a second noise or seed. All ablations are played with the first before
any is played with the second. Finished runs are kept in a JSON file by what the source files contain, so an interrupted
command continues where it stopped. CPU time is that of the search, as a ratio to an unchanged run played just before.

Verdicts: a mechanism stays if its removal makes one of the four measures worse by more than two standard errors, or two
of them by more than one. It is open if one measure is worse by between one and two. Otherwise it goes. A mechanism did
not act if every run asked the same questions without it. Fewer than four problems give no verdict.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks import markdown
from benchmarks.development.noises import OWN
from benchmarks.development.playing import Reading, Run, play
from benchmarks.development.trees import HERE, Tree
from noregret.belief.posterior import Floats, Posterior, Rng
from noregret.decision.rules import ExpectedImprovement, log_expected_improvement
from noregret.optimizer.calibration import OptimizerConfig
from noregret.optimizer.choosing.candidates import Candidates
from noregret.optimizer.choosing.exploring import TURNS, Exploring
from noregret.optimizer.choosing.rules import SaturatedImprovement
from noregret.optimizer.fitting.evidence import Evidence
from noregret.optimizer.fitting.matern import FitMatern
from noregret.optimizer.fitting.scaling import Logarithm, Logarithms, RobustScale, Scale
from noregret.optimizer.fitting.weights import Equal, StudentT

RANDOM = {"gpu-a100": 3.1}
"""Mean regrets of random points, for problems whose regrets are in other units."""
ENOUGH = 4
"""Problems that a verdict needs at least."""
AT_ONCE = 12
"""Ablations that share one unchanged run of each problem for their CPU times."""


class Suite(NamedTuple):
    """Budgets, and the runs with the first and with the second noise or seed."""

    budgets: list[int]
    first: list[Run]
    second: list[Run]

    @property
    def runs(self) -> list[Run]:
        return [*self.first, *self.second]


def _suite(budgets: list[int], **noises: str) -> Suite:
    """Suite of problems with two noises each; a problem with its own noise gets two seeds."""
    halves: tuple[list[Run], list[Run]] = [], []
    for problem, pair in noises.items():
        name = problem.replace("_", "-")
        for half, noise in enumerate(pair.split()):
            halves[half].append(Run(name, noise, half if noise == OWN else 0))
    return Suite(budgets, *halves)


GAUSSIAN, HEAVY = "gaussian-0.15", "student-1.5"
SUITES = {
    "all": _suite(
        [50, 200],
        random1=f"{HEAVY} {GAUSSIAN}",
        goldstein="timings gaussian-0.02",
        random3=f"{GAUSSIAN} spikes",
        levy5=f"lognormal {HEAVY}",
        additive=f"{HEAVY} {GAUSSIAN}",
        schwefel2=f"{GAUSSIAN} student-3",
        hidden12=f"{GAUSSIAN} timings",
        training=f"timings {HEAVY}",
        triples=f"student-3 {GAUSSIAN}",
        gpu_a100=f"{OWN} {OWN}",
        CNTNEWS_1=f"{OWN} {OWN}",
    ),
    "outliers": _suite(
        [50, 200],
        random1=f"{HEAVY} spikes",
        goldstein=f"timings {HEAVY}",
        random3=f"spikes {HEAVY}",
        levy5=f"{HEAVY} timings",
        schwefel2=f"student-3 {HEAVY}",
        training=f"spikes {HEAVY}",
        triples=f"student-3 {HEAVY}",
    ),
    "hidden": _suite(
        [50, 200],
        goldstein="lognormal stretched",
        random3="stretched lognormal",
        levy5="lognormal stretched",
        additive="stretched lognormal",
        training="lognormal stretched",
    ),
    "names": _suite(
        [50, 200],
        pairs=f"{GAUSSIAN} student-3",
        triples=f"student-3 {GAUSSIAN}",
        flags=f"{GAUSSIAN} {HEAVY}",
        choices6=f"{HEAVY} {GAUSSIAN}",
        gpu_a100=f"{OWN} {OWN}",
    ),
    "one choice": _suite(
        [50, 200],
        names20=f"{GAUSSIAN} student-3",
        names100=f"student-3 {GAUSSIAN}",
    ),
    "exact": _suite(
        [50, 200],
        goldstein="none gaussian-0.02",
        random3="none gaussian-0.02",
        training="none gaussian-0.02",
        triples="none gaussian-0.02",
        DYNAMNEWS_1=f"{OWN} {OWN}",
    ),
    "failing": _suite(
        [50, 200],
        goldstein="wall failures",
        random3="failures wall",
        levy5="wall failures",
        additive="failures wall",
    ),
    "hills": _suite(
        [200, 500],
        waves3=GAUSSIAN,
        schwefel3="student-3",
        michalewicz3=GAUSSIAN,
        bumps2=HEAVY,
    ),
}


@dataclass(frozen=True)
class Ablation:
    """Change of the Optimizer, by fields of its config and by replaced names of its modules (relative to optimizer)."""

    mechanism: int
    suite: str = "all"
    config: Mapping[str, Any] = field(default_factory=dict)
    patches: Mapping[str, Any] = field(default_factory=dict)

    def play(self, run: Run) -> list[Reading]:
        with ExitStack() as stack:
            for target, value in self.patches.items():
                stack.enter_context(mock.patch(f"noregret.optimizer.{target}", value))
            readings = play(run, SUITES[self.suite].budgets, calibration=OptimizerConfig(**self.config))
        unit = RANDOM.get(run.problem, 1.0)
        return [
            each._replace(recommended=each.recommended / unit, on_the_way=each.on_the_way / unit) for each in readings
        ]


@dataclass(frozen=True)
class NaturalZero(Logarithms):
    """Logarithm of the distance to 0 alone, where no value is above it."""

    def __call__(self, evidence: Evidence, plain: Scale) -> Iterator[Scale]:
        best = float(evidence.values.max())
        if best < 0 and np.isnan(evidence.noise).all():
            logarithm = Logarithm(0.0, -best / 2, self.correction)
            scale = RobustScale(self.bend)(replace(evidence, values=logarithm(plain.limited(evidence.values))))
            yield replace(scale, logarithm=logarithm, floor=plain.floor)


class JointFit(FitMatern):
    """Fit without the additive part, with two starts from 50 points on as before."""

    def _firsts(self, centre: Floats, dimension: int, points: int) -> list[Floats]:
        return FitMatern()._firsts(centre, dimension, points)


@dataclass(frozen=True)
class ImprovementOfTheMean:
    """ln of expected improvement with the std of the change of the mean by one measurement, v / sqrt(v + s^2)."""

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        variance = posterior.std**2
        gap = posterior.mean - posterior.mean[posterior.pulled].max()
        return np.asarray(log_expected_improvement(gap, variance / np.sqrt(variance + posterior.ridge)))


def _without(kind: str) -> Ablation:
    """Late exploring with the other kinds alone, as many questions as before."""
    return Ablation(18, "hills", patches={"choosing.exploring.TURNS": tuple(each for each in TURNS if each != kind)})


def _tails(**options: float) -> dict[str, Any]:
    return {"weighings": (Equal(), StudentT(4.0, **options), StudentT(2.0, **options))}


NAMES = {"fitting.matern._is_mostly_names": lambda evidence: False}
ABLATIONS = {
    "no logarithms": Ablation(2, config={"logarithms": Logarithms(gaps=())}),
    "logarithm with one gap": Ablation(2, config={"logarithms": Logarithms(gaps=(1.0,))}),
    "logarithm of the distance to 0": Ablation(2, config={"logarithms": NaturalZero()}),
    "one start": Ablation(5, config={"fit": FitMatern(starts=(1.0,))}),
    "no additive part": Ablation(6, config={"fit": JointFit(enough=10**9)}, patches=NAMES),
    "plain expected improvement": Ablation(16, config={"rule": ExpectedImprovement()}),
    "improvement of the mean": Ablation(16, config={"rule": ImprovementOfTheMean()}),
    "no bend": Ablation(1, config={"scale": RobustScale(math.inf), "logarithms": Logarithms(bend=math.inf)}),
    "trust without repeats": Ablation(
        4, "outliers", patches={"fitting.weights._disagreement": lambda evidence: np.full(len(evidence), np.inf)}
    ),
    "no second look at suspects": Ablation(20, "outliers", patches={"tracker.HARDLY": 0.0}),
    "absurd ends count": Ablation(
        1, "outliers", patches={"fitting.scaling.without_absurd_ends": lambda numbers: numbers}
    ),
    "trust without shared values": Ablation(
        4, "exact", patches={"fitting.weights._are_shared": lambda evidence: np.zeros(len(evidence), dtype=bool)}
    ),
    "repeats without noise": Ablation(23, "exact", patches={"asking.EXACT": -1.0}),
    "no prior for names": Ablation(6, "names", patches=NAMES),
    "one rule for one choice too": Ablation(16, "one choice", config={"rule": SaturatedImprovement()}),
    "improvement of the mean, one choice": Ablation(16, "one choice", config={"rule": ImprovementOfTheMean()}),
    "no small spaces": Ablation(22, "one choice", patches={"asking.SMALL": 0}),
    "no early exploring": Ablation(17, "hidden", config={"exploring": Exploring(hidden=math.inf)}),
    "Student-t(4) alone": Ablation(3, config={"weighings": (StudentT(4.0),)}),
    "no Student-t(2)": Ablation(3, config={"weighings": (Equal(), StudentT(4.0))}),
    "one alternation": Ablation(3, config={"alternations": 1}),
    "no growth of degrees of freedom": Ablation(3, config=_tails(growth=0.0)),
    "refit (150, 1.3)": Ablation(9, config={"refit": (150, 1.3)}),
    "refresh (1000, 1.1)": Ablation(9, config={"refresh": (1000, 1.1)}),
    "half the candidates": Ablation(14, config={"candidates": Candidates(cover=256, cloud=64)}),
    "design of 4 + d": Ablation(13, config={"initial": 4}),
    "no late exploring": Ablation(18, "hills", config={"exploring": Exploring(share=0.0)}),
    **{f"no {kind}": _without(kind) for kind in ("hole", "rough", "leap", "bold")},
    "no account": Ablation(
        19, "hills", patches={**_without("again").patches, "account.Account.refuting": lambda account: None}
    ),
    "one start, hills": Ablation(5, "hills", config={"fit": FitMatern(starts=(1.0,))}),
    "at most 150 points fitted": Ablation(10, "hills", config={"most": 150}),
    "beliefs of 300 points": Ablation(10, "hills", config={"exact": 300}),
    "two iterations of trust": Ablation(3, config=_tails(iterations=2)),
    "three clouds": Ablation(14, config={"candidates": Candidates(radii=(0.5, 0.1, 0.02))}),
    "two alternations": Ablation(3, config={"alternations": 2}),
    "refit (50, 1.25)": Ablation(9, config={"refit": (50, 1.25)}),
    "design of 2 + d": Ablation(13, config={"initial": 2}),
    "no hopeless settings": Ablation(
        12, "failing", patches={"history.hopeless": lambda *arguments: np.empty(0, dtype=np.intp)}
    ),
    "ties by rounding": Ablation(23, "names", patches={"asking.TIE": 0.0}),
}
UNCHANGED = Ablation(0)


class Played(NamedTuple):
    """Readings without a mechanism, and those of the unchanged run beside it."""

    without: list[Reading]
    unchanged: list[Reading]


class Results:
    """Finished runs in a JSON file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{Tree(HERE.parents[1] / 'src').digest}.json"
        self._kept: dict[str, Any] = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}

    def get(self, name: str, run: Run) -> Played | None:
        kept = self._kept.get(self._key(name, run))
        return None if kept is None else Played(*([Reading(*each) for each in readings] for readings in kept))

    def add(self, name: str, run: Run, played: Played) -> None:
        self._kept[self._key(name, run)] = played
        unfinished = self._file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self._kept), encoding="utf-8")
        unfinished.rename(self._file)

    def _key(self, name: str, run: Run) -> str:
        return "|".join([name, *map(str, run)])


def play_all(results: Results, names: list[str], halves: tuple[str, ...] = ("first", "second")) -> None:
    """Play what is missing: with the first noises, then with the second ones."""
    for half in halves:
        for suite, group in groupby(names, key=lambda name: ABLATIONS[name].suite):
            together = list(group)
            for start in range(0, len(together), AT_ONCE):
                for run in getattr(SUITES[suite], half):
                    _play_beside(results, together[start : start + AT_ONCE], suite, run)


def _play_beside(results: Results, names: list[str], suite: str, run: Run) -> None:
    missing = [name for name in names if results.get(name, run) is None]
    unchanged = replace(UNCHANGED, suite=suite).play(run) if missing else []
    for name in missing:
        results.add(name, run, Played(ABLATIONS[name].play(run), unchanged))
        print(f"{name}: {run.problem}, {run.noise}", file=sys.stderr, flush=True)


def tables(results: Results, names: list[str]) -> str:
    """A table per suite."""
    parts = []
    for suite, (budgets, *_) in SUITES.items():
        heads = [f"{measure}, {budget}" for budget in budgets for measure in ("recommended", "on the way")]
        rows = [row for name in names if ABLATIONS[name].suite == suite and (row := _row(results, name))]
        if rows:
            head = ["mechanism", "change", "problems", "runs", "changed runs", *heads, "CPU", "verdict"]
            parts.append(f"Suite {suite}:\n\n{markdown.table(head, rows)}")
    return "\n".join(parts)


def _row(results: Results, name: str) -> list[str]:
    """Row of one ablation; empty before its first run."""
    ablation = ABLATIONS[name]
    played = {run: found for run in SUITES[ablation.suite].runs if (found := results.get(name, run)) is not None}
    if not played:
        return []
    problems = sorted({run.problem for run in played})
    effects = [
        _effect(
            [_mean([_change(p, number, measure) for run, p in played.items() if run.problem == it]) for it in problems]
        )
        for number in range(len(SUITES[ablation.suite].budgets))
        for measure in ("recommended", "on_the_way")
    ]
    changed = sum(p.without[-1].on_the_way != p.unchanged[-1].on_the_way for p in played.values())
    cpu = [sum(getattr(p, side)[-1].seconds for p in played.values()) for side in Played._fields]
    cells = [f"{mean:+.3f} ± {error:.3f}" for mean, error in effects]
    counts = [str(ablation.mechanism), name, str(len(problems)), str(len(played)), str(changed)]
    follows = "did not act" if not changed else verdict(effects) if len(problems) >= ENOUGH else "too few problems"
    return [*counts, *cells, f"{cpu[0] / cpu[1]:.2f}", follows]


def _change(played: Played, number: int, measure: str) -> float:
    return float(getattr(played.without[number], measure) - getattr(played.unchanged[number], measure))


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _effect(changes: list[float]) -> tuple[float, float]:
    """Mean and standard error, nan for one problem."""
    error = np.std(changes, ddof=1) / math.sqrt(len(changes)) if len(changes) > 1 else math.nan
    return float(np.mean(changes)), float(error)


def verdict(effects: list[tuple[float, float]]) -> str:
    """Verdict from the means and standard errors of the changes."""
    worse = [round(mean / error, 3) for mean, error in effects if error > 0]  # it is 1 if one problem alone changed
    if max(worse, default=0.0) > 2 or sum(each > 1 for each in worse) > 1:
        return "stays"
    return "open" if max(worse, default=0.0) > 1 else "goes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(ABLATIONS), choices=list(ABLATIONS), metavar="NAME")
    parser.add_argument("--first", action="store_true", help="only the first noise or seed of each problem")
    parser.add_argument("--tables", action="store_true", help="print the tables of the finished runs, play nothing")
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/ablation"))
    options = parser.parse_args()
    results = Results(options.out)
    if not options.tables:
        play(Run("random1", GAUSSIAN, 0), [20])  # so that no run pays for imports
        play_all(results, options.only, ("first",) if options.first else ("first", "second"))
    print(tables(results, options.only))


if __name__ == "__main__":
    main()
