"""First steps: find the best of 200 settings of a knob, with an interval.

Run it as ``python examples/first_steps.py [FOLDER]``; the picture goes to the folder.
"""

import sys
from pathlib import Path

import numpy as np

import noregret

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
world = np.random.default_rng(1)


def truth(knob):
    """The unknown function: the best knob is 0.7."""
    return np.exp(-20 * (knob - 0.7) ** 2) + 0.6 * np.exp(-60 * (knob - 0.2) ** 2)


def measure(knob):
    """One measurement, with noise."""
    return truth(knob) + 0.3 * world.standard_normal()


# Neighbouring settings behave alike, over distances of about 0.15. f has a norm below
# 2, the noise an sd of 0.3.
knobs = np.linspace(0, 1, 200)[:, None]
kernel = noregret.SquaredExponential(0.15)
algorithm = noregret.algorithms.amm_ucb(kernel, norm=2, noise=0.3, delta=0.05)

policy = noregret.Policy(algorithm, knobs, rng=0)
for _ in range(300):
    for arm in policy.ask():
        policy.tell(arm, measure(knobs[arm, 0]))

best = policy.best()
print(
    f"best knob {knobs[best.arm, 0]:.2f}: {best.mean:.2f}, "
    f"with 95% confidence {best.lower:.2f} to {best.upper:.2f}"
)
print(f"{policy.belief.rank} of {len(knobs)} settings were measured")

noregret.plot.band(
    policy.belief, knobs, truth=truth(knobs[:, 0]), path=folder / "first_steps.svg"
)
