"""A table of candidates: find the fastest of 69 clusters in 40 noisy runs."""

import numpy as np

from noregret import Optimizer
from noregret.problems import cloud

problem, world = cloud(), np.random.default_rng(0)
names = ("machines", "cores", "memory")  # logarithms, scaled to [0, 1]
clusters = [dict(zip(names, map(float, row), strict=True)) for row in problem.arms]

opt = Optimizer(clusters, goal="maximize", rng=0)  # or a DataFrame
for _ in range(40):
    trial = opt.ask()
    arm = clusters.index(trial.params)
    opt.tell(trial, problem.rewards(np.array([arm]), world)[0])

chosen = clusters.index(opt.best().params)
rank = int((problem.means > problem.means[chosen]).sum()) + 1
print(
    f"measured {len({m.params['machines'] for m in opt.measurements})} sizes of cluster"
)
print(f"chosen: number {rank} of {len(clusters)}, in truth")
