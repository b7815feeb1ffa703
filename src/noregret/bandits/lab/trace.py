"""Results of trials: their files, and summaries of many of them.

`Trace` is one run of an algorithm, `Measurement` other named arrays. A result is a pair of files: ``path``.npz holds
the arrays, ``path``.json the record and the checksum of the arrays. The record is written last, so an existing record
belongs to complete arrays.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from noregret.extra import version
from noregret.files import write_atomically
from noregret.formatting import number
from noregret.gp.posterior import Floats, Ints

FORMAT = 1
ARRAYS = ("arms", "rewards", "regret")
WATCHED = "watched."
RECORD = ("seconds", "algorithm", "problem", "seed", "versions")


def recorded_versions() -> dict[str, str]:
    """The versions of noregret and NumPy."""
    return {"noregret": version(), "numpy": np.__version__}


@dataclass(frozen=True, eq=False)
class Trace:
    """One run of T rounds.

    ``run(algorithm, problem, T, rng=numpy.random.SeedSequence(**trace.seed))`` repeats it.
    """

    arms: Ints = field(repr=False)
    """The arm of every round, (T,)."""
    rewards: Floats = field(repr=False)
    """The reward of every round, (T,)."""
    regret: Floats = field(repr=False)
    """The best arm's mean minus the pulled arm's, in every round, (T,)."""
    seconds: float
    """Seconds spent in the algorithm, without the time of the problem."""
    algorithm: str
    """The repr of the algorithm."""
    problem: str
    """The name of the problem, or its repr."""
    seed: dict[str, Any]
    """The arguments of the SeedSequence that the run's streams were spawned from."""
    versions: dict[str, str] = field(default_factory=recorded_versions)
    """The versions of noregret and NumPy."""
    watched: dict[str, Floats] = field(default_factory=dict, repr=False)
    """Other quantities recorded at every round, by name, each (T,)."""
    simple_regret: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    """The best arm's mean minus the mean of the arm recommended after every round, (T,).

    The recommended arm has the largest lower bound, as in `Policy.best`. It is computed after each of the first rounds,
    then whenever the number of rounds has grown by a tenth, and at the end; in between the last value is repeated. It
    is nan if the algorithm has no bounds, and empty in traces that were saved before it was recorded."""

    @property
    def cumulative_regret(self) -> Floats:
        """Sum of the regret of rounds 1 to t, for every t, (T,)."""
        return np.cumsum(self.regret)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path``.npz (the arrays) and then ``path``.json (the rest): if the .json exists, both are complete.

        A suffix .npz or .json of ``path`` is removed first.
        """
        arrays = {name: getattr(self, name) for name in ARRAYS}
        arrays["simple_regret"] = self.simple_regret
        arrays |= {WATCHED + name: values for name, values in self.watched.items()}
        write_pair(path, arrays, {name: getattr(self, name) for name in RECORD})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved trace.

        Raises
        ------
        FileNotFoundError
            If there is no trace, or writing it was not finished (no .json).
        ValueError
            If it is damaged or was written by a newer noregret.
        """
        arrays, about = read_pair(path, RECORD)
        watched = {name.removeprefix(WATCHED): arrays[name] for name in arrays if name.startswith(WATCHED)}
        known = {name: arrays[name] for name in ARRAYS} | {name: about[name] for name in RECORD}
        return cls(**known, watched=watched, simple_regret=arrays.get("simple_regret", np.empty(0)))


@dataclass(frozen=True, eq=False)
class Measurement:
    """Named arrays that one trial has measured, where the trial is not a run of an algorithm."""

    RECORD: ClassVar = ("seconds", "about", "seed", "versions")

    arrays: Mapping[str, Floats] = field(repr=False)
    seconds: float
    """Seconds that the trial took."""
    about: str
    """Description of the measurement."""
    seed: dict[str, Any]
    """The arguments of the SeedSequence that the trial was run with."""
    versions: dict[str, str] = field(default_factory=recorded_versions)
    """The versions of noregret and NumPy."""

    def __getitem__(self, name: str) -> Floats:
        return self.arrays[name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path``.npz and ``path``.json."""
        write_pair(path, self.arrays, {name: getattr(self, name) for name in self.RECORD})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved measurement; the errors are those of `noregret.Trace.load`."""
        arrays, about = read_pair(path, cls.RECORD)
        return cls(arrays, **{name: about[name] for name in cls.RECORD})


def write_pair(path: str | os.PathLike[str], arrays: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Write ``path``.npz, the arrays, and then ``path``.json, the record and the checksum of the arrays."""
    npz, json_ = _pair(path)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    content = buffer.getvalue()
    about = {"format": FORMAT, "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(about | dict(record), indent=1)
    json_.unlink(missing_ok=True)
    write_atomically(npz, lambda file: file.write(content))
    write_atomically(json_, lambda file: file.write(text.encode()))


def read_pair(path: str | os.PathLike[str], fields: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the arrays and the record, which must have these fields; the errors are those of `Trace.load`."""
    npz, json_ = _pair(path)
    try:
        about: dict[str, Any] = json.loads(json_.read_bytes())
        missing = {"format", "sha256", *fields} - about.keys()
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{json_} is damaged or not a trace ({error}); run it again") from error
    if missing:
        raise ValueError(f"{json_} is not a trace: it lacks {', '.join(sorted(missing))}")
    if about["format"] != FORMAT:
        raise ValueError(f"{json_} has format {about['format']}, this noregret reads {FORMAT}: upgrade noregret")
    content = npz.read_bytes() if npz.exists() else b""
    if hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise ValueError(f"{npz} is damaged: it does not match the checksum in {json_.name}; run it again")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return dict(stored), about


def stored(kind: Any, path: Path, warn: Callable[[str], object]) -> Any:
    """Read a `Trace` or a `Measurement`, None if there is none; a damaged one is set aside, with a warning."""
    try:
        return kind.load(path)
    except FileNotFoundError:
        return None
    except ValueError as error:
        existing = [file for file in _pair(path) if file.exists()]
        aside = [file.replace(file.with_name(f"{file.name}.damaged")) for file in existing]
        warn(f"{error} (set aside as {', '.join(file.name for file in aside)})")
        return None


def _pair(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    path = Path(path)
    stem = path.name.removesuffix(".npz").removesuffix(".json")
    return path.with_name(f"{stem}.npz"), path.with_name(f"{stem}.json")


class Row(NamedTuple):
    """Mean regret and time of one algorithm."""

    algorithm: str
    trials: int
    regret: float
    """Cumulative regret at the end, mean over the trials."""
    sd: float
    """Standard deviation of the final cumulative regret over the trials; nan if there is only one trial."""
    microseconds: float
    """Microseconds per round spent in the algorithm."""


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{number(self.value, 3)} [{number(self.low, 3)}, {number(self.high, 3)}]"


def mean_interval(values: ArrayLike) -> Interval:
    """Mean of (n,) values with its 95% interval by Student's t, unbounded for a single value.

    Examples
    --------
    >>> str(mean_interval([1.0, 2.0, 3.0]))
    '2 [-0.484, 4.48]'
    """
    numbers = np.asarray(values, dtype=float)
    mean, n = float(numbers.mean()), numbers.size
    half_width = math.inf if n < 2 else float(stdtrit(n - 1, 0.975) * numbers.std(ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half_width, mean + half_width)


def fraction_interval(yes: int, trials: int) -> Interval:
    """Fraction of trials with the answer yes, with the 95% interval of Clopper and Pearson.

    Examples
    --------
    >>> str(fraction_interval(198, 200))
    '0.99 [0.964, 0.999]'
    """
    no = trials - yes
    low = float(betaincinv(yes, no + 1, 0.025)) if yes else 0.0
    return Interval(yes / trials, low, float(betaincinv(yes + 1, no, 0.975)) if no else 1.0)


def final_regret(trace: Any) -> float:
    """Cumulative regret of a trace after its last round."""
    return float(trace.regret.sum())


def summarise(traces_by_name: Mapping[str, Sequence[Trace]]) -> list[Row]:
    """Return one row per algorithm, the smallest regret first.

    Examples
    --------
    >>> import numpy as np
    >>> from noregret.bandits.lab.trace import Trace
    >>> def trace(*regret):
    ...     return Trace(np.zeros(2, int), np.zeros(2), np.array(regret), 1e-5, "mine", "toy", {})
    >>> summarise({"mine": [trace(1.0, 0.0), trace(1.0, 2.0)]})
    [Row(algorithm='mine', trials=2, regret=2.0, sd=1.4142135623730951, microseconds=5.0)]
    """
    rows = []
    for name, traces in traces_by_name.items():
        if not traces:
            raise ValueError(f"every algorithm needs at least one trace, {name} has none")
        regret = np.array([final_regret(trace) for trace in traces])
        sd = float(regret.std(ddof=1)) if len(traces) > 1 else float("nan")
        microseconds = 1e6 * sum(t.seconds for t in traces) / sum(len(t.regret) for t in traces)
        rows.append(Row(name, len(traces), float(regret.mean()), sd, microseconds))
    return sorted(rows, key=lambda row: (row.regret, row.algorithm))
