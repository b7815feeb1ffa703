"""Trials: runs that are repeated over seeds, in parallel and resumable, and the engine that runs them.

An `Engine` runs tasks in processes of this machine or on the workers of a dask scheduler, both through joblib.
"""

from __future__ import annotations

import inspect
import logging
import os
import signal
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import Any, Literal, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from noregret.decision.loops import Algorithm
from noregret.experiments.run import PROGRESS_SECONDS, ChangingWorld, Watch, World, run
from noregret.experiments.trace import Trace, stored
from noregret.extra import extra

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

DEATHS = 3
"""Number of killed processes in a row, without a result in between, that stops the whole run."""

PATIENCE = 10.0
"""Seconds to wait for a scheduler's first answer."""


class EngineFailed(RuntimeError):
    """An engine cannot run its tasks; the message gives the reason."""


@dataclass(frozen=True)
class Engine:
    """A place that runs tasks in parallel: processes of this machine, or the workers of a dask scheduler."""

    jobs: int | None = None
    """Number of processes, one per core by default; with 1 every task runs in this process. With dask, the number of
    tasks in flight: by default one per thread of the workers."""
    backend: Literal["loky", "dask"] = "loky"
    scheduler: str | None = None
    """Address of the scheduler, such as ``tcp://10.0.0.1:8786``."""

    def __post_init__(self) -> None:
        if (self.backend == "dask") != (self.scheduler is not None):
            raise EngineFailed("dask needs the address of its scheduler, and only dask has one")

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        """Run tasks and yield every result as it arrives, with the position of its task in the sequence.

        If a process is killed, another one repeats its task.
        """
        unfinished, deaths, jobs = dict(enumerate(tasks)), 0, self.workers(len(tasks))
        with self._connected():
            while unfinished:
                results = self._start(unfinished, jobs)
                try:
                    for place, result in results:
                        del unfinished[place]
                        deaths = 0
                        yield place, result
                except extra("joblib.externals.loky.process_executor").TerminatedWorkerError as error:
                    deaths += 1
                    if deaths == DEATHS:
                        raise EngineFailed("processes are killed again and again: is there enough memory?") from error
                finally:
                    with warnings.catch_warnings():  # joblib warns about the cancelled tasks
                        warnings.simplefilter("ignore", UserWarning)
                        results.close()

    def workers(self, tasks: int) -> int:
        """Number of these tasks that run at a time; -1 for one per thread of dask."""
        if self.backend == "dask":
            return self.jobs or -1
        return max(1, min(self.jobs or extra("joblib").cpu_count(), tasks))

    def describe(self, tasks: int) -> str:
        """Describe where this number of tasks runs."""
        if self.backend == "dask":
            return f"the dask workers of {self.scheduler}"
        return f"{self.workers(tasks)} of {os.cpu_count()} cores"

    def _start(self, tasks: dict[int, Callable[[], Result]], jobs: int) -> Generator[tuple[int, Result]]:
        """Start the processes and return the generator of their results."""
        joblib = extra("joblib")
        with _ctrl_c_ignored(), joblib.parallel_config(backend=self.backend):
            parallel = joblib.Parallel(jobs, return_as="generator_unordered")
            done: Generator[tuple[int, Result]] = parallel(
                joblib.delayed(_placed)(place, task) for place, task in list(tasks.items())
            )
        return done

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Keep a connection to the scheduler open, if there is one."""
        if self.backend == "loky":
            yield
            return
        distributed = extra("distributed", "cluster")
        try:
            client = distributed.Client(self.scheduler, timeout=PATIENCE, set_as_default=True)
        except (OSError, ValueError) as error:
            raise EngineFailed(f"no dask scheduler answers at {self.scheduler}: {error}") from error
        with client:
            _check_versions(client)
            yield


def _check_versions(client: Any) -> None:
    """Raise `EngineFailed` unless every worker has the version of noregret that this machine has."""
    ours, theirs = _installed(), client.run(_installed)
    if not theirs:
        raise EngineFailed("the dask scheduler has no workers: start some, each with --nthreads 1")
    for address, found in theirs.items():
        if found != ours:
            raise EngineFailed(f"the worker at {address} has noregret {found}, this machine {ours}: install the same")


def _installed() -> str:
    try:
        return version("noregret")
    except ImportError:
        return "not installed"


def _placed(place: int, task: Callable[[], Result]) -> tuple[int, Result]:
    return place, task()


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ignore Ctrl-C. Processes started here inherit that: their parent stops them."""
    if current_thread() is not main_thread() or os.name != "posix":
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def children(seed: np.random.SeedSequence, count: int) -> list[np.random.SeedSequence]:
    """Return the first ``count`` children of a seed without changing it."""
    return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(count)


def keywords(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return a builder's parameters after the kernel, by name."""
    _, *others = inspect.signature(builder).parameters.items()
    return dict(others)


def build(
    builder: Callable[..., Algorithm], problem: Any, horizon: int, settings: Mapping[str, Any] | None = None
) -> Algorithm:
    """Build an algorithm for a problem from the problem's ``kernel`` and ``facts``, a dict of keywords.

    ``settings`` override the horizon and the facts. Keywords that the builder does not take are ignored.
    """
    available = {"horizon": horizon, **problem.facts, **(settings or {})}
    wanted = keywords(builder)
    missing = [name for name, p in wanted.items() if p.default is p.empty and name not in available]
    if missing:
        names = ", ".join(missing)
        raise ValueError(
            f"the problem does not know {names}: pass a setting (on the command line, --set {missing[0]}=...)"
        )
    return builder(problem.kernel, **{name: available[name] for name in wanted if name in available})


@dataclass(frozen=True)
class Trial:
    """One run to make, or to read from the file of an earlier call.

    The first child of ``seed`` makes the problem and the second drives the run: trials of several algorithms on one
    seed have the same problem and the same noise.
    """

    name: str
    """Name of the algorithm in tables and pictures."""
    problem: Callable[..., World | ChangingWorld]
    """Function that makes the problem from a seed ``rng``."""
    algorithm: Callable[[Any], Algorithm]
    """Function that makes the algorithm from its problem."""
    horizon: int
    seed: np.random.SeedSequence
    path: Path | None = None
    """File of the trace, without its suffix; None stores no trace."""
    watch: Watch = ()
    """Further quantities that the trace records at every round, as in `noregret.run`."""

    def kept(self) -> Trace | None:
        """Return the stored trace, or None if there is none; a damaged one is renamed."""
        kept: Trace | None = stored(Trace, self.path, _log.warning) if self.path else None
        return kept

    def play(self, progress: Callable[[int], None] | None = None) -> Trace:
        """Make the run on one BLAS thread and store its trace."""
        instance, streams = children(self.seed, 2)
        with threadpool_limits(1, user_api="blas"):
            problem = self.problem(rng=instance)
            algorithm = self.algorithm(problem)
            trace = run(algorithm, problem, self.horizon, rng=streams, progress=progress, watch=self.watch)
        if self.path:
            trace.save(self.path)
        return trace


def play_all(
    trials: Sequence[Trial], *, jobs: int | None = None, progress: Callable[[int], None] | None = None
) -> dict[str, list[Trace]]:
    """Play trials in parallel processes; traces that are already stored are read instead.

    ``jobs`` is as in `Engine`; ``progress`` is called from another thread with the total number of rounds done. The
    traces are returned by the name of their trial, in the order of the trials.
    """
    kept = {i: trace for i, trial in enumerate(trials) if (trace := trial.kept())}
    waiting = [i for i in range(len(trials)) if i not in kept]
    rounds = [trial.horizon if i in kept else 0 for i, trial in enumerate(trials)]
    with _watched(rounds, progress) as file:
        played = Engine(jobs).each([partial(_play, trials[i], i, file) for i in waiting])
        traces = kept | {waiting[place]: trace for place, trace in played}
    by_name: dict[str, list[Trace]] = {trial.name: [] for trial in trials}
    for i, trial in enumerate(trials):
        by_name[trial.name].append(traces[i])
    return by_name


def _play(trial: Trial, index: int, file: Path | None) -> Trace:
    """Play one trial; write its number of rounds to position ``index`` of the file that the parent process reads."""
    if file is None:
        return trial.play()
    return trial.play(np.memmap(file, np.int64, "r+")[index : index + 1].fill)


@contextmanager
def _watched(rounds: list[int], progress: Callable[[int], None] | None) -> Iterator[Path | None]:
    """Keep the number of rounds of each trial in a file, and report their sum at intervals."""
    if progress is None or not rounds:
        yield None
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file, over = Path(folder, "rounds"), Event()
        np.array(rounds, np.int64).tofile(file)
        done = np.memmap(file, np.int64, "r")

        def watch() -> None:
            while not over.wait(PROGRESS_SECONDS):
                progress(int(done.sum()))
            progress(int(done.sum()))

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield file
        finally:
            over.set()
            watcher.join()
