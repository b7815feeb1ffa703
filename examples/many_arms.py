"""Many arms and rounds: 20,000 options and 200,000 measurements in seconds.

Run it as ``python examples/many_arms.py [FOLDER]``; the pictures go to the folder.
"""

import sys
from pathlib import Path

import noregret
from noregret.problems import branin, standard

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
kernel = noregret.SquaredExponential(0.5)
problem = standard(branin, points=20_000, kernel=kernel, rng=0)

# mini-GP-UCB repeats a choice until its variance has shrunk: a few hundred choices for
# 200,000 rounds.
mini = noregret.algorithms.mini_gp_ucb(kernel, norm=3, noise=0.2)
trace = noregret.run(mini, problem, 200_000, rng=0, watch=["rank"])
rank = trace.watched["rank"][-1]
print(f"200,000 rounds in {trace.seconds:.1f} s on {rank:.0f} distinct options")

# REDS measures whole epochs of random options and drops those that cannot be the best:
# three epochs here.
reds = noregret.algorithms.reds(
    kernel, norm=3, noise=0.2, horizon=2000, constants="experiment"
)
shrinking = noregret.run(reds, problem, 2000, rng=0, watch=["active"])
left = shrinking.watched["active"][-1]
print(f"REDS has {left:,.0f} of 20,000 options left after 2,000 rounds")

noregret.plot.regret(
    {"mini-gp-ucb": [trace]}, log=True, rates=True, path=folder / "many_arms.svg"
)
noregret.plot.active_arms({"reds": [shrinking]}, path=folder / "shrinking.svg")
