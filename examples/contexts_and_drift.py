"""A context that is observed before every round, and a function that drifts.

Run: python examples/contexts_and_drift.py [FOLDER]; the pictures go to the folder.
"""

import sys
from pathlib import Path

import numpy as np

import noregret
from noregret import algorithms, problems

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
rounds, seeds = 500, range(4)


def played(build, make_problem):
    """One run of an algorithm, built for the problem, on each seed."""
    worlds = [make_problem(rounds=rounds, rng=seed) for seed in seeds]
    return [
        noregret.run(build(world), world, rounds, rng=seed)
        for seed, world in zip(seeds, worlds, strict=True)
    ]


def known(build, **settings):
    """A builder that gets the norm of the problem, and the current facts."""
    return lambda p: build(p.kernel, norm=p.norm, **facts, **settings)


# The best arm depends on a context: rows are (context, arm), and the kernel is a
# product of one on each.
def without_context(**settings):
    """The same problem without the context."""
    full = problems.contextual(**settings)
    kernel, payoff = full.kernel.right.kernel, full.payoff
    return problems.Changing("blind", full.arms, full.means, kernel, payoff, full.norm)


facts = {"noise": 0.1, "scale": 0.5}
traces = {
    "cgp-ucb": played(known(algorithms.cgp_ucb), problems.contextual),
    "ay-ucb": played(known(algorithms.ay_ucb), without_context),
    "random": played(lambda p: algorithms.random(p.kernel), problems.contextual),
}
noregret.plot.regret(traces, path=folder / "contexts.svg")
for name, those in traces.items():
    regret = np.mean([trace.regret.sum() for trace in those])
    print(f"contexts, {name:>9}: regret {regret:.0f}")

# A random walk: algorithms that remember all rewards are misled by old ones.
facts = {"noise": 0.1, "scale": 0.2}
builders = {
    "ay-ucb": known(algorithms.ay_ucb),
    "tv-gp-ucb": lambda p: algorithms.tv_gp_ucb(p.kernel, rate=0.01, **facts),
    "sw-gp-ucb": known(algorithms.sw_gp_ucb, window=100),
    "r-gp-ucb": known(algorithms.r_gp_ucb, period=100),
    "wgp-ucb": known(algorithms.wgp_ucb, discount=0.98),
}
traces = {name: played(build, problems.walk) for name, build in builders.items()}
noregret.plot.regret(traces, path=folder / "drift.svg")
for name, those in traces.items():
    regret = np.mean([trace.regret.sum() for trace in those])
    print(f"a walk, {name:>9}: regret {regret:.0f}")
