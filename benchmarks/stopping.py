"""Reliability of `Optimizer.done` and of the intervals of `best`: ``python -m benchmarks.stopping``.

The functions are none of those on which the numbers of the certificate were chosen (``--developed`` runs those). Every
few observations each run calls `done` with a tenth, and a fifth, of the difference between the best and
a random point. Printed, in Markdown:

- stopped: runs in which `done` was true before the budget was spent;
- right: of these, those whose recommended setting was as good as promised, with Clopper and Pearson's interval;
- evaluations: the median at the stop, over the runs that stopped;
- never: the share of the runs in which it never was;
- held: how often the interval of `best` contained the true value, and, where the gap was finite, how often no setting
  was better by more than that.

``--null`` is about the first 2 to 60 observations, with little or no difference to find. f is constant, or its standard
deviation is a tenth of the noise, the noise or three times the noise, in spaces on which nothing was chosen (those of
``--null --developed`` are where the numbers come from). Printed for each number of answers:

- better: how often `gain` says "better than your settings" where that is false;
- named: how often it says so where f is at least as large as the noise and it is true;
- best, gain: how often the intervals of `best` and `gain` contained the truth.

``--model`` is about the default rule, by the model, at most 150 evaluations: on twelve functions of one to eight
dimensions with much noise on which nothing was chosen, and with little noise on `HILLS`, `LITTLE` and `LITTLE_NEW`.
`best().remaining` is read at the milestones of the fit, where `done` could first be true, and compared with each
tolerance. Printed for each of them:

- stopped, right, evaluations: as above; saved: the share of all evaluations that stops would have saved;
- held: of all readings, how often no setting was better by more than ``remaining``.

``--power`` is about runs with a baseline in which there is a gain: of 1, 2 and 4 standard deviations of the noise, from
a baseline to the best setting, on three functions of two, four and seven parameters; and what there is on the measured
and simulated problems of the development suite, from a random setting. Printed for each number of answers:

- named: the share of runs in which `gain` is above 0 with 95%, and truly is; wrong: where it truly is not;
- oracle: the same share if all answers were spent on the two settings, best and baseline alone, by Welch's t-test;
- regret, best guess: mean regret of the recommended setting in units of the baseline's, with fewest changes and
  without.

Finished runs are kept in a file (``--out``), to which further runs are added. The numbers of the certificate were
chosen with the seeds 1 and 3, after inspection of the results of 0, 2, 4 and 6.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv
from scipy.stats import ttest_ind
from threadpoolctl import threadpool_limits

from benchmarks.development.classic import random_function
from benchmarks.development.hills import bumps, peaks
from benchmarks.development.noises import NOISES, task
from benchmarks.development.problems import REAL, Problem, on_the_cube, problem
from benchmarks.development.simulated import Simulation
from benchmarks.development.tasks import Task
from noregret import Choice, Float, Int, Optimizer, problems
from noregret.optimizer import axis_of


def two_hills(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """A hill of deviation 0.18 and height 0.8, and one of deviation 0.08 and height 1, in the unit square."""
    rng, wide, narrow = np.random.default_rng([number, 41]), np.zeros(2), np.zeros(2)
    while np.linalg.norm(wide - narrow) < 0.45:
        wide, narrow = rng.uniform(0.15, 0.85, 2), rng.uniform(0.12, 0.88, 2)

    def value(X: np.ndarray) -> np.ndarray:
        first, second = (((X - centre) ** 2).sum(axis=1) for centre in (wide, narrow))
        return np.maximum(0.8 * np.exp(-first / (2 * 0.18**2)), np.exp(-second / (2 * 0.08**2)))

    return value


NEW = {
    "random1-short": (random_function(101, 1, 0.08), 1),
    "random1-long": (random_function(102, 1, 0.2), 1),
    "bumps1": (bumps(21, 1, 0.03), 1),
    "peaks1": (peaks(22, 1), 1),
    "random2-short": (random_function(103, 2, 0.15), 2),
    "random2-middle": (random_function(104, 2, 0.25), 2),
    "bumps2-narrow": (bumps(23, 2, 0.06), 2),
    "bumps2-wide": (bumps(24, 2, 0.1), 2),
    "peaks2-other": (peaks(25, 2), 2),
    "branin": (problems.branin, 2),
    "bowl2": (lambda X: -((X - np.array([0.3, 0.6])) ** 2).sum(axis=1), 2),
    "hartmann3": (problems.hartmann3, 3),
}
OTHERS = ("random2-long", "griewank2", "schwefel3", "michalewicz3", "dixon", "bumps3")
OTHERS += ("levy4", "shekel4", "random4", "peaks5", "names20", "names100", "pairs")
DEVELOPED = ("camel", "well2", "random2", "gramacy", "waves3", "rastrigin2", "bumps2", "griewank", "random1")
DEVELOPED += ("schwefel2", "peaks2", "random3", "goldstein", "shubert2", "levy2", "ackley3", "styblinski4")
MODEL = {
    "bumps1-new": (bumps(51, 1, 0.08), 1),
    "random1-new": (random_function(131, 1, 0.15), 1),
    "rosenbrock2": (problems.rosenbrock, 2),
    "random2-new": (random_function(132, 2, 0.3), 2),
    "peaks2-new": (peaks(52, 2), 2),
    "random3-new": (random_function(133, 3, 0.4), 3),
    "peaks3-new": (peaks(53, 3), 3),
    "random4-new": (random_function(134, 4, 0.5), 4),
    "random5-new": (random_function(145, 5, 0.6), 5),
    "random6-new": (random_function(146, 6, 0.7), 6),
    "random7-new": (random_function(147, 7, 0.8), 7),
    "random8-new": (random_function(148, 8, 0.9), 8),
}
HILLS = {f"hills{number}": (two_hills(number), 2) for number in range(4)}
"""A wide hill of height 0.8 and a narrow one of height 1: `done` must not stop before the second one is found."""
LITTLE = {
    "branin": (problems.branin, 2),
    "rosenbrock2": (problems.rosenbrock, 2),
    "random2-302": (random_function(302, 2, 0.3), 2),
    "random2-303": (random_function(303, 2, 0.2), 2),
    "hartmann4": (problems.hartmann4, 4),
    "random4-304": (random_function(304, 4, 0.5), 4),
    "random4-305": (random_function(305, 4, 0.7), 4),
    "bowl4": (lambda X: -((X - np.array([0.3, 0.6, 0.5, 0.7])) ** 2).sum(axis=1), 4),
}
"""Functions of two and four parameters with little noise, on which and on `HILLS` the numbers were chosen."""
LITTLE_NEW = {
    "random2-502": (random_function(502, 2, 0.25), 2),
    "random2-503": (random_function(503, 2, 0.35), 2),
    "peaks2-504": (peaks(504, 2), 2),
    "hartmann3": (problems.hartmann3, 3),
    "random3-506": (random_function(506, 3, 0.4), 3),
    "random4-507": (random_function(507, 4, 0.6), 4),
    "random4-508": (random_function(508, 4, 0.8), 4),
    "random5-509": (random_function(509, 5, 0.8), 5),
}
"""The same of two to five parameters, on which nothing was chosen."""
MODEL_SETS = {"hills": HILLS, "little": LITTLE, "little, new": LITTLE_NEW}
MODEL_NOISES = ("gaussian-0.15", "student-3", "spikes")
MODEL_PARTS = (0.05, 0.1, 0.2, 0.4)
MODEL_BUDGET = 150
CUBES = NEW | MODEL | HILLS | LITTLE | LITTLE_NEW
USED = ("gaussian-0.02", "gaussian-0.15", "student-3")
PARTS = (0.1, 0.2)
READ_AT = (50, 100, 200, 500)

NULL = {
    "one float": {"x": Float(0, 1)},
    "five floats": {name: Float(0, 1) for name in "vwxyz"},
    "whole numbers": {"i": Int(1, 20), "j": Int(1, 8), "k": Int(1, 4096, log=True)},
    "a choice of five": {"k": Choice(list("abcde"))},
    "eight flags": {f"flag{i}": Choice([False, True]) for i in range(8)},
    "two floats and a choice": {"x": Float(0, 1), "y": Float(1, 100, log=True), "k": Choice(list("abcd"))},
}
NULL_DEVELOPED = {
    "two floats": {"x": Float(0, 1), "y": Float(0, 1)},
    "a choice of ten": {"k": Choice(list(range(10)))},
    "four choices": {name: Choice(list("abc")) for name in "wxyz"},
}
SIZES = (0.0, 0.1, 1.0, 3.0)
NULL_NOISES = {"gaussian": lambda rng: rng.standard_normal(), "student-3": lambda rng: rng.standard_t(3)}
NULL_READ_AT = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 60)


POWER = {
    "two floats": ({"x": Float(0, 1), "y": Float(0, 1)}, {"x": 0.8, "y": 0.3}, {"x": 0.2, "y": 0.7}),
    "two floats, a number and a choice": (
        {"x": Float(0, 1), "rate": Float(1e-3, 1, log=True), "size": Int(1, 16), "kind": Choice(list("abcd"))},
        {"x": 0.3, "rate": 0.1, "size": 12, "kind": "c"},
        {"x": 0.6, "rate": 0.01, "size": 4, "kind": "a"},
    ),
    "seven flags": (
        {f"flag{i}": Choice([False, True]) for i in range(7)},
        {f"flag{i}": i < 3 for i in range(7)},
        {f"flag{i}": False for i in range(7)},
    ),
}
"""Spaces, best settings and baselines of functions that are sums of one term for each parameter."""
GAINS = (1.0, 2.0, 4.0)
POWER_READ_AT = (10, 20, 40, 80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[6, 8, 10], help="75 runs each")
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--every", type=int, default=5, help="answers between two questions whether to stop")
    parser.add_argument("--noises", nargs="+", default=USED, choices=list(NOISES), metavar="NOISE")
    parser.add_argument(
        "--functions", nargs="+", choices=[*NEW, *MODEL, *OTHERS, *DEVELOPED], metavar="NAME", help="only these"
    )
    parser.add_argument("--developed", action="store_true", help="the functions that it was developed on")
    parser.add_argument("--null", action="store_true", help="the first answers, with little or nothing to find")
    parser.add_argument("--model", action="store_true", help="stops by the model, which is the default")
    parser.add_argument("--power", action="store_true", help="gains that are named, against an oracle")
    parser.add_argument("--out", type=Path, help="default: .benchmarks/stopping.jsonl, or null.jsonl")
    options = parser.parse_args()
    if options.null:
        spaces = NULL_DEVELOPED if options.developed else NULL
        runs = product(options.seeds, spaces, SIZES, NULL_NOISES)
        report_null(list(finished(runs, options.out or Path(".benchmarks/null.jsonl"), play_null)))
        return
    if options.power:
        problems = [*product(POWER, GAINS), *((name, 0.0) for name in REAL)]
        runs = ((seed, *problem) for seed, problem in product(options.seeds, problems))
        report_power(list(finished(runs, options.out or Path(".benchmarks/power.jsonl"), play_power)))
        return
    if options.model:
        out = options.out or Path(".benchmarks/stopping_model.jsonl")
        for name, functions in MODEL_SETS.items() if not options.functions else ():
            print(f"\n{name}, noise of 2%\n")
            report_model(list(finished(product(options.seeds, functions, ["gaussian-0.02"]), out, play_model)))
        print("\nmuch noise\n")
        runs = product(options.seeds, options.functions or MODEL, MODEL_NOISES)
        report_model(list(finished(runs, out, play_model)))
        return
    names = options.functions or (DEVELOPED if options.developed else (*NEW, *OTHERS))
    runs = product(options.seeds, names, options.noises, [options.budget], [options.every])
    report(list(finished(runs, options.out or Path(".benchmarks/stopping.jsonl"), play)))


def finished(
    runs: Iterable[tuple[Any, ...]], out: Path, play: Callable[..., dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Results of each run, from the file or computed now."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {tuple(line["run"]): line for line in lines}
    for run in runs:
        if run not in known:
            with threadpool_limits(1, user_api="blas"):
                known[run] = {"run": run, **play(*run)}
            with out.open("a") as file:
                file.write(json.dumps(known[run]) + "\n")
        yield known[run]


def play(seed: int, name: str, noise_name: str, budget: int, every: int) -> dict[str, Any]:
    """Stopping time of one run and its regret there, for each tolerance; its last regret; coverage of `best`."""
    place, noise = place_of(name), NOISES[noise_name]
    rng, opt = np.random.default_rng([seed, 7]), Optimizer(place.space, goal=noise.goal, rng=seed)
    stops: dict[str, tuple[int, float]] = {}
    held = []
    for answers in range(1, budget + 1):
        trial = opt.ask()
        opt.tell(trial, noise.measured(place, place.regret(trial.params), rng))
        for part in PARTS if answers % every == 0 else ():
            if str(part) not in stops and opt.done(within=part * (place.top - place.mean)):
                stops[str(part)] = answers, place.regret(opt.best().params)
        if answers in READ_AT:
            held.append(reading(opt, place, noise.expected))
    return {"stops": stops, "last": place.regret(opt.best().params), "held": held}


def reading(opt: Optimizer, place: Problem, expected: Any) -> tuple[bool, bool | None, float]:
    """Coverage of the interval and of the gap, None for an infinite gap, and the width of the interval."""
    best, unit = opt.best(), place.top - place.mean
    regret = place.regret(best.params)
    within = None if math.isinf(best.gap) else regret * unit <= best.gap
    return best.lower <= expected(place, regret) <= best.upper, within, (best.upper - best.lower) / unit


def play_model(seed: int, name: str, noise_name: str) -> dict[str, Any]:
    """At each milestone: evaluations, regret, and what remains, in units of a random point's regret."""
    place, noise = place_of(name), NOISES[noise_name]
    rng, opt = np.random.default_rng([seed, 13]), Optimizer(place.space, goal=noise.goal, rng=seed)
    unit, read, fitted = place.top - place.mean, [], 0
    for answers in range(1, MODEL_BUDGET + 1):
        trial = opt.ask()
        opt.tell(trial, noise.measured(place, place.regret(trial.params), rng))
        at = opt.calibration.fitted_from(answers, 2, opt.space)
        if at > fitted * 1.4:
            fitted, best = at, opt.best()
            if math.isfinite(best.remaining):
                read.append((answers, place.regret(best.params), best.remaining / unit))
    return {"read": read, "last": place.regret(opt.best().params)}


def report_model(runs: list[dict[str, Any]]) -> None:
    print("| within | runs | stopped | right | evaluations | saved |")
    print("|---" * 6 + "|")
    noises = sorted({run["run"][2] for run in runs})
    kinds = {"all": runs} | {noise: [run for run in runs if run["run"][2] == noise] for noise in noises}
    kinds |= {
        f"{d} parameters": [run for run in runs if CUBES[run["run"][1]][1] in d] for d in ((1, 2), (3, 4, 5), (6, 7, 8))
    }
    for part, (kind, mine) in product(MODEL_PARTS, kinds.items()):
        stops = [next((each for each in run["read"] if each[2] <= part), None) for run in mine]
        made = [each for each in stops if each]
        right, saved = sum(each[1] <= part for each in made), sum(MODEL_BUDGET - each[0] for each in made)
        median = f"{np.median([each[0] for each in made]):.0f}" if made else "-"
        share_saved = saved / (MODEL_BUDGET * max(len(mine), 1))
        row = f"{kind} ({len(mine)}) | {len(made)} | {share(right, len(made))} | {median} | {share_saved:.2f} |"
        print(f"| {part} | {row}")
        if kind == "all":
            for run, stop in zip(mine, stops, strict=True):
                if stop and stop[1] > part:
                    print(f"wrong: {run['run']} at {stop[0]}: regret {stop[1]:.3f}, last {run['last']:.3f}")
    readings = [each for run in runs for each in run["read"]]
    print(f"\nheld: {share(sum(regret <= left for _, regret, left in readings), len(readings))}")


def play_null(seed: int, name: str, size: float, noise: str) -> dict[str, Any]:
    """For each number of observations: is "better" reported, is it true, are best and gain within their intervals."""
    space = (NULL | NULL_DEVELOPED)[name]
    place = (*NULL, *NULL_DEVELOPED).index(name), SIZES.index(size), list(NULL_NOISES).index(noise)
    world, rng = np.random.default_rng([seed, 11, *place]), np.random.default_rng([seed, 12, *place])
    effects = {key: world.standard_normal(64) for key in space}
    opt = Optimizer(space, rng=seed)
    places = opt.space.decode(world.uniform(size=(200, len(opt.space.groups))))

    def raw(params: dict[str, Any]) -> float:
        return sum(_effect(effects[key], opt.space.parameters[key], value) for key, value in params.items())

    unit = size / float(np.std([raw(params) for params in places]))
    baseline = places[0]
    opt = Optimizer(space, rng=seed, baseline=baseline)
    read = []
    for answers in range(1, NULL_READ_AT[-1] + 1):
        trial = opt.ask()
        opt.tell(trial, unit * raw(trial.params) + float(NULL_NOISES[noise](rng)))
        if answers in NULL_READ_AT:
            gain = opt.gain()
            value = unit * raw(gain.best.params)
            true = unit * raw(baseline) - value
            held = gain.lower - 1e-12 <= true <= gain.upper + 1e-12
            read.append((gain.lower > 0, true > 0, gain.best.lower <= value <= gain.best.upper, held))
    return {"read": read}


class Additive(Task):
    """Sum over the parameters of |distance to the best value|^1.5, noise 1; the baseline is worse by ``gain``."""

    goal: Literal["maximize", "minimize"] = "minimize"

    def __init__(self, name: str, gain: float) -> None:
        self.space, self.best_params, self.baseline = POWER[name]
        self.unit = gain / self._distance(self.baseline)
        self.gain = gain

    def measured(self, params: dict[str, Any], rng: np.random.Generator) -> float:
        return self.expected(params) + float(rng.standard_normal())

    def expected(self, params: dict[str, Any]) -> float:
        return self.unit * self._distance(params)

    def regret(self, params: dict[str, Any]) -> float:
        return self.expected(params) / self.gain

    def _distance(self, params: dict[str, Any]) -> float:
        return sum(self._apart(name, params[name]) ** 1.5 for name in self.space)

    def _apart(self, name: str, value: Any) -> float:
        if isinstance(self.space[name], Choice):
            return 0.5 * (value != self.best_params[name])
        places = axis_of(self.space[name]).encode([value, self.best_params[name]])
        return float(np.abs(np.diff(np.ravel(places)))[0])


def play_power(seed: int, name: str, size: float) -> dict[str, Any]:
    """For each number of answers: is a gain named, is it true, did the oracle name it, and two regrets."""
    place: Any = Additive(name, size) if size else task(name, "own")
    rng, space = np.random.default_rng([seed, 15]), Optimizer(place.space, rng=0).space
    baseline = place.baseline if size else space.decode(np.random.default_rng([seed, 16]).random((1, _width(space))))[0]
    best = place.best_params if size else _best_params(place)
    opt, read = Optimizer(place.space, goal=place.goal, rng=seed, baseline=baseline), []
    sign = 1.0 if place.goal == "minimize" else -1.0
    unit = max(abs(place.expected(baseline) - place.expected(best)), 1e-300)
    for answers in range(1, POWER_READ_AT[-1] + 1):
        trial = opt.ask()
        value = place.measured(trial.params, rng)
        if value is None:
            opt.fail(trial)
        else:
            opt.tell(trial, value)
        if answers in POWER_READ_AT:
            gain = opt.gain()
            true = sign * (place.expected(baseline) - place.expected(gain.best.params))
            pairs = [[place.measured(each, rng) for _ in range(answers // 2)] for each in (best, baseline)]
            regrets = [
                sign * (place.expected(opt.best(fewest_changes=few).params) - place.expected(best)) / unit
                for few in (True, False)
            ]
            read.append(
                (gain.lower > 0, true > 0, _welch_lower(*(sign * np.array(each) for each in pairs)) > 0, *regrets)
            )
    return {"read": read}


def _width(space: Any) -> int:
    return len(space.groups)


def _best_params(place: Any) -> Any:
    """The best row of a table; for a simulation, the best setting that is known."""
    if isinstance(place, Simulation):
        return dict(zip(place.space, place.definition.best, strict=True))
    return place.space[int(np.argmax(place.means) if place.goal == "maximize" else np.argmin(place.means))]


def _welch_lower(best: np.ndarray, baseline: np.ndarray) -> float:
    """Lower end of the 95% interval of the difference of two means, that of the baseline less that of the best."""
    found = ttest_ind(baseline, best, equal_var=False)
    return (
        float(found.confidence_interval(0.95).low)
        if np.ptp(best) + np.ptp(baseline)
        else float(np.mean(baseline) - np.mean(best))
    )


def report_power(runs: list[dict[str, Any]]) -> None:
    print("| runs | | " + " | ".join(map(str, POWER_READ_AT)) + " |")
    print("|---" * (2 + len(POWER_READ_AT)) + "|")
    kinds = {f"gain of {size:g} sd": [r for r in runs if r["run"][2] == size] for size in GAINS}
    kinds |= {
        f"{n}, {g:g} sd": [r for r in runs if r["run"][1:] == [n, g] or r["run"][1:] == (n, g)]
        for n, g in product(POWER, GAINS)
    }
    kinds |= {name: [r for r in runs if r["run"][1] == name] for name in REAL}
    for kind, mine in kinds.items():
        if not mine:
            continue
        said, true, oracle, few, guess = np.array([run["read"] for run in mine]).transpose(2, 0, 1)
        said, true = said.astype(bool), true.astype(bool)
        rows = {
            "named": said & true,
            "wrong": said & ~true,
            "oracle": oracle,
            "regret": few,
            "of the best guess": guess,
        }
        for title, each in rows.items():
            print(f"| {kind} ({len(mine)}) | {title} | " + " | ".join(f"{m:.2f}" for m in each.mean(axis=0)) + " |")


def _effect(numbers: np.ndarray, parameter: Any, value: Any) -> float:
    """Effect of one value of a parameter on f: a number for each option, or a smooth function of a number."""
    if isinstance(parameter, Choice):
        return float(numbers[parameter.options.index(value)])
    place = float(np.ravel(axis_of(parameter).encode([value]))[0])
    return float(numbers[0] * np.sin(2 + 6 * numbers[1] + (2 + 3 * abs(numbers[2])) * place))


def report_null(runs: list[dict[str, Any]]) -> None:
    print("| runs | | " + " | ".join(map(str, NULL_READ_AT)) + " |")
    print("|---" * (2 + len(NULL_READ_AT)) + "|")
    kinds = {"all": runs} | {f"f {size:g} times the noise": [r for r in runs if r["run"][2] == size] for size in SIZES}
    kinds |= {noise: [r for r in runs if r["run"][3] == noise] for noise in NULL_NOISES}
    kinds |= {name: [r for r in runs if r["run"][1] == name] for name in sorted({r["run"][1] for r in runs})}
    for kind, mine in kinds.items():
        said, true, best, gain = np.array([run["read"] for run in mine]).transpose(2, 0, 1)
        large = np.array([run["run"][2] >= 1 for run in mine])[:, None] & true
        rows = {"better": (said & ~true).mean(axis=0), "best": best.mean(axis=0), "gain": gain.mean(axis=0)}
        if large.any():
            rows["named"] = (said & large).sum(axis=0) / np.maximum(large.sum(axis=0), 1)
        for title, shares in rows.items():
            print(f"| {kind} ({len(mine)}) | {title} | " + " | ".join(f"{each:.2f}" for each in shares) + " |")


@cache
def place_of(name: str) -> Problem:
    """The problem of this name."""
    return on_the_cube(*CUBES[name]) if name in CUBES else problem(name)


def report(runs: list[dict[str, Any]]) -> None:
    print("| within | noise | runs | stopped | right | evaluations | never |")
    print("|---" * 7 + "|")
    for part, noise in product(PARTS, ["all", *sorted({run["run"][2] for run in runs})]):
        mine = [run for run in runs if noise in ("all", run["run"][2])]
        stops = [run["stops"][str(part)] for run in mine if str(part) in run["stops"]]
        right = share(sum(regret <= part for _, regret in stops), len(stops))
        median = f"{np.median([answers for answers, _ in stops]):.0f}" if stops else "-"
        print(
            f"| {part} | {noise} | {len(mine)} | {len(stops)} | {right} | {median} | {1 - len(stops) / len(mine):.2f} |"
        )
    wrong = [(part, *run["run"][:3], *run["stops"][str(part)]) for run in runs for part in PARTS if is_wrong(run, part)]
    print("\nwrong stops (within, seed, function, noise, evaluations, regret):", *wrong, sep="\n- ")
    for answers, *readings in zip(READ_AT, *(run["held"] for run in runs), strict=False):
        gaps = [gap for _, gap, _ in readings if gap is not None]
        print(f"\nafter {answers}: interval held {share(sum(held for held, *_ in readings), len(readings))},", end=" ")
        print(f"median width {np.median([width for *_, width in readings]):.3f};", end=" ")
        print(f"finite gaps held {share(sum(gaps), len(gaps))}")


def is_wrong(run: dict[str, Any], part: float) -> bool:
    return str(part) in run["stops"] and run["stops"][str(part)][1] > part


def share(yes: int, n: int) -> str:
    """Count of n, and Clopper and Pearson's 95% interval for the share."""
    low = float(betaincinv(yes, n - yes + 1, 0.025)) if yes else 0.0
    high = float(betaincinv(yes + 1, n - yes, 0.975)) if yes < n else 1.0
    return f"{yes} of {n} ({low:.2f} to {high:.2f})" if n else "-"


if __name__ == "__main__":
    main()
