"""noregret inside Kernel Tuner and SimOpt, ranked by their own methods.

``python -m benchmarks.neighbours``, or ``--quick``:

- Kernel Tuner: its simulation mode on the three tables of ``development/data``, where the time of a configuration is
  the mean of its 32 timings. Printed is the fraction of the optimum, the least time of the table over the least time
  found, after 25, 50, 100 and 200 configurations: mean and standard error over tables and seeds.
- SimOpt: its experiments on problems with box constraints, with a budget of 200 replications. Printed is the mean of
  the objective at the last recommended solution, by 200 replications with common random numbers (post-replications),
  with its standard error over macroreplications.

The tables were used in development: `benchmarks.judges` has others, with noise. This is a check of the two adapters.
Each run is a line of ``--out``, and is read from there if it is known.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import markdown
from benchmarks.development.measured import DATA, timings

TABLES = ("a4000", "mi250x", "a100")
STRATEGIES = ("noregret", "genetic_algorithm", "pso", "simulated_annealing", "random_sample")
EVALUATIONS = (25, 50, 100, 200)
PROBLEMS = ("CNTNEWS-1", "SSCONT-1", "MM1-1")
SOLVERS = ("noregret", "ASTRODF", "NELDMD", "RNDSRCH")
REPLICATIONS, POST_REPLICATIONS = 200, 200


def kernel_cache(table: str, path: Path) -> dict[str, Any]:
    """Write a table as a cache file of Kernel Tuner, and return the arguments of ``tune_kernel`` that read it."""
    settings, measured = timings(DATA / f"gpu_convolution_{table}.csv.gz")
    names, cache = list(settings[0]), {}
    for setting, row in zip(settings, measured, strict=True):
        times = [] if np.isnan(row[0]) else row.tolist()
        time = float(np.mean(times)) if times else "RuntimeFailedConfig"
        cache[",".join(map(str, setting.values()))] = setting | {"time": time, "times": times}
    space = {name: sorted({entry[name] for entry in cache.values()}) for name in names}
    about = {"device_name": table, "kernel_name": "convolution", "problem_size": [1], "objective": "time"}
    path.write_text(json.dumps(about | {"tune_params_keys": names, "tune_params": space, "cache": cache}))
    known = {tuple(entry[name] for name in names) for entry in cache.values()}

    def is_known(params: dict[str, int]) -> bool:
        return tuple(params[name] for name in names) in known

    kernel = {"kernel_name": "convolution", "kernel_source": "", "problem_size": 1, "arguments": [], "lang": "C"}
    simulated = {"cache": str(path), "simulation_mode": True, "quiet": True}
    return kernel | simulated | {"tune_params": space, "restrictions": is_known}


def tuned(table: str, strategy: str, seed: int, evaluations: int) -> list[float]:
    """Times of the configurations in the order in which a strategy measured them, inf for those that do not run."""
    import kernel_tuner

    from noregret.integrations.kernel_tuner import NoRegretStrategy

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # Kernel Tuner's strategies draw from it
    with tempfile.TemporaryDirectory() as folder:
        arguments = kernel_cache(table, Path(folder) / "cache.json")
        results, _ = kernel_tuner.tune_kernel(
            **arguments,
            strategy=NoRegretStrategy() if strategy == "noregret" else strategy,
            strategy_options={"max_fevals": evaluations},
            seed=seed,
        )
    first = {tuple(result[name] for name in arguments["tune_params"]): result for result in reversed(results)}
    order = dict.fromkeys(tuple(result[name] for name in arguments["tune_params"]) for result in results)
    return [math.inf if "__error__" in first[config] else float(first[config]["time"]) for config in order]


def kernel_row(table: str, strategy: str, seed: int) -> list[float]:
    """Fraction of the optimum after each number of evaluations."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cache.json"
        kernel_cache(table, path)
        times = [entry["time"] for entry in json.loads(path.read_text())["cache"].values()]
    best, trace = (
        min(time for time in times if not isinstance(time, str)),
        tuned(table, strategy, seed, EVALUATIONS[-1]),
    )
    return [best / min(trace[:count]) for count in EVALUATIONS]


def simopt_row(problem: str, solver: str, macroreplications: int) -> list[float]:
    """Mean objective at the last recommended solution of each macroreplication."""
    from mrg32k3a.mrg32k3a import MRG32k3a
    from simopt.base import Solution
    from simopt.directory import problem_directory, solver_directory
    from simopt.experiment.run_solver import run_solver

    from noregret.integrations.simopt import NoRegretSolver

    made = NoRegretSolver() if solver == "noregret" else solver_directory[solver]()
    simulated = problem_directory[problem](fixed_factors={"budget": REPLICATIONS})
    found, _ = run_solver(made, simulated, macroreplications, n_jobs=1)
    values = []
    for _, steps in found.groupby("mrep"):
        solution = Solution(steps["solution"].iloc[-1], simulated)
        streams = range(simulated.model.n_rngs)
        solution.attach_rngs([MRG32k3a(s_ss_sss_index=[0, stream, 0]) for stream in streams])
        simulated.simulate(solution, POST_REPLICATIONS)
        values.append(float(solution.objectives_mean[0]))
    return values


def _cell(values: list[float]) -> str:
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.4g} ± {error:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neighbours", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="one seed of one table, two macroreplications of one problem"
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds and macroreplications (default: 5)")
    parser.add_argument("--out", type=Path, default=Path("build/neighbours.jsonl"))
    args = parser.parse_args()
    seeds, tables, problems = (1, TABLES[:1], PROBLEMS[:1]) if args.quick else (args.seeds, TABLES, PROBLEMS)
    kernels = [
        ["kernel", table, strategy, seed] for seed in range(seeds) for table in tables for strategy in STRATEGIES
    ]
    solved = [["simopt", problem, solver, max(seeds, 2)] for problem in problems for solver in SOLVERS]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    known = {json.dumps(run): values for run, values in map(json.loads, lines)}
    for run in [*kernels, *solved]:
        if json.dumps(run) not in known:
            known[json.dumps(run)] = (kernel_row if run[0] == "kernel" else simopt_row)(*run[1:])
            with args.out.open("a") as file:
                file.write(json.dumps([run, known[json.dumps(run)]]) + "\n")
    rows = []
    for strategy in STRATEGIES:
        of_it = zip(*[known[json.dumps(run)] for run in kernels if run[2] == strategy], strict=True)
        rows.append([strategy, *map(_cell, map(list, of_it))])
    print(markdown.table(["Kernel Tuner", *(f"{count} evaluations" for count in EVALUATIONS)], rows))
    rows = [[solver, *(_cell(known[json.dumps(run)]) for run in solved if run[2] == solver)] for solver in SOLVERS]
    print(markdown.table(["SimOpt", *problems], rows))


if __name__ == "__main__":
    main()
