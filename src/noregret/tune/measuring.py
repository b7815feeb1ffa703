"""One measurement: run the command safely, and read its result.

The command is an argument list; no shell is involved. It runs in a process group of its own, which is killed as a
whole when the time is up, when the output is a flood, when the study is stopped, and when the command has ended and
left something behind. Only the end of its output is kept.

The keeper is a small process that ends running commands when the process that started them is gone: a killed process
cannot clean up after itself. It does nothing but read a pipe: a line ``+123`` says that process group 123 has started,
``-123`` that it has ended, ``.`` that all have. The pipe ends when its writer does, however that happens, and then the
remaining groups are killed. A command that had started but was not announced yet is found by a mark in its environment,
where there is a /proc.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import IO, Any, Self

from noregret.tune.study.results import NoResult, search_in_time
from noregret.tune.study.study import Constraint, Study, StudyError

KEPT = 1 << 18
"""The number of bytes kept of each output, its last ones."""
FLOOD = 1 << 26
"""The number of bytes of output after which a run is ended."""

ORDERS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Matches control sequences of terminals, such as colours: numbers inside of them are not results."""


PROGRAM = """
import glob, os, signal, sys, time

def kill(how, number):
    try:
        how(number, signal.SIGKILL)
    except OSError:
        pass

def marked(path):
    try:
        with open(path, "rb") as file:
            return sys.argv[1].encode() in file.read()
    except OSError:
        return False

signal.signal(signal.SIGINT, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    if line[0] == ".":
        sys.exit()
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    kill(os.killpg, group)
for _ in range(3):
    for path in filter(marked, glob.glob("/proc/[0-9]*/environ")):
        kill(os.kill, int(path.split("/")[2]))
    time.sleep(0.1)
"""


class Stopped(Exception):
    """The study was stopped while the command ran."""


@dataclass(frozen=True)
class Run:
    """A run of the command that has ended, or was ended by us."""

    stdout: str
    stderr: str
    exit_code: int | None
    """The exit code; None if we ended the run."""
    seconds: float
    ended: str = ""
    """The reason why we ended the run; empty if it ended by itself."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a trial: a value, or the reason for its absence. Equal outcomes say the same about the setting."""

    value: float | None
    failure: str = ""
    seconds: float = field(default=0.0, compare=False)
    """Duration of the command, of its last run if there were several."""
    stderr: str = field(default="", compare=False)
    """The end of the standard error of a failed run."""
    constraints: Mapping[str, float] = field(default_factory=dict)
    """Further numbers of the same run, by the name of the constraint on each."""
    noise: float | None = None
    """Standard deviation of the value, None if unknown."""


def measure(study: Study, params: Mapping[str, Any], keeper: Keeper, stop: Event) -> Outcome:
    """Run the command once; after a failure again, as often as the study's ``retries`` says.

    Raises
    ------
    StudyError
        If the command cannot be started at all.
    Stopped
        If ``stop`` was set before the end.
    """
    outcome = _measured_once(study, params, keeper, stop)
    for _ in range(study.failure.retries):
        if outcome.value is not None:
            break
        outcome = _measured_once(study, params, keeper, stop)
    return outcome


def _measured_once(study: Study, params: Mapping[str, Any], keeper: Keeper, stop: Event) -> Outcome:
    run = run_command(study.arguments(params), study.folder, study.timeout, keeper, stop)
    try:
        value = _value(study, run)
        limited = {name: _limited(name, constraint, run) for name, constraint in study.constraints.items()}
        return Outcome(value, "", run.seconds, constraints=limited)
    except NoResult as error:
        return Outcome(None, str(error), run.seconds, run.stderr[-2000:])


def _value(study: Study, run: Run) -> float:
    if run.ended:
        raise NoResult(run.ended)
    if run.exit_code is None or run.exit_code < 0:
        raise NoResult(f"killed by {_signal(-(run.exit_code or 0))}")
    if run.exit_code not in study.failure.ok_exit_codes:
        raise NoResult(f"exit code {run.exit_code}")
    pattern = study.failure.output
    if pattern and (found := search_in_time(pattern, f"{run.stdout}\n{run.stderr}")):
        raise NoResult(f"its output has {found.text!r}, which counts as a failure")
    return study.result.read(run)


def _limited(name: str, constraint: Constraint, run: Run) -> float:
    try:
        return constraint.result.read(run)
    except NoResult as error:
        raise NoResult(f"constraint {name}: {error}") from None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_command(command: list[str], folder: Path, timeout: float, keeper: Keeper, stop: Event) -> Run:
    """Run a command to its end, or to ours, and leave nothing of it behind."""
    start = monotonic()
    process = _started(command, folder, keeper.environment())
    keeper.add(process.pid)
    flood = Event()
    outputs = [Tail(process.stdout, flood), Tail(process.stderr, flood)]
    waiter = Waiter(process, keeper)
    ended = _awaited(waiter, start + timeout, timeout, flood, stop)
    stdout, stderr = (tail.text() for tail in outputs)
    if stop.is_set() and ended:
        raise Stopped
    return Run(stdout, stderr, None if ended else process.returncode, waiter.end - start, ended)


def _started(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **streams)
    except OSError as error:
        raise StudyError(f"command: {command[0]!r} cannot be started in {folder}: {error.strerror}") from error


class Waiter:
    """Waits for a process without polling, so that its time is exact, then kills the rest of its group."""

    def __init__(self, process: subprocess.Popen[bytes], keeper: Keeper) -> None:
        self.process, self.keeper = process, keeper
        self.over, self.end = Event(), 0.0
        Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        if hasattr(os, "waitid"):  # the process is not reaped yet, so its number cannot belong to another one
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self.process.wait()
        self.end = monotonic()
        self.keeper.remove(self.process.pid)
        self.kill()
        self.process.wait()
        self.over.set()

    def kill(self) -> None:
        """Kill the whole group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _awaited(waiter: Waiter, deadline: float, timeout: float, flood: Event, stop: Event) -> str:
    """Wait for the end of a run; return the reason why we ended it, empty if it ended by itself."""
    ended = ""
    while not waiter.over.wait(min(0.05, max(deadline - monotonic(), 0.001))):
        if stop.is_set():
            ended = "stopped"
        elif flood.is_set():
            ended = f"printed more than {FLOOD >> 20} MiB"
        elif monotonic() >= deadline:
            ended = f"still running after {timeout:g} s (timeout)"
        if ended:
            waiter.kill()
            waiter.over.wait()
            return ended
    return ended


class Tail:
    """Reads an output to its end in a thread, and keeps the last part."""

    def __init__(self, stream: IO[bytes] | None, flood: Event) -> None:
        assert stream
        self._stream, self._flood = stream, flood
        self._kept, self._total = b"", 0
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while chunk := os.read(self._stream.fileno(), 1 << 16):
                self._kept = (self._kept + chunk)[-KEPT:]
                self._total += len(chunk)
                if self._total > FLOOD:
                    self._flood.set()

    def text(self) -> str:
        """The end of the output; a process that left the group can hold the output open, and is not waited for."""
        self._thread.join(timeout=1.0)
        return ORDERS.sub("", self._kept.decode(errors="replace"))


class Keeper:
    """Client of the keeper process: registers the commands that must not outlive this process."""

    def __init__(self) -> None:
        self._mark = f"NOREGRET_MARK={secrets.token_hex(16)}"
        self._lock, self._groups = Lock(), set[int]()
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, self._mark]
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

    def environment(self) -> dict[str, str]:
        """The environment that commands must be started with."""
        name, _, value = self._mark.partition("=")
        return {**os.environ, name: value}

    def add(self, group: int) -> None:
        """A process group has started."""
        self._groups.add(group)
        self._say(f"+{group}\n")

    def remove(self, group: int) -> None:
        """A process group is over."""
        self._groups.discard(group)
        self._say(f"-{group}\n")

    def _say(self, line: str) -> None:
        with self._lock:
            try:
                self._write(line)
            except BrokenPipeError:  # the keeper was killed
                self._process.wait()
                self._process = self._started()
                with suppress(BrokenPipeError):
                    self._write("".join(f"+{group}\n" for group in list(self._groups)) + line)

    def _write(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()
