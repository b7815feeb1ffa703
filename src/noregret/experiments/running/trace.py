"""Trace: what happened in one run, and how to keep it."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np

from noregret.belief.posterior import Floats, Ints
from noregret.files import write_atomically

FORMAT = 1
ARRAYS = ("arms", "rewards", "regret")
WATCHED = "watched."
RECORD = ("seconds", "algorithm", "problem", "seed", "versions")


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("noregret", "numpy")}


def recorded_versions() -> dict[str, str]:
    """The versions of noregret and NumPy."""
    return dict(_versions())


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
    """Seconds spent in the algorithm; the time that the problem took is not in it."""
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
    """The best arm's mean minus that of the arm that would be recommended after every round, (T,).

    That is the arm with the largest lower bound, as in `Policy.best`. It is looked at after each of the first rounds,
    then whenever they have grown by a tenth, and at the end; in between it is what it was last. It is nan where the
    algorithm has no bounds, and empty in traces of before it was recorded."""

    @property
    def cumulative_regret(self) -> Floats:
        """The regret of rounds 1 to t together, for every t, (T,)."""
        return np.cumsum(self.regret)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path``.npz (the arrays) and then ``path``.json (the rest): if the latter is there, both are whole.

        An ending .npz or .json in ``path`` is taken off first.
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
            If there is none, or it was never finished (no .json).
        ValueError
            If it is damaged or from a newer noregret.
        """
        arrays, about = read_pair(path, RECORD)
        watched = {name.removeprefix(WATCHED): arrays[name] for name in arrays if name.startswith(WATCHED)}
        known = {name: arrays[name] for name in ARRAYS} | {name: about[name] for name in RECORD}
        return cls(**known, watched=watched, simple_regret=arrays.get("simple_regret", np.empty(0)))


def write_pair(path: str | os.PathLike[str], arrays: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Write ``path``.npz, the arrays, and then ``path``.json: the record and the arrays' checksum."""
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
    """Read arrays and record, which must have these fields; the errors are those of `Trace.load`."""
    npz, json_ = _pair(path)
    about = _read_record(json_, fields)
    content = npz.read_bytes() if npz.exists() else b""
    if hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise ValueError(f"{npz} is damaged: it does not match the checksum in {json_.name}; run it again")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return dict(stored), about


def set_aside(path: str | os.PathLike[str]) -> list[Path]:
    """Add ``.damaged`` to the names of those files of a pair that exist, and return the new names."""
    existing = [file for file in _pair(path) if file.exists()]
    return [file.replace(file.with_name(f"{file.name}.damaged")) for file in existing]


def _pair(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    path = Path(path)
    stem = path.name.removesuffix(".npz").removesuffix(".json")
    return path.with_name(f"{stem}.npz"), path.with_name(f"{stem}.json")


def _read_record(path: Path, fields: Iterable[str]) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads(path.read_bytes())
        missing = {"format", "sha256", *fields} - about.keys()
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged or not a trace ({error}); run it again") from error
    if missing:
        raise ValueError(f"{path} is not a trace: it lacks {', '.join(sorted(missing))}")
    if about["format"] != FORMAT:
        raise ValueError(f"{path} has format {about['format']}, this noregret reads {FORMAT}: upgrade noregret")
    return about
