"""Makes the files of this folder with noregret 1.0: saved optimizers, and what they said and asked next.

``git archive d859a5be src | tar -x -C OLD; PYTHONPATH=OLD/src python tests/optimizer/saved_1_0/make.py``
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer import optimizer as module

HERE = Path(__file__).parent


def value(params, rng):
    numbers = [v if isinstance(v, float) else len(str(v)) / 3 for v in params.values()]
    return sum((number - 0.3) ** 2 for number in numbers) + 0.05 * rng.standard_normal()


def one(rng):
    """Conditions, known noise, bounds, costs, failures, past settings, a lost trial and one that failed first."""
    space = {
        "x": Float(1e-3, 1, log=True),
        "y": Float(0, 1, step=0.1),
        "kind": Choice(["a", ("b", 1), True]),
        "n": Int(1, 8, when={"kind": "a"}),
    }
    start = {"x": 0.1, "y": 0.5, "kind": "a", "n": 2}
    opt = Optimizer(space, goal="maximize", rng=3, baseline=start, require=["x <= y"], budget=90.0, possible=(None, 0))
    opt.ask()
    for number in range(14):
        trial = opt.ask()
        found = -abs(value(trial.params, rng))
        if number == 4:
            opt.fail(trial, cost=1.5)
        elif number % 5 == 2:
            opt.tell(trial, at_most=found, cost=2.0)
        else:
            opt.tell(trial, found, noise=0.05 if number % 2 else None, cost=1.0 + trial.params["x"])
        if number == 6:
            opt.fail(trial := opt.ask())
            opt.tell(trial, -0.4)
    opt.tell({"x": 0.3, "y": 0.7, "kind": ("b", 1)}, -0.5, cost=3.0)
    opt.fail({"x": 0.9, "y": 0.9, "kind": True})
    return opt, None


def goals(rng):
    """Values that were not measured, constraints, costs and a failure."""
    opt = Optimizer(
        {"x": Float(0, 1), "y": Float(0, 1)},
        goals={"time": "minimize", "accuracy": "maximize"},
        constraints={"memory": ("<=", 0.6), "size": (">=", 0.1)},
        possible={"time": (0, None)},
        rng=1,
    )
    for number in range(12):
        trial = opt.ask()
        x, y = trial.params.values()
        told = {"time": 0.1 + x + 0.01 * abs(rng.standard_normal()), "accuracy": x - (y - 0.4) ** 2}
        if number % 4 == 1:
            told.pop("time" if number == 5 else "accuracy")
        if number == 6:
            opt.fail(trial)
        else:
            opt.tell(trial, told, constraints={"memory": x * y, "size": None if number == 3 else y}, cost=1 + y)
    return opt, None


def safe(rng):
    """Safe questions."""
    opt = Optimizer(
        {"x": Float(0, 1)}, rng=0, constraints={"limit": ("<=", 0.0)}, baseline={"x": 0.2}, safe={"limit": 0.95}
    )
    for _ in range(12):
        trial = opt.ask()
        x, noise = trial.params["x"], 0.02 * rng.standard_normal(2)
        opt.tell(trial, (x - 0.8) ** 2 + noise[0], constraints={"limit": x**2 - 0.36 + noise[1]})
    return opt, None


def contexts(rng):
    """Answers in several contexts, with a baseline."""
    options = {"load": Float(0, 1), "region": Choice(["eu", "us"])}
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=2, context=options, baseline={"x": 0.5, "y": 0.5})
    for number in range(14):
        trial = opt.ask(context={"load": float(rng.random()), "region": ["eu", "us"][number % 2]})
        opt.tell(trial, value(trial.params, rng) + trial.context["load"])
    return opt, {"load": 0.5, "region": "eu"}


def fidelity(rng):
    """Reports: of runs that ended, were stopped, failed, or are running."""
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, fidelity={"epochs": Int(1, 81, log=True)}, rng=0)
    for number in range(10):
        trial = opt.ask()
        for epoch in (1, 3, 9, 27, 81):
            if epoch > trial.fidelity["epochs"]:
                break
            found = value(trial.params, rng) + 0.5 * epoch**-0.7
            opt.report(trial, {"epochs": epoch}, found)
            if opt.should_stop(trial):
                break
        if number == 5:
            opt.fail(trial)
        elif number < 9:
            opt.tell(trial, found, cost=float(epoch))
    return opt, None


def drift(rng):
    """Older answers were forgotten."""
    module.REMEMBERED = 12
    opt = Optimizer({"x": Float(0, 1)}, rng=0, drift="auto", goal="maximize", baseline={"x": 0.4})
    for number in range(30):
        trial = opt.ask()
        opt.tell(trial, -((trial.params["x"] - 0.3 - 0.02 * number) ** 2) + 0.02 * rng.standard_normal())
    return opt, None


def table(rng):
    """Rows, some of them the same."""
    opt = Optimizer([{"cores": c, "size": s} for c in (2, 4, 8) for s in ("small", "large")] * 2, rng=0)
    for number in range(9):
        trial = opt.ask()
        if number == 4:
            opt.fail(trial)
        else:
            opt.tell(trial, value(trial.params, rng))
    return opt, None


def array(rng):
    """Rows of numbers."""
    opt = Optimizer(np.round(np.random.default_rng(0).random((40, 2)), 3), rng=0)
    for _ in range(10):
        trial = opt.ask()
        opt.tell(trial, value(dict(enumerate(trial.params.tolist())), rng))
    return opt, None


def estimated(best):
    """An estimate as JSON."""
    parts = ("estimate", "lower", "upper") if hasattr(best, "estimate") else ("values", "lower", "upper")
    return {"params": listed(best.params)} | {name: getattr(best, name) for name in parts}


def listed(params):
    """Params as JSON."""
    if isinstance(params, dict):
        return {name: list(its) if isinstance(its, tuple) else its for name, its in params.items()}
    return params.tolist()


def observed(opt):
    """All answers as JSON."""
    return [its._asdict() | {"params": listed(its.params)} for its in opt.answers]


def main():
    for make in (one, goals, safe, contexts, fidelity, drift, table, array):
        opt, context = make(np.random.default_rng(7))
        opt.ask(context=context)
        with tempfile.TemporaryDirectory() as folder:
            opt.save(Path(folder) / "opt.json")
            saved = json.loads((Path(folder) / "opt.json").read_text())
        best = opt.best(context, weights={"time": 1, "accuracy": 2}) if opt.goals else opt.best(context)
        expected = {
            "context": context,
            "answers": observed(opt),
            "pending": [[its.id, its.token, listed(its.params)] for its in opt.pending],
            "spent": opt._spent,
            "best": estimated(best),
            "asked": [listed(opt.ask(context=context).params) for _ in range(2)],
        }
        text = json.dumps({"saved": saved, "expected": expected}, separators=(",", ":"))
        (HERE / f"{make.__name__}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
