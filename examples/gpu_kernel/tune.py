"""A GPU kernel: tune a convolution over a table of real timings.

A row of convolution_a4000.csv.gz is a setting of the kernel, with eight timings in
milliseconds on an NVIDIA RTX A4000, or none if it does not run there. A trial returns
one of the eight at random. Replace `milliseconds` by a launch of your own kernel.

Run: python examples/gpu_kernel/tune.py [SEED]
"""

import csv
import gzip
import logging
import sys
from pathlib import Path

import numpy as np

import noregret

TABLE = Path(__file__).with_name("convolution_a4000.csv.gz")
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
world = np.random.default_rng(seed)
logging.getLogger("noregret").setLevel(logging.ERROR)  # no tracebacks of failures

with gzip.open(TABLE, "rt", encoding="utf-8", newline="") as file:
    names, *lines = csv.reader(file)
names, timings = names[:-8], {}
for line in lines:
    timings[tuple(map(int, line[:-8]))] = [float(cell) for cell in line[-8:] if cell]


def milliseconds(setting):
    """Duration of one launch; an error if the setting does not run."""
    found = timings[tuple(setting.values())]
    if not found:
        raise RuntimeError("too many resources requested for launch")
    return world.choice(found)


# The kernel must also run on an older card, with at most 512 threads in a block.
settings = [dict(zip(names, key, strict=True)) for key in timings]
allowed = [s for s in settings if s["block_size_x"] * s["block_size_y"] <= 512]
result = noregret.minimize(milliseconds, allowed, evaluations=100, rng=seed)
print(result)


def median(setting):
    """Median of all timings of a setting, infinite if it does not run."""
    return np.median(timings[tuple(setting.values())] or [np.inf])


luckiest = min(result.optimizer.measurements, key=lambda m: m.value)
best = result.best
rank = 1 + sum(median(setting) < median(best.params) for setting in allowed)
print(f"luckiest: {luckiest.value:.3f} ms, median {median(luckiest.params):.3f} ms")
print(f"best: {best.estimate:.3f} ms, median {median(best.params):.3f} ms,", end=" ")
print(f"number {rank} of {len(allowed):,}")
