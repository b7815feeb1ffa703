"""One measurement: run the command safely, and read its result.

The command is an argument list; no shell is involved. It runs in a session and a process group of its own. The group is
killed when the command has ended and left something behind. The session is killed when the time is up, when the output
is a flood, and when the study is stopped, also by the end of this process: see `keeper`. Only the end of
its output is kept.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from threading import Event, Lock, Thread, current_thread, main_thread
from time import monotonic
from typing import IO, Any, Protocol, Self

from noregret.optimizer import VALUE, Fidelity, Int, Reading, Readings
from noregret.studies import keeper as keeping
from noregret.studies.session import median_of
from noregret.studies.store.records import Record
from noregret.studies.study.results import TIMES, MaxRss, NoResult, NotMeasured, Steps, WallTime, search_in_time
from noregret.studies.study.study import Params, Study, StudyError, filled, groups, placeholders

KEPT_BYTES = 1 << 18
"""The number of bytes kept of each output, its last ones."""
FLOOD = 1 << 26
"""The number of bytes of output after which a run is ended."""

TIMEOUT = "(timeout)"
"""End of the reason why a run was ended whose time was up."""

EARLY = "ended early, as its intermediate results said enough"
"""Reason why a run with a fidelity was ended."""
BUSY_LOAD, BUSY_SHARE = 1.5, 0.5
"""Load average from which a machine counts as busy, in processes and per core. One process is this study's own,
if it was run in the last minute; with half of the cores busy, caches and memory are shared with others."""

ORDERS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Matches control sequences of terminals, such as colours: numbers inside of them are not results."""


FIRST_SECONDS, LONGEST_SECONDS, PART = 0.2, 2.0, 0.1
"""Time from the start to the first look at the output, and from one look to the next: a part of the time so far, at
most the longest. A look takes about 30 ms of processor time if results are found by a regular expression."""
WEIGHER = """
import os, signal, sys, time

report, start = int(sys.argv[1]), time.monotonic()
os.set_inheritable(report, False)
child = os.fork()
if not child:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        os.write(report, b'{"error": "%s"}\\n' % error.strerror.encode())
        os._exit(127)
status, usage = os.wait4(child, 0)[1:]
unit = 1 if sys.platform == "darwin" else 1024
found = os.waitstatus_to_exitcode(status), time.monotonic() - start, usage.ru_utime, usage.ru_maxrss * unit
os.write(report, b'{"exit_code": %d, "seconds": %r, "user_seconds": %r, "max_rss": %d}' % found)
"""
"""Runs a command and reports its peak memory. A large process cannot do that: the peak that the system reports for a
process starts at the memory of the one that started it. That of this small one is below 10 MB."""


class Stopped(Exception):
    """The study was stopped while the command ran."""


@dataclass(frozen=True)
class CommandRun:
    """A run of the command that has ended, or was ended by us."""

    stdout: str
    stderr: str
    exit_code: int | None
    """The exit code; None if we ended the run."""
    seconds: float
    ended: str = ""
    """The reason why we ended the run; empty if it ended by itself."""
    user_seconds: float = 0.0
    """Processor time outside of the kernel, of the command and of the processes it waited for."""
    max_rss: float | None = None
    """Peak memory of the largest of these processes, in bytes; None unless it was asked for."""

    @property
    def is_late(self) -> bool:
        """True if we ended the run because its time was up."""
        return self.ended.endswith(TIMEOUT)


class Judge(Protocol):
    """Decides, by what is known about other settings, whether a trial is worth more time."""

    limit: float
    """Seconds after which a run that begins now is stopped, for results that are wall times."""

    def is_enough(self, values: Sequence[float]) -> bool:
        """Return True if a trial with these runs needs no other."""

    def is_to_stop(self, trial: Record, reports: Sequence[Reading]) -> bool:
        """Return True if the run of a trial, with these intermediate results, is to be stopped."""


def measure(study: Study, trial: Record, keeper: Keeper, stop: Event, judge: Judge | None = None) -> Record:
    """Run the command as often as the study's ``repeats`` says, after its warm-up; return the trial with its readings.

    The reading of a fixed number of runs is their median. A failed run is repeated as often as ``retries`` says, then
    the trial has failed. If half of the runs and more are stopped at the judge's limit, the median is not known: no
    further one is started, and the value is a bound. Where there is a limit, time-outs are such stops too.

    The trial is measured at its fidelity, the highest by default, if the study has one. The judge decides how often the
    command runs if ``repeats`` is a range, as often as allowed without it; and which runs are stopped, if the study has
    a fidelity and intermediate results.

    Raises
    ------
    StudyError
        If the command cannot be started at all.
    Stopped
        If ``stop`` was set before the end.
    """
    runs: list[Record] = []
    (fewest, most), cut = study.runs, 0
    for number in range(-study.warmup, most):
        for _ in range(study.failure.retries + 1):
            run = _measured_once(study, trial, keeper, stop, judge, is_warmup=number < 0)
            if run.state == "done":
                break
        else:
            return run
        if number >= 0:
            runs.append(run)
            cut += _is_cut(run)
            values = [value for run in runs if (value := study.measures.first_value(run)) is not None]
            is_enough = fewest <= len(values) < most and judge is not None and judge.is_enough(values)
            if 2 * cut > most or is_enough:
                break
    planned = most if 2 * cut > most else len(runs)
    return runs[0] if planned == 1 else replace(runs[-1], readings=_together(study, runs, planned, cut))


def _is_cut(run: Record) -> bool:
    return any(reading.bound for reading in run.runs())


def _together(study: Study, runs: Sequence[Record], planned: int, cut: int) -> Readings:
    """Readings of several runs, of which some were cut: each run's where their number was decided, else the medians."""
    if 2 * cut >= planned:
        values = [run.value() or 0.0 for run in runs]
        return {VALUE: (Reading(median([*values, *[max(values)] * (planned - len(values))]), bound="at_least"),)}
    ended = runs if study.goals else [run for run in runs if not _is_cut(run)]
    each = {name: [reading for run in ended for reading in run.runs(name)] for name in study.results_by_measure}
    if cut:
        each[VALUE] = [reading for run in runs for reading in run.runs()]
    is_decided = study.runs[0] < study.runs[1] and not cut
    return {
        name: tuple(readings) if is_decided else (median_of(readings),) for name, readings in each.items() if readings
    }


def _measured_once(
    study: Study, trial: Record, keeper: Keeper, stop: Event, judge: Judge | None, is_warmup: bool
) -> Record:
    progress, asked, params = None, None, trial.params
    if study.levels is not None:
        asked = trial.fidelity or study.levels.highest
        if study.steps and not is_warmup:
            is_told, at = study.levels.name in study.used, replace(trial, fidelity=asked)
            is_to_stop = partial(judge.is_to_stop, at) if judge else lambda reports: False
            progress = Progress(study.levels, study.steps, asked, is_told, is_to_stop)
        params = {**params, **asked}
    weighs = any(isinstance(result, MaxRss) for result in study.results_by_measure.values())
    environment = study.environment(params)
    start = partial(run_command, folder=study.folder, keeper=keeper, stop=stop, environment=environment)
    if study.prepare:
        run = start(study.preparation(params), timeout=study.timeout, part="prepare")
        try:
            _check_ended_well(run, (0,))
        except NoResult as error:
            return _failed(trial, f"prepare: {error}", run)
    limit = math.inf if judge is None or is_warmup else judge.limit
    most = min(study.timeout, limit)
    run = start(study.arguments(params), timeout=most, weighs=weighs, progress=progress)
    done = replace(trial, state="done", seconds=run.seconds)
    if run.is_late and limit < math.inf:
        return replace(done, readings={VALUE: (Reading(most, bound="at_least"),)})
    if progress is not None and run.ended == EARLY:
        assert progress.last is not None
        readings = {VALUE: (*progress.reports, Reading(progress.last.value))}
        return replace(done, readings=readings, fidelity=progress.reached, is_stopped=progress.is_stopped)
    try:
        _check_ended_well(run, study.failure.ok_exit_codes)
        if is_warmup:
            return done
        pattern = study.failure.output
        if pattern and (match := search_in_time(pattern, f"{run.stdout}\n{run.stderr}")):
            raise NoResult(f"its output has {match.text!r}, which counts as a failure")
        known: Readings = {
            name: (Reading(value),) for name, value in _read_all(study, run).items() if value is not None
        }
        if progress is not None:
            progress.read(run.stdout)
            known = {**known, VALUE: (*progress.reports, *known[VALUE])}
        return replace(done, readings=known, fidelity=asked)
    except NoResult as error:
        return _failed(trial, str(error), run)


def _failed(trial: Record, reason: str, run: CommandRun) -> Record:
    return replace(trial, state="failed", failure=reason, seconds=run.seconds, stderr=run.stderr[-2000:])


def check_command(study: Study) -> None:
    """Find out before anything is written whether the command, or the one that prepares it, can be started.

    The cleanup too.
    """
    for part in ("prepare" if study.prepare else "command", *["cleanup"] * bool(study.cleanup)):
        _check_program(study, part, next(groups(getattr(study, part)))[0])


def _check_program(study: Study, part: str, program: str) -> None:
    if placeholders(program):
        return
    program = filled(program, {})
    place = str(study.folder / program) if "/" in program else program
    if shutil.which(place) is None:
        raise StudyError(
            f"{study.path}: {part}: {program!r} does not exist, or may not be run (looked in {study.folder} and PATH)"
            if "/" not in program
            else f"{study.path}: {part}: {place!r} does not exist, or may not be run"
        )


def disturbances(study: Study, cpus: Path = Path("/sys/devices/system/cpu")) -> list[str]:
    """Sources of noise in times on this machine, a line each with what to do; none for other results."""
    if not any(isinstance(result, TIMES) for result in study.sought):
        return []
    warnings = []
    governors = set[str]()
    for file in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor"):
        with suppress(OSError, UnicodeDecodeError):
            governors.add(file.read_text().strip())
    if changing := sorted(governors - {"performance"}):
        warnings.append(
            f"the clock of the processor changes while it works (governor {', '.join(changing)}), so times vary more. "
            "'sudo cpupower frequency-set -g performance' keeps it up until the next boot"
        )
    with suppress(OSError):
        load = os.getloadavg()[0]
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if load >= max(BUSY_LOAD, BUSY_SHARE * cores):
            is_wall = any(isinstance(result, WallTime) for result in study.sought)
            other = ", or take user-time as the result (--result user-time), which they disturb less" * is_wall
            warnings.append(
                f"other programs are busy (load {load:.1f} on {cores} cores), so times vary more. Stop them, "
                f"measure when the machine is idle{other}"
            )
    return warnings


def clean_up(study: Study, params: Params) -> str:
    """Run the cleanup of a study with these params; the reason why it has failed, empty if it has not."""
    try:
        with Keeper() as keeper:
            start = partial(run_command, folder=study.folder, timeout=study.timeout, keeper=keeper, stop=Event())
            run = start(study.cleaning(params), environment=study.environment(params), part="cleanup")
        _check_ended_well(run, (0,))
    except (StudyError, NoResult) as error:
        lines = run.stderr.strip().splitlines()[-1:] if isinstance(error, NoResult) else []
        return ": ".join([str(error), *lines])
    return ""


def _check_ended_well(run: CommandRun, ok_exit_codes: tuple[int, ...]) -> None:
    if run.ended:
        raise NoResult(run.ended)
    if run.exit_code is None or run.exit_code < 0:
        raise NoResult(f"killed by {_signal(-(run.exit_code or 0))}")
    if run.exit_code not in ok_exit_codes:
        raise NoResult(f"exit code {run.exit_code}")


def _read_all(study: Study, run: CommandRun) -> dict[str, float | None]:
    """The number of each measure; None for an objective that the run says it did not measure, or a missing tracked one.

    NoResult if another one is missing.
    """
    numbers: dict[str, float | None] = {}
    for name, result in study.results_by_measure.items():
        described = study.measures[name]
        try:
            numbers[name] = result.read(run)
        except NoResult as error:
            is_told = described.role == "objective" and bool(study.goals) and isinstance(error, NotMeasured)
            if described.role != "tracked" and not is_told:
                raise NoResult(str(error) if name == VALUE else f"{described.role} {described.name}: {error}") from None
            numbers[name] = None
        low, high = described.possible
        if not low <= (numbers[name] or low) <= high:
            raise NoResult(
                f"{described.role} {described.name} is {numbers[name]:g}, and possible is from {low:g} to {high:g}"
            )
    if all(numbers[name] is None for name in study.measures.objectives):
        raise NoResult("the run has measured none of the objectives: all are null")
    return numbers


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_command(
    command: list[str],
    folder: Path,
    timeout: float,
    keeper: Keeper,
    stop: Event,
    environment: Mapping[str, str] | None = None,
    *,
    weighs: bool = False,
    part: str = "command",
    progress: Progress | None = None,
) -> CommandRun:
    """Run a command to its end, or to ours, and leave nothing of it behind.

    Its peak memory is known if ``weighs``. Errors call it by its ``part`` in the study. If there is a ``progress``, it
    reads the output and may end the run.
    """
    start = monotonic()
    reader, writer = os.pipe() if weighs else (-1, -1)
    words = [sys.executable, "-I", "-S", "-c", WEIGHER, str(writer), *command] if weighs else command
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    streams |= {"pass_fds": [writer] if weighs else []}
    try:
        process = keeper.start(words, environment or {}, cwd=folder, **streams)
    except OSError as error:
        raise StudyError(f"{part}: {command[0]!r} cannot be started in {folder}: {error.strerror}") from error
    finally:
        if weighs:
            os.close(writer)
    flood = Event()
    outputs = [OutputTail(process.stdout, flood), OutputTail(process.stderr, flood)]
    waiter = Waiter(process, keeper)
    is_over = partial(progress.is_over, new_lines=outputs[0].lines) if progress else lambda seconds: False
    ended = _awaited(waiter, start, timeout, flood, stop, is_over)
    stdout, stderr = (tail.text() for tail in outputs)
    usage: dict[str, Any] = {}
    if weighs:
        with open(reader, "rb") as file:  # empty if `WEIGHER` was killed before it could report
            usage = json.loads(file.readline() or b"{}")
    if stop.is_set() and ended:
        raise Stopped
    if "error" in usage:
        raise StudyError(f"{part}: {command[0]!r} cannot be started in {folder}: {usage['error']}")
    command_run = CommandRun(stdout, stderr, process.returncode, waiter.end - start, ended, waiter.user_seconds)
    return replace(command_run, **{**usage, **({"exit_code": None} if ended else {})})


class Progress:
    """Intermediate results of one run.

    Steps are values of the parameter of ``levels``; smaller ones are ignored, and larger ones count as the highest.
    ``asked`` is the fidelity at which the trial is to be measured; if ``is_told``, the command knows that, and ends by
    itself. ``is_to_stop`` decides from the results so far whether the run is stopped; it is called a few times in a
    run.
    """

    def __init__(
        self,
        levels: Fidelity,
        result: Steps,
        asked: Mapping[str, Any],
        is_told: bool,
        is_to_stop: Callable[[Sequence[Reading]], bool],
    ) -> None:
        self.levels, self._result, self._asked = levels, result, asked[levels.name]
        self._is_told, self._is_to_stop = is_told, is_to_stop
        self._kept: list[Reading] = []
        self._next, self._position, self._judged = FIRST_SECONDS, 0, 0
        self.last: Reading | None = None
        self.is_stopped = False
        """True if the run was found not to be worth its time."""

    @property
    def reports(self) -> tuple[Reading, ...]:
        """The first result at or above each of a few fidelities, and the last one."""
        is_more = self.last is not None and self.last not in self._kept
        return (*self._kept, *([self.last] if self.last is not None and is_more else []))

    @property
    def reached(self) -> dict[str, Any]:
        """Fidelity of the last result."""
        assert self.last is not None
        assert self.last.step is not None
        return {self.levels.name: self.last.step}

    def is_over(self, seconds: float, new_lines: Callable[[int], tuple[str, int]]) -> bool:
        """Return True if the run is to be ended: stopped, or at the asked fidelity. Reads new lines if it is time.

        ``new_lines`` returns the complete lines of output from a position on, and the position of their end.
        """
        if seconds < self._next:
            return False
        self._next = seconds + min(FIRST_SECONDS + PART * seconds, LONGEST_SECONDS)
        text, self._position = new_lines(self._position)
        if text:
            self.read(text)
        if self.last is None:
            return False
        if self.reached[self.levels.name] >= self._asked:
            return not self._is_told
        rungs = self.levels.rung(self.reached)
        if rungs > self._judged:
            self._judged, self.is_stopped = rungs, self._is_to_stop(self.reports)
        return self.is_stopped

    def read(self, text: str) -> None:
        """Take in the results in these lines."""
        parameter = self.levels.parameter
        for step, value in ((reading.step or 0.0, reading.value) for reading in self._result.steps(text)):
            reached = min(math.floor(step) if isinstance(parameter, Int) else step, parameter.high)
            if reached < parameter.low or (self.last is not None and reached <= self.reached[self.levels.name]):
                continue
            known = 0 if self.last is None else self.levels.rung(self.reached)
            self.last = Reading(value, step=reached)
            if self.levels.rung(self.reached) > known:
                self._kept.append(self.last)


class Waiter:
    """Waits for a process without polling, so that its time is exact, then kills the rest of its group."""

    def __init__(self, process: subprocess.Popen[bytes], keeper: Keeper) -> None:
        self.process, self.keeper = process, keeper
        self.over, self.end, self.user_seconds = Event(), 0.0, 0.0
        Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        if hasattr(os, "waitid"):  # the process is not reaped yet, so its number cannot belong to another one
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
            self._ended()
            self._reap()
        else:
            self._reap()
            self._ended()
        self.over.set()

    def _ended(self) -> None:
        self.end = monotonic()
        self.keeper.remove(self.process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _reap(self) -> None:
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.user_seconds = usage.ru_utime


def _awaited(
    waiter: Waiter, start: float, timeout: float, flood: Event, stop: Event, is_over: Callable[[float], bool]
) -> str:
    """Wait for the end of a run; return the reason why we ended it, empty if it ended by itself."""
    ended = ""
    while not waiter.over.wait(min(0.05, max(start + timeout - monotonic(), 0.001))):
        if stop.is_set():
            ended = "stopped"
        elif flood.is_set():
            ended = f"printed more than {FLOOD >> 20} MiB"
        elif monotonic() >= start + timeout:
            ended = f"still running after {timeout:g} s {TIMEOUT}"
        elif is_over(monotonic() - start):
            ended = EARLY
        if ended:
            keeping.kill_sessions({waiter.process.pid})
            waiter.over.wait()
            break
    return ended


class OutputTail:
    """Reads an output to its end in a thread, and keeps the last part."""

    def __init__(self, stream: IO[bytes] | None, flood: Event) -> None:
        assert stream
        self._stream, self._flood = stream, flood
        self._kept, self._total, self._lock = b"", 0, Lock()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while chunk := os.read(self._stream.fileno(), 1 << 16):
                with self._lock:
                    self._kept = (self._kept + chunk)[-KEPT_BYTES:]
                    self._total += len(chunk)
                if self._total > FLOOD:
                    self._flood.set()

    def lines(self, start: int) -> tuple[str, int]:
        """Complete lines after the first ``start`` bytes, as far as they are kept, and the bytes up to their end."""
        with self._lock:
            kept, total = self._kept, self._total
        first = max(start - (total - len(kept)), 0)
        end = kept.rfind(b"\n") + 1
        return ORDERS.sub("", kept[first:end].decode(errors="replace")), total - len(kept) + max(first, end)

    def text(self) -> str:
        """The end of the output; a process that left the group can hold the output open, and is not waited for."""
        self._thread.join(timeout=1.0)
        return ORDERS.sub("", self._kept.decode(errors="replace"))


class Keeper:
    """Starts the commands that must not outlive this process, and is the client of the process that ends them."""

    def __init__(self) -> None:
        self._mark = f"NOREGRET_MARK={secrets.token_hex(16)}"
        self._lock, self._numbers = Lock(), count(1)
        self._running: dict[int, int] = {}
        """The process of each running command, 0 if it is about to start."""
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", keeping.__file__, self._mark]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **quiet)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        """End the keeper; after an exception, it kills the remaining commands first."""
        assert self._process.stdin
        if kind is None:
            self._say(".\n")
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def start(self, command: Sequence[str], own: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own, with this process's environment and variables of its ``own``.

        Its environment has a mark, too. OSError if it cannot be started.
        """
        number = next(self._numbers)
        name, _, value = f"{self._mark}-{number}".partition("=")
        self._note(number, 0)
        try:
            environment = {**os.environ, **own, name: value}
            process = subprocess.Popen(command, env=environment, start_new_session=True, **options)
        except Exception:
            self._end(number)
            raise
        self._note(number, process.pid)
        return process

    def remove(self, process: int) -> None:
        """A command has ended. A keeper that was ended by an exception has killed it already."""
        for number in [number for number, other in list(self._running.items()) if other == process]:
            self._end(number)

    def _note(self, number: int, process: int) -> None:
        self._running[number] = process
        self._say(f"{number} {process}\n")

    def _end(self, number: int) -> None:
        del self._running[number]
        with suppress(ValueError):  # its pipe is closed
            self._say(f"{number} over\n")

    def _say(self, line: str) -> None:
        with self._lock:
            try:
                self._write(line)
            except BrokenPipeError:  # the keeper was killed
                self._process.wait()
                self._process = self._started()
                with suppress(BrokenPipeError):
                    self._write("".join(f"{number} {held}\n" for number, held in list(self._running.items())) + line)

    def _write(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the work as Ctrl-C does, and a second one of them end the process at once.

    The process may be killed at any moment: no acknowledged outcome is lost, and its keeper ends its commands. So the
    second signal waits for nothing, neither for a hung server nor for Python.
    """
    if current_thread() is not main_thread():
        yield
        return
    signals = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {number: signal.getsignal(number) for number in signals}

    def stop(number: int, frame: object) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    for number in signals:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
