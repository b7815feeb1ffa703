"""Module paths and names of 1.0 that have changed: they lead to where things are now, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

MOVED = {
    "noregret.belief.kernels": "noregret.gp.kernels",
    "noregret.belief.arrays": "noregret.gp.arrays",
    "noregret.belief.posterior": "noregret.gp.posterior",
    "noregret.belief.numerics.linalg": "noregret.gp.linalg",
    "noregret.belief.numerics.threads": "noregret.gp.threads",
    "noregret.belief.numerics.columns": "noregret.bandits.belief.factor",
    "noregret.belief.numerics": "noregret.bandits.belief",
    "noregret.belief.features.fourier": "noregret.bandits.belief.features",
    "noregret.belief.features.nystrom": "noregret.bandits.belief.features",
    "noregret.belief.cluster.belief": "noregret.bandits.belief.cluster",
    "noregret.belief.cluster.blocks": "noregret.bandits.belief.cluster",
    "noregret.belief.cluster.section": "noregret.bandits.belief.cluster",
    "noregret.belief.box": "noregret.bandits.belief.arms",
    "noregret.belief.conjugate": "noregret.bandits.belief.robust",
    "noregret.belief.catoni": "noregret.bandits.belief.robust",
    "noregret.belief": "noregret.bandits.belief",
    "noregret.decision.arms": "noregret.bandits.belief.arms",
    "noregret.decision.partition": "noregret.bandits.decision.trees",
    "noregret.decision.threshold_tree": "noregret.bandits.decision.trees",
    "noregret.decision.playing": "noregret.bandits.decision.policy",
    "noregret.decision.schedules": "noregret.bandits.decision.rules",
    "noregret.decision": "noregret.bandits.decision",
    "noregret.algorithms": "noregret.bandits.algorithms",
    "noregret.problems.functions": "noregret.bandits.problems.synthetic",
    "noregret.problems.changing": "noregret.bandits.problems.synthetic",
    "noregret.problems": "noregret.bandits.problems",
    "noregret.experiments.summary": "noregret.bandits.lab.trace",
    "noregret.experiments.claims": "noregret.bandits.lab.figure",
    "noregret.experiments.compare": "noregret.bandits.lab.trials",
    "noregret.experiments.run_command": "noregret.bandits.lab.commands",
    "noregret.experiments.bound_command": "noregret.bandits.lab.commands",
    "noregret.experiments.reproduce_command": "noregret.bandits.lab.commands",
    "noregret.experiments.figures.beyond_heavy_tails": "noregret.bandits.lab.figures.beyond",
    "noregret.experiments": "noregret.bandits.lab",
    "noregret.comparison.carryover": "noregret.comparison.comparison",
    "noregret.integrations.distributions": "noregret.integrations.structure",
    "noregret.tune.repeats": "noregret.studies.session",
    "noregret.tune.store.databases.copies": "noregret.studies.store.databases.sqlite",
    "noregret.tune.stored_function": "noregret.studies.function",
    "noregret.tune.service": "noregret.service",
    "noregret.tune.page.charts": "noregret.studies.page.pictures",
    "noregret.tune.page.from_optuna": "noregret.integrations.optuna",
    "noregret.tune.work.tracking": "noregret.studies.running",
    "noregret.tune.work": "noregret.studies",
    "noregret.tune": "noregret.studies",
}
"""Packages and modules of 1.0, the longer paths first, and where they are now."""

DOORS = {"noregret.algorithms", "noregret.problems"}
"""Paths that stay; what was below them has moved."""


RENAMED = {"Comparison": "Ranking"}
"""Public names of 1.0, and what they are called now."""


class _Moved:
    """Finder and loader of moved modules, which are then the same objects under both paths."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        is_old = name.startswith("noregret.") and name not in DOORS
        old = next((old for old in MOVED if name == old or name.startswith(f"{old}.")), None) if is_old else None
        return None if old is None else ModuleSpec(name, cast(Any, self), origin=MOVED[old] + name[len(old) :])

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        message = f"{spec.name} is {spec.origin} since noregret 1.1; the old path ends with 2.0"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        module = import_module(spec.origin)
        module.__dict__.setdefault("__path__", [])  # what was a package has further paths
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is: it is there already."""
        module.__spec__ = self._spec


def install() -> None:
    """Let the paths of 1.0 be found, before files, which would be loaded a second time from a moved package."""
    sys.meta_path.insert(0, cast(Any, _Moved()))


def renamed(name: str, public: Any) -> Any:
    """Thing of the public module that had this name in 1.0."""
    message = f"noregret.{name} is noregret.{RENAMED[name]} since noregret 1.1; the old name ends with 2.0"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return getattr(public, RENAMED[name])
