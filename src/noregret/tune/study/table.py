"""Tables of candidates, from CSV files."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from noregret.optimizer.spaces.scales import EXACT
from noregret.tune.study.study import Params

WORD = r"[A-Za-z_]\w*"
"""What a parameter may be called."""


def read_table(path: Path) -> list[Params]:
    """The rows of a CSV file with a header; columns of numbers become numbers. ValueError if it is no such table."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [row for row in csv.reader(file, strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(lines) < 2:
        raise ValueError(f"{path} must have a header and at least one row, got {len(lines)} lines")
    header, *rows = lines
    _check(path, header, rows)
    columns = [_typed([row[i] for row in rows]) for i in range(len(header))]
    return [dict(zip(header, values, strict=True)) for values in zip(*columns, strict=True)]


def _check(path: Path, header: list[str], rows: list[list[str]]) -> None:
    bad = [name for name in header if not re.fullmatch(WORD, name) or header.count(name) > 1]
    if bad:
        raise ValueError(f"{path}: names of columns must be different words such as cache_size, got {bad[0]!r}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(f"{path}: row {number} must have {len(header)} fields, got {len(row)}")
        if not all(cell.strip() and "\0" not in cell for cell in row):
            raise ValueError(f"{path}: row {number} has an empty field: fill it or drop the row")


def _typed(column: list[str]) -> list[Any]:
    for kind in (int, float):
        try:
            values = [kind(cell) for cell in column]
        except ValueError:
            continue
        if not any("_" in cell for cell in column) and all(abs(value) <= EXACT for value in values):
            return values
    return list(column)
