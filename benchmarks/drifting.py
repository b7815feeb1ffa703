"""Settings whose best changes with time: ``python -m benchmarks.drifting --seeds 5``.

The `Optimizer` as it is, against one that is told the number of the evaluation as a context. Four worlds with the same
hill: it stands still, jumps half way, moves steadily, or comes and goes like day and night. Printed in Markdown: the
average regret of all questions, of the 30 after half of them, when the jump comes, and of the last 30; and, for the
jump, after how many evaluations the average of ten in a row is for the first time below a tenth of what the jump costs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import markdown
from noregret import Float, Int, Optimizer
from noregret.belief.posterior import Floats

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}
NOISE = 0.05
JUMP = 0.6**2 + 0.4**2
"""How much worse the best place before the jump is after it."""

Place = tuple[float, float]
WORLDS: dict[str, Callable[[float], Place]] = {
    "stands still": lambda share: (0.2, 0.3),
    "jumps": lambda share: (0.2, 0.3) if share < 0.5 else (0.8, 0.7),
    "moves": lambda share: (0.2 + 0.6 * share, 0.3 + 0.4 * share),
    "day and night": lambda share: (0.5 + 0.3 * math.sin(4 * math.pi * share), 0.5),
}


def regrets(world: str, is_told: bool, seed: int, rounds: int) -> Floats:
    """The regret of each question, (rounds,)."""
    context = {"evaluation": Int(0, rounds - 1)} if is_told else None
    opt, noise, found = Optimizer(SPACE, rng=seed, context=context), np.random.default_rng([seed, 1]), []
    for evaluation in range(rounds):
        trial = opt.ask(context={"evaluation": evaluation} if is_told else None)
        x, y = WORLDS[world](evaluation / rounds)
        found.append((trial.params["x"] - x) ** 2 + (trial.params["y"] - y) ** 2)
        opt.tell(trial, found[-1] + NOISE * noise.standard_normal())
    return np.array(found)


def recovery(found: Floats) -> float:
    """Evaluations after half of them until ten in a row are good on average, infinite if they never are."""
    later = np.convolve(found[len(found) // 2 :], np.full(10, 0.1), "valid")
    return float(np.argmax(later < JUMP / 10)) + 10 if (later < JUMP / 10).any() else math.inf


def cells(world: str, is_told: bool, seeds: int, rounds: int) -> list[str]:
    runs, half = np.array([regrets(world, is_told, seed, rounds) for seed in range(seeds)]), rounds // 2
    parts = [runs, runs[:, half : half + 30], runs[:, -30:]]
    numbers: list[Any] = [f"{part.mean():.3f}" for part in parts]
    found = [f"{recovery(run):g}" for run in runs] if world == "jumps" else []
    return [" · ".join(numbers), ", ".join(found) or "-"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=160)
    args = parser.parse_args()
    head = ["world", "optimizer", "regret of all · 30 after half · last 30", "evaluations to recover, each run"]
    ways = {"as it is": False, "told the evaluation": True}
    with threadpool_limits(1):
        rows = [[w, name, *cells(w, told, args.seeds, args.rounds)] for w in WORLDS for name, told in ways.items()]
    print(markdown.table(head, rows))


if __name__ == "__main__":
    main()
