"""`minimize` and `maximize`: tune a Python function in one call; with ``storage`` its trials are kept in a store."""

from __future__ import annotations

import inspect
import logging
import math
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from noregret.gp.seeds import seed_sequence
from noregret.optimizer import (
    VALUE,
    CandidateTable,
    Choice,
    Estimate,
    Gain,
    Goal,
    JointEstimate,
    Measures,
    Optimizer,
    OptimizerConfig,
    Options,
    ParameterSpace,
    Reading,
    Readings,
    Trial,
    check_names,
    checked_tolerance,
    takes_options,
)
from noregret.studies import words
from noregret.studies.learning.prose import feasibility
from noregret.studies.learning.suggest import AS_GOOD, as_study, believed, replay_of
from noregret.studies.session import (
    LOOK,
    REFRESH_SECONDS,
    Measurer,
    Plan,
    Session,
    Suggest,
    Suggester,
    Target,
    Trials,
    View,
    median_of,
    target_of,
)
from noregret.studies.store.records import NextTrial, Record
from noregret.studies.study.parameters import in_words
from noregret.studies.study.study import Budget, Stop, Study, StudyError

if TYPE_CHECKING:
    from noregret.studies.store.store import Store

LOG = logging.getLogger("noregret")
FIRST_FAILURES = 3
"""Failures before the first value of a call that end it."""
PROGRESS_WIDTH = 20
"""Characters of the progress bar."""
LINE = 120
"""Characters of an error that the result shows."""

Reason = Literal["evaluations", "seconds", "within", "callback", "interrupted", "broken"]
REASONS: dict[Reason, str] = {
    "evaluations": "all evaluations are done",
    "seconds": "the time is over",
    "within": "the stopping rule holds",
    "callback": "a callback stopped it",
    "interrupted": "interrupted",
    "broken": "the executor is broken",
}
Callback = Callable[[Optimizer, Trial, Any], object]
Known = Callable[[Sequence[Record]], Optimizer]
"""Function from all trials to an optimizer that knows them."""


@dataclass(frozen=True, repr=False)
class TuningResult:
    """Result of `minimize` and `maximize`.

    Parameters
    ----------
    optimizer : Optimizer
        It knows all values. Its ``ask`` and ``tell`` continue from there.
    stopped : str
        The reason for the end: "evaluations", "seconds", "within" (the stopping rule), "callback", "interrupted"
        (Ctrl-C) or "broken" (the executor).
    failure : str
        Error of the last failed evaluation of the call; empty if none failed.
    """

    optimizer: Optimizer
    stopped: Reason
    failure: str = ""

    @property
    def best(self) -> Estimate:
        """The recommended setting, with its estimate and interval: `Optimizer.best`."""
        return self.optimizer.best()

    @property
    def params(self) -> Any:
        """The recommended setting."""
        return self.best.params

    @property
    def gain(self) -> Gain | None:
        """Improvement on the baseline, None without a baseline: `Optimizer.gain`."""
        return None if self.optimizer.baseline is None else self.optimizer.gain()

    @property
    def front(self) -> list[JointEstimate]:
        """The best compromises between several objectives: `Optimizer.front`."""
        return self.optimizer.front()

    @property
    def plot(self) -> Any:
        """Pictures of the optimizer, as matplotlib axes."""
        optimizer: Any = self.optimizer
        return optimizer.plot

    def to_frame(self) -> Any:
        """All trials as a DataFrame (extra ``frames``): `Optimizer.to_frame`."""
        return self.optimizer.to_frame()

    def report(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Write the page of `noregret.report` to a file; without a path, show it in a notebook."""
        from noregret.studies.page.reporting import report

        return report(self.optimizer, *([] if path is None else [path]))

    def __repr__(self) -> str:
        optimizer, key = self.optimizer, self.optimizer.space.key
        trials = [trial for trial in optimizer.trials if trial.state in ("done", "failed")]
        failed = sum(trial.state == "failed" for trial in trials)
        last = f", the last with {_shortened(self.failure)}" if self.failure else ""
        counts = f"{len(trials)} evaluations{f', {failed} failed{last}' * bool(failed)}; {REASONS[self.stopped]}"
        if optimizer.goals:
            members = self.front if optimizer.measures.is_known(trials) else []
            rows = (", ".join(f"{name} {member.in_words(name)}" for name in member.values) for member in members)
            lines = [f"  {row}  at {words.params(member.params)}" for row, member in zip(rows, members, strict=True)]
            return "\n".join([f"front: {len(members)} setting{'s' * (len(members) != 1)}", *lines, counts])
        best = self.best
        measured = sum(key(trial.params) == key(best.params) for trial in trials if trial.state == "done")
        items = list(best.params.items() if isinstance(best.params, Mapping) else enumerate(best.params))
        width = max(len(str(name)) for name, _ in items)
        lines = [f"{optimizer.goal[:-3]}um: {words.number(best.estimate)}, {words.likely(best)}"]
        lines += [f"  {name!s:<{width}}  {words.value(value)}" for name, value in items]
        lines += [str(self.gain)] if self.gain else []
        lines += [feasibility(best)] if optimizer.constraints else []
        lines += [best.remaining_in_words()] if best.has_gap else []
        times = f"measured {measured} time{'s' * (measured != 1)}" if measured else "not measured itself"
        return "\n".join([*lines, f"this setting was {times}", counts])

    def _repr_html_(self) -> str:
        return self.optimizer._repr_html_()


@takes_options
def minimize(
    f: Callable[..., Any],
    space: Any,
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    workers: int | Executor = 1,
    stop: float | str | None = None,
    confirm: int = 3,
    repeats: int | tuple[int, int] = 1,
    callbacks: Sequence[Callback] = (),
    storage: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    rng: Any = None,
    **options: Unpack[Options],
) -> TuningResult:
    """Find the params with the least value of a noisy function.

    At least one of ``evaluations``, ``seconds`` and ``stop`` is needed. Ctrl-C ends the call and returns what is known.

    Parameters
    ----------
    f : callable
        Called as ``f(**params)`` for a dict space, and as ``f(row)`` for a table; with a fidelity also with that, by
        name. It returns a number, a `Reading` (a number and the noise that is known of it), or a dict with numbers or
        Readings by name: ``value`` or each objective, each constraint, and any others, which are only tracked. With
        constraints ``(value, {"memory": 480})`` will do, too. An exception, nan or anything else is a failure, see
        `Optimizer.fail`, and is logged. If the first three trials fail, the last error is raised.
    space : dict, or table of candidates
        As `Optimizer` takes it.
    evaluations : int, optional
        Number of evaluations in all, failures included; with ``storage`` those of earlier calls too.
    seconds : float, optional
        No evaluation but the first starts later than this. Those that are running are waited for. Without
        ``evaluations``, improvement is weighed by the time that an evaluation takes, and one that likely takes longer
        than what is left is not started.
    workers : int, or concurrent.futures.Executor
        Evaluations at a time. A number means threads (1: f is called in this thread), which suits an f that waits or
        computes outside of Python. For an f that computes in Python pass ``ProcessPoolExecutor(4)``, or any other
        executor.
    stop : float or str, optional
        End when `Optimizer.done` says that no setting is likely to be better by more than this: a number, or "2%" of
        the best estimate.
    confirm : int
        The last evaluations go to the recommended setting until it was measured this often; at most a fifth of all.
        With a baseline and 80 evaluations or more, they are pairs of runs of the two, for ``gain.measured``.
    repeats : int, or (int, int)
        Number of calls of f for each trial, whose median counts; or the fewest and the most: then a trial ends when its
        calls are clearly worse than the recommended setting, and each call counts.
    callbacks : sequence of callables
        Each is called as ``callback(optimizer, trial, value)`` after each evaluation, in this thread; the trial has its
        readings, and the value is None for a failure, and a dict with several objectives. One that returns True ends
        the call. Those that are context managers, such as the trackers of `noregret.integrations.trackers`, are entered
        before the first evaluation and left after the last.
    storage : path or URL, optional
        SQLite file, or URL of a database, that keeps every evaluation. The same call continues after
        a crash, with the same questions, and returns the result at once if all is done. Several processes may work on
        one storage.
    progress : bool, optional
        A progress line on standard error; by default on terminals and in notebooks.
    rng : None, int, SeedSequence or Generator
        As `Optimizer` takes it. With ``storage`` a whole number, 0 by default.

    Other Parameters
    ----------------
    baseline, constraints, require, safe, goals, fidelity, drift, possible : optional
        As `Optimizer` takes them. The baseline is measured first, and compared with. With several goals the result has
        a ``front`` instead of a best setting, and with a fidelity f is called with the one of each trial.

    Examples
    --------
    >>> import numpy as np
    >>> from noregret import Float, minimize
    >>> noise = np.random.default_rng(1)
    >>> def f(x, y):
    ...     return (x - 0.3) ** 2 + (y - 0.6) ** 2 + 0.01 * noise.standard_normal()
    >>> result = minimize(f, {"x": Float(0, 1), "y": Float(0, 1)}, evaluations=40, rng=0)
    >>> abs(result.params["x"] - 0.3) < 0.1, abs(result.params["y"] - 0.6) < 0.1
    (True, True)
    >>> result.best.lower <= 0.0 <= result.best.upper
    True
    """
    check_names(minimize, options)
    runs = _checked_repeats(repeats)
    call = CallOptions(
        f, planned(evaluations, seconds, stop, confirm, runs[0]), workers, runs, callbacks, storage, progress
    )
    return _tuned(call, space, "minimize", dict(options), rng)


@takes_options
def maximize(
    f: Callable[..., Any],
    space: Any,
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    workers: int | Executor = 1,
    stop: float | str | None = None,
    confirm: int = 3,
    repeats: int | tuple[int, int] = 1,
    callbacks: Sequence[Callback] = (),
    storage: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    rng: Any = None,
    **options: Unpack[Options],
) -> TuningResult:
    """Find the params with the largest value of a noisy function; everything else is as for `minimize`.

    Examples
    --------
    >>> from noregret import Int, maximize
    >>> maximize(lambda n: -((n - 7) ** 2), {"n": Int(1, 20)}, evaluations=25, rng=0).params
    {'n': 7}
    """
    check_names(maximize, options)
    runs = _checked_repeats(repeats)
    call = CallOptions(
        f, planned(evaluations, seconds, stop, confirm, runs[0]), workers, runs, callbacks, storage, progress
    )
    return _tuned(call, space, "maximize", dict(options), rng)


class FunctionMeasurer(Measurer):
    """Evaluations of a function, by an executor.

    The optimizer says what f is called with, and which numbers it returns. A trial has the fewest to the most calls of
    ``repeats``, and the suggester decides how many it is worth.
    """

    can_end = False

    def __init__(
        self,
        f: Callable[..., Any],
        optimizer: Optimizer,
        executor: Executor,
        workers: int,
        repeats: tuple[int, int],
        suggester: Suggester,
    ) -> None:
        self._f, self._executor, self.workers = f, executor, workers
        self._is_table, self._measures = isinstance(optimizer.space, CandidateTable), optimizer.measures
        self._repeats, self._suggester = repeats, suggester
        self._begun: dict[int, float] = {}
        self._values = self._failures = 0
        self.error: Exception | None = None
        """Error of the last failure."""

    def begin(self, trial: Record) -> Future[Any]:
        args, named = ((trial.params,), {}) if self._is_table else ((), trial.params)
        named = {**named, **(trial.fidelity or {})}
        self._begun[trial.number] = monotonic()
        (fewest, most), target = self._repeats, None
        if most == 1:
            return self._executor.submit(self._f, *args, **named)
        if fewest < most and self._suggester.latest and self._measures.is_single:
            target = target_of(self._suggester.latest[1])
        return self._executor.submit(RepeatedFunction(self._f, fewest, most, target), *args, **named)

    def launch(self) -> None:
        if hasattr(self._executor, "launch"):  # it starts calls together
            self._executor.launch()

    def outcome(self, trial: Record, future: Future[Any]) -> Record:
        """The trial with what f has returned; BrokenExecutor if it could not be called."""
        seconds = monotonic() - self._begun.pop(trial.number)
        ended = replace(trial, seconds=seconds, ended=datetime.now())
        try:
            returned = future.result()
            runs = [self._readings(each) for each in (returned if self._repeats[1] > 1 else [returned])]
            if self._suggester.plan.weighs_costs and any(self._measures.cost in run for run in runs):
                raise ValueError("with seconds alone as the budget, the cost is time: give evaluations, or rename it")
        except BrokenExecutor:
            raise
        except Exception as error:
            LOG.warning("trial %d: failed at %s", trial.number, trial.params, exc_info=error)
            self._failures, self.error = self._failures + 1, error
            return replace(ended, state="failed", failure=f"{type(error).__name__}: {error}")
        self._values += 1
        names = dict.fromkeys(name for run in runs for name in run)
        each = {name: tuple(reading for run in runs for reading in run.get(name, ())) for name in names}
        if self._repeats[0] == self._repeats[1]:
            each = {name: (median_of(readings),) for name, readings in each.items()}
        done = replace(ended, state="done", readings=each)
        LOG.info("trial %d: %s at %s", trial.number, value_of(self._measures, done), trial.params)
        return done

    def check(self, outcome: Record) -> None:
        """Raise the error of the last of the first failures."""
        if self.error is not None and not self._values and self._failures == FIRST_FAILURES:
            self.error.add_note(f"noregret: the first {FIRST_FAILURES} trials failed, this is the last of them")
            raise self.error

    def _readings(self, returned: Any) -> Readings:
        """Readings of what f has returned: a number, a Reading, a dict of these, or a pair with the constraints."""
        if self._measures.constraints and isinstance(returned, tuple) and len(returned) == 2:
            return self._measures.readings(returned[0], constraints=returned[1])
        if isinstance(returned, Mapping):
            if self._measures.is_single and VALUE not in returned:
                names = ", ".join(f"{name!r}: 'minimize'" for name in returned)
                raise ValueError(
                    f"f must return a dict with 'value', got {dict(returned)!r}: add it, or for several objectives "
                    f"give goals={{{names}}}"
                )
            return self._measures.readings(returned)
        if self._measures.constraints:
            wanted = "with constraints f must return (value, {name: number})"
            raise ValueError(f"{wanted}, got {returned!r}: or a dict with all of them")
        try:
            return self._measures.readings(returned)
        except ValueError:
            advice = ""
            if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
                name = next(iter(returned[1]), "name")
                advice = f": declare what it must meet, as in constraints={{{name!r}: ('<=', 1)}}, or return a dict"
            raise ValueError(f"f must return a finite number, got {returned!r}{advice}") from None


@dataclass(frozen=True)
class RepeatedFunction:
    """A function that is called several times; it can be sent to another process if f can."""

    f: Callable[..., Any]
    fewest: int
    most: int
    target: Target | None
    """Value that has to come near for more than the fewest calls."""

    def __call__(self, *args: Any, **named: Any) -> list[Any]:
        returned: list[Any] = []
        while len(returned) < self.most and not (len(returned) >= self.fewest and self._is_enough(returned)):
            returned.append(self.f(*args, **named))
        return returned

    def _is_enough(self, returned: Sequence[Any]) -> bool:
        if self.target is None:
            return False
        values: list[Any] = [each.get(VALUE) if isinstance(each, Mapping) else each for each in returned]
        values = [each[0] if isinstance(each, tuple) and each else each for each in values]
        values = [each.value if isinstance(each, Reading) else each for each in values]
        is_known = all(isinstance(each, Real) for each in values)  # what is no number fails the trial
        return not is_known or self.target.is_out_of_reach(values)


def value_of(measures: Measures, trial: Trial) -> Any:
    """Value of a trial, those of several objectives as a dict; None for a failure."""
    if trial.state != "done":
        return None
    return trial.value() if measures.is_single else measures.values(trial)


class MemoryTrials(Trials):
    """Trials of an optimizer in memory."""

    def __init__(self, optimizer: Optimizer, evaluations: int | None) -> None:
        self.optimizer, self._evaluations = optimizer, evaluations
        self._records: dict[int, Record] = {}
        self._stopped: str | None = None

    def records(self) -> list[Record]:
        return list(self._records.values())

    def stopped(self) -> str | None:
        return self._stopped

    def claim(self, suggest: Suggest) -> NextTrial:
        if self._evaluations is not None and len(self._records) >= self._evaluations:
            return NextTrial(None, over=True)
        trial = suggest(self.records())
        if trial is None:
            self._stopped = "within"
            return NextTrial(None, over=True)
        self._records[trial.number] = trial
        return NextTrial(replace(trial, started=datetime.now()), over=False)

    def tell(self, outcome: Record) -> bool:
        self._records[outcome.number] = outcome
        self.optimizer.add([outcome])
        return True

    def heartbeat(self, numbers: Iterable[int]) -> list[int]:
        return []


class Inline(Executor):
    """Executor that calls f in this thread, where Ctrl-C reaches it."""

    def submit(self, f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(f(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class CallOptions(NamedTuple):
    """Arguments of `minimize` and `maximize` beside the problem."""

    f: Callable[..., Any]
    plan: Plan
    workers: int | Executor
    repeats: tuple[int, int]
    callbacks: Sequence[Callback]
    storage: str | os.PathLike[str] | None
    progress: bool | None


def planned(
    evaluations: int | None, seconds: float | None, stop: float | str | None, confirm: int, repeats: int = 1
) -> Plan:
    """Plan of a call; ValueError if it has no end, or makes no sense."""
    if evaluations is None and seconds is None and stop is None:
        raise ValueError("one of evaluations, seconds and stop must be given, such as evaluations=50")
    for name, least, given in (("evaluations", 1, evaluations), ("confirm", 0, confirm)):
        if given is not None and (isinstance(given, bool) or not isinstance(given, Integral) or given < least):
            raise ValueError(f"{name} must be a whole number from {least}, got {given!r}")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, Real) or not float(seconds) > 0):
        raise ValueError(f"seconds must be a number above 0, got {seconds!r}")
    if stop is not None:
        try:
            checked_tolerance(stop)
        except ValueError as error:
            raise ValueError(str(error).replace("within", "stop", 1)) from None
    rule = None if stop is None else Stop(stop)
    return Plan(Budget(evaluations, seconds), rule, confirm, repeats=repeats)


def _checked_repeats(repeats: Any) -> tuple[int, int]:
    """Fewest and most calls of a trial; ValueError if they make no sense."""
    pair = repeats if isinstance(repeats, tuple | list) else (repeats, repeats)
    is_whole = all(isinstance(each, Integral) and not isinstance(each, bool) for each in pair)
    if len(pair) != 2 or not is_whole or not 1 <= pair[0] <= pair[1]:
        wanted = "a whole number from 1, or the fewest and the most such as (1, 10)"
        raise ValueError(f"repeats must be {wanted}, got {repeats!r}")
    return int(pair[0]), int(pair[1])


def _tuned(call: CallOptions, space: Any, goal: Goal, options: dict[str, Any], rng: Any) -> TuningResult:
    plan = call.plan
    if not callable(call.f):
        raise ValueError(f"f must be a function, got {call.f!r}")
    if callable(call.callbacks) or not all(map(callable, call.callbacks)):
        raise ValueError(f"callbacks must be a list of functions, got {call.callbacks!r}")
    if not isinstance(call.storage, str | os.PathLike | None):
        raise ValueError(f"storage must be a path or a URL, such as 'study.db', got {call.storage!r}")
    if options.get("goals") is not None:
        plan = replace(plan, confirm=0)
    options |= {"budget": plan.budget.seconds} if plan.weighs_costs else {}
    config = OptimizerConfig(as_good=AS_GOOD if plan.confirm else 0.0)
    its_goal = None if options.get("goals") is not None else goal
    optimizer = Optimizer(space, goal=its_goal, rng=rng, calibration=config, **options)
    if plan.stop is not None and optimizer.goals:
        raise ValueError("stop is about one objective: with several, give evaluations or seconds")
    _check_signature(call.f, optimizer)
    with ExitStack() as open_until_end:
        executor, count = _executor(call.workers, open_until_end)
        trials, known, lease = _trials(call, plan, optimizer, rng, open_until_end)
        seed = seed_sequence(0 if rng is None and call.storage is not None else rng).generate_state(1)[0]
        suggester = Suggester(replace(plan, seed=int(seed)), known, LOOK)
        measurer = FunctionMeasurer(call.f, optimizer, executor, count, call.repeats, suggester)
        bars = open_until_end.enter_context(_bars(call.progress, suggester, trials, known))
        for callback in call.callbacks:
            if isinstance(callback, AbstractContextManager):
                open_until_end.enter_context(callback)
        views = [*bars, *([Callbacks(call.callbacks, trials, known)] if call.callbacks else [])]
        stopped: Reason
        try:
            end = Session(suggester, trials, measurer, views, lease=lease).run()
            if end == "callback" or end == "seconds":
                stopped = end
            else:
                stopped = "within" if trials.stopped() == "within" else "evaluations"
        except KeyboardInterrupt:
            stopped = "interrupted"
            if not _has_value(known(trials.records())):
                raise
        except BrokenExecutor as error:
            stopped, made = "broken", len(trials.records())
            if not _has_value(known(trials.records())):
                raise
            warnings.warn(f"stopped after {made} evaluations: {error}", stacklevel=3)
        found = known(trials.records())
        if not _has_value(found):
            raise measurer.error or ValueError(
                f"all {len(trials.records())} evaluations in the storage failed: fix f and allow more of them, or give "
                "another storage"
            )
    failure = "" if measurer.error is None else f"{type(measurer.error).__name__}: {measurer.error}"
    return TuningResult(found, stopped, failure)


def _trials(
    call: CallOptions, plan: Plan, optimizer: Optimizer, rng: Any, open_until_end: ExitStack
) -> tuple[Trials, Known, float | None]:
    """Trials in memory or in the storage, a function from all trials to an optimizer that knows them, and a lease."""
    if call.storage is None:
        return MemoryTrials(optimizer, plan.budget.rounds), lambda records: optimizer, None
    study = study_of(optimizer, os.fspath(call.storage), rng, plan, call.repeats)
    store, replay = open_until_end.enter_context(opened(study)), replay_of(study)
    return store, partial(believed, study, replay=replay), float(study.lease)


def study_of(optimizer: Optimizer, storage: str, rng: Any, plan: Plan, repeats: tuple[int, int]) -> Study:
    """The study of a function: one without a command."""
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, Integral)):
        raise ValueError(f"with storage, rng must be a whole number, which is stored, or None for 0, got {rng!r}")
    path = Path("storage") if "://" in storage else Path(storage).expanduser().absolute()
    url = storage if "://" in storage else f"sqlite:///{path}"
    return as_study(
        optimizer,
        path,
        _checked_space(optimizer),
        name="function",
        storage=url,
        seed=int(rng or 0),
        budget=plan.budget,
        confirm=plan.confirm,
        stop=plan.stop,
        repeats=repeats[0] if repeats[0] == repeats[1] else repeats,
    )


def _checked_space(optimizer: Optimizer) -> Any:
    """The space as a study has it; ValueError if a storage cannot keep its values."""
    space = optimizer.space
    if isinstance(space, ParameterSpace):
        checked: Any = dict(space.parameters)
        options = {name: list(param.options) for name, param in checked.items() if isinstance(param, Choice)}
    else:
        assert isinstance(space, CandidateTable)
        if space.is_array or not all(isinstance(name, str) for name in space.names):
            raise ValueError(
                "with storage, the rows of a table must be dicts with text as names, such as [{'x': 1.5, 'kind': 'a'}]"
            )
        checked = [space.rows[number] for number in range(len(space.rows))]
        options = {name: [row[name] for row in checked] for name in space.names}
    for name, values in options.items():
        odd = [value for value in values if not isinstance(value, bool | int | float | str | None)]
        if odd:
            raise ValueError(
                f"with storage, the values of {name!r} must be text, numbers, True, False or None, got {odd[0]!r}: put "
                "a name in its place, and look the object up by it in f"
            )
    return checked


def opened(study: Study) -> Store:
    """The store of a study; ValueError if its storage has another one."""
    from noregret.studies.store.databases.database import restoring_command  # databases are for those who name one
    from noregret.studies.store.identity import differing
    from noregret.studies.store.storage import Storage
    from noregret.studies.store.store import Store

    try:
        return Store(study)
    except StudyError:
        with suppress(StudyError):
            storage = Storage(study.storage, study.folder, restoring_command(study), readonly=True)
            try:
                stored = storage.find(study.name)
            finally:
                storage.close()
            was, now = stored.identity if stored else {}, study.identity()
            for key in differing(was, now) if stored else ():
                before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
                raise ValueError(
                    f"storage {storage.where} keeps evaluations of another problem: {key} was {before}, now it is "
                    f"{after}. Change it back, or give another storage"
                ) from None
        raise


def _check_signature(f: Callable[..., Any], optimizer: Optimizer) -> None:
    """Raise TypeError if f cannot be called with the params of the space; nothing was evaluated yet."""
    is_table, names = isinstance(optimizer.space, CandidateTable), optimizer.space.names
    args, named = ((None,), {}) if is_table else ((), dict.fromkeys(names))
    named |= dict.fromkeys(optimizer.fidelity or ())
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some functions of extension modules have none
        return
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        call = "f(row), with a row of the table" if is_table else f"f({', '.join(f'{name}=...' for name in names)})"
        raise TypeError(f"f is called as {call}, but it is f{signature}: {error}") from None


def _executor(workers: int | Executor, open_until_end: ExitStack) -> tuple[Executor, int]:
    """The executor, and the number of trials that are pending at a time."""
    if isinstance(workers, Executor):
        return workers, getattr(workers, "_max_workers", None) or os.cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, Integral) or workers < 1:
        raise ValueError(f"workers must be a whole number from 1, or a concurrent.futures.Executor, got {workers!r}")
    if workers == 1:
        return Inline(), 1
    pool = ThreadPoolExecutor(workers, "noregret")
    open_until_end.callback(pool.shutdown, wait=False, cancel_futures=True)
    return pool, workers


def _shortened(text: str) -> str:
    """The first line of a text, without its end if it is long."""
    line = (text.splitlines() or [""])[0]
    return line if len(line) <= LINE else line[: LINE - 3] + "..."


def _has_value(optimizer: Optimizer) -> bool:
    return any(trial.state == "done" for trial in optimizer.trials)


class Callbacks(View):
    """View of a session that calls the callbacks of `minimize`."""

    def __init__(self, callbacks: Sequence[Callback], trials: Trials, known: Known) -> None:
        self._callbacks, self._trials, self._known = callbacks, trials, known

    def told(self, outcome: Record, counted: bool) -> bool:
        """Return True if a callback wants to stop."""
        optimizer = self._known(self._trials.records())
        value = value_of(optimizer.measures, outcome)
        wishes = [callback(optimizer, outcome, value) for callback in self._callbacks]
        return any(wish is True for wish in wishes)


class LineBar(View):
    """Progress on one line of standard error, which is written over."""

    def __init__(self, suggester: Suggester, trials: Trials, known: Known) -> None:
        self._suggester, self._trials, self._known = suggester, trials, known
        self._shown, self._best, self._next_best, self._width = -math.inf, "", 0, 0
        self._at_start = len(trials.records())

    def told(self, outcome: Record, counted: bool) -> None:
        self.show()

    def show(self, is_last: bool = False) -> None:
        """Write the line; the best setting is looked up again when there are 5% more trials."""
        if monotonic() - self._shown < REFRESH_SECONDS and not is_last:
            return
        records = self._trials.records()
        if len(records) >= self._next_best or is_last:
            self._next_best = math.ceil(LOOK * len(records))
            optimizer = self._known(records)
            if _has_value(optimizer) and not optimizer.goals:
                best = optimizer.best()
                is_known = math.isfinite(best.upper - best.lower)
                ends = " ({} to {})".format(*words.between(best.lower, best.upper, 2)) if is_known else ""
                self._best = f", best {words.number(best.estimate, 3)}{ends}"
        self._write(self._line(records))
        self._shown = monotonic()

    def _line(self, records: Sequence[Record]) -> str:
        plan, moment = self._suggester.plan, self._suggester.moment(records)
        evaluations = plan.budget.rounds
        share, total = plan.share(moment), "" if evaluations is None else f"/{evaluations}"
        bar = (
            f"[{'#' * round(PROGRESS_WIDTH * share):<{PROGRESS_WIDTH}}] " if evaluations or plan.budget.seconds else ""
        )
        began = plan.share(replace(moment, made=self._at_start, elapsed=0.0)) if evaluations else 0.0
        rest = moment.elapsed * (1 - share) / (share - began) if share > began else 0.0
        left = f", {words.duration(math.ceil(rest))} left" if 0 < share < 1 and rest else ""
        return f"{bar}{moment.made}{total}{self._best}{left}"

    def _write(self, line: str) -> None:
        room = shutil.get_terminal_size().columns - 1
        print("\r" + line[:room].ljust(min(self._width, room)), end="", file=sys.stderr, flush=True)
        self._width = len(line)


@contextmanager
def _bars(progress: bool | None, suggester: Suggester, trials: Trials, known: Known) -> Iterator[list[View]]:
    """Progress bar, if it is wanted or can be seen; else none."""
    is_seen = sys.stderr is not None and (sys.stderr.isatty() or _is_notebook())
    if not (is_seen if progress is None else progress):
        yield []
        return
    bar = LineBar(suggester, trials, known)
    try:
        yield [bar]
    finally:
        bar.show(is_last=True)
        print(file=sys.stderr, flush=True)


def _is_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")
