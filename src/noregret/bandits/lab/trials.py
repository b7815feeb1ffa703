"""Many runs: repeated over seeds, in parallel and resumable, and compared as a table with intervals and a picture.

An `Engine` runs tasks in processes of this machine or on the workers of a dask scheduler, both through joblib.
"""

from __future__ import annotations

import inspect
import math
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from noregret.bandits.algorithms import NAMES
from noregret.bandits.decision.loops import Algorithm
from noregret.bandits.lab import plot
from noregret.bandits.lab.run import ChangingWorld, Watch, World, check_world, run
from noregret.bandits.lab.trace import Interval, Measurement, Trace, final_regret, mean_interval, stored, summarise
from noregret.bandits.problems.problem import Continuous
from noregret.extra import extra, version
from noregret.formatting import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        with _ctrl_c_ignored(), _leaks_not_reported(), joblib.parallel_config(backend=self.backend):
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
    for address, release in theirs.items():
        if release != ours:
            raise EngineFailed(f"the worker at {address} has noregret {release}, this machine {ours}: install the same")


def _installed() -> str:
    try:
        return version()
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


@contextmanager
def _leaks_not_reported() -> Iterator[None]:
    """Let the process of loky that unlinks semaphores, started here, do so after Ctrl-C without a warning for each."""
    before = os.environ.get("PYTHONWARNINGS")
    quiet = "ignore::UserWarning:joblib.externals.loky.backend.resource_tracker"
    os.environ["PYTHONWARNINGS"] = f"{before},{quiet}" if before else quiet
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


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


def played(
    problem: Callable[..., World | ChangingWorld],
    algorithm: Callable[[Any], Algorithm],
    horizon: int,
    seed: np.random.SeedSequence,
    watch: Watch = (),
) -> Trace:
    """Make one run on one BLAS thread.

    ``problem`` makes the problem from a seed ``rng``, and ``algorithm`` the algorithm from its problem. The first child
    of ``seed`` makes the problem and the second drives the run: trials of several algorithms on one seed have the same
    problem and the same noise.
    """
    instance, streams = children(seed, 2)
    with threadpool_limits(1, user_api="blas"):
        world = problem(rng=instance)
        return run(algorithm(world), world, horizon, rng=streams, watch=watch)


class Task(NamedTuple):
    """One trial to run."""

    label: str
    """Name of the curve that the trial belongs to."""
    path: Path
    """File of the result, relative to the folder of all trials and without its suffix."""
    work: Callable[[], Any]
    """Function that runs the trial, in any process."""
    kind: type[Trace] | type[Measurement] = Trace
    """Type that ``work`` returns."""


class Work:
    """Trials, and those of them that are waiting to be run: an earlier call has stored the others.

    Every result is on the disk before the next one is processed.
    """

    def __init__(self, tasks: Sequence[Task], folder: Path, warn: Callable[[str], object]) -> None:
        self.tasks, self._folder = tasks, folder
        self.waiting = {task.path: task for task in tasks if not stored(task.kind, folder / task.path, warn)}

    def run(self, engine: Engine, done: Callable[[], object]) -> None:
        """Run the trials that are waiting, and call ``done`` after each."""
        paths = list(self.waiting)
        for place, result in engine.each([self.waiting[path].work for path in paths]):
            self.receive(paths[place], result)
            done()

    def receive(self, path: Path, result: Any) -> None:
        """Store the result of a finished trial."""
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        result.save(self._folder / path)
        del self.waiting[path]

    def results(self) -> dict[str, dict[str, list[Any]]]:
        """Results of all trials, read from the disk, by the folder of their file and by their label."""
        results: dict[str, dict[str, list[Any]]] = {}
        for task in self.tasks:
            curves = results.setdefault(task.path.parent.name, {})
            curves.setdefault(task.label, []).append(task.kind.load(self._folder / task.path))
        return results


# Comparisons

LONGEST = 40
"""Length of the longest name that a table does not shorten."""


class Compared(NamedTuple):
    """Results of one algorithm: means over the seeds with their 95% intervals."""

    algorithm: str
    regret: Interval
    """Cumulative regret at the end."""
    behind: Interval
    """Regret beyond that of the best algorithm, paired by seed; 0 for the best itself."""
    simple_regret: Interval
    """Regret of the arm recommended at the end."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """Results of algorithms on the same problem and, for each seed, the same noise. It prints as a table.

    The intervals are Student's. Those of ``behind`` are for paired differences, and are narrower than the intervals of
    the regrets if the seeds affect all algorithms alike. If such an interval is above 0, the best algorithm is better
    with 95% confidence. The level holds for each interval alone, not for all of them together, and does not account for
    the choice of the best by the same runs.
    """

    traces: Mapping[str, Sequence[Trace]]
    """One trace per seed, by the algorithm's name."""

    @property
    def rows(self) -> list[Compared]:
        """One row per algorithm, the smallest mean regret first."""
        names = [row.algorithm for row in summarise(self.traces)]
        best = np.array([final_regret(trace) for trace in self.traces[names[0]]])
        rows = []
        for name in names:
            regrets = np.array([final_regret(trace) for trace in self.traces[name]])
            last = [trace.simple_regret[-1] for trace in self.traces[name]]
            rows.append(Compared(name, mean_interval(regrets), mean_interval(regrets - best), mean_interval(last)))
        return rows

    def __str__(self) -> str:
        rows, first, labels = self.rows, next(iter(self.traces.values())), _labels(self.traces)
        header = ("algorithm", "regret", f"more than {labels[rows[0].algorithm]}", "simple regret")
        cells = [(labels[row.algorithm], *map(_text, row[1:])) for row in rows]
        cells[0] = (*cells[0][:2], "-", cells[0][3])
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (header, *cells)]
        note = f"{len(first)} seeds of {len(first[0].regret)} rounds on {first[0].problem}, means and 95% intervals"
        return "\n".join([*lines, note])

    def __repr__(self) -> str:
        return str(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw cumulative and simple regret, side by side; save the picture if ``path`` is given."""
        figure: Figure = extra("matplotlib.figure").Figure(figsize=(11.0, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = {label: self.traces[name] for name, label in _labels(self.traces).items()}
        plot.regret(shown, ax=left)
        left.get_legend().remove()
        plot.simple_regret({row.algorithm: shown[row.algorithm] for row in reversed(summarise(shown))}, ax=right)
        if path is not None:
            figure.savefig(path, dpi=200, bbox_inches="tight")
        return figure


def compare(
    algorithms: Mapping[str, Algorithm | str] | Iterable[Algorithm | str],
    problem: World | ChangingWorld | Continuous,
    horizon: int,
    seeds: int | Iterable[Any] = 10,
) -> Ranking:
    """Run algorithms on one problem, each once per seed; on a seed all of them have the same noise.

    Parameters
    ----------
    algorithms : mapping of names to algorithms, or several algorithms
        Algorithms without a name are called by their repr. A name of `noregret.algorithms.NAMES` is built from the
        problem's kernel and facts.
    problem : as in `noregret.run`
    horizon : int
        Number of rewards in each run.
    seeds : int or several seeds
        The number of seeds, which are then 0, 1, ..., or the seeds themselves.

    Examples
    --------
    >>> import noregret
    >>> problem = noregret.problems.NAMES["rkhs-se"](rng=0)
    >>> noregret.compare(["amm-ucb", "gp-ei", "random"], problem, horizon=200, seeds=5)
    algorithm  regret             more than amm-ucb     simple regret
    amm-ucb    12.3 [11, 13.7]    -                     0.00239 [-0.00217, 0.00695]
    gp-ei      13.1 [12.8, 13.4]  0.752 [-0.346, 1.85]  0.000627 [-0.000439, 0.00169]
    random     222 [211, 233]     209 [199, 220]        0.00529 [-0.000706, 0.0113]
    5 seeds of 200 rounds on rkhs, means and 95% intervals
    """
    check_world(problem)
    chosen = _named(algorithms, problem, horizon)
    given = list(range(seeds)) if isinstance(seeds, int | np.integer) else list(seeds)
    if not chosen or not given:
        raise ValueError(f"at least one algorithm and one seed must be given, got {len(chosen)} and {len(given)}")
    traces = {name: [run(each, problem, horizon, rng=seed) for seed in given] for name, each in chosen.items()}
    return Ranking(traces)


def _named(algorithms: Any, problem: Any, horizon: int) -> dict[str, Algorithm]:
    """Algorithms by name; algorithms given by their name alone are built for the problem."""
    if not isinstance(algorithms, Mapping):
        algorithms = [(each if isinstance(each, str) else repr(each), each) for each in algorithms]
    given = list(algorithms.items() if isinstance(algorithms, Mapping) else algorithms)
    twice = {name for i, (name, _) in enumerate(given) if name in (other for other, _ in given[:i])}
    if twice:
        raise ValueError(f"algorithms must have different names, got {twice.pop()!r} twice: pass a dict of names")
    return {name: _built(each, problem, horizon) for name, each in given}


def _built(algorithm: Any, problem: Any, horizon: int) -> Algorithm:
    if isinstance(algorithm, str):
        if algorithm not in NAMES:
            raise ValueError(f"unknown algorithm {algorithm!r}: the names are {', '.join(NAMES)}")
        return build(NAMES[algorithm], problem, horizon)
    if not hasattr(algorithm, "play"):
        raise ValueError(f"an algorithm must be such as algorithms.igp_ucb(kernel), or its name, got {algorithm!r}")
    known: Algorithm = algorithm
    return known


def _text(interval: Interval) -> str:
    """Format an interval: without its ends for one seed, a dash for nan."""
    if math.isnan(interval.value):
        return "-"
    return str(interval) if math.isfinite(interval.high) else number(interval.value, 3)


def _labels(names: Iterable[str]) -> dict[str, str]:
    """Labels of these names in a table: long names are cut, and numbered if they begin alike."""
    short = {name: name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in names}
    shared = {label for label, count in Counter(short.values()).items() if count > 1}
    return {name: f"{i} {label}" if label in shared else label for i, (name, label) in enumerate(short.items(), 1)}
