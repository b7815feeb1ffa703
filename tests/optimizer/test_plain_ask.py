"""A plain problem pays for no mechanism that it does not use."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import noregret
from noregret import Float, Optimizer

MOST_FILES = 25
"""Files of the package that a warm ``ask`` of a plain problem may enter. Lower it when a change makes them fewer."""

SAFE = {"optimizer/model/safety.py", "optimizer/questions/grow.py"}
"""Files about safe questions, which constraints alone do not need."""

UNUSED = {
    "optimizer/model/censoring.py",
    "optimizer/model/constraints.py",
    "optimizer/model/costs.py",
    "optimizer/model/drift.py",
    "optimizer/model/objectives.py",
    "optimizer/questions/objectives.py",
    "optimizer/space/require.py",
    *SAFE,
}
"""Files about features that a plain problem does not have: bounds, constraints, costs, drift, several objectives,
conditions, safe questions."""


def entered(call):
    """How often a function of each file of the package is called meanwhile."""
    package, files = Path(noregret.__file__).parent, Counter()

    def count(frame, event, _):
        if event == "call":
            files[frame.f_code.co_filename] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(before)
    paths = {Path(name): count for name, count in files.items()}
    return Counter({path.relative_to(package).as_posix(): n for path, n in paths.items() if package in path.parents})


def warm(answers=30, cost=None, **options):
    """An optimizer of four parameters after this number of answers."""
    opt, rng = Optimizer({name: Float(0, 1) for name in "abcd"}, rng=0, **options), np.random.default_rng(0)
    for _ in range(answers):
        trial = opt.ask()
        value = sum((x - 0.4) ** 2 for x in trial.params.values()) + 0.05 * rng.standard_normal()
        numbers = dict.fromkeys(options.get("constraints", ()), trial.params["a"])
        opt.tell(trial, value, constraints=numbers or None, cost=cost)
    return opt


@pytest.mark.slow
def test_a_plain_question_enters_few_files_and_none_of_unused_mechanisms():
    opt = warm()
    files = entered(opt.ask)
    assert "optimizer/optimizer.py" in files, "it was watched"
    assert not UNUSED & set(files)
    assert len(files) <= MOST_FILES, sorted(files)


@pytest.mark.slow
def test_constraints_and_drift_are_seen_where_they_are_used():
    """Otherwise the test above could not fail."""
    limited = {"constraints": {"c": ("<=", 0.5)}}
    entered_files = set(entered(warm(13, **limited).ask))
    assert "optimizer/model/constraints.py" in entered_files
    assert not SAFE & entered_files
    assert set(entered(warm(6, **limited, baseline=dict.fromkeys("abcd", 0.2), safe=0.9).ask)) >= SAFE
    assert "optimizer/model/drift.py" in entered(warm(13, drift=20.0).ask)
    assert "optimizer/space/require.py" in entered(warm(13, require=["a <= b"]).ask)
    assert "optimizer/model/costs.py" in entered(warm(13, cost=2.0).ask)
