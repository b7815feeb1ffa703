"""A study of the service: like one of a file, but without a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from noregret.optimizer import Contexts, checked_contexts
from noregret.tune.service.models import StudyForm
from noregret.tune.study.study import Budget, Study

SERVICE = "service"
"""The part of a study's identity that describes one of the service."""


@dataclass(frozen=True)
class ServiceStudy(Study):
    """A study whose trials are measured by clients."""

    description: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def contexts(self) -> Contexts:
        """Params and contexts as an Optimizer has them."""
        return checked_contexts(self.settings, self.context)

    def identity(self) -> dict[str, Any]:
        return {SERVICE: dict(self.description)}


def service_study(form: StudyForm, storage: str) -> ServiceStudy:
    """Study that a request describes."""
    return ServiceStudy(
        path=Path(form.name),
        command=(),
        space=form.parameters,
        name=form.name,
        goal=form.goal,
        storage=storage,
        budget=Budget(),
        baseline=form.baseline,
        constraints=form.limits,
        description=form.description,
        context=form.contexts,
        drift=form.drift,
    )
