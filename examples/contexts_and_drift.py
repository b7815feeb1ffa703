"""A context that is shown before every round, and a function that changes unseen.

Run it as ``python examples/contexts_and_drift.py [FOLDER]``; the pictures go to the folder.
"""

import sys
from pathlib import Path

import numpy as np

import noregret
from noregret import algorithms, problems

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rounds, seeds = 500, range(4)


def played(build, make_problem):
    """One run of an algorithm, built for the problem, on each seed."""
    worlds = [make_problem(rounds=rounds, rng=seed) for seed in seeds]
    return [noregret.run(build(world), world, rounds, rng=seed) for seed, world in zip(seeds, worlds, strict=True)]


# The best arm depends on a context: rows are (context, arm), the kernel is a product of one on each.
def without_context(**settings):
    """The same problem for those to whom the context is not shown."""
    known = problems.contextual(**settings)
    return problems.Changing("blind", known.arms, known.means, known.kernel.right.kernel, known.payoff, known.norm)


facts = {"noise": 0.1, "scale": 0.5}
traces = {
    "cgp-ucb": played(lambda p: algorithms.cgp_ucb(p.kernel, norm=p.norm, **facts), problems.contextual),
    "ay-ucb": played(lambda p: algorithms.ay_ucb(p.kernel, norm=p.norm, **facts), without_context),
    "random": played(lambda p: algorithms.random(p.kernel), problems.contextual),
}
noregret.plot.regret(traces, path=folder / "contexts.svg")
for name, those in traces.items():
    print(f"contexts, {name:>9}: regret {np.mean([trace.regret.sum() for trace in those]):.0f}")

# A function that walks at random: who remembers all is misled by what was true before.
facts = {"noise": 0.1, "scale": 0.2}
builders = {
    "ay-ucb": lambda p: algorithms.ay_ucb(p.kernel, norm=p.norm, **facts),
    "tv-gp-ucb": lambda p: algorithms.tv_gp_ucb(p.kernel, rate=0.01, **facts),
    "sw-gp-ucb": lambda p: algorithms.sw_gp_ucb(p.kernel, norm=p.norm, window=100, **facts),
    "r-gp-ucb": lambda p: algorithms.r_gp_ucb(p.kernel, norm=p.norm, period=100, **facts),
    "wgp-ucb": lambda p: algorithms.wgp_ucb(p.kernel, norm=p.norm, discount=0.98, **facts),
}
traces = {name: played(build, problems.walk) for name, build in builders.items()}
noregret.plot.regret(traces, path=folder / "drift.svg")
for name, those in traces.items():
    print(f"a walk, {name:>9}: regret {np.mean([trace.regret.sum() for trace in those]):.0f}")
