"""`minimize` and `maximize`: tune a Python function in one call."""

from __future__ import annotations

import inspect
import logging
import math
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from time import monotonic, sleep
from typing import Any, Literal, NamedTuple, Protocol

from noregret.extra import extra
from noregret.optimizer import (
    Estimate,
    Gain,
    Goal,
    Optimizer,
    OptimizerConfig,
    Table,
    Trial,
    checked_numbers,
    checked_tolerance,
    checked_value,
)
from noregret.tune.learning.suggest import AS_GOOD, confirming
from noregret.tune.page import words
from noregret.tune.page.prose import feasibility
from noregret.tune.page.reporting import report

LOG = logging.getLogger("noregret")
FIRST_FAILURES = 3
"""Failures before the first value of a call that end it."""
IDLE_SECONDS = 0.3
"""Time after which a call that waits for trials of other processes looks again."""
REFRESH_SECONDS = 0.1
"""Least time between two pictures of the progress bar."""
LOOK = 1.05
"""Factor on the number of answers after which the stopping rule is asked again, and the best setting is shown again:
later these cost more, and change less. The Optimizer draws new candidates at the same pace."""
BAR = 20
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
Callback = Callable[[Optimizer, Trial, float | None], object]


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
    def plot(self) -> Any:
        """Pictures of the optimizer, as matplotlib axes."""
        optimizer: Any = self.optimizer
        return optimizer.plot

    def to_frame(self) -> Any:
        """All trials as a DataFrame (extra ``frames``): `Optimizer.to_frame`."""
        return self.optimizer.to_frame()

    def report(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Write the page of `noregret.report` to a file; without a path, show it in a notebook."""
        return report(self.optimizer, *([] if path is None else [path]))

    def __repr__(self) -> str:
        best, answers = self.best, self.optimizer.answers
        failed = sum(answer.value is None for answer in answers)
        key = self.optimizer.space.key
        measured = sum(key(its.params) == key(best.params) for its in answers if its.value is not None)
        items = list(best.params.items() if isinstance(best.params, Mapping) else enumerate(best.params))
        width = max(len(str(name)) for name, _ in items)
        lines = [f"{self.optimizer.goal[:-3]}um: {words.number(best.estimate)}, {words.likely(best)}"]
        lines += [f"  {name!s:<{width}}  {words.value(value)}" for name, value in items]
        lines += [str(self.gain)] if self.gain else []
        lines += [feasibility(best)] if self.optimizer.constraints else []
        lines += [best.remaining_in_words()] if best.has_gap else []
        times = f"measured {measured} time{'s' * (measured != 1)}" if measured else "not measured itself"
        last = f", the last with {_shortened(self.failure)}" if self.failure else ""
        counts = f"{len(answers)} evaluations{f', {failed} failed{last}' * bool(failed)}; {REASONS[self.stopped]}"
        return "\n".join([*lines, f"this setting was {times}", counts])

    def _repr_html_(self) -> str:
        return self.optimizer._repr_html_()


def minimize(
    f: Callable[..., Any],
    space: Any,
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    workers: int | Executor = 1,
    stop: float | str | None = None,
    confirm: int = 3,
    baseline: Any = None,
    constraints: Any = None,
    require: Any = None,
    safe: Any = None,
    callbacks: Sequence[Callback] = (),
    storage: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    rng: Any = None,
) -> TuningResult:
    """Find the params with the least value of a noisy function.

    At least one of ``evaluations``, ``seconds`` and ``stop`` is needed. Ctrl-C ends the call and returns what is known.

    Parameters
    ----------
    f : callable
        Called as ``f(**params)`` for a dict space, and as ``f(row)`` for a table. It returns a number, or with
        constraints ``(value, {"memory": 480})``. An exception, nan or anything else is a failure, see `Optimizer.fail`,
        and is logged. If the first three trials fail, the last error is raised.
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
    baseline : params, optional
        The setting in use now: measured first, and compared with.
    constraints : dict, optional
        ``{"memory": ("<=", 512)}``, as `Optimizer` takes it.
    require : list of str, optional
        Conditions that every setting meets, ``["threads * batch <= 4096"]``, as `Optimizer` takes them.
    safe : float or dict, optional
        Probability with which every trial meets the constraints, as `Optimizer` takes it.
    callbacks : sequence of callables
        Each is called as ``callback(optimizer, trial, value)`` after each evaluation, in this thread; the value is None
        for a failure. One that returns True ends the call. Those that are context managers, such as the trackers of
        `noregret.integrations.trackers`, are entered before the first evaluation and left after the last.
    storage : path or URL, optional
        SQLite file, or URL of a database, that keeps every evaluation (extra ``tune``). The same call continues after
        a crash, with the same questions, and returns the result at once if all is done. Several processes may work on
        one storage.
    progress : bool, optional
        A progress line on standard error; by default on terminals and in notebooks.
    rng : None, int, SeedSequence or Generator
        As `Optimizer` takes it. With ``storage`` a whole number, 0 by default.

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
    plan = Plan(evaluations, seconds, stop, confirm)
    options = {"baseline": baseline, "constraints": constraints, "require": require, "safe": safe}
    problem = Problem(f, space, "minimize", options, rng, storage)
    return _tuned(problem, plan, workers, callbacks, progress)


def maximize(
    f: Callable[..., Any],
    space: Any,
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    workers: int | Executor = 1,
    stop: float | str | None = None,
    confirm: int = 3,
    baseline: Any = None,
    constraints: Any = None,
    require: Any = None,
    safe: Any = None,
    callbacks: Sequence[Callback] = (),
    storage: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    rng: Any = None,
) -> TuningResult:
    """Find the params with the largest value of a noisy function; everything else is as for `minimize`.

    Examples
    --------
    >>> from noregret import Int, maximize
    >>> maximize(lambda n: -((n - 7) ** 2), {"n": Int(1, 20)}, evaluations=25, rng=0).params
    {'n': 7}
    """
    plan = Plan(evaluations, seconds, stop, confirm)
    options = {"baseline": baseline, "constraints": constraints, "require": require, "safe": safe}
    problem = Problem(f, space, "maximize", options, rng, storage)
    return _tuned(problem, plan, workers, callbacks, progress)


class Outcome(NamedTuple):
    """Outcome of a call of f: a value and the numbers of constraints, or an error."""

    value: float | None
    constraints: Mapping[str, float | None] | None
    error: Exception | None
    seconds: float
    cost: float | None = None
    """Seconds that it took of the budget, the choice of the setting included; None if evaluations are counted."""


@dataclass
class Plan:
    """When to ask, when to measure the recommendation, and when to stop."""

    evaluations: int | None
    seconds: float | None
    stop: float | str | None
    confirm: int
    stopped: Reason = "evaluations"
    """Reason for the end, if it has come."""
    begun: float = field(default_factory=monotonic)
    _next_look: int = 0
    _is_done: bool = False

    def __post_init__(self) -> None:
        if self.evaluations is None and self.seconds is None and self.stop is None:
            raise ValueError("one of evaluations, seconds and stop must be given, such as evaluations=50")
        for name, least in (("evaluations", 1), ("confirm", 0)):
            given = getattr(self, name)
            if given is not None and (isinstance(given, bool) or not isinstance(given, Integral) or given < least):
                raise ValueError(f"{name} must be a whole number from {least}, got {given!r}")
        seconds: Any = self.seconds
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, Real) or not float(seconds) > 0
        ):
            raise ValueError(f"seconds must be a number above 0, got {self.seconds!r}")
        if self.stop is not None:
            try:
                checked_tolerance(self.stop)
            except ValueError as error:
                raise ValueError(str(error).replace("within", "stop", 1)) from None

    @property
    def elapsed(self) -> float:
        """Seconds since the begin of the call."""
        return monotonic() - self.begun

    @property
    def weighs_costs(self) -> bool:
        """True if questions weigh improvement by the time that it takes: seconds are all that the budget counts."""
        return self.seconds is not None and self.evaluations is None

    def left(self, made: int, finished: int) -> float:
        """Evaluations that are left, given how many were begun in all and how many this call has finished.

        For a time budget, their number at the rate so far; 0 if the time is over. One evaluation is always made.
        """
        left = math.inf if self.evaluations is None else self.evaluations - made
        if self.seconds is None or not finished:
            return left
        return min(left, max(finished * (self.seconds / self.elapsed - 1), 0.0))

    def share(self, made: int) -> float:
        """Share of the budget that is used; 0 if there is none."""
        shares = [made / self.evaluations] if self.evaluations else []
        shares += [self.elapsed / self.seconds] if self.seconds else []
        return min(max(shares, default=0.0), 1.0)

    def next(self, optimizer: Optimizer, made: int, finished: int) -> Trial | None:
        """Trial to measure next: the recommendation, or what the optimizer asks for; None at the end.

        Parameters
        ----------
        optimizer : Optimizer
            It knows the pending trials.
        made, finished
            As for `left`.
        """
        left = self.left(made, finished)
        if left <= 0:
            self.stopped = "seconds" if made < (self.evaluations or math.inf) else "evaluations"
            return None
        self._look(optimizer)
        left = 0.0 if self._is_done else left
        pending = [trial.params for trial in optimizer.pending]
        params = confirming(optimizer, left, made + left, self.confirm, pending) if self.confirm else None
        if params is not None:
            return optimizer.expect(params)
        if self._is_done:
            self.stopped = "within"
            return None
        if self.weighs_costs and self.seconds is not None:
            return optimizer.ask(left=max(self.seconds - self.elapsed, 1e-3))
        return optimizer.ask()

    def _look(self, optimizer: Optimizer) -> None:
        """Ask the stopping rule, if it is time."""
        answers = len(optimizer.answers) if self.stop is not None else 0
        if self.stop is not None and not self._is_done and answers >= self._next_look:
            self._is_done = optimizer.done(self.stop)
            self._next_look = math.ceil(LOOK * answers)


class Source(Protocol):
    """Trials to measure, and their outcomes."""

    is_over: bool
    """True if there will be no further trial."""

    @property
    def optimizer(self) -> Optimizer:
        """Optimizer that knows all outcomes."""
        ...

    @property
    def made(self) -> int:
        """Number of trials in all."""
        ...

    def next(self) -> Trial | None:
        """Next trial to measure, None if there is none now."""
        ...

    def tell(self, trial: Trial, outcome: Outcome) -> None:
        """Keep the outcome of a trial."""
        ...

    def give_back(self, trial: Trial) -> None:
        """Leave a trial to a later call."""
        ...


class Memory:
    """Trials of an optimizer in memory."""

    def __init__(self, optimizer: Optimizer, plan: Plan) -> None:
        self.optimizer, self._plan = optimizer, plan
        self.made, self._finished, self.is_over = 0, 0, False

    def next(self) -> Trial | None:
        trial = self._plan.next(self.optimizer, self.made, self._finished)
        self.made, self.is_over = self.made + (trial is not None), trial is None
        return trial

    def tell(self, trial: Trial, outcome: Outcome) -> None:
        self._finished += 1
        if outcome.value is None:
            self.optimizer.fail(trial, cost=outcome.cost)
        else:
            self.optimizer.tell(trial, outcome.value, constraints=outcome.constraints, cost=outcome.cost)

    def give_back(self, trial: Trial) -> None:
        pass


class Problem(NamedTuple):
    """Function to tune, with everything that does not change during the call."""

    f: Callable[..., Any]
    space: Any
    goal: Goal
    options: dict[str, Any]
    rng: Any
    storage: str | os.PathLike[str] | None

    @contextmanager
    def source(self, optimizer: Optimizer, plan: Plan) -> Iterator[Source]:
        """Trials in memory, or in the storage."""
        if self.storage is None:
            yield Memory(optimizer, plan)
            return
        extra("optuna", "tune")
        extra("sqlalchemy", "tune")
        from noregret.tune.stored_function import StoredFunction

        with StoredFunction(optimizer, self.storage, self.rng, plan) as stored:
            yield stored


class Inline(Executor):
    """Executor that calls f in this thread, where Ctrl-C reaches it."""

    def submit(self, f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(f(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _tuned(
    problem: Problem, plan: Plan, workers: int | Executor, callbacks: Sequence[Callback], progress: bool | None
) -> TuningResult:
    if not callable(problem.f):
        raise ValueError(f"f must be a function, got {problem.f!r}")
    if callable(callbacks) or not all(map(callable, callbacks)):
        raise ValueError(f"callbacks must be a list of functions, got {callbacks!r}")
    if not isinstance(problem.storage, str | os.PathLike | None):
        raise ValueError(f"storage must be a path or a URL, such as 'study.db', got {problem.storage!r}")
    options = problem.options | ({"budget": plan.seconds} if plan.weighs_costs else {})
    config = OptimizerConfig(as_good=AS_GOOD if plan.confirm else 0.0)
    optimizer = Optimizer(problem.space, goal=problem.goal, rng=problem.rng, calibration=config, **options)
    _check_signature(problem.f, optimizer)
    with ExitStack() as open_until_end:
        executor, count = _executor(workers, open_until_end)
        source = open_until_end.enter_context(problem.source(optimizer, plan))
        bar = open_until_end.enter_context(_bar(progress, plan, source))
        for callback in callbacks:
            if isinstance(callback, AbstractContextManager):
                open_until_end.enter_context(callback)
        loop = Loop(problem.f, optimizer, source, plan, executor, count, callbacks, bar)
        try:
            stopped = loop.run()
        except KeyboardInterrupt:
            stopped = "interrupted"
            if not _has_value(source.optimizer):
                raise
        except BrokenExecutor as error:
            stopped = "broken"
            if not _has_value(source.optimizer):
                raise
            warnings.warn(f"stopped after {source.made} evaluations: {error}", stacklevel=3)
        known = source.optimizer
        if not _has_value(known):
            raise loop.error or ValueError(
                f"all {source.made} evaluations in the storage failed: fix f and allow more of them, or give another "
                "storage"
            )
    return TuningResult(known, stopped, "" if loop.error is None else f"{type(loop.error).__name__}: {loop.error}")


def _check_signature(f: Callable[..., Any], optimizer: Optimizer) -> None:
    """Raise TypeError if f cannot be called with the params of the space; nothing was evaluated yet."""
    is_table, names = isinstance(optimizer.space, Table), optimizer.space.names
    args, named = ((None,), {}) if is_table else ((), dict.fromkeys(names))
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


class Loop:
    """The evaluations of one call."""

    def __init__(
        self,
        f: Callable[..., Any],
        optimizer: Optimizer,
        source: Source,
        plan: Plan,
        executor: Executor,
        workers: int,
        callbacks: Sequence[Callback],
        bar: Bar,
    ) -> None:
        self._f, self._source, self._plan = f, source, plan
        self._executor, self._workers, self._callbacks, self._bar = executor, workers, callbacks, bar
        self._is_table, self._constraints = isinstance(optimizer.space, Table), optimizer.constraints
        self._running: dict[Future[Any], tuple[Trial, float, float]] = {}
        """Trial of each call, when it was asked for and when the call began."""
        self._values = self._failures = 0
        self.error: Exception | None = None
        """Error of the last failure."""

    def run(self) -> Reason:
        """Evaluate f until the plan or a callback says that it is enough; return the reason."""
        self._plan.begun = monotonic()
        try:
            while True:
                while len(self._running) < self._workers:
                    asked = monotonic()
                    trial = self._source.next()
                    if trial is None:
                        break
                    self._begin(trial, asked)
                if not self._running and self._source.is_over:
                    return self._plan.stopped
                if not self._running:
                    sleep(IDLE_SECONDS)
                ended = wait(self._running, return_when=FIRST_COMPLETED).done if self._running else ()
                for future in ended:
                    if self._end(future):
                        return "callback"
        finally:
            for future, (trial, *_) in self._running.items():
                future.cancel()
                self._source.give_back(trial)

    def _begin(self, trial: Trial, asked: float) -> None:
        begun = monotonic()
        try:
            args, named = ((trial.params,), {}) if self._is_table else ((), trial.params)
            future = self._executor.submit(self._f, *args, **named)
        except BaseException:
            self._source.give_back(trial)
            raise
        self._running[future] = trial, asked, begun

    def _end(self, future: Future[Any]) -> bool:
        """Keep the outcome of a trial; True if a callback wants to stop."""
        trial, asked, begun = self._running[future]
        outcome, now = self._outcome(future, monotonic() - begun), monotonic()
        outcome = outcome._replace(cost=now - asked if self._plan.weighs_costs else None)
        self._source.tell(trial, outcome)
        del self._running[future]  # not before it is kept: what is running at the end is given back
        self._bar.show()
        if outcome.error is None:
            self._values += 1
            LOG.info("trial %d: %s at %s", trial.id, outcome.value, trial.params)
        else:
            LOG.warning("trial %d: failed at %s", trial.id, trial.params, exc_info=outcome.error)
            self._failures, self.error = self._failures + 1, outcome.error
            if not self._values and self._failures == FIRST_FAILURES:
                outcome.error.add_note(f"noregret: the first {FIRST_FAILURES} trials failed, this is the last of them")
                raise outcome.error
        if not self._callbacks:
            return False
        optimizer = self._source.optimizer
        wishes = [callback(optimizer, trial, outcome.value) for callback in self._callbacks]
        return any(wish is True for wish in wishes)

    def _outcome(self, future: Future[Any], seconds: float) -> Outcome:
        """Outcome of a finished call of f; BrokenExecutor if it could not be called."""
        try:
            returned = future.result()
        except BrokenExecutor:
            raise
        except Exception as error:
            return Outcome(None, None, error, seconds)
        try:
            if not self._constraints:
                return Outcome(_number(returned), None, None, seconds)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise ValueError(f"with constraints f must return (value, {{name: number}}), got {returned!r}")
            checked_numbers(self._constraints, returned[1])
            return Outcome(_number(returned[0]), returned[1], None, seconds)
        except ValueError as error:
            return Outcome(None, None, error, seconds)


def _number(returned: Any) -> float:
    try:
        return checked_value(returned)
    except ValueError:
        advice = ""
        if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
            advice = (
                f": declare what it must meet, as in constraints={{{next(iter(returned[1]), 'name')!r}: ('<=', 1)}}"
            )
        elif isinstance(returned, Mapping):
            advice = ": for several objectives, write a loop with Optimizer(space, goals={...})"
        raise ValueError(f"f must return a finite number, got {returned!r}{advice}") from None


def _shortened(text: str) -> str:
    """The first line of a text, without its end if it is long."""
    line = (text.splitlines() or [""])[0]
    return line if len(line) <= LINE else line[: LINE - 3] + "..."


def _has_value(optimizer: Optimizer) -> bool:
    return any(answer.value is not None for answer in optimizer.answers)


class Bar:
    """No progress bar."""

    def show(self) -> None:
        """Show that there is another outcome."""


class LineBar(Bar):
    """Progress on one line of standard error, which is written over."""

    def __init__(self, plan: Plan, source: Source) -> None:
        self._plan, self._source = plan, source
        self._shown, self._best, self._next_best, self._width = -math.inf, "", 0, 0
        self._at_start = source.made

    def show(self, is_last: bool = False) -> None:
        """Write the line; the best setting is looked up again when there are 5% more trials."""
        if monotonic() - self._shown < REFRESH_SECONDS and not is_last:
            return
        made = self._source.made
        if made >= self._next_best or is_last:
            self._next_best = math.ceil(LOOK * made)
            optimizer = self._source.optimizer
            if _has_value(optimizer):
                best = optimizer.best()
                is_known = math.isfinite(best.upper - best.lower)
                ends = " ({} to {})".format(*words.between(best.lower, best.upper, 2)) if is_known else ""
                self._best = f", best {words.number(best.estimate, 3)}{ends}"
        self._write(self._line(made))
        self._shown = monotonic()

    def _line(self, made: int) -> str:
        plan = self._plan
        share, total = plan.share(made), "" if plan.evaluations is None else f"/{plan.evaluations}"
        bar = f"[{'#' * round(BAR * share):<{BAR}}] " if plan.evaluations or plan.seconds else ""
        began = plan.share(self._at_start) if plan.evaluations else 0.0
        rest = plan.elapsed * (1 - share) / (share - began) if share > began else 0.0
        left = f", {words.duration(math.ceil(rest))} left" if 0 < share < 1 and rest else ""
        return f"{bar}{made}{total}{self._best}{left}"

    def _write(self, line: str) -> None:
        room = shutil.get_terminal_size().columns - 1
        print("\r" + line[:room].ljust(min(self._width, room)), end="", file=sys.stderr, flush=True)
        self._width = len(line)


@contextmanager
def _bar(progress: bool | None, plan: Plan, source: Source) -> Iterator[Bar]:
    """Progress bar, if it is wanted or can be seen."""
    is_seen = sys.stderr is not None and (sys.stderr.isatty() or _is_notebook())
    if not (is_seen if progress is None else progress):
        yield Bar()
        return
    bar = LineBar(plan, source)
    try:
        yield bar
    finally:
        bar.show(is_last=True)
        print(file=sys.stderr, flush=True)


def _is_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")
