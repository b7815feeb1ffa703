"""Trackers of ``noregret tune``: those that ``[track]`` of a study file names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from noregret.integrations import trackers
from noregret.integrations.trackers import Tracker, described, measured
from noregret.tune.learning.suggest import Suggester, replay_of
from noregret.tune.measuring import Outcome
from noregret.tune.store.records import Record
from noregret.tune.study.study import Study
from noregret.tune.work.worker import View


def trackers_of(study: Study) -> list[Tracker]:
    """The trackers that a study names; MissingExtra if the package of one is not installed."""
    found = []
    for service, place in study.track.items():
        if service == "mlflow":  # a file is beside the study, as that of ``storage`` is
            uri = re.sub("^sqlite:///(?!/)", lambda _: f"sqlite:///{study.folder}/", place)
            found.append(trackers.mlflow(uri or None))
        elif service == "tensorboard":
            found.append(trackers.tensorboard(study.folder / (place or "tensorboard")))
        else:
            found.append(trackers.wandb(place or trackers.NAME, folder=study.folder))
    return found


class TrackedView:
    """Display of a running study that also writes each outcome to trackers.

    The recommendation beside an outcome is the one that was known when the last trial was suggested. The runs of the
    trackers end with ``runs``, if not before.
    """

    def __init__(
        self, view: View, study: Study, suggester: Suggester, trackers: list[Tracker], runs: ExitStack
    ) -> None:
        self._view, self._suggester, self._trackers = view, suggester, trackers
        for tracker in trackers:
            runs.enter_context(tracker).start(study.name, _study(study))

    def started(self, trial: Record) -> None:
        self._view.started(trial)

    def told(self, trial: Record, outcome: Outcome, counted: bool) -> None:
        self._view.told(trial, outcome, counted)
        if counted:
            latest = self._suggester.latest
            for tracker in self._trackers:
                values = measured(outcome.value, outcome.values, outcome.constraints)
                tracker.log(trial.number, trial.params, values, latest.best if latest else None)

    def refresh(self) -> None:
        self._view.refresh()


def _study(study: Study) -> Mapping[str, Any]:
    """Description of a study: what is tuned, its command, seed and budget."""
    budget = {"evaluations": study.budget.rounds, "seconds": study.budget.seconds}
    return {
        "command": " ".join(study.words),
        "seed": study.seed,
        **{name: number for name, number in budget.items() if number is not None},
        **described(replay_of(study)([])),
    }
