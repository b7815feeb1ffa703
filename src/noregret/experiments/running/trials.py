"""Trials: many runs in parallel processes, resumable."""

from __future__ import annotations

import inspect
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from noregret.decision.loops import Algorithm
from noregret.experiments.running.parallel import Engine
from noregret.experiments.running.run import PROGRESS_SECONDS, ChangingWorld, Watch, World, run
from noregret.experiments.running.trace import Trace, set_aside

_log = logging.getLogger(__name__)


def children(seed: np.random.SeedSequence, count: int) -> list[np.random.SeedSequence]:
    """Return the first ``count`` children of a seed, which stays as it is."""
    return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(count)


def keywords(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return a builder's parameters after the kernel, by name."""
    _, *others = inspect.signature(builder).parameters.items()
    return dict(others)


def build(
    builder: Callable[..., Algorithm], problem: Any, horizon: int, settings: Mapping[str, Any] | None = None
) -> Algorithm:
    """Build an algorithm for a problem from its kernel and what its builder wants to know.

    Parameters
    ----------
    builder : callable
        Takes a kernel, then keywords.
    problem : object with ``kernel`` and ``facts``, a dict of keywords
    horizon : int
    settings : mapping, optional
        Keywords that override the horizon and the problem's facts. What the builder does not take is left out.
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
    """One run to be made, or found where an earlier call has kept it.

    The first child of ``seed`` makes the problem, the second drives the run: trials of several algorithms on one
    seed meet the same problem and the same noise.
    """

    name: str
    """What tables and pictures call the algorithm."""
    problem: Callable[..., World | ChangingWorld]
    """A function that makes the problem from a generator ``rng``."""
    algorithm: Callable[[Any], Algorithm]
    """A function that makes the algorithm from the problem it will play."""
    horizon: int
    seed: np.random.SeedSequence
    path: Path | None = None
    """The file in which the trace is kept, without its ending; None keeps no trace."""
    watch: Watch = ()
    """Quantities that the trace records at every round besides arms and rewards, as in `noregret.run`."""

    def kept(self) -> Trace | None:
        """Return the trace of an earlier call, None if there is none; a damaged one is set aside."""
        try:
            return Trace.load(self.path) if self.path else None
        except FileNotFoundError:
            return None
        except ValueError as error:
            _log.warning("%s; set aside as %s", error, ", ".join(file.name for file in set_aside(self.path or "")))
            return None

    def play(self, progress: Callable[[int], None] | None = None) -> Trace:
        """Make the run, on one BLAS thread, and keep its trace."""
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
    """Play trials in parallel processes; those whose traces are kept already are read instead.

    Parameters
    ----------
    trials : sequence of Trial
    jobs : int, optional
        Number of processes, one per core by default. With 1 everything happens in this process.
    progress : callable, optional
        Called from another thread with the number of rounds done in all trials together.

    Returns
    -------
    dict of str to list of Trace
        By the trials' names, in their order.
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
    """Play one trial; its number of rounds goes to its own place in the file, which the parent process reads."""
    if file is None:
        return trial.play()
    return trial.play(np.memmap(file, np.int64, "r+")[index : index + 1].fill)


@contextmanager
def _watched(rounds: list[int], progress: Callable[[int], None] | None) -> Iterator[Path | None]:
    """Keep the rounds done by each trial in a file and report their sum every now and then."""
    if progress is None or not rounds:
        yield None
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder, "rounds")
        np.array(rounds, np.int64).tofile(file)
        over = Event()
        watcher = Thread(target=_watch, args=(np.memmap(file, np.int64, "r"), progress, over), daemon=True)
        watcher.start()
        try:
            yield file
        finally:
            over.set()
            watcher.join()


def _watch(rounds: Any, progress: Callable[[int], None], over: Event) -> None:
    while not over.wait(PROGRESS_SECONDS):
        progress(int(rounds.sum()))
    progress(int(rounds.sum()))
