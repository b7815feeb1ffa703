"""Parameters that apply only when others have certain values: ``python -m benchmarks.conditional --seeds 10``.

Eight problems with branches, noregret's `Optimizer` and sampler against Optuna's TPE, plain and with
``multivariate=True, group=True``, and random search. The objective is define-by-run for Optuna; the Optimizer is given
the conditions. Reported after 50 and 100 evaluations: the true regret of the recommendation, and whether it is
in the right branch. noregret recommends `best()`, and Optuna's samplers the best measurement, ``study.best_params``.
The best value of every problem is 0. A recommendation that lacks a parameter would end the program.

Finished runs are kept in a file (``--out``), to which further runs are added. The model was developed on other
problems.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from threadpoolctl import threadpool_limits

from benchmarks.markdown import table
from noregret import Choice, Float, Int, Optimizer
from noregret.integrations.optuna import NoRegretSampler

READ_AT = (50, 100)
Params = Mapping[str, Any]
Space = dict[str, Float | Int | Choice]


@dataclass(frozen=True)
class Problem:
    """Objective to minimise, noise of a measurement, and test for the branch of the best params."""

    space: Space
    value: Callable[[Params], Any]
    is_right: Callable[[Params], bool]
    noise: Callable[[np.random.Generator], float]


def gaussian(size: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: size * float(rng.standard_normal())


def heavy(size: float) -> Callable[[np.random.Generator], float]:
    """Student-t with 1.5 degrees of freedom: its variance is infinite."""
    return lambda rng: size * float(rng.standard_t(1.5))


def machine() -> Problem:
    """Two branches: support vectors are better, in a narrow valley; a forest is good everywhere."""
    space: Space = {
        "model": Choice(["vectors", "forest"]),
        "cost": Float(1e-3, 1e3, log=True, when={"model": "vectors"}),
        "gamma": Float(1e-4, 10, log=True, when={"model": "vectors"}),
        "depth": Int(1, 16, when={"model": "forest"}),
        "share": Float(0.1, 1.0, step=0.1, when={"model": "forest"}),
    }

    def value(p: Params) -> Any:
        if p["model"] == "forest":
            return 0.25 + 0.02 * abs(p["depth"] - 11) + 0.2 * abs(p["share"] - 0.4)
        cost, gamma = math.log10(p["cost"]), math.log10(p["gamma"])
        return 1 - math.exp(-0.3 * (cost + gamma) ** 2 - 0.15 * (gamma + 2) ** 2)

    return Problem(space, value, lambda p: p["model"] == "vectors", gaussian(0.05))


def kernels() -> Problem:
    """Three branches, one of them without parameters of its own; the regulariser is common to all."""
    space: Space = {
        "kernel": Choice(["linear", "polynomial", "radial"]),
        "ridge": Float(1e-6, 1, log=True),
        "degree": Int(2, 6, when={"kernel": "polynomial"}),
        "offset": Float(0, 3, when={"kernel": "polynomial"}),
        "width": Float(0.01, 10, log=True, when={"kernel": "radial"}),
    }

    def value(p: Params) -> Any:
        ridge = 0.1 * abs(math.log10(p["ridge"]) + (2 if p["kernel"] == "polynomial" else 4))
        if p["kernel"] == "polynomial":
            return ridge + 0.12 * abs(p["degree"] - 3) + 0.1 * abs(p["offset"] - 1)
        return ridge + (0.4 if p["kernel"] == "linear" else 0.15 + 0.3 * abs(math.log10(p["width"])))

    return Problem(space, value, lambda p: p["kernel"] == "polynomial", heavy(0.05))


def layers() -> Problem:
    """A number of layers, and the units of each."""
    space: Space = {"layers": Int(1, 4), "rate": Float(1e-4, 1e-1, log=True)}
    for i in range(1, 5):
        space[f"units{i}"] = Int(4, 256, log=True, when={"layers": list(range(i, 5))})

    def value(p: Params) -> Any:
        units = [math.log2(p[f"units{i}"]) for i in range(1, p["layers"] + 1)]
        off = sum((its - 7 + i) ** 2 for i, its in enumerate(units)) / 30
        return off + {1: 0.5, 2: 0.2, 3: 0.0, 4: 0.15}[p["layers"]] + 0.15 * abs(math.log10(p["rate"]) + 2.5)

    return Problem(space, value, lambda p: p["layers"] == 3, gaussian(0.1))


def training() -> Problem:
    """Three levels: the best is at the bottom, sgd with a schedule in steps."""
    space: Space = {
        "solver": Choice(["adam", "sgd"]),
        "rate": Float(1e-4, 1, log=True),
        "beta": Float(0.8, 0.999, when={"solver": "adam"}),
        "momentum": Float(0, 0.99, when={"solver": "sgd"}),
        "schedule": Choice(["none", "cosine", "steps"], when={"solver": "sgd"}),
        "decay": Float(0.1, 0.9, when={"schedule": "steps"}),
        "every": Int(5, 50, step=5, when={"schedule": "steps"}),
    }

    def value(p: Params) -> Any:
        rate = math.log10(p["rate"])
        if p["solver"] == "adam":
            return 0.25 + 0.15 * abs(rate + 3) + abs(p["beta"] - 0.9)
        sgd = 0.15 * abs(rate + 1) + 0.5 * (p["momentum"] - 0.8) ** 2
        if p["schedule"] != "steps":
            return sgd + {"none": 0.4, "cosine": 0.2}[p["schedule"]]
        return sgd + (p["decay"] - 0.3) ** 2 + 0.005 * abs(p["every"] - 20)

    return Problem(space, value, lambda p: p.get("schedule") == "steps", heavy(0.04))


def few() -> Problem:
    """One parameter against eight, whose branch is good in the middle of the cube; the one is better."""
    space: Space = {"kind": Choice(["one", "eight"]), "x": Float(-1, 1, when={"kind": "one"})}
    space |= {f"z{i}": Float(-1, 1, when={"kind": "eight"}) for i in range(8)}

    def value(p: Params) -> Any:
        if p["kind"] == "one":
            return 1 - math.exp(-8 * (p["x"] + 0.55) ** 2)
        return 0.15 + 0.1 * sum(p[f"z{i}"] ** 2 for i in range(8))

    return Problem(space, value, lambda p: p["kind"] == "one", gaussian(0.08))


def many() -> Problem:
    """Two parameters against seven, and the seven are better."""
    space: Space = {"kind": Choice(["two", "seven"])}
    space |= {f"x{i}": Float(0, 1, when={"kind": "two"}) for i in range(2)}
    space |= {f"z{i}": Float(0, 1, when={"kind": "seven"}) for i in range(7)}

    def value(p: Params) -> Any:
        if p["kind"] == "two":
            return 0.3 + 0.3 * ((p["x0"] - 0.5) ** 2 + (p["x1"] - 0.9) ** 2)
        return 0.35 * sum(abs(p[f"z{i}"] - (i + 1) / 9) for i in range(7))

    return Problem(space, value, lambda p: p["kind"] == "seven", heavy(0.04))


def quarters() -> Problem:
    """Four branches that differ little, each with two parameters of its own and one in common."""
    names = ("north", "east", "south", "west")
    space: Space = {"side": Choice(names), "height": Float(0, 10)}
    space |= {f"{name}{i}": Float(0, 1, when={"side": name}) for name in names for i in range(2)}

    def value(p: Params) -> Any:
        number = names.index(p["side"])
        first, second = p[f"{p['side']}0"], p[f"{p['side']}1"]
        own = (first - 0.2 * (number + 1)) ** 2 + (second - 0.9 + 0.2 * number) ** 2
        return 0.08 * ((number + 2) % 4) + own + 0.01 * abs(p["height"] - 2 * number) ** 1.5

    return Problem(space, value, lambda p: p["side"] == "south", gaussian(0.05))


def flags() -> Problem:
    """Three flags, each with a number when it is on; two of them should be on."""
    space: Space = {"base": Float(0, 1)}
    for name in ("cache", "batch", "prefetch"):
        space |= {name: Choice([False, True]), f"{name}_size": Int(8, 128, step=8, when={name: True})}

    def value(p: Params) -> Any:
        total = 0.5 * (p["base"] - 0.35) ** 2
        for name, best, gain in (("cache", 96, 0.3), ("batch", 32, 0.3), ("prefetch", 64, -0.2)):
            if p[name]:
                total += 0.004 * abs(p[f"{name}_size"] - best) + max(-gain, 0)
            else:
                total += max(gain, 0)
        return total

    return Problem(space, value, lambda p: p["cache"] and p["batch"] and not p["prefetch"], heavy(0.03))


PROBLEMS = {its.__name__: its for its in (machine, kernels, layers, training, few, many, quarters, flags)}


def suggested(trial: optuna.Trial, space: Space) -> dict[str, Any]:
    """Params in the order in which an objective suggests them, without those that do not apply."""
    params: dict[str, Any] = {}
    for name, its in space.items():
        if all(params.get(above) in values for above, values in (its.when or {}).items()):
            if isinstance(its, Choice):
                params[name] = trial.suggest_categorical(name, list(its.options))
            elif isinstance(its, Int):
                params[name] = trial.suggest_int(name, its.low, its.high, step=its.step or 1, log=its.log)
            else:
                params[name] = trial.suggest_float(name, its.low, its.high, step=its.step, log=its.log)
    return params


def with_optimizer(problem: Problem, seed: int) -> Iterable[Params]:
    """Recommendations of the Optimizer at the readings."""
    optimizer, noise = Optimizer(problem.space, rng=seed), np.random.default_rng([seed, 1])
    for number in range(1, max(READ_AT) + 1):
        trial = optimizer.ask()
        optimizer.tell(trial, problem.value(trial.params) + problem.noise(noise))
        if number in READ_AT:
            yield optimizer.best().params


def with_optuna(problem: Problem, seed: int, make: Callable[[int], optuna.samplers.BaseSampler]) -> Iterable[Params]:
    """Recommendations of a sampler or of the study at the readings."""
    study, noise = optuna.create_study(sampler=make(seed)), np.random.default_rng([seed, 1])
    for number in range(1, max(READ_AT) + 1):
        trial = study.ask()
        study.tell(trial, problem.value(suggested(trial, problem.space)) + problem.noise(noise))
        if number in READ_AT:
            its = study.sampler
            yield its.best(study).params if isinstance(its, NoRegretSampler) else study.best_params


def grouped(seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)


METHODS: dict[str, Callable[[Problem, int], Iterable[Params]]] = {
    "Optimizer": with_optimizer,
    "NoRegretSampler": lambda problem, seed: with_optuna(problem, seed, NoRegretSampler),
    "TPE": lambda problem, seed: with_optuna(problem, seed, lambda s: optuna.samplers.TPESampler(seed=s)),
    "TPE, grouped": lambda problem, seed: with_optuna(problem, seed, grouped),
    "random": lambda problem, seed: with_optuna(problem, seed, lambda s: optuna.samplers.RandomSampler(seed=s)),
}


def run(name: str, method: str, seed: int) -> dict[str, Any]:
    """One run: the regret of each recommendation, and whether it is in the right branch."""
    problem = PROBLEMS[name]()
    found = list(METHODS[method](problem, seed))
    regret = [float(problem.value(params)) for params in found]
    return {
        "problem": name,
        "method": method,
        "seed": seed,
        "regret": regret,
        "right": [bool(problem.is_right(params)) for params in found],
    }


def page(runs: list[dict[str, Any]]) -> str:
    """Mean regret and share of runs in the right branch, per problem and in all, after each number of evaluations."""
    methods = [method for method in METHODS if any(found["method"] == method for found in runs)]

    def cell(mine: list[dict[str, Any]]) -> str:
        regret, right = (np.mean([found[key] for found in mine], axis=0) for key in ("regret", "right"))
        return " · ".join(f"{r:.3f} ({share:.0%})" for r, share in zip(regret, right, strict=True))

    def row(title: str, chosen: list[dict[str, Any]]) -> list[str]:
        return [title, *(cell([found for found in chosen if found["method"] == method]) for method in methods)]

    rows = [row(name, [found for found in runs if found["problem"] == name]) for name in PROBLEMS]
    return table(["regret after 50 · 100 (right branch)", *methods], [*rows, row("mean", runs)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("conditional.jsonl"))
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    runs = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {(found["problem"], found["method"], found["seed"]) for found in runs}
    with options.out.open("a") as file, threadpool_limits(1):
        for seed, name, method in product(range(options.seeds), PROBLEMS, METHODS):
            if (name, method, seed) not in known:
                runs.append(run(name, method, seed))
                print(json.dumps(runs[-1]), file=file, flush=True)
    print(page([found for found in runs if found["seed"] < options.seeds]))


if __name__ == "__main__":
    main()
