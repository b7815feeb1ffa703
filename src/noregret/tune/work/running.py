"""The commands ``tune`` and ``report``."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from threading import Event

from noregret.terminal import complain, printable, say
from noregret.tune.learning.findings import Findings, summary
from noregret.tune.learning.fronts import NO_WISH, Wish, findings_of
from noregret.tune.learning.suggest import Suggester, believed, least_rounds
from noregret.tune.measuring import check_command, disturbances, interruptible
from noregret.tune.page.page import page
from noregret.tune.page.reporting import comparable
from noregret.tune.store.store import Store
from noregret.tune.study.study import Study, StudyError
from noregret.tune.work.display import conclusion, view
from noregret.tune.work.tracking import TrackedView, trackers_of
from noregret.tune.work.worker import work


def dry_run(study: Study) -> str:
    """The first command of a study as it would be typed; nothing is run or written."""
    check_command(study)
    first = Suggester(replace(study, stop=None))([])
    assert first
    return printable(study.shell_line(first.params))


def tune(study: Study, workers: int, *, as_json: bool = False, migrate: bool = False) -> int:
    """Work on a study until it ends, and print the findings; return 3 without results, 130 if interrupted."""
    check_command(study)
    warn_of_hopeless_stop(study)
    for line in disturbances(study):
        complain(f"noregret: {printable(line)}")
    stop, suggester, trackers = Event(), Suggester(study), trackers_of(study)
    with interruptible(), Store(study, stop=stop, migrate=migrate, restart=True) as store, ExitStack() as runs:
        if store.restarted:
            complain(f"noregret: {printable(store.restarted)}")
        elif migrate:
            complain(printable(carried_over(store), keep="\n"))
        try:
            with view(study, store.records(), suggester, as_json) as seen:
                is_tracked = trackers and store.stopped() is None
                shown = TrackedView(seen, study, suggester, trackers, runs) if is_tracked else seen
                work(replace(study, workers=workers), store, suggester, shown, stop)
        except KeyboardInterrupt:
            done = sum(record.finished for record in store.records())
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


def warn_of_hopeless_stop(study: Study) -> None:
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
    used, unused = sum(record.finished for record in store.records()), store.unused()
    outside = f"; {unused} are of settings that it no longer has: they stay stored, and are not used" if unused else ""
    return "\n".join(["noregret: the study has changed:", *(f"  {line}" for line in store.migration.changes)]) + (
        f"\n{used} results carry over{outside}"
    )


def report(study: Study | Findings, as_json: bool = False, against: Study | None = None) -> str:
    """Findings of a study, as a page, beside those of another one if that is given, or as JSON."""
    found = stored(study) if isinstance(study, Study) else study
    if as_json:
        return json.dumps(summary(found), indent=2) + "\n"
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
    return findings_of(study, records, believed(study, records), store.stopped(), wish)
