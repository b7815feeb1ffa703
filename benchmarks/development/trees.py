"""Runs of a source tree in processes of its own, kept in a folder so that none is repeated."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from benchmarks.development.playing import Reading, Run

HERE = Path(__file__).resolve().parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Tree:
    """A folder that holds the package ``noregret``."""

    source: Path

    def __post_init__(self) -> None:
        if not (self.source / "noregret" / "__init__.py").exists():
            raise ValueError(
                f"a source tree must hold noregret/__init__.py, {self.source} does not: name its src folder"
            )

    @property
    def digest(self) -> str:
        """Of all that a run depends on: this tree's code and the suite's."""
        own = sorted((self.source / "noregret").rglob("*.py"))
        drawn = ("classic", "hills", "wide", "spaces", "problems", "noises")
        suite = [HERE / f"{name}.py" for name in (*drawn, "measured", "simulated", "tasks", "playing")]
        suite += sorted((HERE / "data").glob("*.gz"))
        names = [str(file.relative_to(self.source)) for file in own]
        contents = [file.read_bytes() for file in [*own, *suite]]
        return hashlib.sha256(b"\0".join([*map(str.encode, names), *contents])).hexdigest()[:16]

    def play(self, runs: list[Run], budgets: list[int]) -> Iterator[tuple[Run, list[Reading]]]:
        """Each run with its readings, as they come, from one process on one thread."""
        paths = os.pathsep.join([str(self.source), str(HERE.parents[1])])
        command = [sys.executable, "-c", _WORKER, str(self.source)]
        with subprocess.Popen(
            command, env=os.environ | ONE_THREAD | {"PYTHONPATH": paths}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            process.stdin.write(json.dumps({"runs": runs, "budgets": budgets}).encode())
            process.stdin.close()
            for line in process.stdout:
                run, readings = json.loads(line)
                yield Run(*run), [Reading(*reading) for reading in readings]
        if process.returncode:
            raise RuntimeError(f"a run of {self.source} on {runs[0].problem} failed: its error is above")


_WORKER = """
import sys, noregret
assert noregret.__file__.startswith(sys.argv[1]), f"noregret comes from {noregret.__file__}, not from {sys.argv[1]}"
from benchmarks.development.playing import main
main()
"""


@dataclass(frozen=True)
class Kept:
    """Readings of runs to some budgets in a folder: one small file per run."""

    folder: Path
    budgets: tuple[int, ...]

    def of(self, tree: Tree, runs: list[Run], processes: int) -> dict[Run, list[Reading]]:
        """All of these runs; those that are not there yet are played, a problem at a time in each process."""
        place = self.folder / tree.digest / "-".join(map(str, self.budgets))
        place.mkdir(parents=True, exist_ok=True)
        missing = [run for run in runs if not self._file(place, run).exists()]
        batches = [list(group) for _, group in groupby(missing, key=lambda run: run.problem)]
        with ThreadPoolExecutor(processes) as pool:
            for number, batch in enumerate(pool.map(lambda batch: self._play(tree, place, batch), batches), 1):
                print(f"{tree.source}: {number} of {len(batches)} problems, {batch[0].problem}", file=sys.stderr)
        return {run: self._read(place, run) for run in runs}

    def _play(self, tree: Tree, place: Path, batch: list[Run]) -> list[Run]:
        for run, readings in tree.play(batch, list(self.budgets)):
            unfinished = self._file(place, run).with_suffix(".unfinished")
            unfinished.write_text(json.dumps(readings), encoding="utf-8")
            unfinished.rename(self._file(place, run))
        return batch

    def _read(self, place: Path, run: Run) -> list[Reading]:
        return [Reading(*reading) for reading in json.loads(self._file(place, run).read_text(encoding="utf-8"))]

    def _file(self, place: Path, run: Run) -> Path:
        return place / f"{run.problem}.{run.noise}.{run.seed}.json"
