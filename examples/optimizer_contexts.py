"""Contexts: the best number of threads of a service depends on its load.

Run: python examples/optimizer_contexts.py [FOLDER]; the picture goes to the folder.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from noregret import Float, Int, Optimizer

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
world = np.random.default_rng(1)


def ideal(load):
    """The unknown best number of threads."""
    return 4 + 20 * load**2


def measure(threads, load):
    """Milliseconds of a request, with noise."""
    return (
        30
        + 0.2 * (threads - ideal(load)) ** 2
        + 20 * load
        + 3 * world.standard_normal()
    )


opt = Optimizer(
    {"threads": Int(1, 32)}, goal="minimize", rng=0, context={"load": Float(0, 1)}
)
for minute in range(120):
    trial = opt.ask(context={"load": 0.5 + 0.5 * np.sin(minute / 10)})
    opt.tell(trial, measure(trial.params["threads"], trial.context["load"]))

loads = np.linspace(0, 1, 41)
threads = np.array([opt.best({"load": load}).params["threads"] for load in loads])
print(f"recommended threads: {threads[0]} without load, {threads[-1]} under full load")
print(f"off by {np.abs(threads - ideal(loads)).mean():.1f} on average")

fig, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
asked = [(m.context["load"], m.params["threads"]) for m in opt.measurements]
points = axes.scatter(
    *np.transpose(asked), c=range(len(asked)), cmap="viridis", s=18, label="asked for"
)
axes.plot(loads, ideal(loads), color="0.5", linestyle="--", label="best")
axes.step(loads, threads, where="mid", color="tab:red", label="recommended")
axes.set(xlabel="load", ylabel="threads")
axes.legend(loc="upper left", frameon=False)
fig.colorbar(points, label="trial")
fig.savefig(folder / "optimizer_contexts.svg")
