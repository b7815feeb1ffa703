"""Choice of the defaults of `Optimizer` on the development suite: ``python -m benchmarks.optimizer_defaults``.

Every variant is a `OptimizerConfig`; add one to `VARIANTS` and run

    python -m benchmarks.optimizer_defaults default least-squares --functions camel levy5 --noises spikes

Regrets are in units of a random point's. Every variant gets the same noise. A change of the code itself is tested by
``python -m benchmarks.development --against``.
"""

from __future__ import annotations

import argparse
import math
import os
from itertools import product

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  after the threads are set

from benchmarks.development.noises import NOISES  # noqa: E402
from benchmarks.development.playing import Run, play  # noqa: E402
from benchmarks.development.problems import CUBES, GROUPS, SPACES  # noqa: E402
from noregret import UCB, Constant, ExpectedImprovement  # noqa: E402
from noregret.decision.rules import Rule  # noqa: E402
from noregret.optimizer import OptimizerConfig  # noqa: E402
from noregret.optimizer.model.fit import FitMatern  # noqa: E402
from noregret.optimizer.model.noise import GaussianNoise, StudentNoise  # noqa: E402
from noregret.optimizer.model.transforms import RobustScale  # noqa: E402
from noregret.optimizer.questions.questions import (  # noqa: E402
    Improve,
    Recheck,
    RemeasureBaseline,
    SaturatedImprovement,
)


def with_rule(rule: Rule) -> OptimizerConfig:
    """The default configuration with another rule."""
    return OptimizerConfig(questions=(Recheck(), RemeasureBaseline(), Improve(rule=rule)))


VARIANTS = {
    "default": OptimizerConfig(),
    "least-squares": OptimizerConfig(noise_models=(GaussianNoise(),), local_noise=None),
    "always-student": OptimizerConfig(noise_models=(StudentNoise(4.0),), local_noise=None),
    "ucb-1": with_rule(UCB(Constant(1.0))),
    "ucb-2": with_rule(UCB(Constant(2.0))),
    "improvement": with_rule(ExpectedImprovement()),
    "saturated-5": with_rule(SaturatedImprovement(early=0.0)),
    "long-lengthscales": OptimizerConfig(fit=FitMatern(lengthscale=0.5, lengthscale_spread=0.8)),
    "no-bend": OptimizerConfig(scale=RobustScale(math.inf)),
    "initial-3": OptimizerConfig(initial=3),
    "initial-5": OptimizerConfig(initial=5),
    "initial-12": OptimizerConfig(initial=12),
    "exact-50": OptimizerConfig(exact=50),
    "exact-100": OptimizerConfig(exact=100),
    "unbounded": OptimizerConfig(exact=10**9),
}
FIRST_NOISES = ["gaussian-0.02", "gaussian-0.15", "student-3", "student-1.5", "spikes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", default=["default"], help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--functions", nargs="+", default=GROUPS["classic"], choices=[*CUBES, *SPACES], metavar="NAME")
    parser.add_argument("--noises", nargs="+", default=FIRST_NOISES, choices=list(NOISES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=80)
    options = parser.parse_args()
    print("| variant | runs | recommended | mean of all | intervals that hold |\n| --- | --- | --- | --- | --- |")
    for variant in options.variants:
        grid = product(options.functions, options.noises, range(options.seeds))
        (ends,) = zip(
            *(play(Run(*cell), [options.rounds], calibration=VARIANTS[variant]) for cell in grid), strict=True
        )
        recommended, total, held = np.mean([(end.recommended, end.on_the_way, end.held) for end in ends], axis=0)
        print(f"| {variant} | {len(ends)} | {recommended:.3f} | {total:.3f} | {held:.2f} |", flush=True)


if __name__ == "__main__":
    main()
