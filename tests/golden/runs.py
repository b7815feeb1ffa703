"""Golden runs: trials of the Optimizer and pulls of every algorithm, on fixed problems with fixed seeds.

``python -m tests.golden.runs`` updates the JSON files beside this one. Do so only when a change of the
trials is intended, and explain it in the commit.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

EXACT = {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD"}
"""Environment in which two x86 machines round alike; NumPy reads it when it is imported."""

HERE = Path(__file__).parent
QUESTIONS, ROUNDS = 60, 50


def main() -> None:
    """Update all runs, in a process with the environment `EXACT`."""
    if any(os.environ.get(name) != value for name, value in EXACT.items()):
        os.execve(sys.executable, [sys.executable, "-m", "tests.golden.runs", *sys.argv[1:]], {**os.environ, **EXACT})
    import warnings

    warnings.filterwarnings("ignore", message="During parsing environment variable")  # a CPU without the feature
    found = {"optimizer": {name: run() for name, run in optimizer_runs().items()}, "algorithms": algorithm_runs()}
    if sys.argv[1:] == ["--print"]:
        print(json.dumps(found))
        return
    for name, runs in found.items():
        lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in runs.items())
        (HERE / f"{name}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def optimizer_runs() -> dict[str, Callable[[], dict[str, Any]]]:
    """A run for every feature of the Optimizer that changes its trials."""
    import numpy as np

    from noregret import Choice, Float, Int, Optimizer

    square = {"x": Float(0, 1), "y": Float(0, 1)}
    four = {"a": Float(0, 1), "b": Float(-2, 2), "c": Float(1e-3, 1, log=True), "n": Int(1, 64, log=True)}
    names = {"kind": Choice(["a", "b", "c"]), "mode": Choice([True, False]), "level": Choice(list("pqrst"))}
    nested = {
        "model": Choice(["tree", "linear"]),
        "depth": Int(1, 10, when={"model": "tree"}),
        "rate": Float(0.01, 1, log=True, when={"model": "linear"}),
    }
    table = [{"cores": cores, "memory": memory} for cores in (1, 2, 4, 8, 16) for memory in (4, 8, 16, 32, 64, 128)]

    def bowl(params: Mapping[str, Any]) -> float:
        return sum((0.3 + 0.2 * i - value) ** 2 for i, value in enumerate(params.values()))

    def four_of(p: Mapping[str, Any]) -> float:
        rate = math.log10(p["c"]) + 1.5
        return (p["a"] - 0.6) ** 2 + 0.3 * math.sin(3 * p["b"]) + rate**2 + 0.1 * abs(math.log2(p["n"]) - 3)

    def named(p: Mapping[str, Any]) -> float:
        return "bca".index(p["kind"]) + 0.5 * p["mode"] + 0.3 * abs("pqrst".index(p["level"]) - 3)

    def nested_of(p: Mapping[str, Any]) -> float:
        return abs(p["depth"] - 6) / 5 if p["model"] == "tree" else 0.2 + (math.log10(p["rate"]) + 1) ** 2

    def seconds(p: Mapping[str, Any]) -> float:
        return 20 / p["cores"] + 40 / p["memory"] + 0.3 * p["cores"]

    def played(
        space: Any, function: Callable[[Any], float], noise: float = 0.1, count: int = 1, **options: Any
    ) -> dict[str, Any]:
        """Ask and tell until all trials are done."""
        opt, rng = Optimizer(space, rng=7, **options), np.random.default_rng(8)
        questions: list[Any] = []
        while len(questions) < QUESTIONS:
            for trial in opt.ask(count):
                questions.append(trial.params)
                opt.tell(trial, function(trial.params) + noise * float(rng.standard_normal()))
        return ended(opt, questions)

    def ended(opt: Any, questions: list[Any], **asked: Any) -> dict[str, Any]:
        best = opt.best(**asked)
        said = {"estimate": best.estimate, "lower": best.lower, "upper": best.upper}
        if opt.baseline is not None:
            gain = opt.gain()
            said |= {"gain": gain.estimate, "gain.lower": gain.lower, "gain.upper": gain.upper}
        return {"questions": questions, "best": best.params, "said": said}

    def in_contexts() -> dict[str, Any]:
        opt, rng = Optimizer(square, rng=7, context={"load": Float(0, 1)}), np.random.default_rng(8)
        questions = []
        for i in range(QUESTIONS):
            load = (0.2, 0.8, 0.5)[i % 3]
            trial = opt.ask(context={"load": load})
            questions.append(trial.params)
            opt.tell(trial, (trial.params["x"] - load) ** 2 + trial.params["y"] + 0.1 * float(rng.standard_normal()))
        return ended(opt, questions, context={"load": 0.5})

    def constrained() -> dict[str, Any]:
        opt, rng = Optimizer(square, rng=7, constraints={"sum": ("<=", 1.0)}), np.random.default_rng(8)
        questions = []
        for _ in range(QUESTIONS):
            trial = opt.ask()
            questions.append(trial.params)
            total = sum(trial.params.values()) + 0.05 * float(rng.standard_normal())
            opt.tell(trial, -total + bowl(trial.params), constraints={"sum": total})
        return ended(opt, questions)

    def drifting() -> dict[str, Any]:
        opt, rng = Optimizer(square, rng=7, drift=30.0), np.random.default_rng(8)
        questions = []
        for i in range(QUESTIONS):
            trial = opt.ask()
            questions.append(trial.params)
            opt.tell(trial, (trial.params["x"] - i / QUESTIONS) ** 2 + 0.05 * float(rng.standard_normal()))
        return ended(opt, questions)

    def failing() -> dict[str, Any]:
        opt, rng = Optimizer(square, rng=7), np.random.default_rng(8)
        questions = []
        for _ in range(QUESTIONS):
            trial = opt.ask()
            questions.append(trial.params)
            if trial.params["x"] > 0.7 or rng.random() < 0.1:
                opt.fail(trial)
            else:
                opt.tell(trial, bowl(trial.params) + 0.1 * float(rng.standard_normal()))
        return ended(opt, questions)

    def with_noise() -> dict[str, Any]:
        opt, rng = Optimizer(square, rng=7), np.random.default_rng(8)
        questions = []
        for i in range(QUESTIONS):
            trial, noise = opt.ask(), (0.02, 0.5)[i % 2]
            questions.append(trial.params)
            opt.tell(trial, bowl(trial.params) + noise * float(rng.standard_normal()), noise=noise)
        return ended(opt, questions)

    def timed() -> dict[str, Any]:
        rng = np.random.default_rng(9)
        return played(square, lambda p: math.exp(3 * bowl(p) + 0.2 * float(rng.standard_normal())), noise=0.0)

    return {
        "plain": lambda: played(four, four_of),
        "choices": lambda: played(names, named, 0.3),
        "conditions": lambda: played(nested, nested_of, 0.2),
        "context": in_contexts,
        "constraint": constrained,
        "drift": drifting,
        "failures": failing,
        "table": lambda: played(table, seconds, 0.5),
        "baseline": lambda: played(square, bowl, 0.2, baseline={"x": 0.9, "y": 0.8}),
        "batch": lambda: played(square, bowl, 0.2, count=4),
        "told noise": with_noise,
        "logarithm": timed,
    }


def algorithm_runs() -> dict[str, dict[str, Any]]:
    """Arms that every algorithm pulls on one problem with Gaussian noise, and its final recommendation."""
    import numpy as np

    from noregret import SquaredExponential, algorithms, problems, run

    kernel = SquaredExponential(0.2)
    problem = problems.rkhs(kernel, points=60, rng=3)
    top = float(problem.means.max())
    facts = {
        "norm": problem.norm,
        "noise": 0.1,
        "delta": 0.1,
        "horizon": ROUNDS,
        "alpha": 1.0,
        "moment": top**2 + 0.01,
        "bounds": (top - 0.5, top + 0.5),
        "first_epoch": 8,
    }
    found = {}
    for name, builder in algorithms.NAMES.items():
        known = {key: value for key, value in facts.items() if key in inspect.signature(builder).parameters}
        trace = run(builder(kernel, **known), problem, ROUNDS, rng=5)
        found[name] = {"arms": np.asarray(trace.arms).tolist(), "regret": float(trace.cumulative_regret[-1])}
    return found


if __name__ == "__main__":
    main()
