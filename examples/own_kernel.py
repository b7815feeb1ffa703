"""Your own kernel and arms: recipes with a base, a spice and an amount.

Run it as ``python examples/own_kernel.py [FOLDER]``; the picture goes to the folder.
"""

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

import noregret
from noregret import testing

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True)
class Recipes(noregret.Kernel):
    """Similarity of recipes: close amounts, the same base, the same spice."""

    other_base: float = 0.5
    other_spice: float = 0.3

    def __call__(self, X, Y):
        """Kernel matrix, (n, 3), (m, 3) -> (n, m)."""
        base = np.where(X[:, None, 0] == Y[None, :, 0], 1.0, self.other_base)
        spice = np.where(X[:, None, 1] == Y[None, :, 1], 1.0, self.other_spice)
        return base * spice * noregret.SquaredExponential(0.3)(X[:, 2:], Y[:, 2:])

    def diag(self, X):
        """k(x, x), (n, 3) -> (n,)."""
        return np.ones(len(X))


arms = np.array(list(product(range(3), range(4), np.linspace(0, 1, 15))))
testing.check_kernel(Recipes(), arms)  # symmetric, positive, diag = the diagonal

# The unknown taste: base 2 with spice 1, and not too much of it.
taste = 0.3 * (arms[:, 0] == 2) + 0.3 * (arms[:, 1] == 1)
taste += 0.4 * np.exp(-10 * (arms[:, 2] - 0.4) ** 2)
noise = noregret.problems.Gaussian(0.2)
problem = noregret.problems.Problem("recipes", arms, taste, Recipes(), noise)

facts, plain = (
    {"norm": 1.5, "noise": 0.2, "scale": 0.5},
    noregret.SquaredExponential(0.3),
)
algorithms = {
    "own kernel": noregret.algorithms.amm_ucb(Recipes(), **facts),
    "plain kernel": noregret.algorithms.amm_ucb(plain, **facts),
    "random": noregret.algorithms.random(Recipes(), noise=0.2),
}
traces = {
    name: [noregret.run(a, problem, 1000, rng=seed) for seed in range(5)]
    for name, a in algorithms.items()
}
for name, those in traces.items():
    regret = np.mean([trace.regret.sum() for trace in those])
    print(f"{name:>12}: regret {regret:.0f} in 1,000 rounds")

noregret.plot.regret(traces, path=folder / "own_kernel.svg")
