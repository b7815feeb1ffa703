"""Files that 1.0 has saved are read: the same observations, estimates and questions."""

import copy
import json

import pytest
from tests.optimizer.saved_1_0.make import HERE, estimated, listed, observed

from noregret import Optimizer
from noregret.optimizer.saving import FORMAT

KINDS = sorted(path.stem for path in HERE.glob("*.json"))


def near(expected):
    """The same structure with numbers that may differ by rounding."""
    if isinstance(expected, dict):
        return {name: near(each) for name, each in expected.items()}
    if isinstance(expected, list):
        return [near(each) for each in expected]
    return pytest.approx(expected, rel=1e-6, abs=1e-9) if isinstance(expected, float) else expected


def check(opt, expected):
    """Raise AssertionError unless an optimizer says and asks what is expected."""
    context = expected["context"]
    found = json.loads(json.dumps(observed(opt)))
    assert found == expected["answers"]
    assert [[its.id, its.token, listed(its.params)] for its in opt.pending] == expected["pending"]
    assert opt._spent == expected["spent"]
    weights = {"weights": {"time": 1, "accuracy": 2}} if opt.goals else {}
    assert estimated(opt.best(context, **weights)) == near(expected["best"])
    asked = [listed(opt.ask(context=context).params) for _ in expected["asked"]]
    if not opt.goals:  # their candidates are drawn together since, so that questions differ a little
        assert asked == near(expected["asked"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_1_0_goes_on_as_it_would_have(kind, tmp_path):
    document, old, new = json.loads((HERE / f"{kind}.json").read_text()), tmp_path / "old.json", tmp_path / "new.json"
    assert document["saved"]["format"] == 1
    old.write_text(json.dumps(document["saved"]))
    opt = Optimizer.load(old)
    opt.save(new)
    assert json.loads(new.read_text())["format"] == FORMAT == 2
    numbers = [its.number for its in opt.trials]
    assert len(numbers) == len(set(numbers))
    assert [repr(its) for its in Optimizer.load(new).trials] == [repr(its) for its in opt.trials]
    for each in (copy.copy(opt), Optimizer.load(new)):
        check(each, document["expected"])


def test_values_of_1_0_that_were_too_large_are_taken_for_the_largest(tmp_path):
    saved, path = json.loads((HERE / "goals.json").read_text())["saved"], tmp_path / "old.json"
    answer = next(its for its in saved["answers"] if None not in (its["values"] or [None]))
    answer["values"] = [-1e308, 1e308]
    path.write_text(json.dumps(saved))
    values = [its.values for its in Optimizer.load(path).answers]
    assert {"time": -1e300, "accuracy": 1e300} in values
