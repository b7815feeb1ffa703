"""The commands themselves, once their packages are known to be there."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from threading import Event

from noregret.terminal import complain, printable, say
from noregret.tune.learning.findings import Findings
from noregret.tune.learning.suggest import Suggester, believed
from noregret.tune.page import words
from noregret.tune.page.page import page
from noregret.tune.store.store import Store
from noregret.tune.study.study import Study, StudyError, placeholders
from noregret.tune.work.display import view
from noregret.tune.work.worker import interruptible, work


def dry_run(study: Study) -> str:
    """The first command of a study as one would type it; nothing is run or written."""
    check_command(study)
    return printable(shlex.join(study.arguments(Suggester(study)([]).params)))


def tune(study: Study, workers: int) -> int:
    """Work on a study until its budget is spent, and say what was found; 3 if nothing was, 130 if interrupted."""
    check_command(study)
    stop, suggester = Event(), Suggester(study)
    with interruptible(), Store(study, stop=stop) as store:
        try:
            with view(study, store.records(), suggester) as seen:
                work(replace(study, workers=workers), store, suggester, seen, stop)
        except KeyboardInterrupt:
            done = sum(record.finished for record in store.records())
            where = printable(str(store.where))
            complain(f"\nnoregret: stopped; {done} results are kept in {where}. Run the same command to go on.")
            return 130
        found = findings(study, store)
        say(conclusion(found))
    return 0 if found.done else 3


def report(study: Study) -> str:
    """The page of a study."""
    with Store(study, readonly=True) as store:
        return page(findings(study, store))


def findings(study: Study, store: Store) -> Findings:
    """What is known about a study."""
    records = store.records()
    return Findings(study, records, believed(study, records))


def conclusion(found: Findings) -> str:
    """What was found, in a few lines."""
    best = found.best
    if best is None:
        return "no result yet"
    lines = [f"best: {words.number(best.estimate)}{found.unit}, {words.likely(best, found.unit)}"]
    width = max(map(len, best.params))
    lines += [f"  {name:<{width}}  {words.value(value)}" for name, value in best.params.items()]
    return "\n".join([*lines, f"the evidence: noregret report {printable(shlex.quote(str(found.study.path)))}"])


def check_command(study: Study) -> None:
    """Find out before anything is written whether the command can be started."""
    program = study.command[0]
    if placeholders(program):
        return
    place = str(study.folder / program) if "/" in program else program
    if shutil.which(place) is None:
        raise StudyError(
            f"{study.path}: command: {program!r} does not exist, or may not be run (looked in {study.folder} and PATH)"
            if "/" not in program
            else f"{study.path}: command: {place!r} does not exist, or may not be run"
        )
