"""Exports as CSV: formulas of spreadsheets are quoted, and what `import` reads is what was there."""

import csv
import io
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.studies.made import record

from noregret.optimizer import Choice, Float
from noregret.studies.study.exchange import exported, guarded, read_rows, unguarded
from noregret.studies.study.study import Study

CELLS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=9)
FORMULA = st.builds(
    str.__add__, st.sampled_from(["=", "+", "-", "@", "\t", "\r", "'=", "''-", "'", "-3", "+1+"]), CELLS
)


@given(st.lists(CELLS | FORMULA, min_size=1, max_size=6), st.lists(st.floats(-1e9, 1e9), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cells_that_spreadsheets_compute_are_quoted_and_read_back(tmp_path, options, values):
    options = list(dict.fromkeys(option.strip() for option in options if option.strip()))  # files have no blanks there
    study = Study(tmp_path / "s.toml", ("true",), space={"kind": Choice([*options, "plain"]), "x": Float(-9, 9)})
    params = [{"kind": kind, "x": -3.0} for kind in [*options, "plain"]]
    records = [record(i, its, "done", values[i % 6]) for i, its in enumerate(params)]
    text = exported(study, records, "csv").decode()
    for line in csv.reader(io.StringIO(text, newline="")):
        for cell in line:
            assert cell[:1] not in tuple("=+-@\t\r\n") or is_number(cell)
    (tmp_path / "past.csv").write_bytes(text.encode())
    rows = read_rows(study, tmp_path / "past.csv").trials
    assert [(row.params, row.value()) for row, _ in rows] == [(its, values[i % 6]) for i, its in enumerate(params)]


def is_number(cell):
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''@x"])
def test_formulas_are_quoted_once(cell):
    assert guarded(cell) == f"'{cell}"
    assert unguarded(guarded(cell)) == cell


@pytest.mark.parametrize("cell", ["-3", "-3.5e-7", "+2", "a=b", "'a'", "", "5", "it's", -3, None, True])
def test_numbers_and_other_text_are_left_as_they_are(cell):
    assert guarded(cell) is cell
    assert not isinstance(cell, str) or unguarded(cell) == cell
