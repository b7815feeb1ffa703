"""Comparing algorithms on your own table: a column per option, a row per measurement.

Run it as ``python examples/compare_on_a_table.py [FOLDER] [TABLE.csv]``; the picture
goes to the folder. Without a table it generates one: response times of 12 servers,
lower is better, with occasional spikes.
"""

import sys
from pathlib import Path

import numpy as np

import noregret
from noregret.problems import Problem, Resampled

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
if len(sys.argv) > 2:
    table = np.loadtxt(sys.argv[2], delimiter=",", skiprows=1)
else:
    world = np.random.default_rng(0)
    load = world.gamma(4, 0.25, (400, 1))
    table = load * np.linspace(1.0, 2.0, 12) * world.gamma(8, 1 / 8, (400, 12))
    table[world.random(table.shape) < 0.01] += 10

# A pull of an option returns its value in a random row. The similarity of two options
# is the correlation of their columns.
payoff = Resampled(-table)
kernel = noregret.Tabular(np.corrcoef(table, rowvar=False))
problem = Problem("my table", kernel.arms, payoff.means, kernel, payoff)
print(noregret.diagnose(list(table.T)))

noise = float(np.median(table.std(axis=0)))
norm = float(np.abs(payoff.means).max()) * 2
algorithms = {
    "amm-ucb": noregret.algorithms.amm_ucb(kernel, norm=norm, noise=noise, scale=0.3),
    "gp-ts": noregret.algorithms.gp_ts(kernel, norm=norm, noise=noise, scale=0.3),
    "gp-ei": noregret.algorithms.gp_ei(kernel, noise=noise),
    "random": noregret.algorithms.random(kernel, noise=noise),
}
traces = {
    name: [noregret.run(a, problem, 2000, rng=seed) for seed in range(8)]
    for name, a in algorithms.items()
}
best = int(payoff.means.argmax())
for name, those in traces.items():
    share = np.mean([(trace.arms[-500:] == best).mean() for trace in those])
    print(f"{name:>8}: takes the best option in {share:.0%} of the last 500 rounds")

noregret.plot.regret(traces, log=True, path=folder / "compare_on_a_table.svg")
