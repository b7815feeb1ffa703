"""Workers: claim a trial, run the command, store the outcome, until the budget is spent."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from threading import Event, Lock, Thread
from time import monotonic
from typing import Protocol

from noregret.tune.learning.suggest import Suggester
from noregret.tune.measuring import Keeper, Outcome, Stopped, measure
from noregret.tune.store.databases.connections import Interrupted
from noregret.tune.store.records import Record
from noregret.tune.store.store import Store
from noregret.tune.study.study import Study, StudyError

LOG = logging.getLogger("noregret")
IDLE_SECONDS = 0.3
"""Time after which a worker without a trial looks for one again."""
LOST = Outcome(None, "ended, since another worker has it by now", 0.0)
"""Outcome of a trial whose lease this process has lost."""


class View(Protocol):
    """Display of a running study; called from any thread."""

    def started(self, trial: Record) -> None:
        """The command of a trial is about to run."""
        ...

    def told(self, trial: Record, outcome: Outcome, counted: bool) -> None:
        """An outcome is in the store; not ``counted`` if the trial had another outcome before."""
        ...

    def refresh(self) -> None:
        """Some time has passed."""
        ...


def work(study: Study, store: Store, suggest: Suggester, view: View, stop: Event) -> None:
    """Work on a study until its budget is spent.

    Raises
    ------
    StudyError
        If the study cannot continue. Earlier outcomes are in the store.
    KeyboardInterrupt
        On Ctrl-C or SIGTERM, after the running commands were ended and their trials given back.
    """
    with Keeper() as keeper:
        Crew(study, store, suggest, view, keeper, stop).work()


class Crew:
    """The workers of one call: threads, since the commands are other processes."""

    def __init__(self, study: Study, store: Store, suggest: Suggester, view: View, keeper: Keeper, stop: Event) -> None:
        self.study, self.store, self.suggest = study, store, suggest
        self.view, self.keeper, self.stop = view, keeper, stop
        self._deadline = monotonic() + (study.budget.seconds or float("inf"))
        self._running: dict[int, Event] = {}
        """Event that ends the command of each trial."""
        self._failures = 0
        self._error: BaseException | None = None
        self._lock = Lock()

    def work(self) -> None:
        """Start all workers and wait for them, by events: an interrupted Thread.join may take a thread for ended."""
        over = Event()
        ended: list[Event] = []
        heart = Thread(target=self._heartbeat, args=(over,), daemon=True)
        heart.start()
        try:
            for _ in range(self.study.workers):
                mine = Event()
                Thread(target=self._worker, args=(mine,), daemon=True).start()
                ended.append(mine)
            while not all(mine.wait(0.1) for mine in ended):
                self.view.refresh()
        finally:
            self._stop()
            over.set()
            for mine in ended:
                mine.wait()
            heart.join()
        if self._error:
            raise self._error

    def _worker(self, ended: Event) -> None:
        try:
            while not self.stop.is_set() and monotonic() < self._deadline:
                begun = monotonic()
                claim = self.store.claim(self.suggest)
                if claim.over:
                    return
                if claim.trial:
                    self._run(claim.trial, begun)
                else:
                    self.stop.wait(IDLE_SECONDS)
        except (Stopped, Interrupted):
            pass
        except BaseException as error:
            self._error = self._error or error
            self._stop()
        finally:
            ended.set()

    def _stop(self) -> None:
        self.stop.set()
        for ending in list(self._running.values()):
            ending.set()

    def _run(self, trial: Record, begun: float) -> None:
        ending = self._running[trial.number] = Event()
        if self.stop.is_set():
            ending.set()
        try:
            self.view.started(trial)
            LOG.debug("trial %d: %s", trial.number, self.study.shell_line(trial.params))
            outcome = measure(self.study, trial.params, self.keeper, ending, self.suggest, trial.fidelity)
            if self.study.weighs_costs:
                outcome = replace(outcome, cost=monotonic() - begun)  # what it took of the budget, suggestion included
            counted = self.store.tell(trial.number, outcome)
        except BaseException as error:
            with suppress(StudyError):
                self.store.give_back(trial.number)
            if isinstance(error, Stopped) and not self.stop.is_set():
                return self.view.told(trial, LOST, counted=False)
            raise
        finally:
            del self._running[trial.number]
        self.view.told(trial, outcome, counted)
        self.store.back_up()
        with self._lock:
            self._failures = self._failures + 1 if outcome.failure else 0
            failures = self._failures
        if failures >= self.study.failure.stop_after:
            last = outcome.stderr.strip().rpartition("\n")[2]
            raise StudyError(
                f"command: has failed {failures} times in a row, the last time: {outcome.failure}"
                f"{f' ({last})' if last else ''}. Fix it and run the same command again. "
                "The failed trials stay in the study. A study without any result starts again when the command in its "
                "file is another one"
            )

    def _heartbeat(self, over: Event) -> None:
        while not over.wait(self.study.lease / 3):
            with suppress(StudyError, RuntimeError):  # an error that lasts is raised when the outcome is stored
                for number in self.store.heartbeat(list(self._running)):
                    if number in self._running:
                        self._running[number].set()
