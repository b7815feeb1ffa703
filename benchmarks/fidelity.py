"""Cheap looks at equal cost: ``python -m benchmarks.fidelity --seeds 8``, with ``--quick`` one budget and 2 seeds.

A run has a learning curve; its cost is the number of epochs that it takes. Each method gets the same total cost and may
end runs early. Judged by the true value, at the highest fidelity, of the setting that it recommends: regret 0 is the
best setting, 1 the mean of random ones. Methods:

- stopped: `Optimizer(fidelity=...)` with `report` and `should_stop`;
- asked: `Optimizer(fidelity=...)` without reports, each trial measured at the fidelity that it says;
- whole: `Optimizer` without a fidelity, every run to its end;
- asha, hyperband: Optuna's TPE with `SuccessiveHalvingPruner` and `HyperbandPruner`; they recommend the completed run
  with the best last value.

Problems: synthetic curves of which the faster end higher, so that they cross, with Gaussian or Student-t(2) noise that
the values of one run share, and a small one of each value; networks on scikit-learn's digits and a linear
classifier on its breast cancer data (`partial_fit`), and gradient boosting on its diabetes data, from tables of 160 to
180 settings whose curves have five splits and seeds each (``benchmarks/results/curves.npz``, made by ``--curves`` of
``git show 1b0e9b9c:benchmarks/fidelity.py``, in about ten CPU minutes).

Results are kept in ``benchmarks/results/fidelity.csv``: a run that is there is not repeated.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import markdown, provenance
from noregret import Float, Int, Optimizer, problems

RESULTS = Path(__file__).parent / "results"
CURVES, RUNS = RESULTS / "curves.npz", RESULTS / "fidelity.csv"
BUDGETS = (15, 30)
"""Total cost, in runs to the highest fidelity."""
REPORTS = (1, 2, 3, 5, 9, 15, 27, 45, 81)
"""Epochs after which a run reports."""

Params = Mapping[str, Any]
Curve = Callable[[int], float]


@dataclass(frozen=True)
class Problem:
    """Curves to minimise the end of."""

    space: dict[str, Any]
    epochs: int
    true: Callable[[Params], float]
    """Value at the highest fidelity, without noise."""
    run: Callable[[Params, np.random.Generator], Curve]
    """Value after each epoch of a new run."""

    @property
    def fidelity(self) -> dict[str, Any]:
        return {"epochs": Int(1, self.epochs, log=True)}

    def regret(self, params: Params) -> float:
        best, mean = self.ends
        return (self.true(params) - best) / (mean - best)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Best value that a random search with steps that shrink finds, and the mean of 1,000 random settings."""
        rng = np.random.default_rng(0)
        settings = [drawn(self.space, rng) for _ in range(1000)]
        values = [self.true(setting) for setting in settings]
        at, best = settings[int(np.argmin(values))], min(values)
        for step in np.geomspace(0.3, 0.003, 2000):
            near = {name: value + step * (drawn(self.space, rng)[name] - value) for name, value in at.items()}
            value = self.true(near)
            at, best = (near, value) if value < best else (at, best)
        return best, float(np.mean(values))


def drawn(space: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A random setting."""
    found: dict[str, Any] = {}
    for name, its in space.items():
        is_whole = isinstance(its, Int)
        found[name] = int(rng.integers(its.low, its.high + 1)) if is_whole else float(rng.uniform(its.low, its.high))
    return found


def crossing(noise: str) -> Problem:
    """Curves floor + (1 - floor) epochs^-rate: the rate rises with x0, and so does the floor."""

    def parts(params: Params) -> tuple[float, float]:
        x, y, z = (params[name] for name in ("x", "y", "z"))
        floor = 0.1 + 0.5 * (x - 0.35) ** 2 + 0.6 * (y - 0.6) ** 2 + 0.15 * (z - 0.3) ** 2 + 0.1 * x
        return floor, 0.3 + 1.2 * x

    def value(params: Params, epoch: int) -> float:
        floor, rate = parts(params)
        return floor + (1 - floor) * float(epoch) ** -rate

    space = {name: Float(0, 1) for name in ("x", "y", "z")}
    return noisy(space, value, 0.03, noise)


def hartmann(noise: str) -> Problem:
    """Curves that fall from 3.5 to minus Hartmann's function in six dimensions, faster with the first parameter."""
    names = [f"x{i}" for i in range(6)]

    def value(params: Params, epoch: int) -> float:
        floor = -float(problems.hartmann6(np.array([[params[name] for name in names]]))[0])
        return floor + (3.5 - floor) * 0.5 * float(epoch) ** -(0.3 + params["x0"])

    return noisy({name: Float(0, 1) for name in names}, value, 0.1, noise)


def noisy(space: dict[str, Any], value: Callable[[Params, int], float], size: float, noise: str) -> Problem:
    """Curves with noise that the values of a run share, and a third as much of each value."""

    def run(params: Params, rng: np.random.Generator) -> Curve:
        shared = size * float(rng.standard_t(2) if noise == "t2" else rng.standard_normal())
        own = size / 3 * rng.standard_normal(82)
        return lambda epoch: value(params, epoch) + shared + float(own[epoch])

    return Problem(space, 81, lambda params: value(params, 81), run)


def tabulated(name: str) -> Problem:
    """Curves of a table: each run is one of those of its setting."""
    stored = np.load(CURVES)
    names, curves = [str(each) for each in stored[f"{name}_names"]], stored[f"{name}_curves"].astype(float)
    rows = [tuple(row) for row in stored[f"{name}_settings"].tolist()]
    numbers = {row: number for number, row in enumerate(rows)}
    space: dict[str, Any] = {}
    for column, its in enumerate(names):
        values = sorted({row[column] for row in rows})
        space[its] = Int(0, len(values) - 1)
        numbers = {(*key[:column], values.index(key[column]), *key[column + 1 :]): n for key, n in numbers.items()}

    def where(params: Params) -> int:
        return numbers[tuple(round(params[each]) for each in names)]

    def run(params: Params, rng: np.random.Generator) -> Curve:
        curve = curves[where(params), rng.integers(curves.shape[1])]
        return lambda epoch: float(curve[epoch - 1])

    ends_of = curves[:, :, -1].mean(axis=1)
    return Problem(space, curves.shape[2], lambda params: float(ends_of[where(params)]), run)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "crossing, Gaussian": lambda: crossing("gauss"),
    "crossing, Student-t(2)": lambda: crossing("t2"),
    "Hartmann, Gaussian": lambda: hartmann("gauss"),
    "Hartmann, Student-t(2)": lambda: hartmann("t2"),
    "network, digits": lambda: tabulated("network"),
    "boosting, diabetes": lambda: tabulated("boosting"),
    "linear, breast cancer": lambda: tabulated("linear"),
}


@dataclass
class Budget:
    """Epochs that are left."""

    left: int

    def epochs(self, upto: int) -> Iterator[int]:
        """Epochs of one run after which it reports, as far as the budget goes; the last is the end of the run."""
        taken = 0
        for epoch in sorted({*(each for each in REPORTS if each < upto), upto}):
            if epoch - taken > self.left:
                return
            self.left, taken = self.left - (epoch - taken), epoch
            yield epoch


def stopped(problem: Problem, budget: Budget, seed: int, is_reporting: bool = True) -> Params:
    """Recommendation of an Optimizer with a fidelity."""
    opt, rng = Optimizer(problem.space, fidelity=problem.fidelity, rng=seed), np.random.default_rng(seed)
    while budget.left > 0:
        trial, value = opt.ask(), None
        curve = problem.run(trial.params, rng)
        upto = trial.fidelity["epochs"]
        for epoch in budget.epochs(upto):
            value, reached = curve(epoch), epoch
            if is_reporting:
                opt.report(trial, {"epochs": epoch}, value)
                if opt.should_stop(trial):
                    break
        if value is None:
            break
        if is_reporting or reached == upto:
            opt.tell(trial, value, fidelity={"epochs": reached})
    return opt.best().params


def asked(problem: Problem, budget: Budget, seed: int) -> Params:
    return stopped(problem, budget, seed, is_reporting=False)


def whole(problem: Problem, budget: Budget, seed: int) -> Params:
    """Recommendation of an Optimizer that measures everything at the highest fidelity."""
    opt, rng = Optimizer(problem.space, rng=seed), np.random.default_rng(seed)
    for _ in range(budget.left // problem.epochs):
        trial = opt.ask()
        opt.tell(trial, problem.run(trial.params, rng)(problem.epochs))
    return opt.best().params


def pruned(problem: Problem, budget: Budget, seed: int, kind: str) -> Params:
    """Recommendation of TPE with one of Optuna's pruners."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner: Any = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    if kind == "hyperband":
        pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=problem.epochs, reduction_factor=3)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner)
    rng, best = np.random.default_rng(seed), (np.inf, {})
    first: Params = {}
    while budget.left > 0:
        trial, value, reached = study.ask(), None, 0
        params = {
            name: trial.suggest_int(name, its.low, its.high)
            if isinstance(its, Int)
            else trial.suggest_float(name, its.low, its.high)
            for name, its in problem.space.items()
        }
        first = first or params
        curve = problem.run(params, rng)
        for epoch in budget.epochs(problem.epochs):
            value, reached = curve(epoch), epoch
            trial.report(value, epoch)
            if reached < problem.epochs and trial.should_prune():
                break
        if value is None:
            break
        if reached == problem.epochs:
            study.tell(trial, value)
            best = min(best, (value, params), key=lambda each: each[0])
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return best[1] or first


METHODS: dict[str, Callable[[Problem, Budget, int], Params]] = {
    "stopped": stopped,
    "asked": asked,
    "whole": whole,
    "asha": lambda problem, budget, seed: pruned(problem, budget, seed, "asha"),
    "hyperband": lambda problem, budget, seed: pruned(problem, budget, seed, "hyperband"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS))
    parser.add_argument("--out", type=Path, default=RUNS)
    args = parser.parse_args()
    seeds, budgets = (2, args.budgets[:1]) if args.quick else (args.seeds, args.budgets)
    known: dict[tuple[str, ...], float] = {}
    made: dict[str, Problem] = {}
    if args.out.exists():
        with args.out.open(newline="") as file:
            known = {
                (row["problem"], row["budget"], row["method"], row["seed"]): float(row["regret"])
                for row in csv.DictReader(file)
            }
    else:
        args.out.write_text("problem,budget,method,seed,regret\n")
    for seed, name, budget, method in itertools.product(range(seeds), args.problems, budgets, args.methods):
        key = name, str(budget), method, str(seed)
        if key in known:
            continue
        problem = made.setdefault(name, PROBLEMS[name]())
        known[key] = problem.regret(METHODS[method](problem, Budget(budget * problem.epochs), seed))
        with args.out.open("a", newline="") as file:
            csv.writer(file).writerow([*key, f"{known[key]:.5f}"])
        provenance.record(args.out)
    rows = []
    for name, budget in itertools.product(args.problems, budgets):
        cells = []
        for method in args.methods:
            found = np.array([known[name, str(budget), method, str(seed)] for seed in range(seeds)])
            cells.append(f"{found.mean():.3f} ± {found.std(ddof=1) / np.sqrt(len(found)):.3f}")
        rows.append([name, str(budget), *cells])
    print(markdown.table(["problem", "cost", *args.methods], rows))


if __name__ == "__main__":
    main()
