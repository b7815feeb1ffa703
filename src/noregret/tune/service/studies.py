"""All studies of a server, opened at their first request."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from itertools import cycle
from threading import Event, Lock, Thread
from typing import Any

from noregret.tune.measuring import Outcome
from noregret.tune.service.choosers import Chooser, Fitting
from noregret.tune.service.live import BatchQueue, LiveStudy, Told
from noregret.tune.service.models import SERVICE, ServiceStudy, StudyForm
from noregret.tune.store import trials
from noregret.tune.store.faults import OPENING_SECONDS, TROUBLE, Unavailable, explained
from noregret.tune.store.storage import BACKUP_SECONDS, Found, Storage
from noregret.tune.study.study import StudyError

LOG = logging.getLogger("uvicorn.error")
OPEN = 64
"""Number of studies that are kept open; others are read again when they are requested."""
ASKING = 16
"""Number of studies whose asks are answered at the same time: more than there are choosers, so that no chooser waits
for the storage, or for an ask that waits for a fit."""


class NoStudy(LookupError):
    """There is no such study."""


class AnotherStudy(ValueError):
    """There is another study of this name."""


class Studies:
    """The studies of a storage, for all threads of a server.

    Parameters
    ----------
    storage : Storage
    lease : float
        Seconds after which a trial without a sign of its client goes to another one.
    choosers : sequence of Chooser
        Processes that choose trials; each study has one of them. Without any, trials are chosen here.
    fitter : Chooser, optional
        The process that makes fits, so that asks need not wait for them.
    """

    def __init__(
        self, storage: Storage, lease: float, choosers: Sequence[Chooser] = (), fitter: Chooser | None = None
    ) -> None:
        try:
            storage.patiently(storage.check_seals, OPENING_SECONDS)
        except BaseException:
            storage.close()
            raise
        self._storage, self._lease, self._choosers = storage, lease, cycle(choosers or [None])
        self._lock, self._opening = Lock(), Lock()
        self._open: OrderedDict[str, LiveStudy] = OrderedDict()
        self._askers, self._writer = ThreadPoolExecutor(ASKING), ThreadPoolExecutor(1)
        self._fitter, self._fitters = fitter, ThreadPoolExecutor(1)
        self._telling = BatchQueue(self._writer, self._told, Unavailable)
        self._end = Event()
        self._keeper = Thread(target=self._keep_house, daemon=True)
        self._keeper.start()

    def create(self, form: StudyForm) -> bool:
        """Create a study; False if it exists, AnotherStudy if another one of its name exists."""
        study = form.study(self._storage.url)
        is_new = self._found(form.name) is None
        if is_new:
            self._storage.patiently(lambda: self._storage.study_id(study))
        found = self._found(form.name)
        if found is None or found.identity != study.identity():
            raise AnotherStudy(f"there is another study named {form.name!r}: {_difference(study, found)}")
        return is_new

    def __getitem__(self, name: str) -> LiveStudy:
        """The study of this name; NoStudy if there is none."""
        with self._opening:
            found = self.opened(name) or self._read(name)
        with self._lock:
            self._open[name] = found
            while len(self._open) > OPEN:
                self._open.popitem(last=False)
        return found

    def opened(self, name: str) -> LiveStudy | None:
        """The study of this name if it is open; does not read the storage."""
        with self._lock:
            if name in self._open:
                self._open.move_to_end(name)
            return self._open.get(name)

    def close(self) -> None:
        """Finish all pending work, and close the storage."""
        self._end.set()
        self._keeper.join()
        self._askers.shutdown()
        self._fitters.shutdown(cancel_futures=True)
        self._writer.shutdown()
        self._storage.stop.set()
        try:
            self._storage.where.back_up()
        except (StudyError, *TROUBLE) as error:
            LOG.error("no copy was made at the end: %s", explained(error, self._storage.where))
        finally:
            self._storage.close()

    def _found(self, name: str) -> Found | None:
        return self._storage.patiently(lambda: self._storage.find(name))

    def _read(self, name: str) -> LiveStudy:
        found = self._found(name)
        if found is None or SERVICE not in found.identity:
            raise NoStudy(f"there is no study {name!r}: POST /studies makes one")
        study = StudyForm.model_validate(found.identity[SERVICE]).study(self._storage.url)
        fitting = Fitting(study, self._fitter, self._fitters)
        return LiveStudy(
            self._storage, found.id, study, self._lease, self._askers, self._telling, next(self._choosers), fitting
        )

    def _told(self, answers: Sequence[Told]) -> list[Outcome | None]:
        """Store outcomes, of any studies, in one transaction; return the ones that are stored."""
        # in one order, so that servers that write the same trials at once do not deadlock
        order = sorted(range(len(answers)), key=lambda place: answers[place][:2])

        def store() -> dict[int, Outcome | None]:
            with self._storage.transaction() as connection:
                return {place: _stored(connection, answers[place]) for place in order}

        stands = self._storage.patiently(store)
        return [stands[place] for place in range(len(answers))]

    def _keep_house(self) -> None:
        """Make copies of the database, and look for expired leases, until the end."""
        while not self._end.wait(min(BACKUP_SECONDS, self._lease) / 4):
            try:
                self._storage.where.back_up(BACKUP_SECONDS)
                with self._lock:
                    live = list(self._open.values())
                for study in live:
                    study.look()
            except (StudyError, *TROUBLE):
                continue  # the next request reports it


def _stored(connection: Any, told: Told) -> Outcome | None:
    """Store an outcome unless the trial has one; return the one that is stored, None if there is no such trial."""
    record = told.record or trials.find(connection, told.study, told.number)
    if record is None:
        return None
    seconds = max((datetime.now() - record.started).total_seconds(), 0.0) if record.started else 0.0
    return trials.tell(connection, record.id, replace(told.outcome, seconds=seconds))


def _difference(study: ServiceStudy, found: Found | None) -> str:
    was = (found.identity if found else {}).get(SERVICE)
    if was is None:
        return "it was made by 'noregret tune'"
    now = study.description
    changed = [key for key in {**now, **was} if now.get(key) != was.get(key)]
    return f"{' and '.join(changed)} differ{'s' * (len(changed) == 1)}"
