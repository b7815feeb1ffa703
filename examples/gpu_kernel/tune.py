"""A GPU kernel: tune a convolution over a table of real timings.

A row of convolution_a4000.csv.gz is a setting of the kernel with eight timings in
milliseconds on an NVIDIA RTX A4000, or none if it does not run there. A trial returns one of
the eight. Replace `measure` by your own launch of a kernel.

Run: python examples/gpu_kernel/tune.py [SEED]
"""

import csv
import gzip
import sys
from pathlib import Path

import numpy as np

from noregret import Optimizer

TABLE = Path(__file__).with_name("convolution_a4000.csv.gz")
with gzip.open(TABLE, "rt", encoding="utf-8", newline="") as file:
    names, *lines = csv.reader(file)
names = names[:-8]
settings = [dict(zip(names, map(int, line), strict=False)) for line in lines]
timings = [np.array([float(cell) for cell in line[-8:] if cell]) for line in lines]
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
world = np.random.default_rng(seed)


def measure(setting):
    """Milliseconds of one launch, None if the kernel does not run."""
    found = timings[settings.index(setting)]
    return world.choice(found) if len(found) else None


def truth(setting):
    """Median of all timings of a setting."""
    return float(np.median(timings[settings.index(setting)]))


# Of all rows, only those that also run on an older card with 512 threads in a block.
fits = ["block_size_x * block_size_y <= 512"]
opt = Optimizer(settings, goal="minimize", require=fits, rng=seed)
for _ in range(100):
    trial = opt.ask()
    milliseconds = measure(trial.params)
    if milliseconds is None:
        opt.fail(trial)
    else:
        opt.tell(trial, milliseconds)

luckiest = min(opt.measurements, key=lambda measurement: measurement.value)
best = opt.best()
print(opt)
print(f"luckiest timing: {luckiest.value:.3f} ms, truly {truth(luckiest.params):.3f}")
print(f"best(): {best.estimate:.3f} ms ({best.lower:.3f} to {best.upper:.3f}),", end=" ")
print(f"truly {truth(best.params):.3f}")
allowed = [
    truth(each)
    for each, found in zip(settings, timings, strict=True)
    if len(found) and each["block_size_x"] * each["block_size_y"] <= 512
]
rank = sum(time < truth(best.params) for time in allowed) + 1
print(f"it is number {rank} of the {len(allowed):,} settings that run")
