"""Trials as rows of a table, and back: one rule for data frames, CSV, Parquet and the download of a page.

A trial has one row. Its columns are ``trial state value noise`` (``value.NAME`` of several objectives), one per
parameter, ``context.NAME``, ``fidelity.NAME``, ``constraint.NAME``, ``measure.NAME`` of tracked numbers, ``noise.NAME``
and ``bound.NAME`` of named readings, ``block.NAME``, ``bound``, ``cost``, ``failure``, ``started`` and ``seconds``. A
cell is empty where there is nothing; most columns are left out where no trial has anything in them. Where several
readings make up the value of a trial, or an earlier one was replaced, rows with the same number come before its own:
``reported`` on the way of a run, ``run`` for each of several runs, ``withdrawn`` for what was corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, cast

import numpy as np

from noregret.extra import extra
from noregret.optimizer.measures import Measures, checked_cost
from noregret.optimizer.space.table import is_missing
from noregret.optimizer.trial import VALUE, Reading, Readings, State, Trial, checked_block

ABOUT = ("trial", "state", "value", "noise")
"""Columns that every table of trials of one objective has."""
OTHERS = ("bound", "cost", "failure", "started", "seconds", "pair")
"""Further columns about a trial."""
OPEN = ("measure.", "noise.", "bound.", "block.")
"""Beginnings of columns that any name may follow."""
PREFIXES = ("value.", "context.", "fidelity.", "constraint.", "params.", "trial.", *OPEN)
ROW_STATES = ("done", "stopped", "reported", "run", "failed", "running", "waiting", "pruned", "withdrawn")
"""States of rows: those of trials, "stopped" for one that ended early, and those of rows before a trial's own."""
PARTS = ("reported", "run")
"""States of rows that are a part of the trial whose row follows."""
Row = dict[Any, Any]


@dataclass(frozen=True)
class TrialRows:
    """Rows of the trials of a problem.

    ``names`` are those of the parameters, ``context`` and ``fidelity`` those of what is given with each trial. A
    parameter does not have a ``reserved`` name as its column, but ``params.NAME``.
    """

    names: Sequence[Any]
    measures: Measures
    context: Sequence[str] = ()
    fidelity: Sequence[str] = ()
    reserved: Sequence[str] = ABOUT

    def parameter(self, name: Any) -> Any:
        """Column of a parameter: its name, unless another column has it."""
        is_taken = name in self.reserved or (isinstance(name, str) and name.startswith(PREFIXES))
        return f"params.{name}" if is_taken else name

    def own(self, column: str) -> str:
        """Name of a column about the trial: a parameter of that name has it, unless the name is reserved."""
        return f"trial.{column}" if column in self.names and column not in self.reserved else column

    def value(self, name: str) -> str:
        """Column of a measure."""
        measure = self.measures.get(name)
        if measure is None or measure.role == "tracked":
            return f"measure.{name}"
        if measure.role == "constraint":
            return f"constraint.{measure.name}"
        if measure.role == "cost":
            return self.own("cost")
        return VALUE if self.measures.is_single else f"value.{name}"

    def about(self, name: str, what: Literal["noise", "bound"]) -> str:
        """Column of the noise of a measure, or of the direction of its bound."""
        is_plain = name == VALUE and self.measures.is_single
        return self.own(what) if is_plain else f"{what}.{name}"

    @property
    def _fixed(self) -> list[Any]:
        """Columns that every table has."""
        first = ["trial", "state", *map(self.value, self.measures.objectives), *["noise"] * self.measures.is_single]
        given = [*(f"context.{name}" for name in self.context), *(f"fidelity.{name}" for name in self.fidelity)]
        return [*first, *map(self.parameter, self.names), *given, *map(self.value, self.measures.constraints)]

    def columns(self, rows: Iterable[Row], always: Sequence[str] = ()) -> list[Any]:
        """Columns of a table with these rows, in order; some ``always``."""
        used = dict.fromkeys(column for row in rows for column, cell in row.items() if cell is not None)
        more = sorted(column for column in used if isinstance(column, str) and column.startswith(OPEN))
        others = (self.own(column) for column in OTHERS if self.own(column) in used or column in always)
        return list(dict.fromkeys([*self._fixed, *more, *others]))

    def unknown(self, columns: Iterable[Any]) -> list[Any]:
        """Columns that no table of these trials has."""
        known = {*self._fixed, *map(self.own, OTHERS), *(name for name in self.names if name not in ABOUT)}
        return [c for c in dict.fromkeys(columns) if c not in known and not (isinstance(c, str) and c.startswith(OPEN))]

    def check(self, columns: Iterable[Any]) -> None:
        """Raise ValueError if a column is unknown."""
        unknown = self.unknown(columns)
        if unknown:
            known = [*self._fixed, *map(self.own, OTHERS)]
            raise ValueError(f"unknown column {unknown[0]!r}: drop it, or rename it to one of {known}")

    def is_number(self, column: Any) -> bool:
        """Return True if a column about the trial holds floats."""
        named = (*map(self.value, self.measures), *map(self.own, ("cost", "seconds")), "noise")
        is_open = isinstance(column, str) and column.startswith(("noise.", "measure."))
        return is_open or (column in named and column not in map(self.parameter, self.names))

    def rows(self, trial: Trial) -> list[Row]:
        """All rows of a trial, its own the last."""
        before = [self.row(replace(each, id=trial.number)) for each in trial.earlier]
        is_whole = all(isinstance(level, int) for level in (trial.fidelity or {}).values())
        for step, readings in trial.by_step():
            at = dict.fromkeys(self.fidelity, int(step) if is_whole and step.is_integer() else step)
            before.append(self.row(replace(trial, readings=readings, fidelity=at), "reported"))
        runs = trial.by_run()
        before += [self.row(replace(trial, readings=each), "run") for each in (runs if len(runs) > 1 else ())]
        return [*before, self.row(trial)]

    def row(self, trial: Trial, state: str = "") -> Row:
        """The row of a trial, or of a part of it; absent cells are None or left out."""
        shown = "stopped" if trial.is_stopped and trial.state == "done" else trial.state
        number = trial.number if trial.number >= 0 else None
        cells: Row = {"trial": number, "state": state or shown}
        params = trial.params.items() if isinstance(trial.params, Mapping) else enumerate(trial.params)
        cells |= {self.parameter(name): value for name, value in params}
        cells |= {f"context.{name}": value for name, value in (trial.context or {}).items()}
        cells |= {f"fidelity.{name}": value for name, value in (trial.fidelity or {}).items()}
        cells |= {f"block.{name}": value for name, value in (trial.block or {}).items()}
        for name in trial.readings:
            reading = trial.reading(name)
            if reading is not None:
                cells[self.value(name)] = reading.value
                cells[self.about(name, "noise")], cells[self.about(name, "bound")] = reading.noise, reading.bound
        if state:
            return cells
        started = trial.started and trial.started.isoformat(timespec="milliseconds")
        more = {"failure": trial.failure or None, "started": started, "seconds": trial.seconds}
        more["pair"] = trial.pair or None
        return cells | {self.own(column): cell for column, cell in more.items()}

    def piece(self, cells: Mapping[Any, Any], params_of: Callable[[Row], Any]) -> Piece:
        """Content of one row, with typed cells; ``params_of`` makes params of cells by parameter. ValueError if bad."""
        cells = {column: cell for column, cell in cells.items() if not is_missing(cell)}
        state = cells.get("state", "done")
        if state not in ROW_STATES:
            raise ValueError(f"state must be one of {list(ROW_STATES)}, got {state!r}")
        places = {name: self._place_of(name, cells) for name in self.names}
        given = {name: cells[place] for name, place in places.items() if place in cells}
        context = {name: cells[f"context.{name}"] for name in self.context if f"context.{name}" in cells}
        fidelity = {name: cells[f"fidelity.{name}"] for name in self.fidelity if f"fidelity.{name}" in cells}
        block = {c.removeprefix("block."): cells[c] for c in cells if isinstance(c, str) and c.startswith("block.")}
        own = {column: self.own(column) for column in OTHERS}
        mine = {column: None if place in places.values() else cells.get(place) for column, place in own.items()}
        started: Any = mine["started"]
        started = datetime.fromisoformat(started) if isinstance(started, str) else started
        seconds = None if mine["seconds"] is None else float(mine["seconds"])
        trial = Trial(
            _number(cells.get("trial", -1)),
            params_of(given),
            context=context or None,
            fidelity=fidelity or None,
            state=cast(State, "done" if state in ("stopped", *PARTS) else state),
            readings=self._readings(cells, state, mine["cost"]),
            failure=str(mine["failure"] or ""),
            started=started,
            ended=None if started is None or seconds is None else started + timedelta(seconds=seconds),
            seconds=seconds,
            is_stopped=state == "stopped",
            pair=str(mine["pair"] or ""),
            block=checked_block(block),
        )
        return Piece(trial, state)

    def _place_of(self, name: Any, cells: Mapping[Any, Any]) -> Any:
        """Column of a parameter in a table: the plain name where the table has no other, and it may be."""
        column = self.parameter(name)
        return name if column not in cells and name not in ABOUT else column

    def _readings(self, cells: Mapping[Any, Any], state: str, cost: Any) -> Readings:
        start = "measure."
        told = {c.removeprefix(start): cells[c] for c in cells if isinstance(c, str) and c.startswith(start)}
        named = [*self.measures.objectives, *self.measures.constraints]
        told |= {name: cells[self.value(name)] for name in named if self.value(name) in cells}
        told = {name: self._reading(name, cell, cells) for name, cell in told.items()}
        if any(name in told for name in self.measures.objectives):
            told = dict.fromkeys(self.measures.objectives) | told
            missing = {measure.name: None for name, measure in self.measures.constraints.items() if name not in told}
            return self.measures.readings(told, constraints=missing, cost=cost)
        if state in ("done", "stopped", *PARTS):
            raise ValueError("it has no value: drop it, or give it the state 'failed' in a column 'state'")
        paid = {} if cost is None else {self.measures.cost: (Reading(checked_cost(cost)),)}
        return paid | {name: (given if isinstance(given, Reading) else Reading(given),) for name, given in told.items()}

    def _reading(self, name: str, value: Any, cells: Mapping[Any, Any]) -> Any:
        """A cell, with the noise and the bound that other cells of its row have."""
        noise, place = cells.get(self.about(name, "noise")), self.about(name, "bound")
        bound: Any = None if place in self.names else cells.get(place)
        return value if noise is None and bound is None else Reading(value, noise=noise, bound=bound)


def _number(cell: Any) -> int:
    """Number of a trial in a cell; ValueError if it is none."""
    with suppress(TypeError, ValueError):
        if int(cell) == float(cell):
            return int(cell)
    raise ValueError(f"trial must be a whole number, got {cell!r}")


@dataclass(frozen=True)
class Piece:
    """Content of one row: a trial, or a part of the trial whose row comes later."""

    trial: Trial
    state: str


def joined(pieces: Sequence[tuple[int, Piece]]) -> list[tuple[int, Trial]]:
    """Trials of the numbered rows of a table, each with the number of its own row.

    A part of a trial, and a withdrawn record of it, belong to the next row of the same trial and params.
    """
    last = {_identity(piece): place for place, (_, piece) in enumerate(pieces)}
    parts: dict[tuple[int, str], list[Piece]] = {}
    trials: list[tuple[int, Trial]] = []
    for place, (row, piece) in enumerate(pieces):
        identity = _identity(piece)
        is_known = piece.trial.number >= 0
        if is_known and piece.state in (*PARTS, "withdrawn") and place < last[identity]:
            parts.setdefault(identity, []).append(piece)
        else:
            trials.append((row, _whole(piece, parts.pop(identity, []) if is_known else [])))
    return trials


def _identity(piece: Piece) -> tuple[int, str]:
    """Number and setting of a trial: tables of several optimizers have the same numbers."""
    return piece.trial.number, repr((piece.trial.params, piece.trial.context))


def _whole(piece: Piece, before: Sequence[Piece]) -> Trial:
    """Trial of its own row and the parts before it; its own row may be missing where the last one is a part."""
    trial = piece.trial
    if piece.state in PARTS:
        before = [*before, piece]
        trial = replace(trial, readings={})
    if piece.state == "reported":
        trial = replace(trial, state="running", fidelity=None)
    runs = [part.trial for part in before if part.state == "run"]
    names = dict.fromkeys([*(name for run in runs for name in run.readings), *trial.readings])
    readings = {name: [reading for run in runs for reading in run.readings.get(name, ())] for name in names}
    readings = {name: each or list(trial.readings[name]) for name, each in readings.items()}
    for report in reversed([part.trial for part in before if part.state == "reported"]):
        step = next(iter((report.fidelity or {}).values()), None)
        for name, each in report.readings.items():
            readings[name] = [*(replace(reading, step=step) for reading in each), *readings.get(name, [])]
    earlier = tuple(part.trial for part in before if part.state == "withdrawn")
    return replace(trial, readings={name: tuple(each) for name, each in readings.items()}, earlier=earlier)


@contextmanager
def naming(row: str) -> Iterator[None]:
    """Name the row in a ValueError of the block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{row}: {error}") from None


def table_rows(frame: Any) -> list[Mapping[Any, Any]]:
    """The rows of a table by column, from whatever it comes as: a DataFrame, a list of dicts or a dict of columns."""
    if hasattr(frame, "to_dict") and hasattr(frame, "columns"):  # a DataFrame, of whichever library
        frame = frame.to_dict("records") if hasattr(frame, "iloc") else frame.to_dicts()
    if isinstance(frame, Mapping):
        columns = {name: _listed(cells) for name, cells in frame.items()}
        lengths = {name: len(cells) for name, cells in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the columns of a frame must be of one length, got {lengths}")
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if isinstance(frame, Sequence) and all(isinstance(row, Mapping) for row in frame):
        return list(frame)
    raise ValueError(f"a frame must be a DataFrame, a list of dicts or a dict of columns, got {type(frame).__name__}")


def _listed(cells: Any) -> list[Any]:
    """The cells of a column; of an array of floats as Python's, which are checked in less time than NumPy's."""
    is_floats = isinstance(cells, np.ndarray) and cells.dtype == float
    return cells.tolist() if is_floats else list(cells)


def as_frame(table: TrialRows, trials: Iterable[Trial], always: Sequence[str] = ()) -> Any:
    """Trials as a DataFrame (extra ``frames``)."""
    rows = [row for trial in trials for row in table.rows(trial)]
    columns = table.columns(rows, always)
    frame = extra("pandas", "frames").DataFrame(rows, columns=columns)
    return frame.astype({"trial": "Int64"} | dict.fromkeys(filter(table.is_number, columns), float))
