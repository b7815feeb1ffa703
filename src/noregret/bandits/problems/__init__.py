"""THE WORLD: problems with known truth, from reward models and test functions to the papers' data.

`NAMES` maps command-line names to builders: ``NAMES["rkhs-se"](rng=0)`` is a `Problem` in its paper's setting.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from noregret.bandits.problems.hard_instance import lower_bound
from noregret.bandits.problems.problem import Changing, Continuous, Problem, Seed, rkhs_norm
from noregret.bandits.problems.rewards import (
    Additive,
    Gaussian,
    Glitch,
    Pareto,
    Payoff,
    Resampled,
    Spikes,
    Stable,
    StudentT,
    TwoPoint,
)
from noregret.bandits.problems.synthetic import (
    MAXIMA,
    branin,
    contextual,
    day_and_night,
    gp_draw,
    hartmann3,
    hartmann4,
    hartmann6,
    jump,
    motion,
    rkhs,
    rkhs_sum,
    rosenbrock,
    standard,
    walk,
)
from noregret.bandits.problems.tables import (
    cloud,
    intel_temperature,
    latency,
    light_by_time,
    light_sensors,
    light_snapshot,
    stocks,
)
from noregret.gp.kernels import Matern, SquaredExponential

__all__ = [
    "MAXIMA",
    "NAMES",
    "Additive",
    "Changing",
    "Continuous",
    "Gaussian",
    "Glitch",
    "Pareto",
    "Payoff",
    "Problem",
    "Resampled",
    "Spikes",
    "Stable",
    "StudentT",
    "TwoPoint",
    "branin",
    "cloud",
    "contextual",
    "day_and_night",
    "gp_draw",
    "hartmann3",
    "hartmann4",
    "hartmann6",
    "intel_temperature",
    "jump",
    "latency",
    "light_by_time",
    "light_sensors",
    "light_snapshot",
    "lower_bound",
    "motion",
    "rkhs",
    "rkhs_norm",
    "rkhs_sum",
    "rosenbrock",
    "standard",
    "stocks",
    "walk",
]


def _same_for_all(builder: Callable[..., Problem]) -> Callable[..., Problem]:
    """Add the argument ``rng``, which every builder takes, to a builder that does not depend on it."""

    @wraps(builder)
    def build(*args: Any, rng: Seed = None, **keywords: Any) -> Problem:
        return builder(*args, **keywords)

    return build


_SE = SquaredExponential(0.2)
_MATERN = Matern(2.5, 0.2)

NAMES: dict[str, Callable[..., Problem | Changing]] = {
    "rkhs-se": partial(rkhs, _SE),
    "rkhs-matern": partial(rkhs, _MATERN),
    "gp-se": partial(gp_draw, _SE),
    "gp-matern": partial(gp_draw, _MATERN),
    "rosenbrock": partial(standard, rosenbrock),
    "hartmann3": partial(standard, hartmann3),
    "branin": partial(standard, branin),
    "hartmann4": partial(standard, hartmann4),
    "hartmann6": partial(standard, hartmann6),
    "student-t": partial(rkhs_sum, _SE, payoff=StudentT(3)),
    "pareto": partial(rkhs_sum, _SE, payoff=Pareto(2), coefficients=(0.0, 1.0)),
    "student-t-matern": partial(rkhs_sum, _MATERN, payoff=StudentT(3)),
    "lower-bound-se": partial(lower_bound, _SE, norm=1.0, alpha=1.0, moment=1.0, horizon=20_000),
    "lower-bound-matern": partial(lower_bound, _MATERN, norm=1.0, alpha=1.0, moment=1.0, horizon=20_000),
    "light": _same_for_all(light_sensors),
    "light-located": partial(_same_for_all(light_sensors), located=True),
    "light-snapshot": light_snapshot,
    "intel": intel_temperature,
    "stocks": _same_for_all(stocks),
    "latency": _same_for_all(latency),
    "cloud": _same_for_all(cloud),
    "contextual": contextual,
    "light-by-time": light_by_time,
    "motion": motion,
    "jump": jump,
    "day-and-night": day_and_night,
    "walk": walk,
}
"""Command-line names of the builders, each callable as ``builder(rng=seed)``."""
