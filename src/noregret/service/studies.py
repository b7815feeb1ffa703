"""All studies of a server, opened at their first request."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from threading import Event, Lock, Thread

from noregret.optimizer import State
from noregret.service.choosers import Chooser, Fitting
from noregret.service.live import BatchQueue, LiveStudy, NoStudy, StoredOutcome, store_outcomes
from noregret.service.models import StudyForm
from noregret.studies.store.faults import OPENING_SECONDS, TROUBLE, Unavailable, explained
from noregret.studies.store.records import Record
from noregret.studies.store.storage import BACKUP_SECONDS, Listed, Storage, StoredStudy
from noregret.studies.study.study import SERVICE, Study, StudyError

LOG = logging.getLogger("uvicorn.error")
OPEN = 64
"""Number of studies that are kept open; others are read again when they are requested."""
ASKING = 16
"""Number of studies whose asks are answered at the same time: more than there are choosers, so that no chooser waits
for the storage, or for an ask that waits for a fit."""


class AnotherStudy(ValueError):
    """There is another study of this name."""


class Studies:
    """The studies of a storage, for all threads of a server.

    A trial without a sign of its client for ``lease`` seconds goes to another one. Each study has one of the
    ``choosers``; without any, trials are chosen here. With a ``fitter``, asks need not wait for fits.
    """

    def __init__(
        self, storage: Storage, lease: float, choosers: Sequence[Chooser] = (), fitter: Chooser | None = None
    ) -> None:
        try:
            storage.patiently(storage.check, OPENING_SECONDS)
        except BaseException:
            storage.close()
            raise
        self._storage, self._lease, self._choosers = storage, lease, cycle(choosers or [None])
        self._lock, self._opening = Lock(), Lock()
        self._open: OrderedDict[str, LiveStudy] = OrderedDict()
        self._askers, self._writer = ThreadPoolExecutor(ASKING), ThreadPoolExecutor(1)
        self._fitter, self._fitters, self._creators = fitter, ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._telling = BatchQueue(self._writer, self._told, Unavailable)
        self._end = Event()
        self._keeper = Thread(target=self._keep_house, daemon=True)
        self._keeper.start()

    def create(self, form: StudyForm) -> Future[bool]:
        """Create a study; False if it exists, AnotherStudy if another one of its name exists, BadField if it is bad.

        A check may take a second, so they are made one at a time, and other requests do not wait for them.
        """
        return self._creators.submit(self._create, form)

    def _create(self, form: StudyForm) -> bool:
        form = form.checked()
        study = form.study(self._storage.url)
        stored = self._found(form.name)
        is_new = stored is None
        if is_new:
            self._storage.patiently(lambda: self._storage.study(study))
            stored = self._found(form.name)  # None if it is deleted again already
        if stored is not None and stored.identity != study.identity():
            raise AnotherStudy(f"there is another study named {form.name!r}: {_difference(study, stored)}")
        return is_new

    def delete(self, name: str) -> None:
        """Delete a study and all its trials; NoStudy if there is none. Requests that wait are answered with Deleted."""
        stored = self._service_study(name)
        self._storage.patiently(lambda: self._storage.delete(stored))
        live = self.opened(name)
        if live is not None and live.ledger.found == stored:
            live.close()

    def listed(self, after: str, limit: int) -> list[Listed]:
        """Studies by name, from the first one ``after`` a name on, without opening them."""
        return self._storage.patiently(lambda: self._storage.listed(SERVICE, after, limit))

    def counted(self) -> tuple[int, dict[State, int]] | None:
        """Number of studies, and of trials by state; None if the storage cannot be used now."""
        try:
            return self._storage.counted(SERVICE)
        except (StudyError, *TROUBLE):
            return None

    def counted_open(self) -> tuple[int, int]:
        """Number of open studies, and of those for which a fit is made now."""
        with self._lock:
            live = list(self._open.values())
        return len(live), sum(study.fitting.is_busy for study in live)

    def __getitem__(self, name: str) -> LiveStudy:
        """The study of this name; NoStudy if there is none."""
        with self._opening:
            live = self.opened(name) or self._read(name)
        with self._lock:
            self._open[name] = live
            while len(self._open) > OPEN:
                self._open.popitem(last=False)
        return live

    def opened(self, name: str) -> LiveStudy | None:
        """The study of this name if it is open; does not read the storage."""
        with self._lock:
            live = self._open.get(name)
            if live is not None and live.ledger.is_deleted:
                del self._open[name]
                return None
            if live is not None:
                self._open.move_to_end(name)
            return live

    def close(self) -> None:
        """Finish all pending work, and close the storage."""
        self._end.set()
        self._keeper.join()
        self._creators.shutdown(cancel_futures=True)
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

    def _found(self, name: str) -> StoredStudy | None:
        return self._storage.patiently(lambda: self._storage.find(name))

    def _service_study(self, name: str) -> StoredStudy:
        stored = self._found(name)
        if stored is None or SERVICE not in stored.identity:
            raise NoStudy(name)
        return stored

    def _read(self, name: str) -> LiveStudy:
        stored = self._service_study(name)
        study = StudyForm.model_validate(stored.identity[SERVICE]).study(self._storage.url)
        fitting = Fitting(study, self._fitter, self._fitters)
        return LiveStudy(
            self._storage, stored, study, self._lease, self._askers, self._telling, next(self._choosers), fitting
        )

    def _told(self, answers: Sequence[StoredOutcome]) -> list[Record | None]:
        """Store outcomes, of any studies, in one transaction; return the ones that are stored."""

        def store() -> list[Record | None]:
            with self._storage.transaction() as connection:
                return store_outcomes(connection, answers)

        return self._storage.patiently(store)

    def _keep_house(self) -> None:
        """Make copies of the database, and look for expired leases, until the end."""
        while not self._end.wait(min(BACKUP_SECONDS, self._lease) / 4):
            try:
                self._storage.where.back_up(BACKUP_SECONDS)
                with self._lock:
                    live = list(self._open.values())
                for study in live:
                    try:
                        study.look()
                    except NoStudy:
                        self.opened(study.study.name)  # closes it
            except (StudyError, *TROUBLE):
                continue  # the next request reports it


def _difference(study: Study, found: StoredStudy) -> str:
    was = found.identity.get(SERVICE)
    if was is None:
        return "it was made by 'noregret tune'"
    now = study.description or {}
    changed = [key for key in {**now, **was} if now.get(key) != was.get(key)]
    return f"{' and '.join(changed)} differ{'s' * (len(changed) == 1)}"
