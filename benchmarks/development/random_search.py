"""Random search, the reference for the measured and simulated problems."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks.development.problems import random_params


class Setting(NamedTuple):
    """Trial or recommendation of random search, which has no interval."""

    params: dict[str, Any]
    lower: float = math.nan
    upper: float = math.nan


class RandomSearch:
    """Uniform settings; the one with the best average of its own measurements is recommended."""

    def __init__(self, space: Any, goal: Literal["maximize", "minimize"], rng: int) -> None:
        self.space, self.best_of = space, max if goal == "maximize" else min
        self.rng, self.measured = np.random.default_rng([rng, 99]), defaultdict(list)

    def ask(self) -> Setting:
        if isinstance(self.space, dict):
            return Setting(random_params(self.space, 1, self.rng)[0])
        return Setting(self.space[self.rng.integers(len(self.space))])

    def tell(self, trial: Setting, value: float) -> None:
        self.measured[tuple(trial.params.items())].append(value)

    def fail(self, trial: Setting) -> None:
        """Ignore a failed trial."""

    def best(self) -> Setting:
        averages = {setting: np.mean(values) for setting, values in self.measured.items()}
        return Setting(dict(self.best_of(averages, key=averages.get)))
