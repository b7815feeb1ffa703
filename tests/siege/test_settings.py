"""More of `tests.studies.test_settings`, nightly."""

import pytest
from tests.studies.test_settings import LIMIT, said, written


def test_limits_that_nothing_meets_are_said_to_be_met_by_nothing(tmp_path, capsys):
    path = written(tmp_path, LIMIT.replace("450", "5"))
    expected = "no measured setting is likely to meet all constraints: this one is the most likely"
    assert expected in said(capsys, "tune", path).out
