"""Parameters tied by linear conditions: ``python -m benchmarks.require --seeds 10``.

``Optimizer(require=...)`` against three ways to do without it: returning a penalty for a setting that violates a
condition, the worst value of the problem; reporting it as failed; and a constraint, whose number is the largest
violation. Random points that meet all conditions are the reference. Noisy values, to be minimised; the best setting of
the whole box violates a condition. Printed in Markdown, mean and standard error over the seeds:

- regret: of the recommended setting, 0 the best allowed value and 1 the mean of random allowed settings; a
  recommendation that violates a condition counts as 1, and so does none;
- wasted: the share of the evaluations that violate a condition.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks import markdown
from noregret import Float, Optimizer, problems

BUDGETS = (30, 60)
DRAWN = 200_000
"""Number of random settings used to normalise a problem."""


@dataclass(frozen=True)
class Tied:
    """A function of points of the unit cube to minimise, and the conditions on its coordinates."""

    value: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    dimension: int
    require: tuple[str, ...]
    violations: Callable[[np.ndarray[Any, Any]], tuple[Any, ...]]
    """Left side less right side of each condition."""

    def excess(self, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The largest violation at (n, d) points, 0 or less where all conditions are met."""
        return np.max(self.violations(points), axis=0)

    def allowed(self, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return self.excess(points) <= 0

    @property
    def names(self) -> list[str]:
        return [f"x{i}" for i in range(self.dimension)]


PROBLEMS = {
    "branin, 2-d": Tied(
        lambda x: -problems.branin(x),
        2,
        ("x0 + x1 <= 0.6", "x0 <= 0.5"),
        lambda x: (x[:, 0] + x[:, 1] - 0.6, x[:, 0] - 0.5),
    ),
    "hartmann, 6-d": Tied(
        lambda x: -problems.hartmann6(x),
        6,
        ("x0 + x5 <= 0.7", "x1 <= x2", "x3 + x4 <= 0.5"),
        lambda x: (x[:, 0] + x[:, 5] - 0.7, x[:, 1] - x[:, 2], x[:, 3] + x[:, 4] - 0.5),
    ),
}


@cache
def facts(name: str) -> tuple[float, float, float, float]:
    """Best and mean allowed value, the worst of all, and the share of the box that is allowed."""
    tied, rng = PROBLEMS[name], np.random.default_rng(0)
    points = rng.random((DRAWN, tied.dimension))
    values, allowed = tied.value(points), tied.allowed(points)
    best = points[allowed][np.argsort(values[allowed])[:20]]
    for radius in np.repeat([0.05, 0.02, 0.01, 0.003, 0.001], 40):
        near = np.clip(np.repeat(best, 50, axis=0) + radius * rng.standard_normal((1000, tied.dimension)), 0, 1)
        near = np.vstack([best, near[tied.allowed(near)]])
        best = near[np.argsort(tied.value(near))[:20]]
    return float(tied.value(best).min()), float(values[allowed].mean()), float(values.max()), float(allowed.mean())


def run(name: str, method: str, seed: int) -> tuple[list[float], float]:
    """Regret after each budget, and the share of wasted evaluations."""
    tied, world = PROBLEMS[name], np.random.default_rng([seed, 1])
    best, mean, worst, _ = facts(name)
    space = {each: Float(0, 1) for each in tied.names}
    require = tied.require if method in ("require", "random") else None
    constraints = {"excess": ("<=", 0.0)} if method == "constraint" else None
    opt = Optimizer(space, rng=seed, require=require, constraints=constraints)
    regrets, wasted, seen = [], 0, []
    for number in range(1, max(BUDGETS) + 1):
        trial = opt.expect(_random(tied, world)) if method == "random" else opt.ask()
        point = np.array([list(trial.params.values())])
        wasted += not tied.allowed(point)[0]
        if tied.allowed(point)[0] or method == "constraint":
            value = float(tied.value(point)[0] + 0.05 * (mean - best) * world.standard_normal())
            opt.tell(trial, value, constraints={name: float(tied.excess(point)[0]) for name in constraints or ()})
            seen.append((value, number, point))
        elif method == "penalty":
            opt.tell(trial, worst)
        else:
            opt.fail(trial)
        if number in BUDGETS:
            chosen = min(seen)[2] if seen else point
            if seen and method != "random":
                chosen = np.array([list(opt.best().params.values())])
            regret = (float(tied.value(chosen)[0]) - best) / (mean - best)
            regrets.append(regret if tied.allowed(chosen)[0] else 1.0)
    return regrets, wasted / max(BUDGETS)


def _random(tied: Tied, rng: np.random.Generator) -> dict[str, float]:
    while True:
        point = rng.random((1, tied.dimension))
        if tied.allowed(point)[0]:
            return dict(zip(tied.names, point[0].tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="+", default=["require", "constraint", "penalty", "failed", "random"])
    given, rows = parser.parse_args(), []
    for name in PROBLEMS:
        for method in given.methods:
            runs = [run(name, method, seed) for seed in range(given.seeds)]
            regrets, wasted = np.array([its for its, _ in runs]), np.mean([its for _, its in runs])
            cells = [_cell(column) for column in regrets.T]
            rows.append([f"{name} ({facts(name)[3]:.0%} allowed)", method, *cells, f"{wasted:.0%}"])
            print(rows[-1], flush=True)
    print(markdown.table(["problem", "method", *(f"regret, {b} evaluations" for b in BUDGETS), "wasted"], rows))


def _cell(regrets: np.ndarray[Any, Any]) -> str:
    return f"{regrets.mean():.3f} +- {regrets.std(ddof=1) / np.sqrt(len(regrets)):.3f}"


if __name__ == "__main__":
    main()
