"""Heavy tails: truncation helps if measurements have large outliers.

Run it as ``python examples/heavy_tails.py [FOLDER]``; the picture goes to the folder.
"""

import sys
from pathlib import Path

import numpy as np

import noregret
from noregret.problems import Stable, rkhs_sum

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
kernel, rounds, seeds = noregret.SquaredExponential(0.2), 1500, range(8)

# Stable noise of index 1.4: infinite variance, and averages that converge slowly.
problems = [rkhs_sum(kernel, payoff=Stable(1.4, 0.3), rng=seed) for seed in seeds]
draws = problems[0].rewards(np.full(5000, 10), np.random.default_rng(0))
print(noregret.diagnose([draws]))

# alpha and moment describe the tails: E|y|^(1 + alpha) <= moment. The widths are scaled
# down, as usual in practice: the theorems' widths learn nothing in 1,500 rounds.
facts = problems[0].facts
tail = {"moment": facts["moment"], "alpha": facts["alpha"]}
algorithms = {
    "igp-ucb": noregret.algorithms.igp_ucb(kernel, norm=1, noise=0.5, scale=0.2),
    "tgp-ucb": noregret.algorithms.tgp_ucb(
        kernel, norm=1, **tail, constants="experiment", scale=0.02
    ),
}
traces = {
    name: [
        noregret.run(algorithm, problem, rounds, rng=seed)
        for seed, problem in zip(seeds, problems, strict=True)
    ]
    for name, algorithm in algorithms.items()
}
for name, those in traces.items():
    regret = np.mean([trace.regret.mean() for trace in those])
    print(f"{name:>10}: regret per round {regret:.3f}")

noregret.plot.regret(traces, average=True, path=folder / "heavy_tails.svg")
