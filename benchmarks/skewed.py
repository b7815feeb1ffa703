"""Intervals under skewed noise: ``python -m benchmarks.skewed`` (three CPU minutes).

Functions of one to three parameters are minimized in 40 evaluations, with a baseline. The noise is added to f, has mean
0 and half of the standard deviation that f has over the space: Gaussian, exponential (skewness 2) or log-normal
(sigma 1, skewness 6). So the mean of a setting's values is f, and their median lies below. Printed for each noise, for
the setting that `best` recommends:

- mean, median: how often the interval of `best` contains the mean and the median of its values;
- gain: how often the interval of `gain` contains the true difference from the baseline, which is that of the means and
  of the medians;
- estimate: its mean distance from the mean, in standard deviations of the noise, with its standard error; the median is
  0.31 of them below the mean under exponential noise and 0.30 under log-normal noise;
- half-width: the median one of the interval of `best`, in the same unit;
- misses: intervals below and above the mean.
"""

from __future__ import annotations

import argparse
import math
from itertools import product
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import markdown
from benchmarks.development.classic import random_function
from noregret import Float, Optimizer, problems

FUNCTIONS = {
    "random1": (random_function(161, 1, 0.25), 1),
    "branin": (problems.branin, 2),
    "hartmann3": (problems.hartmann3, 3),
}
SIGMA = 1.0
NOISES = ("Gaussian", "exponential", "log-normal")
EVALUATIONS = 40
PART = 0.5
"""Standard deviation of the noise, in those of f over the space."""


class Reading(NamedTuple):
    """Interval and estimate of `best` less the mean, and interval of the gain less the truth, in units of the noise."""

    lower: float
    upper: float
    estimate: float
    gain_lower: float
    gain_upper: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=24)
    options = parser.parse_args()
    rows = []
    for noise in NOISES:
        with threadpool_limits(1, user_api="blas"):
            found = [run(name, noise, seed) for name, seed in product(FUNCTIONS, range(options.seeds))]
        rows.append([noise, str(len(found)), *_shown(found, median(noise))])
    print(markdown.table(["noise", "runs", "mean", "median", "gain", "estimate", "half-width", "misses"], rows))


def run(name: str, noise: str, seed: int) -> Reading:
    """One study."""
    f, d = FUNCTIONS[name]
    rng, world = np.random.default_rng([seed, 21]), np.random.default_rng(0)
    unit = PART * float(f(world.random((4096, d))).std())
    names = [f"x{i}" for i in range(d)]

    def truth(params: dict[str, float]) -> float:
        return -float(f(np.array([[params[each] for each in names]]))[0])  # smaller is better

    baseline = dict(zip(names, rng.random(d).tolist(), strict=True))
    opt = Optimizer({each: Float(0, 1) for each in names}, rng=seed, baseline=baseline)
    for _ in range(EVALUATIONS):
        trial = opt.ask()
        opt.tell(trial, truth(trial.params) + unit * draw(noise, rng))
    best, gain = opt.best(), opt.gain()
    mean = truth(best.params)
    better = truth(baseline) - mean
    ends = best.lower - mean, best.upper - mean, best.estimate - mean, gain.lower - better, gain.upper - better
    return Reading(*(end / unit for end in ends))


def draw(noise: str, rng: np.random.Generator) -> float:
    """One error, of mean 0 and standard deviation 1."""
    if noise == "Gaussian":
        return float(rng.standard_normal())
    if noise == "exponential":
        return float(rng.exponential()) - 1.0
    return (float(rng.lognormal(0, SIGMA)) - math.exp(SIGMA**2 / 2)) / _log_normal_sd()


def median(noise: str) -> float:
    """Median of the errors."""
    if noise == "Gaussian":
        return 0.0
    return math.log(2) - 1.0 if noise == "exponential" else (1.0 - math.exp(SIGMA**2 / 2)) / _log_normal_sd()


def _log_normal_sd() -> float:
    return math.sqrt((math.exp(SIGMA**2) - 1) * math.exp(SIGMA**2))


def _shown(found: list[Reading], middle: float) -> list[str]:
    n, slack = len(found), 1e-9  # a gain of the baseline itself is exactly 0
    mean = sum(each.lower <= 0 <= each.upper for each in found)
    central = sum(each.lower <= middle <= each.upper for each in found)
    gain = sum(each.gain_lower <= slack and each.gain_upper >= -slack for each in found)
    below, above = (sum(is_out) for is_out in zip(*((each.upper < 0, each.lower > 0) for each in found), strict=True))
    away = np.array([each.estimate for each in found])
    where = f"{away.mean():+.2f} ± {away.std(ddof=1) / math.sqrt(n):.2f}"
    half = np.median([(each.upper - each.lower) / 2 for each in found])
    return [f"{mean}", f"{central}", f"{gain}", where, f"{half:.2f}", f"{below}, {above}"]


if __name__ == "__main__":
    main()
