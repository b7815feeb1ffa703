"""The commands ``tune`` and ``report``, and the trackers that ``[track]`` of a study file names."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from threading import Event
from typing import Any

from noregret.extra import version
from noregret.integrations import trackers
from noregret.integrations.trackers import Tracker, described
from noregret.studies.display import columns, conclusion, setting, view
from noregret.studies.learning.findings import NO_WISH, Findings, Wish, summary
from noregret.studies.learning.suggest import believed, least_rounds, replay_of
from noregret.studies.measuring import Keeper, Stopped, check_command, clean_up, disturbances, interruptible, measure
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
        self.has_begun = False
        """True once a trial was measured."""

    def begin(self, trial: Record) -> Future[Any]:
        self.has_begun = True
        ending = self._ending[trial.number] = Event()
        LOG.debug("trial %d: %s", trial.number, self._study.shell_line(trial.params))
        return self._pool.submit(measure, self._study, trial, self._keeper, ending, self._suggester)

    def outcome(self, trial: Record, future: Future[Any]) -> Record:
        self._ending.pop(trial.number, None)
        try:
            record: Record = future.result()
            return record
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
    if study.prepare and study.warmup:
        complain(
            "noregret: prepare runs before each run, also before those of the warmup: if it restarts what is measured, "
            "the warm-up is lost. Then leave out warmup, and warm up at the end of prepare"
        )
    for line in disturbances(study):
        complain(f"noregret: {printable(line)}")
    stop, suggester, trackers = Event(), suggester_of(study), trackers_of(study)
    commands: Commands | None = None
    with interruptible(), Store(study, stop=stop, migrate=migrate, restart=True) as store, ExitStack() as runs:
        if store.restarted:
            complain(f"noregret: {printable(store.restarted)}")
        elif migrate:
            complain(printable(carried_over(store), keep="\n"))
        is_over = store.stopped(is_timed=False) is not None
        if is_over and not trackers and (said := store.concluded(_conclusion_key(study, store.records(), as_json))):
            say(said)
            return 0
        try:
            with view(study, store.records(), suggester, as_json) as seen, Keeper() as keeper:
                is_tracked = trackers and not is_over
                tracked = [TrackedTrials(study, suggester, trackers, runs)] if is_tracked else []
                commands = Commands(replace(study, workers=workers), suggester, keeper)
                Session(suggester, store, commands, [seen, *tracked], stop, study.lease).run()
        except KeyboardInterrupt:
            done = sum(record.is_finished for record in store.records())
            where = printable(str(store.where))
            complain(f"\nnoregret: stopped; {done} results are kept in {where}. Run the same command to continue.")
            if commands and commands.has_begun:
                cleaned_up(findings(study, store))
            return 130
        except StudyError:
            if commands and commands.has_begun:
                cleaned_up(findings(study, store))
            raise
        if store.stopped() is None:
            store.out_of_time()
        known = findings(study, store)
        said = json.dumps(known.ending()) if as_json else conclusion(known)
        say(said)
        for tracker in trackers:
            tracker.finish(known.best)
        is_clean = not commands.has_begun or cleaned_up(known)
        if known.done and is_clean and store.stopped(is_timed=False):
            store.conclude(_conclusion_key(study, store.records(), as_json), said)
    return (0 if is_clean else 2) if known.done else 3


def cleaned_up(found: Findings) -> bool:
    """Run the cleanup, if there is one, and say with which setting; False if it has failed."""
    study, params = found.study, found.kept
    if not study.cleanup:
        return True
    if params is None:
        complain("noregret: [cleanup] did not run: there is no best setting and no [baseline]")
        return False
    which = "baseline" if params == study.baseline else "best setting"
    why = clean_up(study, params)
    failed = f" has failed: {why}. Run it yourself: {shlex.join(study.cleaning(params))}" if why else ""
    complain(printable(f"noregret: [cleanup] with the {which} ({setting(params, None, columns())}){failed}"))
    return not why


def _conclusion_key(study: Study, records: Sequence[Record], as_json: bool) -> str:
    """Digest of all that a conclusion depends on."""
    content = [version(), as_json, columns(), study, *(vars(record) for record in records)]
    return hashlib.sha256(repr(content).encode()).hexdigest()


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
    used = []
    for service, place in study.track.items():
        if service == "mlflow":  # a file is beside the study, as that of ``storage`` is
            uri = re.sub("^sqlite:///(?!/)", lambda _: f"sqlite:///{study.folder}/", place)
            used.append(trackers.mlflow(uri or None))
        elif service == "tensorboard":
            used.append(trackers.tensorboard(study.folder / (place or "tensorboard")))
        else:
            used.append(trackers.wandb(place or trackers.NAME, folder=study.folder))
    return used


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
