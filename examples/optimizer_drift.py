"""Drift: the best number of threads changes during tuning, without notice.

Run it as ``python examples/optimizer_drift.py [FOLDER]``; the picture goes there.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from noregret import Int, Optimizer

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
ROUNDS = np.arange(200)


def ideal(minute):
    """The unknown best number of threads."""
    return np.where(
        minute < 80, 10.0, np.where(minute < 120, 40.0, 40.0 - 0.25 * (minute - 120))
    )


def played(drift):
    """Threads asked for and recommended, and the half-life, by evaluation."""
    world, opt = (
        np.random.default_rng(1),
        Optimizer({"threads": Int(1, 64)}, goal="minimize", rng=0, drift=drift),
    )
    rows = []
    for minute in ROUNDS:
        trial = opt.ask()
        off = trial.params["threads"] - float(ideal(minute))
        opt.tell(trial, 30 + 0.05 * off**2 + 3 * world.standard_normal())
        rows.append(
            (trial.params["threads"], opt.best().params["threads"], opt.half_life)
        )
    return np.array(rows).T


fig, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for axes, drift in zip(panels, (None, "auto"), strict=True):
    asked, recommended, half_life = played(drift)
    off = np.abs(recommended - ideal(ROUNDS))[80:].mean()
    print(f"drift={drift!r}: off by {off:.1f} threads after the jump", end="")
    found = np.flatnonzero(np.isfinite(half_life))
    print(
        f"; noticed after {found[0] - 80} evaluations, half-life {half_life[-1]:.0f}"
        if found.size
        else ""
    )
    axes.scatter(ROUNDS, asked, s=9, color="0.65", label="asked for")
    axes.plot(ROUNDS, ideal(ROUNDS), color="0.3", linestyle="--", label="best")
    axes.step(ROUNDS, recommended, where="mid", color="tab:red", label="recommended")
    axes.set(title=f"drift={drift!r}", xlabel="evaluation")
panels[0].set(ylabel="threads")
panels[0].legend(loc="upper left", frameon=False)
fig.savefig(folder / "optimizer_drift.svg")
