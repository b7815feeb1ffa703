"""Trackers of ``noregret tune``: those that ``[track]`` of a study file names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from noregret.integrations import trackers
from noregret.integrations.trackers import Tracker, described
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import replay_of
from noregret.studies.session import Suggester, View
from noregret.studies.store.records import Record
from noregret.studies.study.study import Study


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


class TrackedTrials(View):
    """View of a session that writes each outcome to trackers.

    The recommendation beside an outcome is the one that was known when the last trial was suggested. The runs of the
    trackers end with ``runs``, if not before.
    """

    def __init__(self, study: Study, suggester: Suggester, trackers: list[Tracker], runs: ExitStack) -> None:
        self._study, self._suggester, self._trackers = study, suggester, trackers
        for tracker in trackers:
            runs.enter_context(tracker).start(study.name, _described(study))

    def told(self, outcome: Record, counted: bool) -> None:
        if counted:
            latest = self._suggester.latest
            best = Findings(self._study, *latest).best if latest else None
            for tracker in self._trackers:
                tracker.log(outcome, self._study.measures, best)


def _described(study: Study) -> Mapping[str, Any]:
    """Description of a study: what is tuned, its command, seed and budget."""
    budget = {"evaluations": study.budget.rounds, "seconds": study.budget.seconds}
    return {
        "command": " ".join(study.words),
        "seed": study.seed,
        **{name: number for name, number in budget.items() if number is not None},
        **described(replay_of(study)([])),
    }
