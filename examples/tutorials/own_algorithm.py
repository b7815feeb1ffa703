"""Your own algorithm in twenty lines: pull every arm, then the top tenth."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import noregret


@dataclass(frozen=True)
class TopTenth:
    """Pull every arm in turn, then a random one of the tenth with the largest means."""

    model: noregret.ExactGP

    def play(self, arms, rng):
        belief, everything = self.model.prior(arms, rng), np.arange(len(arms))
        for first in everything:
            pulled, rewards = yield noregret.Pull(np.array([first]), belief, everything)
            belief.update(pulled, rewards)
        while True:
            top = np.argsort(-belief.mean)[: max(1, len(arms) // 10)]
            pulled, rewards = yield noregret.Pull(
                rng.choice(top, 1), belief, everything
            )
            belief.update(pulled, rewards)

    def bounds(self, belief):
        return belief.mean - 2 * belief.std, belief.mean + 2 * belief.std


kernel = noregret.SquaredExponential(0.2)
problem = noregret.problems.rkhs(kernel, rng=0)
entrants = {
    "top tenth": TopTenth(noregret.ExactGP(kernel, 0.04)),
    "amm-ucb": noregret.algorithms.amm_ucb(kernel, norm=problem.norm, noise=0.2),
    "random": noregret.algorithms.random(kernel),
}
traces = {
    name: [noregret.run(algorithm, problem, 500, rng=seed) for seed in range(5)]
    for name, algorithm in entrants.items()
}
for name, runs in traces.items():
    print(f"{name:>9}: regret {np.mean([run.regret.sum() for run in runs]):.0f}")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
noregret.plot.regret(traces, path=folder / "own_algorithm.svg")
