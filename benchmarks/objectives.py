"""Several objectives under noise: ``python -m benchmarks.objectives --seeds 3 --evaluations 100``.

Every method asks for one setting at a time and measures it with noise: Gaussian, Student-t with two degrees of freedom,
or Gaussian with 3% of the values far off. After 50, 100 and 200 evaluations it recommends a front, and the score is the
hypervolume of the *true* values there, as a part of that of the true front; the reference point is a tenth of the
front's range beyond its worst values.

Optuna's samplers and random search recommend the settings that no other one dominates by the measured values. qLogNEHVI
recommends those that no other one dominates by the posterior mean of its own models, which is better for it under
noise, and it knows the reference point. It runs where BoTorch can be imported. Each run is one line of a JSON Lines
file and is not repeated; CPU seconds are those of the method alone.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import markdown
from benchmarks.lines import add, stored
from noregret import Float, Optimizer
from noregret.optimizer.model.objectives import hypervolume, nondominated

Array = np.ndarray[Any, Any]
RESULTS = Path(__file__).parent / "results" / "objectives.jsonl"
BUDGETS = (50, 100, 200)
INITIAL = 13
"""Random settings with which the others' models and generations begin."""


@dataclass(frozen=True)
class World:
    """Functions of (n, d) points of the unit cube to minimise, (n, m), and points whose values are the true front."""

    values: Callable[[Array], Array]
    dimension: int
    best: Callable[[Array], Array]
    """Settings among which the true front is, from (n, d) uniform points."""

    @cached_property
    def front(self) -> Array:
        drawn = np.random.default_rng(0).random((4000, self.dimension))
        found = self.values(self.best(drawn))
        return np.asarray(found[nondominated(-found)])

    @cached_property
    def scale(self) -> Array:
        return np.asarray(np.ptp(self.front, axis=0))

    def score(self, points: Array) -> float:
        """Hypervolume of the true values at these points, as a part of the best."""
        reference = -(self.front.min(axis=0) + 1.1 * self.scale)
        return hypervolume(-self.values(points), reference) / hypervolume(-self.front, reference)


def zdt(second: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    """Zitzler, Deb and Thiele's problems, by f2 as a function of f1 and g."""

    def values(x: Array) -> Array:
        g = 1 + 9 * x[:, 1:].mean(axis=1)
        return np.column_stack([x[:, 0], second(x[:, 0], g)])

    return values


def dtlz2(objectives: int) -> Callable[[Array], Array]:
    """Deb, Thiele, Laumanns and Zitzler's second problem: the front is a part of a sphere."""

    def values(x: Array) -> Array:
        radius = 1 + ((x[:, objectives - 1 :] - 0.5) ** 2).sum(axis=1)
        angles, found = x[:, : objectives - 1] * np.pi / 2, []
        for k in range(objectives):
            cosines = np.cos(angles[:, : objectives - 1 - k]).prod(axis=1)
            found.append(radius * cosines * (np.sin(angles[:, objectives - 1 - k]) if k else 1.0))
        return np.column_stack(found)

    return values


def service(x: Array) -> Array:
    """Latency in ms and cost per hour of a service: instances, cores of each, batch, cache and threads per core."""
    instances, cores = 1 + np.floor(11.99 * x[:, 0]), 2.0 ** np.floor(3.99 * x[:, 1])
    batch, cache = 2.0 ** (6 * x[:, 2]), x[:, 3]
    threads = 1 + np.floor(7.99 * x[:, 4])
    speed = instances * cores * batch / (batch + 3) * (1 - 0.06 * np.abs(threads - 3))
    load = 20 * (1 - 0.5 * np.sqrt(cache)) / speed
    latency = 5 + 0.8 * batch + 12 * load + 120 * np.maximum(load - 0.7, 0.0) ** 2
    cost = instances * (0.05 + 0.09 * cores) + 0.6 * cache * instances**0.5
    return np.column_stack([np.log(latency), np.log(cost)])


def on_axis(rest: float, free: int = 1) -> Callable[[Array], Array]:
    """All but the first coordinates at this value."""
    return lambda x: np.column_stack([x[:, :free], np.full((len(x), x.shape[1] - free), rest)])


WORLDS = {
    "zdt1": World(zdt(lambda f, g: g * (1 - np.sqrt(f / g))), 4, on_axis(0.0)),
    "zdt2": World(zdt(lambda f, g: g * (1 - (f / g) ** 2)), 4, on_axis(0.0)),
    "zdt3": World(zdt(lambda f, g: g * (1 - np.sqrt(f / g) - f / g * np.sin(10 * np.pi * f))), 4, on_axis(0.0)),
    "dtlz2": World(dtlz2(2), 4, on_axis(0.5)),
    "service": World(service, 5, lambda x: x),
    "dtlz2, 3": World(dtlz2(3), 5, on_axis(0.5, 2)),
}

LEVEL = 0.1
"""Standard deviation of the noise, or scale of Student's t, as a part of the range of the front."""

NOISES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "gaussian": lambda rng, m: LEVEL * rng.standard_normal(m),
    "student": lambda rng, m: LEVEL * rng.standard_t(2, m),
    "spikes": lambda rng, m: LEVEL * rng.standard_normal(m) + 5 * rng.choice([-1, 1], m) * (rng.random(m) < 0.03),
}

Run = Iterator[tuple[Array, Callable[[Array], None], Callable[[], Array]]]
"""Setting to measure, what to call with its values, and what returns the recommended settings."""


def ours(world: World, seed: int) -> Run:
    names = [f"x{i}" for i in range(world.dimension)]
    goals = {f"f{i}": "minimize" for i in range(world.front.shape[1])}
    opt = Optimizer({name: Float(0, 1) for name in names}, goals=goals, rng=seed)

    def recommended() -> Array:
        return np.array([[its.params[name] for name in names] for its in opt.front()])

    while True:
        trial = opt.ask()
        point = np.array([trial.params[name] for name in names])
        yield (
            point,
            lambda told, trial=trial: opt.tell(trial, dict(zip(goals, told.tolist(), strict=True))),
            recommended,
        )


def measured_front(points: list[Array], told: list[Array]) -> Array:
    """Settings that no other one dominates by the measured values."""
    return np.array(points)[nondominated(-np.array(told))]


def randomly(world: World, seed: int) -> Run:
    rng = np.random.default_rng([seed, 1])
    points: list[Array] = []
    told: list[Array] = []
    while True:
        points.append(rng.random(world.dimension))
        yield points[-1], told.append, lambda: measured_front(points, told)


def optuna_run(sampler: str) -> Callable[[World, int], Run]:
    def run(world: World, seed: int) -> Run:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        made = {
            "NSGA-II": lambda: optuna.samplers.NSGAIISampler(population_size=20, seed=seed),
            "TPE": lambda: optuna.samplers.TPESampler(multivariate=True, n_startup_trials=INITIAL, seed=seed),
        }[sampler]()
        study = optuna.create_study(directions=["minimize"] * world.front.shape[1], sampler=made)
        points: list[Array] = []
        told: list[Array] = []
        while True:
            trial = study.ask()
            points.append(np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(world.dimension)]))

            def tell(values: Array, trial: Any = trial) -> None:
                study.tell(trial, values.tolist())
                told.append(values)

            yield points[-1], tell, lambda: measured_front(points, told)

    return run


def nehvi(world: World, seed: int) -> Run:
    import torch
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms.outcome import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import SumMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)
    warnings.simplefilter("ignore")
    d, rng = world.dimension, np.random.default_rng([seed, 1])
    points: list[Array] = []
    told: list[Array] = []
    reference = torch.tensor(-(world.front.min(axis=0) + 1.1 * world.scale))  # it knows what the others do not

    def fitted() -> Any:
        x, y = torch.tensor(np.array(points)), -torch.tensor(np.array(told))
        each = [SingleTaskGP(x, y[:, [k]], outcome_transform=Standardize(1)) for k in range(y.shape[1])]
        model = ModelListGP(*each)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        return model, x

    def recommended() -> Array:
        model, x = fitted()
        with torch.no_grad():
            mean = model.posterior(x).mean.numpy()
        return np.array(points)[nondominated(mean)]

    while True:
        if len(points) < INITIAL:
            points.append(rng.random(d))
        else:
            model, x = fitted()
            rule = qLogNoisyExpectedHypervolumeImprovement(model, reference, x, prune_baseline=True)
            bounds = torch.tensor([[0.0] * d, [1.0] * d])
            found, _ = optimize_acqf(rule, bounds, q=1, num_restarts=4, raw_samples=128)
            points.append(found[0].numpy())
        yield points[-1], told.append, recommended


METHODS: dict[str, Callable[[World, int], Run]] = {
    "noregret": ours,
    "qLogNEHVI": nehvi,
    "TPE": optuna_run("TPE"),
    "NSGA-II": optuna_run("NSGA-II"),
    "random": randomly,
}


def play(method: str, world: World, noise: str, seed: int, evaluations: int) -> dict[str, Any]:
    """Scores after each budget, and the CPU seconds of the method up to there."""
    rng, run = np.random.default_rng([seed, 2]), METHODS[method](world, seed)
    scores: dict[str, float] = {}
    seconds: dict[str, float] = {}
    spent = 0.0
    for count in range(1, evaluations + 1):
        begun = time.process_time()
        point, tell, recommended = next(run)
        spent += time.process_time() - begun
        told = world.values(point[None])[0] + world.scale * NOISES[noise](rng, len(world.scale))
        begun = time.process_time()
        tell(told)
        spent += time.process_time() - begun
        if count in BUDGETS:
            scores[str(count)], seconds[str(count)] = world.score(recommended()), spent
    return {"scores": scores, "seconds": seconds}


def key(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["method"], run["world"], run["noise"], run["seed"], run["evaluations"]


def report(runs: list[dict[str, Any]]) -> None:
    """Mean score by noise and budget, mean rank, and CPU seconds, as Markdown."""
    for budget in map(str, BUDGETS):
        by_case: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
        seconds: dict[str, list[float]] = defaultdict(list)
        for run in runs:
            if budget in run["scores"]:
                by_case[run["noise"], run["world"], run["seed"]][run["method"]] = run["scores"][budget]
                seconds[run["method"]].append(run["seconds"][budget])
        methods = [name for name in METHODS if name in seconds]
        rows = []
        for noise in NOISES:
            cases = [scores for (its, *_), scores in by_case.items() if its == noise and len(scores) == len(methods)]
            if not cases:
                continue
            table = np.array([[scores[name] for name in methods] for scores in cases])
            ranks = (table[:, None, :] > table[:, :, None]).sum(axis=2) + 1
            for name, score, rank in zip(methods, table.T, ranks.T, strict=True):
                error = score.std(ddof=1) / np.sqrt(len(score)) if len(score) > 1 else 0.0
                cells = f"{score.mean():.3f} ± {error:.3f}", f"{rank.mean():.2f}", f"{np.mean(seconds[name]):.1f}"
                rows.append([noise, str(len(cases)), name, *cells])
        if rows:
            print(f"\n{budget} evaluations\n")
            print(markdown.table(["noise", "runs", "method", "hypervolume", "mean rank", "CPU s"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=max(BUDGETS))
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--noises", nargs="*", default=list(NOISES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="one seed of zdt1 and dtlz2, 50 evaluations, no BoTorch")
    args = parser.parse_args()
    if args.quick:
        args.seeds, args.evaluations, args.worlds = 1, 50, ["zdt1", "dtlz2"]
        args.methods = [name for name in args.methods if name != "qLogNEHVI"]
    done = {key(run) for run in stored(args.results)}
    for seed, world, noise, method in product(range(args.seeds), args.worlds, args.noises, args.methods):
        run = {"method": method, "world": world, "noise": noise, "seed": seed, "evaluations": args.evaluations}
        if key(run) not in done:
            add(run | play(method, WORLDS[world], noise, seed, args.evaluations), args.results)
    chosen = [run for run in stored(args.results) if run["method"] in args.methods]
    report([run for run in chosen if run["evaluations"] == args.evaluations])


if __name__ == "__main__":
    main()
