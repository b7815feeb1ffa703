"""A study of the service: like one of a file, but without a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noregret.integrations.replay import Replay
from noregret.tune.service.models import StudyForm
from noregret.tune.study.study import Budget, Params, Study

SERVICE = "service"
"""The part of a study's identity that describes one of the service."""


@dataclass(frozen=True)
class Served(Study):
    """A study whose measurements are made by whoever asks for them."""

    description: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    baseline: Params | None = None

    def identity(self) -> dict[str, Any]:
        return {SERVICE: dict(self.description)}


def served(form: StudyForm, storage: str) -> Served:
    """The study that a request describes."""
    return Served(
        path=Path(form.name),
        command=(),
        space=form.parameters,
        name=form.name,
        goal=form.goal,
        storage=storage,
        budget=Budget(),
        description=form.model_dump(mode="json"),
        bounds=form.bounds,
        baseline=form.baseline,
    )


def replay_of(study: Served) -> Replay:
    """What leads an optimizer through the history of a study."""
    return Replay(study.space, study.goal, study.seed, baseline=study.baseline, constraints=dict(study.bounds))
