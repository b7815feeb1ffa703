"""The Optimizer and the algorithms choose the same as before, see `tests.golden.runs`."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.golden.runs import EXACT, HERE

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def now():
    """The runs as they are now."""
    command = [sys.executable, "-m", "tests.golden.runs", "--print"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **EXACT}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def stored(name):
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [f"{kind}: {run}" for kind in ("optimizer", "algorithms") for run in stored(kind)])
def test_a_run_is_as_it_was(now, name):
    kind, run = name.split(": ", 1)
    compare(run, now[kind][run], stored(kind)[run])


def compare(where, found, expected):
    """Raise AssertionError at the first place where two runs differ by more than 1e-9."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            compare(f"{where}, {key}", found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            compare(f"{where} {i}", one, other)
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), (
            f"{where} is {found!r}, was {expected!r}; if that is intended: python -m tests.golden.runs"
        )
    else:
        assert found == expected, where


def test_every_algorithm_has_a_run():
    from noregret.algorithms import NAMES

    assert list(stored("algorithms")) == list(NAMES)
