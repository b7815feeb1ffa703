"""Tune a service: find better settings than today's, within a memory limit."""

import numpy as np

import noregret
from noregret import Choice, Int

world = np.random.default_rng(0)


def load_test(threads, cache_mb, gc):
    """Milliseconds and megabytes of a load test; 3 in 100 are outliers."""
    slow = 40 / threads + 1.2 * threads + 4000 / (cache_mb + 60) + 6 * (gc == "serial")
    hiccup = 300 * (world.random() < 0.03)
    memory = cache_mb + 12 * threads + 3 * world.standard_normal()
    return slow + world.standard_normal() + hiccup, memory


space = {
    "threads": Int(1, 32, log=True),
    "cache_mb": Int(16, 1024, log=True),
    "gc": Choice(["serial", "parallel"]),
}
today = {"threads": 16, "cache_mb": 64, "gc": "serial"}
limit = {"memory": ("<=", 512)}
opt = noregret.Optimizer(
    space, goal="minimize", baseline=today, constraints=limit, rng=0
)
for _ in range(60):
    trial = opt.ask()  # the first one is today's setting
    milliseconds, megabytes = load_test(**trial.params)
    opt.tell(trial, milliseconds, constraints={"memory": megabytes})

best, gain = opt.best(), opt.gain()
print(f"{gain.percent.lower:.0f}% to {gain.percent.upper:.0f}% faster than today")
print(f"gc: {best.params['gc']}, feasible: {best.feasible:.2f}")
noregret.report(opt, "service.html")
