"""Measurement: what one trial of a study found, where that is not a run of an algorithm."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from noregret.belief.posterior import Floats
from noregret.experiments.running.trace import read_pair, recorded_versions, write_pair

RECORD = ("seconds", "about", "seed", "versions")


@dataclass(frozen=True, eq=False)
class Measurement:
    """Named arrays, kept in the same two files as a `noregret.Trace`."""

    arrays: Mapping[str, Floats] = field(repr=False)
    seconds: float
    """Seconds that the trial took."""
    about: str
    """A description of how the arrays were measured."""
    seed: dict[str, Any]
    """The arguments of the SeedSequence that the trial was run with."""
    versions: dict[str, str] = field(default_factory=recorded_versions)
    """The versions of noregret and NumPy."""

    def __getitem__(self, name: str) -> Floats:
        return self.arrays[name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path``.npz and ``path``.json."""
        write_pair(path, self.arrays, {name: getattr(self, name) for name in RECORD})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved measurement; the errors are those of `noregret.Trace.load`."""
        arrays, about = read_pair(path, RECORD)
        return cls(arrays, **{name: about[name] for name in RECORD})
