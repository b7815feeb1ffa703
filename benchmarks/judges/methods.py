"""Methods that are compared, each with its defaults: a run on a problem gives a recommendation at every budget.

A method that is asked for one setting at a time does not know the budgets, and one run gives all readings. Kernel
Tuner's strategies and SimOpt's solvers run by themselves and plan with the budget, so they are run once for each.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from benchmarks.development.playing import played
from benchmarks.development.random_search import RandomSearch, Setting
from benchmarks.development.simulated import Simulation
from benchmarks.development.tasks import Task
from benchmarks.judges.problems import Judged, Kernel, Params
from noregret import Choice, Int, Optimizer

SMAC_EVALUATIONS = 50
"""A run of SMAC to 200 evaluations takes minutes of CPU time."""


class Recommended(NamedTuple):
    """Recommendation after some evaluations, and the CPU seconds of the method up to there.

    noregret has intervals, of `best` and of `gain`. A method that raised has an error and no params.
    """

    budget: int
    params: Params
    seconds: float
    best: tuple[float, float] | None = None
    gain: tuple[float, float] | None = None
    error: str | None = None


Method = Callable[[Task, int, Params, list[int]], Iterator[Recommended]]


class TPE:
    """Optuna's TPESampler; a table is searched by the places on its columns, and the nearest row is measured."""

    def __init__(self, space: Any, goal: str, rng: int, baseline: Params) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna, self.table = optuna, space if isinstance(space, list) else None
        self.study = optuna.create_study(direction=goal, sampler=optuna.samplers.TPESampler(seed=rng))
        if self.table is None:
            self.space, first = space, baseline
        else:
            grids = {name: sorted({row[name] for row in self.table}) for name in self.table[0]}
            self.space = {name: Int(0, len(grid) - 1) for name, grid in grids.items()}
            self.sizes = np.array([max(len(grid) - 1, 1) for grid in grids.values()])
            places = [[grids[name].index(value) for name, value in row.items()] for row in self.table]
            self.tree = cKDTree(np.array(places) / self.sizes)
            first = {name: grids[name].index(value) for name, value in baseline.items()}
        self.study.enqueue_trial(first)

    def ask(self) -> Setting:
        self.trial = self.study.ask()
        for name, parameter in self.space.items():
            if isinstance(parameter, Choice):
                self.trial.suggest_categorical(name, parameter.options)
            elif isinstance(parameter, Int):
                self.trial.suggest_int(name, parameter.low, parameter.high, log=parameter.log)
            else:
                self.trial.suggest_float(name, parameter.low, parameter.high, log=parameter.log)
        return self._setting(self.trial.params)

    def tell(self, trial: Setting, value: float) -> None:
        self.study.tell(self.trial, value)

    def fail(self, trial: Setting) -> None:
        self.study.tell(self.trial, state=self.optuna.trial.TrialState.FAIL)

    def best(self) -> Setting:
        return self._setting(self.study.best_params)

    def _setting(self, params: Params) -> Setting:
        if self.table is None:
            return Setting({name: params[name] for name in self.space})
        place = np.array([params[name] for name in self.space]) / self.sizes
        return Setting(self.table[int(self.tree.query(place)[1])])


class SMAC:
    """SMAC3's facade for hyperparameters, which repeats promising settings; its incumbent is recommended."""

    def __init__(self, space: Any, goal: str, rng: int, baseline: Params) -> None:
        from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, UniformIntegerHyperparameter
        from smac import HyperparameterOptimizationFacade, Scenario
        from smac.runhistory.dataclasses import TrialValue

        self.value, self.sign, self.space = TrialValue, 1.0 if goal == "minimize" else -1.0, space
        parameters = [
            CategoricalHyperparameter(name, parameter.options)
            if isinstance(parameter, Choice)
            else UniformIntegerHyperparameter(name, parameter.low, parameter.high)
            for name, parameter in space.items()
        ]
        configurations = ConfigurationSpace(seed=rng)
        configurations.add(parameters)
        folder = tempfile.mkdtemp()
        scenario = Scenario(configurations, n_trials=SMAC_EVALUATIONS, seed=rng, output_directory=Path(folder))
        self.facade = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=False
        )

    def ask(self) -> Setting:
        self.info = self.facade.ask()
        return self._setting(self.info.config)

    def tell(self, trial: Setting, value: float) -> None:
        self.facade.tell(self.info, self.value(cost=self.sign * value))

    def best(self) -> Setting:
        return self._setting(self.facade.intensifier.get_incumbent())

    def _setting(self, config: Any) -> Setting:
        values = dict(config)
        chosen = {name: values[name] for name in self.space}
        return Setting({n: v if isinstance(self.space[n], Choice) else int(v) for n, v in chosen.items()})


def asked(search: Callable[..., Any], longest: int | None = None) -> Method:
    """Runs of a class with ask, tell, fail and best."""

    def run(task: Task, seed: int, start: Params, budgets: list[int]) -> Iterator[Recommended]:
        budgets = [budget for budget in budgets if longest is None or budget <= longest]
        for opt, best, seconds, tried in played(search, task, seed, budgets, baseline=start):
            intervals = ()
            if isinstance(opt, Optimizer):
                gain = opt.gain()
                intervals = ((best.lower, best.upper), (gain.lower, gain.upper))
            yield Recommended(len(tried), best.params, seconds, *intervals)

    return run


def at_random(space: Any, goal: Any, rng: int, baseline: Params) -> RandomSearch:
    return RandomSearch(space, goal, rng)


def planned(once: Callable[[Task, int, int], tuple[Params, float]]) -> Method:
    """Runs of a method that knows the budget, one for each: it may fail at one budget and not at another."""

    def run(task: Task, seed: int, start: Params, budgets: list[int]) -> Iterator[Recommended]:
        for budget in budgets:
            try:
                yield Recommended(budget, *once(task, seed, budget))
            except Exception as error:
                yield Recommended(budget, {}, 0.0, error=f"{type(error).__name__}: {error}"[:300])

    return run


def kernel_cache(settings: list[Params], values: Iterable[float], path: Path) -> dict[str, Any]:
    """Write values, inf for a setting that does not run, as Kernel Tuner's cache; return what its simulation needs."""
    results = {}
    for setting, value in zip(settings, values, strict=True):
        time = value if math.isfinite(value) else "RuntimeFailedConfig"
        results[",".join(map(str, setting.values()))] = setting | {"time": time}
    grids = {name: sorted({row[name] for row in settings}) for name in settings[0]}
    header = {"device_name": "table", "kernel_name": "kernel", "problem_size": [1], "objective": "time"}
    header |= {"tune_params_keys": list(grids), "tune_params": grids}
    path.write_text(json.dumps(header | {"cache": results}), encoding="utf-8")
    known = {tuple(row.values()) for row in settings}

    def is_known(*values: int, **params: int) -> bool:
        """Restriction of the space; Kernel Tuner calls it in both ways."""
        return (values or tuple(params[name] for name in grids)) in known

    kernel = {"kernel_name": "kernel", "kernel_source": "__global__ void kernel(int n) {}", "lang": "CUDA"}
    kernel |= {"problem_size": 1, "arguments": [np.int32(1)], "tune_params": grids, "restrictions": [is_known]}
    return kernel | {"cache": str(path), "simulation_mode": True, "quiet": True}


def tuned_by(strategy: str) -> Method:
    """Runs of a strategy of Kernel Tuner in its simulation mode, on measurements drawn for this seed."""

    def once(task: Task, seed: int, budget: int) -> tuple[Params, float]:
        import kernel_tuner

        assert isinstance(task, Kernel)
        rng = np.random.default_rng([seed, 7])
        drawn = [task.measured(setting, rng) for setting in task.space]
        values = [math.inf if value is None else value for value in drawn]
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 Kernel Tuner's strategies draw from it
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            arguments = kernel_cache(task.space, values, Path(folder) / "cache.json")
            options = {"max_fevals": budget}
            began = time.process_time()
            found, _ = kernel_tuner.tune_kernel(**arguments, strategy=strategy, strategy_options=options, seed=seed)
            seconds = time.process_time() - began
        grids = arguments["tune_params"]
        # a result is a setting with its time, or with an error in its place
        running = [result for result in found if isinstance(result.get("time"), float)]
        count = len({tuple(result[name] for name in grids) for result in found})
        if not running or count > budget:
            raise RuntimeError(f"{len(running)} settings ran, {count} were evaluated of {budget}")
        luckiest = min(running, key=lambda result: result["time"])
        return {name: luckiest[name] for name in grids}, seconds

    return planned(once)


def solved_by(solver: str) -> Method:
    """Runs of a solver of SimOpt; a macroreplication has the random numbers that SimOpt gives it.

    The solver sees the box. SimOpt's solvers share random numbers between solutions, unlike the other methods here.
    """

    def once(task: Task, seed: int, budget: int) -> tuple[Params, float]:
        from mrg32k3a.mrg32k3a import MRG32k3a
        from simopt.directory import solver_directory

        assert isinstance(task, Simulation)
        problem = _boxed(task, budget)
        own, count = solver_directory[solver](), problem.model.n_rngs
        streams = [MRG32k3a(s_ss_sss_index=[seed + 3, i, 0]) for i in range(count + 3)]
        own.solution_progenitor_rngs, own.rng_list = streams[:count], streams[count:]
        began = time.process_time()
        steps = own.run(problem)
        seconds = time.process_time() - began - problem.simulating
        last = steps[steps["budget"] <= budget]["solution"].iloc[-1]
        return dict(zip(task.space, map(float, last), strict=True)), seconds

    return planned(once)


def _boxed(task: Simulation, budget: int) -> Any:
    """The problem with the bounds of the space, which notes the CPU time of simulations."""
    kind = type(task.problem)
    low = tuple(parameter.low for parameter in task.space.values())
    high = tuple(parameter.high for parameter in task.space.values())

    def simulate(self: Any, solution: Any, num_macroreps: int = 1) -> None:
        began = time.process_time()
        kind.simulate(self, solution, num_macroreps)
        self.simulating += time.process_time() - began

    own = {"lower_bounds": property(lambda self: low), "upper_bounds": property(lambda self: high)}
    boxed = type(kind.__name__, (kind,), own | {"simulate": simulate, "simulating": 0.0})
    return boxed(fixed_factors={"budget": budget})


STRATEGIES = ("bayes_opt", "genetic_algorithm", "simulated_annealing", "diff_evo", "greedy_ils", "random_sample")
METHODS: dict[str, dict[str, Method]] = {
    "simopt": {
        "noregret": asked(Optimizer),
        "ASTRODF": solved_by("ASTRODF"),
        "Nelder-Mead": solved_by("NELDMD"),
        "TPE": asked(TPE),
        "random search": solved_by("RNDSRCH"),
    },
    "kernels": {"noregret": asked(Optimizer)}
    | {name: tuned_by(name) for name in STRATEGIES}
    | {"TPE": asked(TPE), "random": asked(at_random)},
    "training": {
        "noregret": asked(Optimizer),
        "SMAC": asked(SMAC, SMAC_EVALUATIONS),
        "TPE": asked(TPE),
        "random": asked(at_random),
    },
}
SMOOTH_ONLY = ("ASTRODF", "Nelder-Mead")
"""Solvers that SimOpt gives problems with floats only."""


def methods_of(problem: Judged) -> list[str]:
    """Methods that can run on a problem."""
    return [name for name in METHODS[problem.group] if problem.is_smooth or name not in SMOOTH_ONLY]
