"""Constrained problems, noisy in value and constraints: ``python -m benchmarks.constrained --seeds 10``.

`Optimizer` against Optuna's TPESampler and GPSampler with ``constraints_func``, and random points. The others recommend
the best measured value among the trials whose measured constraints are met, as ``study.best_trial`` does, and where
there is none the trial that violates them least. All problems are to be minimised, and none of them was used in
development. Printed in Markdown, after 50 and 100 evaluations:

- regret: of the recommended params where these are truly feasible, 0 the best feasible value and 1 that of random
  feasible params; the mean over the runs;
- with infeasible as 1: the same, where an infeasible recommendation counts as 1;
- infeasible: the share of the runs whose recommendation truly violates a constraint;
- evaluations: the share of all evaluations that truly violate one.

Finished runs are kept in a file (``--out``), to which further runs are added.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from threadpoolctl import threadpool_limits

from benchmarks import markdown
from benchmarks.development.problems import random_params
from noregret import Choice, Float, Int, Optimizer, problems
from noregret.optimizer import axis_of

Params = dict[str, Any]
Function = Callable[[Params], float]
BUDGETS = (50, 100)
WHOLE = 20_000
"""Number of random params used to normalise a problem."""


@dataclass(frozen=True)
class Place:
    """Objective to minimise, constraints that are met at 0 or less, and noise: Gaussian or Student-t."""

    space: Params
    value: Function
    constraints: tuple[Function, ...]
    dof: float = math.inf
    noise: float = 0.05

    def is_feasible(self, params: Params) -> bool:
        return all(constraint(params) <= 0 for constraint in self.constraints)

    def draw(self, rng: np.random.Generator) -> float:
        return self.noise * float(rng.standard_normal() if math.isinf(self.dof) else rng.standard_t(self.dof))


def gardner(p: Params) -> float:
    return math.cos(2 * p["x"]) * math.cos(p["y"]) + math.sin(p["x"])


def branin(p: Params) -> float:
    return -float(problems.branin(np.array([[p["x"], p["y"]]]))[0])


def hartmann(p: Params) -> float:
    return -float(problems.hartmann6(np.array([list(p.values())]))[0])


def vessel(p: Params) -> float:
    """The cost of a pressure vessel with plates in sixteenths of an inch, in thousands."""
    shell, head, r, length = p["shell"] / 16, p["head"] / 16, p["radius"], p["length"]
    return (
        0.6224 * shell * r * length + 1.7781 * head * r**2 + 3.1661 * shell**2 * length + 19.84 * shell**2 * r
    ) / 1e3


def latency(p: Params) -> float:
    """Latency of a service: more threads and cache help, the codec trades work for size."""
    work = {"none": 1.0, "fast": 0.8, "dense": 1.3}[p["codec"]]
    misses = 4 / math.sqrt(p["cache"]) + 0.5 * abs(math.log10(p["batch"] / 30))
    return work * (10 / p["threads"] + 0.15 * p["threads"]) + misses


def memory(p: Params) -> float:
    """Memory of the same service, minus 512 MB."""
    size = {"none": 1.0, "fast": 0.6, "dense": 0.35}[p["codec"]]
    return p["threads"] * 14 + p["cache"] * size * 1.5 + p["batch"] * 0.4 - 512


SIX = {"x": Float(0, 6), "y": Float(0, 6)}
UNIT = {"x": Float(0, 1), "y": Float(0, 1)}
SERVICE = {
    "threads": Int(1, 32),
    "cache": Int(8, 1024, log=True),
    "batch": Float(1, 1000, log=True),
    "codec": Choice(["none", "fast", "dense"]),
}
VESSEL = {"shell": Int(1, 40), "head": Int(1, 40), "radius": Float(10, 80), "length": Float(10, 200)}
VESSEL_LIMITS = (
    lambda p: 0.0193 * p["radius"] - p["shell"] / 16,
    lambda p: 0.00954 * p["radius"] - p["head"] / 16,
    lambda p: (1_296_000 - math.pi * p["radius"] ** 2 * (p["length"] + 4 / 3 * p["radius"])) / 1e6,
)
PLACES: dict[str, Place] = {
    # Gardner et al. (2014): the two toy problems, the second with a tiny feasible region
    "gardner": Place(SIX, gardner, (lambda p: math.cos(p["x"] + p["y"]) + 0.5,)),
    "tiny region": Place(
        SIX, lambda p: math.sin(p["x"]) + p["y"], (lambda p: math.sin(p["x"]) * math.sin(p["y"]) + 0.95,)
    ),
    # Gramacy et al. (2016): a linear objective, so that the best of all is infeasible; two constraints
    "two constraints": Place(
        UNIT,
        lambda p: p["x"] + p["y"],
        (
            lambda p: 1.5 - p["x"] - 2 * p["y"] - 0.5 * math.sin(2 * math.pi * (p["x"] ** 2 - 2 * p["y"])),
            lambda p: p["x"] ** 2 + p["y"] ** 2 - 1.5,
        ),
    ),
    # one of Branin's three optima is inside the disc; heavy tails
    "branin, t(2)": Place(UNIT, branin, (lambda p: (p["x"] - 0.55) ** 2 + (p["y"] - 0.2) ** 2 - 0.04,), dof=2.0),
    "vessel": Place(VESSEL, vessel, VESSEL_LIMITS),
    "service, t(2)": Place(SERVICE, latency, (memory,), dof=2.0),
    # the best of all has a norm of 0.94
    "hartmann6": Place(
        {f"x{i}": Float(0, 1) for i in range(6)}, hartmann, (lambda p: math.hypot(*p.values()) - 0.85,), noise=0.1
    ),
}


@dataclass(frozen=True)
class Facts:
    """Normalisation of a problem: best and mean feasible value, and 5% to 95% ranges as units."""

    best: float
    mean: float
    share: float
    unit: float
    units: tuple[float, ...]


@cache
def facts(name: str) -> Facts:
    place, rng = PLACES[name], np.random.default_rng(0)
    drawn = random_params(place.space, WHOLE, rng)
    feasible = [params for params in drawn if place.is_feasible(params)]
    values = np.array([place.value(params) for params in feasible])
    units = tuple(_range([constraint(params) for params in drawn]) for constraint in place.constraints)
    unit = _range([place.value(params) for params in drawn])
    start = [feasible[i] for i in np.argsort(values)[:20]]
    return Facts(min(_climbed(place, params, rng) for params in start), values.mean(), len(values) / WHOLE, unit, units)


def _range(numbers: list[float]) -> float:
    low, high = np.quantile(numbers, [0.05, 0.95])
    return float(high - low)


def _climbed(place: Place, params: Params, rng: np.random.Generator) -> float:
    """Best feasible value found by random steps of shrinking size."""
    best = place.value(params)
    for radius in np.repeat([0.1, 0.03, 0.01, 0.003, 0.001], 300):
        near = {name: _stepped(its, params[name], radius, rng) for name, its in place.space.items()}
        if place.is_feasible(near) and place.value(near) < best:
            params, best = near, place.value(near)
    return best


def _stepped(parameter: Any, value: Any, radius: float, rng: np.random.Generator) -> Any:
    if isinstance(parameter, Choice):
        return parameter.options[rng.integers(len(parameter.options))] if rng.random() < 0.1 else value
    point = axis_of(parameter).encode([value]) + radius * rng.standard_normal() * (rng.random() < 0.7)
    return axis_of(parameter).decode(np.clip(point, 0.0, 1.0))[0]


def noregret_run(name: str, seed: int, measure: Callable[[Params], tuple[float, list[float]]]) -> Iterator[Params]:
    """Recommended params after each evaluation."""
    names = [str(i) for i in range(len(PLACES[name].constraints))]
    opt = Optimizer(PLACES[name].space, goal="minimize", rng=seed, constraints=dict.fromkeys(names, ("<=", 0.0)))
    while True:
        trial = opt.ask()
        value, numbers = measure(trial.params)
        opt.tell(trial, value, constraints=dict(zip(names, numbers, strict=True)))
        yield lambda: opt.best().params


def optuna_run(
    sampler: Callable[..., optuna.samplers.BaseSampler],
    name: str,
    seed: int,
    measure: Callable[[Params], tuple[float, list[float]]],
) -> Iterator[Callable[[], Params]]:
    """Generator of the recommended params after each evaluation."""
    options = (
        {} if sampler is optuna.samplers.RandomSampler else {"constraints_func": lambda t: t.user_attrs["numbers"]}
    )
    study = optuna.create_study(sampler=sampler(seed=seed, **options))
    done: list[tuple[bool, float, Params]] = []
    while True:
        trial = study.ask()
        params = {key: _suggested(trial, key, its) for key, its in PLACES[name].space.items()}
        value, numbers = measure(params)
        trial.set_user_attr("numbers", numbers)
        study.tell(trial, value)
        excess = sum(max(number, 0.0) for number in numbers)
        done.append((excess > 0, excess or value, params))
        yield lambda: min(done, key=lambda one: one[:2])[2]


def _suggested(trial: optuna.Trial, name: str, parameter: Any) -> Any:
    if isinstance(parameter, Choice):
        return trial.suggest_categorical(name, list(parameter.options))
    suggest = trial.suggest_int if isinstance(parameter, Int) else trial.suggest_float
    return suggest(name, parameter.low, parameter.high, log=parameter.log)


def _optuna(sampler: Any) -> Callable[..., Iterator[Callable[[], Params]]]:
    return lambda *run: optuna_run(sampler, *run)


PLAYERS = {
    "noregret": noregret_run,
    "TPESampler": _optuna(optuna.samplers.TPESampler),
    "GPSampler": _optuna(optuna.samplers.GPSampler),
    "random": _optuna(optuna.samplers.RandomSampler),
}


def play(player: str, name: str, seed: int) -> list[tuple[float, bool, float]]:
    """Regret and feasibility of the recommendation, and the share of infeasible evaluations, at each budget."""
    place, known, rng = PLACES[name], facts(name), np.random.default_rng([seed, 3])
    infeasible, readings = 0, []

    def measure(params: Params) -> tuple[float, list[float]]:
        value = place.value(params) + known.unit * place.draw(rng)
        pairs = zip(place.constraints, known.units, strict=True)
        return value, [constraint(params) + unit * place.draw(rng) for constraint, unit in pairs]

    def counted(params: Params) -> tuple[float, list[float]]:
        nonlocal infeasible
        infeasible += not place.is_feasible(params)
        return measure(params)

    for evaluation, recommended in enumerate(PLAYERS[player](name, seed, counted), 1):
        if evaluation in BUDGETS:
            params = recommended()
            regret = (place.value(params) - known.best) / (known.mean - known.best)
            readings.append((regret, place.is_feasible(params), infeasible / evaluation))
        if evaluation == max(BUDGETS):
            return readings
    raise AssertionError("runs have no end")


def finished(runs: Iterable[tuple[str, str, int]], out: Path) -> Iterator[tuple[tuple[str, str, int], Any]]:
    """Results of each run, from the file or computed now."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {tuple(line["run"]): line["readings"] for line in lines}
    for run in runs:
        if run not in known:
            with threadpool_limits(1, user_api="blas"):
                known[run] = play(*run)
            with out.open("a") as file:
                file.write(json.dumps({"run": run, "readings": known[run]}) + "\n")
        yield run, known[run]


def report(results: dict[tuple[str, str, int], Any]) -> None:
    for number, budget in enumerate(BUDGETS):
        rows = []
        for name, player in product([*PLACES, "all"], PLAYERS):
            mine = [r[number] for (who, where, _), r in results.items() if who == player and name in (where, "all")]
            if mine:
                rows.append([name, player, str(len(mine)), *_cells(np.array(mine, dtype=float))])
        head = ["problem", "sampler", "runs", "regret", "with infeasible as 1", "infeasible", "evaluations"]
        print(f"After {budget} evaluations:\n\n{markdown.table(head, rows)}")


def _cells(readings: np.ndarray) -> list[str]:
    regret, feasible, share = readings.T
    good = feasible > 0
    mean = f"{regret[good].mean():.3f}" if good.any() else "-"
    return [mean, f"{np.where(good, regret, 1.0).mean():.3f}", f"{1 - feasible.mean():.2f}", f"{share.mean():.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--players", nargs="+", default=list(PLAYERS), choices=list(PLAYERS))
    parser.add_argument("--problems", nargs="+", default=list(PLACES), choices=list(PLACES))
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/constrained.jsonl"))
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", category=UserWarning)  # experimental, and deprecated in favour of set_constraint
    warnings.simplefilter("ignore", category=FutureWarning)
    runs = [(p, n, s) for s, n, p in product(range(options.seeds), options.problems, options.players)]
    report(dict(finished(runs, options.out)))


if __name__ == "__main__":
    main()
