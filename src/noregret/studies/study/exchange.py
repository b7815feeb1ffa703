"""Trials from elsewhere and for elsewhere: tables of the same columns, and storages of Optuna.

A storage of Optuna is read and written by Optuna's public functions: exported for its dashboard, and imported from it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast, get_args

from noregret.extra import extra
from noregret.optimizer import Choice, Float, Int, Reading, Trial, TrialRows, as_frame, joined
from noregret.studies.study.results import FROM_ZERO, NoResult, usable
from noregret.studies.study.study import Params, Study, StudyError, text

Format = Literal["csv", "json", "parquet"]
RESERVED = ("trial", "state", "value", "noise", "started", "seconds", "bound")
"""Columns whose name a parameter does not have: its own is ``params.NAME``."""
TEXTS = ("state", "failure", "started", "pair")
"""Columns of text; ``bound`` and its kin too."""

OPTUNA_STATES = {"done": "COMPLETE", "failed": "FAIL", "withdrawn": "FAIL", "running": "RUNNING", "waiting": "WAITING"}
"""Optuna's name for each state. A trial that lacks an objective has failed: Optuna has no missing values."""
OPTUNA_ATTRIBUTES = "readings", "context", "fidelity", "block", "failure", "seconds"
"""Parts of a trial that become attributes."""

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


def table_of(study: Study) -> TrialRows:
    """Rows of the trials of a study."""
    return TrialRows(study.names, study.measures, list(study.context or ()), list(study.fidelity or ()), RESERVED)


def columns(study: Study, trials: Iterable[Trial]) -> list[str]:
    """Columns of an export: start and seconds are always among them."""
    table = table_of(study)
    return table.columns([row for trial in trials for row in table.rows(trial)], always=("started", "seconds"))


def format_of(path: Path) -> Format:
    """Format of a file, by its name."""
    for known in get_args(Format):
        if path.suffix.lower() == f".{known}":
            return cast(Format, known)
    raise StudyError(f"--out {path}: its name must end in .csv, .json or .parquet, which says what it will be")


def exported(study: Study, trials: Sequence[Trial], form: Format) -> bytes:
    """All trials in one of the formats; times are those of the clocks where the commands ran."""
    table, header = table_of(study), columns(study, trials)
    if form == "parquet":
        return _parquet(table, trials)
    if form == "json":
        rows = [dict.fromkeys(header) | table.row(trial) | study.measures.described(trial) for trial in trials]
        return (json.dumps(rows, indent=1) + "\n").encode()
    written = [row for trial in trials for row in table.rows(trial)]
    lines: list[list[Any]] = [header, *([row.get(name) for name in header] for row in written)]
    return "".join(f"{','.join(map(_cell, cells))}\n" for cells in lines).encode()


def _cell(value: Any) -> str:
    """A cell of a CSV file: `csv.writer` leaves a carriage return without quotes where lines end in a newline."""
    shown = "" if value is None else str(guarded(value))
    if not any(sign in shown for sign in ',"\r\n'):
        return shown
    return '"' + shown.replace('"', '""') + '"'


def _parquet(table: TrialRows, trials: Sequence[Trial]) -> bytes:
    frame, frames = as_frame(table, trials, always=("started", "seconds")), extra("pandas", "frames")
    extra("pyarrow", "frames")
    frame["started"] = frames.to_datetime(frame["started"])
    for name in [name for name in frame if len({type(cell) for cell in frame[name].dropna()}) > 1]:
        frame[name] = frame[name].map(str, na_action="ignore")  # a column of a file has one type
    return bytes(frame.to_parquet(index=False))


@dataclass(frozen=True)
class Imported:
    """Content of a file: its observations with their origins, and the reason why each other row is left out."""

    trials: list[tuple[Trial, str]]
    kept_out: list[str]


def read_rows(study: Study, path: Path, ignore: bool = False) -> Imported:
    """Read observations from a CSV file with a header: a column for each parameter, ``value``, ``noise`` if known.

    Raises
    ------
    StudyError
        If the file is not such a table, or has unknown columns, unless these are ignored.
    """
    header, lines = _lines(path)
    table, pieces, kept_out = table_of(study), [], []
    _check_columns(study, table, path, header, ignore)
    for number, line in lines:
        cells = {column: cell for column, cell in zip(header, line, strict=True) if cell}
        try:
            typed = {column: _typed(study, table, column, cell, header) for column, cell in cells.items()}
            pieces.append((number, table.piece(typed, lambda given: _checked(study, given))))
        except ValueError as error:
            kept_out.append(f"line {number}: {error}")
    trials = []
    for number, trial in joined(pieces):
        try:
            trials.append(_usable(study, trial))
        except ValueError as error:
            kept_out.append(f"line {number}: {error}")
    return Imported(trials, kept_out)


def _lines(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the other lines with their numbers."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            rows = [(reader.line_num, [unguarded(cell.strip()) for cell in row]) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(rows) < 2:
        raise StudyError(f"{path} must have a header and at least one row, got {len(rows)} lines")
    (_, header), *lines = rows
    for number, line in lines:
        if len(line) != len(header):
            raise StudyError(f"{path}: line {number} must have {len(header)} fields as the header has, got {len(line)}")
    return header, lines


def _check_columns(study: Study, table: TrialRows, path: Path, header: Sequence[str], ignore: bool) -> None:
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise StudyError(f"{path}: column {twice!r} comes twice: rename one of them")
    needed = [table.parameter(name) for name in study.names if _is_needed(study, name)]
    measures = [*study.measures.objectives, *study.measures.constraints]
    for column in (*map(table.value, measures), *needed):
        if column not in header and column.removeprefix("params.") not in header:
            raise StudyError(f"{path}: column {column!r} is missing, it has {', '.join(header)}")
    unknown = table.unknown(header)
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


def _typed(study: Study, table: TrialRows, column: str, cell: str, header: Sequence[str]) -> Any:
    """A cell as the column has it: a value of a parameter, a number, or text."""
    name = column.removeprefix("params.")
    is_own = table.parameter(name) == column or table.parameter(name) not in header
    if name in study.names and is_own and (column == name or column.startswith("params.")):
        return _value(study, name, cell)
    kind, _, name = column.partition(".")
    given = {"fidelity": study.fidelity, "context": study.context}.get(kind) or {}
    if name in given:
        return _read(given[name], cell)
    if kind == "block" and cell.isdecimal() and str(int(cell)) == cell:
        return int(cell)
    if column in TEXTS or column.removeprefix("trial.") in TEXTS or kind in ("bound", "block"):
        return cell
    return cell if column == "trial" or column in table.unknown([column]) else _number(column, cell)


def _usable(study: Study, trial: Trial) -> tuple[Trial, str]:
    """Trial and its origin; ValueError if it has no outcome, or values that its results cannot have."""
    if trial.state not in ("done", "failed", "withdrawn"):
        raise ValueError(f"its trial is {trial.state}, not done")
    for name, result in study.results_by_measure.items():
        value = trial.value(name)
        if value is not None and value < 0 and isinstance(result, FROM_ZERO):
            column = table_of(study).value(name)
            raise ValueError(f"{column} is {value:g}, and times and memory are at least 0")
    if study.levels is not None and trial.state == "done":
        fidelity = study.levels.highest if trial.fidelity is None else study.levels.checked(trial.fidelity)
        trial = replace(trial, fidelity=fidelity)
    return trial, origin(trial.number, trial.started) if trial.number >= 0 else ""


def origin(trial: int, started: datetime | None) -> str:
    """Key of a row of an export: the trial and its start separate equal observations."""
    return f"{trial} {started.isoformat(timespec='milliseconds') if started else ''}"


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
    return _read(study.space[name], cell)


def _read(parameter: Float | Int | Choice, cell: str) -> Any:
    """Value of a parameter in a cell, the cell itself if it is none."""
    if isinstance(parameter, Choice):
        return next((option for option in parameter.options if _is_same(option, cell)), cell)
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


def write_storage(study: Study, trials: Iterable[Trial], path: Path) -> None:
    """Write trials into a new SQLite file, as an Optuna study of the same name; StudyError if there is such a file."""
    optuna = extra("optuna", "optuna")
    if path.exists():
        raise StudyError(f"--optuna {path}: exists: choose another name, or move it away")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    goals, forms = list(study.goals.values()) or [study.goal], _distributions(study)
    frozen = [_frozen(optuna, study, trial, forms) for trial in trials]
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    theirs = optuna.create_study(storage=f"sqlite:///{temporary}", study_name=study.name, directions=goals)
    theirs.add_trials(frozen)
    temporary.rename(path)


def _distributions(study: Study) -> dict[str, Any]:
    """Distribution of each parameter, or of each column of a table."""
    from noregret.integrations.structure import column_distribution, distribution

    if isinstance(study.space, Mapping):
        return {name: distribution(parameter) for name, parameter in study.space.items()}
    return {name: column_distribution([row[name] for row in study.space]) for name in study.names}


def _frozen(optuna: Any, study: Study, trial: Trial, forms: Mapping[str, Any]) -> Any:
    values = list(study.measures.values(trial).values())
    state = OPTUNA_STATES[trial.state] if trial.state != "done" or None not in values else "FAIL"
    described = study.measures.described(trial)
    began = trial.started or trial.ended or datetime.now()  # Optuna needs a time, also of rows that came without
    return optuna.trial.FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=optuna.trial.TrialState[state],
        value=None,
        values=values if state == "COMPLETE" else None,
        datetime_start=None if state == "WAITING" else began,
        datetime_complete=(trial.ended or began) if trial.is_finished else None,
        params=dict(trial.params),
        distributions={name: forms[name] for name in trial.params},
        user_attrs={name: described[name] for name in OPTUNA_ATTRIBUTES if described.get(name) not in (None, "", {})},
        system_attrs={},
        intermediate_values={int(report.step): report.value for report in trial.reports() if report.step is not None},
    )


def storage_study(where: str, name: str | None = None) -> Any:
    """An Optuna study in a file or at a URL; the only one if there is no name. StudyError if there is none."""
    optuna = extra("optuna", "optuna")
    if "://" not in where and not Path(where).is_file():
        raise StudyError(f"{where} does not exist")
    url = where if "://" in where else f"sqlite:///{where}"
    try:
        names = optuna.get_all_study_names(url)
        if name is None and len(names) != 1:
            raise StudyError(f"{where} has {len(names)} studies: say --study NAME, one of {', '.join(names)}")
        return optuna.load_study(study_name=name or names[0], storage=url)
    except KeyError:
        raise StudyError(f"{where} has no study {name!r}: it has {', '.join(names)}") from None
    except StudyError:
        raise
    except Exception as error:  # of SQLAlchemy and drivers, which are no part of this package
        reason = str(error).partition("\n")[0]
        raise StudyError(f"{where} cannot be read as a storage of Optuna: {reason}") from error


def read_storage(study: Study, where: str, name: str | None = None) -> Imported:
    """Trials of an Optuna study in a file or at a URL; its only study if there is no name.

    Raises
    ------
    StudyError
        If there is no such storage or study, or its goals are others.
    """
    theirs = storage_study(where, name)
    goals = [direction.name.lower() for direction in theirs.directions]
    if goals != (list(study.goals.values()) or [study.goal]):
        raise StudyError(
            f"{where}: its study {theirs.study_name!r} has the goals {', '.join(goals)}, not those of {study.path}"
        )
    trials, kept_out = [], []
    for trial in theirs.get_trials(deepcopy=False):
        try:
            trials.append((_of_optuna(study, trial), f"optuna {theirs.study_name} {trial.number}"))
        except ValueError as error:
            kept_out.append(f"trial {trial.number}: {error}")
    return Imported(trials, kept_out)


def _of_optuna(study: Study, theirs: Any) -> Trial:
    """Trial of Optuna as ours; ValueError if it has no outcome, or its params are no setting of the study."""
    if theirs.state.name not in ("COMPLETE", "FAIL"):
        raise ValueError(f"is {theirs.state.name.lower()}, not complete")
    params = {name: value for name, value in theirs.params.items() if name in study.names}
    checked = dict(study.settings.checked(study.completed(params, study.defaults)))
    values = zip(study.measures.objectives, theirs.values or (), strict=False)
    return Trial(
        theirs.number,
        checked,
        state="failed" if theirs.state.name == "FAIL" else "done",
        readings={name: (Reading(value),) for name, value in values},
        failure="failed in Optuna" if theirs.state.name == "FAIL" else "",
        started=theirs.datetime_start,
        seconds=theirs.duration.total_seconds() if theirs.duration else None,
    )
