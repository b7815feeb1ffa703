"""Engines: where trials run. Processes of this machine, or the workers of a dask scheduler, both through joblib."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from threading import current_thread, main_thread
from typing import Any, Literal, TypeVar

from noregret.extra import extra

Result = TypeVar("Result")

DEATHS = 3
"""So many times in a row a process may be killed without a result in between, before the whole run stops."""


PATIENCE = 10.0
"""Seconds to wait for a scheduler's first answer."""


class EngineFailed(RuntimeError):
    """The trials cannot be run there; the message says why."""


@dataclass(frozen=True)
class Engine:
    """Where trials run.

    Parameters
    ----------
    jobs : int, optional
        Processes: one per core by default, and with 1 everything happens in this process. With dask, the trials in
        flight at a time: by default one per thread of the workers.
    backend : 'loky' or 'dask'
        Processes of this machine, or the workers of a dask scheduler.
    scheduler : str, optional
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """

    jobs: int | None = None
    backend: Literal["loky", "dask"] = "loky"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if (self.backend == "dask") != (self.scheduler is not None):
            raise EngineFailed("dask needs the address of its scheduler, and only dask has one")

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        """Carry out tasks and give every result as it comes, with its task's place in the sequence.

        If a process is killed, what it was doing is done again by another.
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
                    with warnings.catch_warnings():  # joblib's, that tasks were cancelled
                        warnings.simplefilter("ignore", UserWarning)
                        results.close()

    def workers(self, tasks: int) -> int:
        """How many of so many tasks run at a time; -1 for as many as dask has threads."""
        if self.backend == "dask":
            return self.jobs or -1
        return max(1, min(self.jobs or extra("joblib").cpu_count(), tasks))

    def describe(self, tasks: int) -> str:
        """Say where so many tasks run."""
        if self.backend == "dask":
            return f"the dask workers of {self.scheduler}"
        return f"{self.workers(tasks)} of {os.cpu_count()} cores"

    def _start(self, tasks: dict[int, Callable[[], Result]], jobs: int) -> Generator[tuple[int, Result]]:
        """Start the processes; the results come from what is returned."""
        joblib = extra("joblib")
        with _ctrl_c_ignored(), joblib.parallel_config(backend=self.backend):
            parallel = joblib.Parallel(jobs, return_as="generator_unordered")
            done: Generator[tuple[int, Result]] = parallel(
                joblib.delayed(_placed)(place, task) for place, task in list(tasks.items())
            )
        return done

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Hold a connection to the scheduler, if there is one."""
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
    """Refuse workers that would give other results than this machine."""
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
    """Ignore Ctrl-C, and so let processes started meanwhile ignore it for good: their parent will stop them."""
    if current_thread() is not main_thread() or os.name != "posix":
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
