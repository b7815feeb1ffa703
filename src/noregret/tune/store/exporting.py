"""All trials of a study as a table, for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from noregret.extra import extra
from noregret.optimizer import GIVEN
from noregret.tune.store.records import Record
from noregret.tune.study.importing import constraint_column, fidelity_columns, guarded, parameter_column, value_columns
from noregret.tune.study.study import Study, StudyError

Format = Literal["csv", "json", "parquet"]


def format_of(path: Path) -> Format:
    """Format of a file, by its name."""
    for known in get_args(Format):
        if path.suffix.lower() == f".{known}":
            return known  # type: ignore[no-any-return]
    raise StudyError(f"--out {path}: its name must end in .csv, .json or .parquet, which says what it will be")


def exported(study: Study, records: Sequence[Record], form: Format) -> bytes:
    """All trials in one of the formats; times are those of the clocks where the commands ran."""
    rows = [row(study, record) for record in records]
    if form == "parquet":
        return _parquet(study, columns(study, records), rows)
    if form == "json":
        return (json.dumps(rows, indent=1) + "\n").encode()
    header = columns(study, records)
    lines: list[list[Any]] = [header, *([found.get(name) for name in header] for found in rows)]
    return "".join(f"{','.join(map(_cell, cells))}\n" for cells in lines).encode()


def _cell(value: Any) -> str:
    """A cell of a CSV file: `csv.writer` leaves a carriage return without quotes where lines end in a newline."""
    found = "" if value is None else str(guarded(value))
    if not any(sign in found for sign in ',"\r\n'):
        return found
    return '"' + found.replace('"', '""') + '"'


def columns(study: Study, records: Sequence[Record]) -> list[str]:
    """The names of the columns; ``bound`` is one of them if some values are bounds."""
    parameters = [parameter_column(name) for name in study.names]
    constraints = [constraint_column(name) for name in study.constraints]
    return [
        "trial",
        "state",
        *value_columns(study).values(),
        *noise_columns(study),
        *parameters,
        *context_columns(study),
        *fidelity_columns(study),
        *constraints,
        "started",
        "seconds",
        *(["bound"] if any(record.bound for record in records) else []),
    ]


def noise_columns(study: Study) -> list[str]:
    """Name of the column of the noise, none with several objectives, whose noise is estimated."""
    return [] if study.objectives else ["noise"]


def context_columns(study: Study) -> list[str]:
    """Names of the columns of the context, as in frames."""
    return [GIVEN + name for name in study.context or ()]


def row(study: Study, record: Record) -> dict[str, Any]:
    """One trial as a row; absent values are None."""
    params = {parameter_column(name): record.params.get(name) for name in study.names}
    constraints = {constraint_column(name): record.constraints.get(name) for name in study.constraints}
    return {
        "trial": record.number,
        "state": "stopped" if record.is_stopped else record.state,
        **{column: record.values.get(name) if name else record.value for name, column in value_columns(study).items()},
        **dict.fromkeys(noise_columns(study), record.noise),
        **params,
        **{GIVEN + name: (record.context or {}).get(name) for name in study.context or ()},
        **dict(zip(fidelity_columns(study), (record.fidelity or {}).values(), strict=False)),
        **constraints,
        "started": record.started_text or None,
        "seconds": record.seconds if record.finished and not record.imported else None,
        **({"bound": record.bound} if record.bound else {}),
    }


def _parquet(study: Study, names: list[str], rows: list[dict[str, Any]]) -> bytes:
    frames = extra("pandas", "frames")
    extra("pyarrow", "frames")
    frame = frames.DataFrame(rows, columns=names)
    for name in (
        *value_columns(study).values(),
        *noise_columns(study),
        "seconds",
        *(constraint_column(name) for name in study.constraints),
    ):
        frame[name] = frame[name].astype(float)
    frame["started"] = frames.to_datetime(frame["started"])
    mixed = [name for name in frame if len({type(found) for found in frame[name].dropna()}) > 1]
    for name in mixed:  # a column of a file has one type
        frame[name] = frame[name].map(str, na_action="ignore")
    return bytes(frame.to_parquet(index=False))
