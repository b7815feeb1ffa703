"""The commands ``tune`` and ``report``."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from threading import Event

from noregret.terminal import complain, printable, say
from noregret.tune.learning.findings import Findings, ending, summary
from noregret.tune.learning.suggest import Suggester, believed, least_rounds
from noregret.tune.page.page import page
from noregret.tune.store.store import Store
from noregret.tune.study.study import Study, StudyError, placeholders
from noregret.tune.work.display import conclusion, view
from noregret.tune.work.worker import interruptible, work


def dry_run(study: Study) -> str:
    """The first command of a study as it would be typed; nothing is run or written."""
    check_command(study)
    first = Suggester(replace(study, stop=None))([])
    assert first
    return printable(shlex.join(study.arguments(first.params)))


def tune(study: Study, workers: int, *, as_json: bool = False, migrate: bool = False) -> int:
    """Work on a study until it ends, and print the findings; return 3 without results, 130 if interrupted."""
    check_command(study)
    warn_of_hopeless_stop(study)
    stop, suggester = Event(), Suggester(study)
    with interruptible(), Store(study, stop=stop, migrate=migrate) as store:
        if migrate:
            complain(printable(carried_over(store), keep="\n"))
        try:
            with view(study, store.records(), suggester, as_json) as seen:
                work(replace(study, workers=workers), store, suggester, seen, stop)
        except KeyboardInterrupt:
            done = sum(record.finished for record in store.records())
            where = printable(str(store.where))
            complain(f"\nnoregret: stopped; {done} results are kept in {where}. Run the same command to continue.")
            return 130
        if store.stopped() is None:
            store.out_of_time()
        found = findings(study, store)
        say(json.dumps(ending(found)) if as_json else conclusion(found))
    return 0 if found.done else 3


def warn_of_hopeless_stop(study: Study) -> None:
    """Warn if the stopping rule can never hold within the budget."""
    needed = least_rounds(study)
    if study.budget.rounds and study.budget.rounds < needed:
        complain(
            f"noregret: [stop] cannot hold within {study.budget.rounds} rounds: it takes measurements near almost all "
            f'settings, {needed} at least. Raise rounds, tune fewer parameters, or set by = "model"'
        )


def carried_over(store: Store) -> str:
    """Report about a study whose file has changed."""
    if store.migration is None:
        return "noregret: nothing to migrate: the study file describes the study as it is stored"
    used, unused = sum(record.finished for record in store.records()), store.unused()
    outside = f"; {unused} are of settings that it no longer has: they stay stored, and are not used" if unused else ""
    return "\n".join(["noregret: the study has changed:", *(f"  {line}" for line in store.migration.changes)]) + (
        f"\n{used} results carry over{outside}"
    )


def report(study: Study, as_json: bool = False) -> str:
    """Findings of a study, as a page or as JSON."""
    with Store(study, readonly=True) as store:
        found = findings(study, store)
        return json.dumps(summary(found), indent=2) + "\n" if as_json else page(found)


def findings(study: Study, store: Store) -> Findings:
    """Findings of a study."""
    records = store.records()
    return Findings(study, records, believed(study, records), store.stopped())


def check_command(study: Study) -> None:
    """Find out before anything is written whether the command can be started."""
    program = study.words[0]
    if placeholders(program):
        return
    place = str(study.folder / program) if "/" in program else program
    if shutil.which(place) is None:
        raise StudyError(
            f"{study.path}: command: {program!r} does not exist, or may not be run (looked in {study.folder} and PATH)"
            if "/" not in program
            else f"{study.path}: command: {place!r} does not exist, or may not be run"
        )
