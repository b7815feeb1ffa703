"""Safe questions: ``python -m benchmarks.safe --seeds 50`` (``--quick`` for two seeds of three problems).

``Optimizer(safe=...)`` at 0.9, 0.95 and 0.99 against the same optimizer without ``safe`` ("free"), 60 evaluations from
a baseline that meets the constraint. The best value of all violates it. Noise of values and readings is Gaussian or
Student-t(3). Problems have one, two and four parameters; their constraint is smooth, or a cliff: flat up to an edge of
the stated width, in units of the cube. The last problems are steps, of which no reading on the safe side gives a hint.
Printed in Markdown, by problem:

- violations: share of the evaluations whose true number breaks the constraint, with its standard error over the runs,
  and the share of the runs with at least one;
- regret: of the recommended setting, 0 the best allowed value and 1 that of the baseline; one that breaks the
  constraint counts as 1.

Finished runs are kept in a file (``--out``), to which further runs are added.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import markdown, provenance
from noregret import Float, Optimizer

EVALUATIONS = 60
NOISE = 0.05
"""Standard deviation, or scale of Student-t, of values and readings. The baseline is 0.25 to 0.5 inside the bound."""
NOISES: dict[str, Callable[[np.random.Generator], float]] = {
    "gaussian": lambda rng: float(rng.standard_normal()),
    "student-3": lambda rng: float(rng.standard_t(3)),
}
LEVELS = (0.9, 0.95, 0.99, None)
"""None for the optimizer without ``safe``."""
Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Place:
    """A constraint that is met at 0 or less, of (n, d) points of the unit cube, and the baseline of all parameters.

    The value to minimise is the mean of (x - best)^2 over the parameters.
    """

    dimension: int
    limit: Callable[[Floats], Floats]
    baseline: float = 0.25
    best: float = 0.8

    def value(self, points: Floats) -> Floats:
        return np.asarray(((points - self.best) ** 2).mean(axis=1))


def edge(width: float, at: float) -> Callable[[Floats], Floats]:
    """-0.4, and 1 beyond the plane on which the mean of the coordinates is ``at``."""
    return lambda points: -0.4 + 1.4 / (1 + np.exp(np.clip(-(points.mean(axis=1) - at) / width, -50, 50)))


PLACES: dict[str, Place] = {
    "parabola 1-d": Place(1, lambda x: x[:, 0] ** 2 - 0.36),
    "waves 1-d": Place(1, lambda x: 0.4 * np.sin(7 * x[:, 0] - 3.5) - 0.1 + 0.2 * x[:, 0], baseline=0.2),
    "disc 2-d": Place(2, lambda x: ((x - 0.3) ** 2).sum(axis=1) - 0.25),
    "waves 2-d": Place(2, lambda x: x.sum(axis=1) - 1.1 + 0.15 * np.sin(9 * x[:, 0]) * np.cos(7 * x[:, 1])),
    "ball 4-d": Place(4, lambda x: ((x - 0.3) ** 2).sum(axis=1) - 0.4),
    "cliff 0.05, 1-d": Place(1, edge(0.05, 0.6)),
    "cliff 0.05, 2-d": Place(2, edge(0.05, 0.6)),
    "cliff 0.05, 4-d": Place(4, edge(0.05, 0.6)),
    "step 1-d": Place(1, edge(1e-6, 0.6)),
    "step 2-d": Place(2, edge(1e-6, 0.6)),
}
QUICK = ("parabola 1-d", "waves 2-d", "step 1-d")


@cache
def best_allowed(name: str) -> float:
    """Best value that meets the constraint."""
    place, rng = PLACES[name], np.random.default_rng(0)
    points = rng.random((400_000, place.dimension))
    points = np.vstack([points, np.repeat(np.linspace(0, 1, 2001)[:, None], place.dimension, axis=1)])
    return float(place.value(points[place.limit(points) <= 0]).min())


Run = tuple[str, str, float | None, int]
"""Problem, noise, level and seed."""


def play(name: str, noise: str, level: float | None, seed: int) -> tuple[int, float, bool]:
    """Number of violations, the regret of the recommended setting, and whether it meets the constraint."""
    place, rng, draw = PLACES[name], np.random.default_rng([seed, 17]), NOISES[noise]
    space = {f"x{i}": Float(0, 1) for i in range(place.dimension)}
    baseline = dict.fromkeys(space, place.baseline)
    opt = Optimizer(space, constraints={"limit": ("<=", 0.0)}, baseline=baseline, safe=level, rng=seed)
    violations = 0
    for _ in range(EVALUATIONS):
        trial = opt.ask()
        point = np.array([list(trial.params.values())])
        value, number = float(place.value(point)[0]), float(place.limit(point)[0])
        violations += number > 0
        readings = {"limit": number + NOISE * draw(rng)}
        opt.tell(trial, value + NOISE * draw(rng), constraints=readings)
    point = np.array([list(opt.best().params.values())])
    start = float(place.value(np.full((1, place.dimension), place.baseline))[0])
    regret = (float(place.value(point)[0]) - best_allowed(name)) / (start - best_allowed(name))
    return violations, regret, bool(place.limit(point)[0] <= 0)


def finished(runs: Iterable[Run], out: Path) -> Iterator[tuple[Run, Any]]:
    """Results of each run, from the file or computed now."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {tuple(line["run"]): line["found"] for line in lines}
    for run in runs:
        if run not in known:
            with threadpool_limits(1, user_api="blas"):
                known[run] = play(*run)
            with out.open("a") as file:
                file.write(json.dumps({"run": run, "found": known[run]}) + "\n")
            provenance.record(out)
        yield run, known[run]


def report(results: dict[Run, Any]) -> None:
    rows = []
    for name, level in product([*PLACES, "all but the steps"], LEVELS):
        names = [each for each in PLACES if not each.startswith("step")] if name.startswith("all") else [name]
        mine = np.array([r for (where, _, at, _), r in results.items() if where in names and at == level], dtype=float)
        if len(mine):
            rows.append([name, "free" if level is None else str(level), str(len(mine)), *_cells(mine)])
    print(markdown.table(["problem", "safe", "runs", "violations", "runs with one", "regret"], rows))


def _cells(found: Floats) -> list[str]:
    share, regret = found[:, 0] / EVALUATIONS, np.where(found[:, 2] > 0, found[:, 1], 1.0)
    error = share.std() / math.sqrt(len(share))
    return [f"{100 * share.mean():.1f}% +- {100 * error:.1f}", f"{(share > 0).mean():.2f}", f"{regret.mean():.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--problems", nargs="+", default=list(PLACES), choices=list(PLACES))
    parser.add_argument("--noises", nargs="+", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--levels", nargs="+", default=[str(level) for level in LEVELS])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "safe.jsonl")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.problems = 2, list(QUICK)
    levels = [None if level == "None" else float(level) for level in options.levels]
    runs = product(range(options.seeds), options.problems, options.noises, levels)
    report(dict(finished(((p, n, at, s) for s, p, n, at in runs), options.out)))


if __name__ == "__main__":
    main()
