"""Arms that an old bound rules out, and the cost of evaluating the others: ``python -m benchmarks.stale_bounds``.

mean + sqrt(width^2 + S^2) std, with the mean and std of some rounds ago, the width of now, and S^2 the rise of the
misfit since, is never below mean + width std (docs/decisions/history.md). Only arms whose old bound reaches the
leader would have to be evaluated. The first table is the share of such arms; the second what a share of a product
with a million columns costs, against all of it; the third what is saved by carrying ten rows to all arms at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.core import best
from benchmarks.sketching import NOISE, problem
from noregret import algorithms
from noregret.belief.posterior import Floats

EVERY = 10


def main() -> None:
    print("share of 20,000 arms whose bound of 9 rounds ago reaches the leader, by rounds played")
    for dimension, lengthscale in ((2, 0.2), (3, 0.5), (4, 0.2), (4, 0.5)):
        for name, settings in (("igp-ucb", {"constants": "experiment"}), ("ay-ucb", {})):
            shares, excess = reached(dimension, lengthscale, name, settings)
            cells = "  ".join(f"{100 * i} to {100 * i + 99}: {share:6.1%}" for i, share in enumerate(shares))
            print(
                f"  {dimension}-d, l = {lengthscale}, {name:8s} {cells}   (above its bound: {excess:.0e})", flush=True
            )
    products()


def reached(dimension: int, lengthscale: float, name: str, settings: dict[str, Any]) -> tuple[Floats, float]:
    """The share in each hundred of 300 rounds, and by how much a score was ever above its bound."""
    world = problem(20_000, dimension, lengthscale)
    algorithm, rng = algorithms.NAMES[name](world.kernel, norm=1.0, noise=NOISE, **settings), np.random.default_rng(0)
    belief, shares, excess = algorithm.model.prior(world.arms), [], 0.0
    for t in range(300):
        if t % EVERY == 0:
            mean, std, misfit = belief.mean, belief.std, belief.misfit
        width = algorithm.rule.width(belief)
        scores = belief.mean + width * belief.std
        bound = mean + math.sqrt(width**2 + max(belief.misfit - misfit, 0.0)) * std
        excess = max(excess, float((scores - bound).max()))
        if t % EVERY == EVERY - 1:
            shares.append(float(np.mean(bound >= scores.max())))
        arm = np.array([scores.argmax()])
        belief.update(arm, world.rewards(arm, rng))
    return np.reshape(shares, (3, -1)).mean(axis=1), excess


def products(rows: int = 100, arms: int = 1_000_000) -> None:
    """A row of the factor on some arms against all, and ten rows one by one against ten at once."""
    rng = np.random.default_rng(0)
    table, weights = rng.random((rows, arms)), rng.random((EVERY, rows))
    whole = best(lambda: weights[0] @ table)
    for share in (0.003, 0.01, 0.03, 0.1):
        some = np.sort(rng.choice(arms, int(share * arms), replace=False))
        print(f"{share:.1%} of {arms:,} arms: {best(lambda some=some: weights[0] @ table[:, some]) / whole:.2f} x all")
    print(f"{EVERY} rows at once: {best(lambda: weights @ table) / (EVERY * whole):.2f} x one by one")


if __name__ == "__main__":
    main()
