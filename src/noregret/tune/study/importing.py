"""Observations that were made elsewhere, from a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from noregret.optimizer import Bound, Choice, Float, Int, checked_noise
from noregret.tune.study.results import FROM_ZERO, NoResult, first_measured, usable
from noregret.tune.study.study import Params, Study, StudyError, text

OWN = ("trial", "state", "value", "noise", "started", "seconds", "bound")
"""Columns of an export other than parameters."""


FORMULAS = "=+-@\t\r\n"
"""First characters of cells that spreadsheets compute."""


def guarded(cell: Any) -> Any:
    """A cell of an export: with a quote in front if a spreadsheet would take it for a formula.

    Text with quotes before such a beginning gets one more, so that `unguarded` gives back what was there.

    >>> guarded("=1+1"), guarded("'=1+1"), guarded("-3"), guarded(-3), guarded("a-b")
    ("'=1+1", "''=1+1", '-3', -3, 'a-b')
    """
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) and not _is_number(cell) else cell


def unguarded(cell: str) -> str:
    """A cell as it was before `guarded`.

    >>> unguarded("'=1+1"), unguarded("-3"), unguarded("'a'")
    ('=1+1', '-3', "'a'")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    return cell.lstrip("'")[:1] in tuple(FORMULAS)


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell)) and cell.isascii() and not cell[:1].isspace()
    except ValueError:
        return False


def parameter_column(name: str) -> str:
    """The column of a parameter: its name, unless another column has it.

    >>> parameter_column("size"), parameter_column("seconds")
    ('size', 'params.seconds')
    """
    return f"params.{name}" if name in OWN else name


def value_columns(study: Study) -> dict[str, str]:
    """The columns of the values by objective; one without a name for one objective.

    >>> from noregret.tune.study.study import Study
    >>> value_columns(Study(Path("study.toml"), (), {}))
    {'': 'value'}
    """
    return {name: f"value.{name}" for name in study.objectives} or {"": "value"}


def constraint_column(name: str) -> str:
    """The column of a constraint."""
    return f"constraint.{name}"


def fidelity_columns(study: Study) -> list[str]:
    """The column of the fidelity, if there is one."""
    return [f"fidelity.{name}" for name in study.fidelity or ()]


@dataclass(frozen=True)
class ImportedRow:
    """An observation that was made elsewhere."""

    params: Params
    value: float | None
    """None for a failure."""
    noise: float | None = None
    """Standard deviation of the value, None if unknown."""
    constraints: Mapping[str, float] = field(default_factory=dict)
    origin: str = field(default="", compare=False)
    """Key that separates equal observations: the trial and the time of an export, empty in other tables."""
    context: Params | None = None
    failure: str = ""
    """Reason of a failure."""
    bound: Bound | None = None
    """Direction in which the value lies beyond ``value``; None if it is the value."""
    cost: float | None = None
    """Cost of the measurement, None if unknown."""
    fidelity: Mapping[str, Any] | None = None
    """Fidelity of the value, None if the study has none."""
    values: Mapping[str, float | None] = field(default_factory=dict)
    """With several objectives, the value of each, None if it was not measured; ``value`` is the first that was."""


@dataclass(frozen=True)
class Table:
    """Content of a file: its observations, and the reason why each other row is left out."""

    rows: list[ImportedRow]
    kept_out: list[str]


def read_rows(study: Study, path: Path, ignore: bool = False) -> Table:
    """Read observations from a CSV file with a header: a column for each parameter, ``value``, ``noise`` if known.

    Raises
    ------
    StudyError
        If the file is not such a table, or has unknown columns, unless these are ignored.
    """
    header, lines = _lines(path)
    _check_columns(study, path, header, ignore)
    rows, kept_out = [], []
    for number, line in lines:
        try:
            rows.append(_row(study, dict(zip(header, line, strict=True))))
        except ValueError as error:
            kept_out.append(f"line {number}: {error}")
    return Table(rows, kept_out)


def _lines(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the other lines with their numbers."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            found = [(reader.line_num, [unguarded(cell.strip()) for cell in row]) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(found) < 2:
        raise StudyError(f"{path} must have a header and at least one row, got {len(found)} lines")
    (_, header), *lines = found
    for number, line in lines:
        if len(line) != len(header):
            raise StudyError(f"{path}: line {number} must have {len(header)} fields as the header has, got {len(line)}")
    return header, lines


def _check_columns(study: Study, path: Path, header: Sequence[str], ignore: bool) -> None:
    parameters = {parameter_column(name): name for name in study.names}
    constraints = [constraint_column(name) for name in study.constraints]
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise StudyError(f"{path}: column {twice!r} comes twice: rename one of them")
    values = list(value_columns(study).values())
    for column in (*values, *constraints, *(column for column, name in parameters.items() if _is_needed(study, name))):
        if column not in header:
            raise StudyError(f"{path}: column {column!r} is missing, it has {', '.join(header)}")
    known = {*OWN, *values, *parameters, *constraints, *fidelity_columns(study)}
    known -= {"value"} if study.objectives else set()
    unknown = [column for column in header if column not in known]
    if unknown and not ignore:
        shown = ", ".join(map(repr, unknown))
        listed = f"column {shown} is" if len(unknown) == 1 else f"columns {shown} are"
        raise StudyError(
            f"{path}: {listed} of no parameter: these are {', '.join(study.names)}. Rename it, or add "
            "--ignore to leave it out"
        )


def _is_needed(study: Study, name: str) -> bool:
    conditional = isinstance(study.space, Mapping) and study.space[name].when
    return name not in study.defaults and not conditional


def _row(study: Study, cells: Mapping[str, str]) -> ImportedRow:
    if cells.get("state", "done") not in ("done", "stopped"):
        raise ValueError(f"its trial is {cells['state']}, not done")
    given = {name: cells.get(parameter_column(name), "") for name in study.names}
    params = {name: _value(study, name, cell) for name, cell in given.items() if cell}
    columns = value_columns(study) if study.objectives else {}
    values = {name: _number(column, cells[column]) if cells[column] else None for name, column in columns.items()}
    if values and first_measured(values) is None:
        raise ValueError(f"it must have a value of an objective: {', '.join(columns.values())} are empty")
    value = first_measured(values) if values else _number("value", cells["value"])
    for name, each in (values or {"": value}).items():
        result = study.objectives[name].result if values else study.result
        if each is not None and each < 0 and isinstance(result, FROM_ZERO):
            raise ValueError(f"{columns.get(name, 'value')} is {each:g}, and times and memory are at least 0")
    return ImportedRow(
        _checked(study, params),
        value,
        checked_noise(_number("noise", cells["noise"])) if cells.get("noise") else None,
        {name: _number(column, cells[column]) for name in study.constraints if (column := constraint_column(name))},
        origin(cells["trial"], cells.get("started", "")) if cells.get("trial") else "",
        bound=_bound(cells.get("bound", "")),
        fidelity=_fidelity(study, cells),
        values=values,
    )


def _bound(cell: str) -> Bound | None:
    for bound in get_args(Bound):
        if cell == bound:
            return cast(Bound, bound)
    if cell:
        raise ValueError(f"bound must be 'at_least', 'at_most' or empty, got {cell!r}")
    return None


def _fidelity(study: Study, cells: Mapping[str, str]) -> dict[str, Any] | None:
    """Fidelity of a row: the highest if it has none."""
    if study.levels is None:
        return None
    name, cell = study.levels.name, cells.get(fidelity_columns(study)[0])
    return study.levels.checked({name: _read_number(study.levels.parameter, cell)} if cell else study.levels.highest)


def origin(trial: object, started: str) -> str:
    """Key of a row of an export."""
    return f"{trial} {started}"


def _checked(study: Study, params: Params) -> Params:
    try:
        return dict(study.settings.checked(study.completed(params, study.defaults)))
    except ValueError as error:
        raise ValueError(str(error).partition(": widen")[0]) from None


def _number(column: str, cell: str) -> float:
    try:
        return usable(cell)
    except NoResult as error:
        raise ValueError(str(error).replace("the result", column, 1)) from None


def _value(study: Study, name: str, cell: str) -> Any:
    """Value of a parameter in a cell, as the parameter has it."""
    if not isinstance(study.space, Mapping):
        return next((row[name] for row in study.space if _is_same(row[name], cell)), cell)
    parameter = study.space[name]
    if isinstance(parameter, Choice):
        return next((option for option in parameter.options if _is_same(option, cell)), cell)
    return _read_number(parameter, cell)


def _read_number(parameter: Float | Int, cell: str) -> Any:
    for kind in (int, float) if isinstance(parameter, Int) else (float,):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _is_same(value: Any, cell: str) -> bool:
    """Return True if a cell stands for a value, as the command gets it or as another program writes it."""
    if isinstance(value, str):
        return value == cell
    if isinstance(value, bool):
        return text(value) == cell.lower()
    try:
        return float(cell) == float(value)
    except (ValueError, OverflowError):
        return False
