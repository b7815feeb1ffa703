"""The commands ``tune`` and ``report``, and the trackers that ``[track]`` of a study file names."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from threading import Event
from typing import Any

from noregret.integrations import trackers
from noregret.integrations.trackers import Tracker, described
from noregret.studies.display import conclusion, view
from noregret.studies.learning.findings import NO_WISH, Findings, Wish, summary
from noregret.studies.learning.suggest import believed, least_rounds, replay_of
from noregret.studies.measuring import Keeper, Stopped, check_command, disturbances, interruptible, measure
from noregret.studies.session import Lost, Measurer, Plan, Session, Suggester, View
from noregret.studies.store.records import Record
from noregret.studies.store.store import Store
from noregret.studies.study.study import Study, StudyError
from noregret.terminal import complain, printable, say

LOG = logging.getLogger("noregret")


def plan_of(study: Study) -> Plan:
    """Plan of a study's calls."""
    has_reports, repeats = study.steps is not None, study.runs[0]
    return Plan(study.budget, study.stop, study.confirm, study.cap, repeats, has_reports, study.seed)


def suggester_of(study: Study) -> Suggester:
    """Suggester of a study's trials."""
    replay = replay_of(study)
    return Suggester(plan_of(study), lambda records: believed(study, records, replay))


class Commands(Measurer):
    """Measures trials by the command of their study, in threads, since the commands are other processes.

    The suggester decides which runs are worth their time.
    """

    can_end = True

    def __init__(self, study: Study, suggester: Suggester, keeper: Keeper) -> None:
        self.workers, self._study, self._suggester, self._keeper = study.workers, study, suggester, keeper
        self._pool = ThreadPoolExecutor(study.workers, "noregret")
        self._ending: dict[int, Event] = {}
        """Event that ends the command of each trial."""
        self._failures = 0

    def begin(self, trial: Record) -> Future[Any]:
        ending = self._ending[trial.number] = Event()
        LOG.debug("trial %d: %s", trial.number, self._study.shell_line(trial.params))
        return self._pool.submit(measure, self._study, trial, self._keeper, ending, self._suggester)

    def outcome(self, trial: Record, future: Future[Any]) -> Record:
        self._ending.pop(trial.number, None)
        try:
            found: Record = future.result()
            return found
        except Stopped:
            raise Lost from None

    def end(self, number: int) -> None:
        if number in self._ending:
            self._ending[number].set()

    def check(self, outcome: Record) -> None:
        """Raise StudyError after too many failures in a row."""
        self._failures = self._failures + 1 if outcome.state == "failed" else 0
        if self._failures >= self._study.failure.stop_after:
            last = outcome.stderr.strip().rpartition("\n")[2]
            raise StudyError(
                f"command: has failed {self._failures} times in a row, the last time: {outcome.failure}"
                f"{f' ({last})' if last else ''}. Fix it and run the same command again. "
                "The failed trials stay in the study. A study without any result starts again when the command in its "
                "file is another one"
            )


def dry_run(study: Study) -> str:
    """The first command of a study as it would be typed; nothing is run or written."""
    check_command(study)
    first = suggester_of(replace(study, stop=None))([])
    assert first
    return printable(study.shell_line(first.params))


def tune(study: Study, workers: int, *, as_json: bool = False, migrate: bool = False) -> int:
    """Work on a study until it ends, and print the findings; return 3 without results, 130 if interrupted."""
    check_command(study)
    warn_of_a_rule_that_cannot_hold(study)
    for line in disturbances(study):
        complain(f"noregret: {printable(line)}")
    stop, suggester, trackers = Event(), suggester_of(study), trackers_of(study)
    with interruptible(), Store(study, stop=stop, migrate=migrate, restart=True) as store, ExitStack() as runs:
        if store.restarted:
            complain(f"noregret: {printable(store.restarted)}")
        elif migrate:
            complain(printable(carried_over(store), keep="\n"))
        try:
            with view(study, store.records(), suggester, as_json) as seen, Keeper() as keeper:
                is_tracked = trackers and store.stopped() is None
                tracked = [TrackedTrials(study, suggester, trackers, runs)] if is_tracked else []
                commands = Commands(replace(study, workers=workers), suggester, keeper)
                Session(suggester, store, commands, [seen, *tracked], stop, study.lease).run()
        except KeyboardInterrupt:
            done = sum(record.is_finished for record in store.records())
            where = printable(str(store.where))
            complain(f"\nnoregret: stopped; {done} results are kept in {where}. Run the same command to continue.")
            return 130
        if store.stopped() is None:
            store.out_of_time()
        found = findings(study, store)
        say(json.dumps(found.ending()) if as_json else conclusion(found))
        for tracker in trackers:
            tracker.finish(found.best)
    return 0 if found.done else 3


def warn_of_a_rule_that_cannot_hold(study: Study) -> None:
    """Warn if the stopping rule can never hold within the budget."""
    needed = least_rounds(study)
    if study.budget.rounds and study.budget.rounds < needed:
        complain(
            f"noregret: [stop] cannot hold within {study.budget.rounds} evaluations: it takes measurements near almost "
            f'all settings, {needed} at least. Raise evaluations, tune fewer parameters, or set by = "model"'
        )


def carried_over(store: Store) -> str:
    """Report about a study whose file has changed."""
    if store.migration is None:
        return "noregret: nothing to migrate: the study file describes the study as it is stored"
    used, unused = sum(record.is_finished for record in store.records()), store.unused()
    outside = f"; {unused} are of settings that it no longer has: they stay stored, and are not used" if unused else ""
    return "\n".join(["noregret: the study has changed:", *(f"  {line}" for line in store.migration.changes)]) + (
        f"\n{used} results carry over{outside}"
    )


def report(study: Study | Findings, as_json: bool = False, against: Study | None = None) -> str:
    """Findings of a study, as a page, beside those of another one if that is given, or as JSON."""
    found = stored(study) if isinstance(study, Study) else study
    if as_json:
        return json.dumps(summary(found), indent=2) + "\n"
    from noregret.studies.page.page import page
    from noregret.studies.page.reporting import comparable

    try:
        return page(found, against=comparable(found, stored(against)) if against else None)
    except ValueError as error:
        raise StudyError(f"--against: {error}") from error


def stored(study: Study, wish: Wish = NO_WISH) -> Findings:
    """Findings of a study that is only read."""
    with Store(study, readonly=True) as store:
        return findings(study, store, wish)


def findings(study: Study, store: Store, wish: Wish = NO_WISH) -> Findings:
    """Findings of a study; with several objectives, a wish picks from the front."""
    records = store.records()
    return Findings(study, records, believed(study, records), store.stopped(), wish)


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
