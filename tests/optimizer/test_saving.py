"""Saved optimizers ask the same questions after loading."""

import inspect
import json
import random
from contextlib import suppress

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer, OptimizerConfig
from noregret.optimizer import Improve

SPACES = {
    "plain": {"space": {"x": Float(0, 1), "y": Float(1e-3, 10, log=True)}},
    "conditions": {
        "space": {
            "mode": Choice(["a", "b", ("c", 1)]),
            "depth": Int(1, 9, when={"mode": ["a", "b"]}),
            "x": Float(0, 1, step=0.1),
        },
        "baseline": {"mode": "a", "depth": 3, "x": 0.5},
    },
    "constraints": {"space": {"x": Float(0, 1), "y": Float(0, 1)}, "constraints": {"memory": ("<=", 0.5)}},
    "contexts": {
        "space": {"x": Float(0, 1)},
        "context": {"load": Float(0, 1), "region": Choice(["eu", "us"])},
        "baseline": {"x": 0.2},
    },
    "drift": {"space": {"x": Float(0, 1)}, "drift": "auto", "goal": "maximize"},
    "table": {"space": [{"cores": c, "size": s} for c in (2, 4, 8) for s in ("small", "large")] * 2},
    "array": {"space": np.random.default_rng(0).random((60, 2)), "baseline": None},
}


def asked(opt, rng):
    given = {"load": float(rng.random()), "region": "eu"} if opt.context else None
    return opt.ask(context=given)


def tell(opt, trial, number, rng):
    """Tell a value that depends on the params, and now and then a failure."""
    if number % 11 == 5:
        return opt.fail(trial)
    params = trial.params.values() if isinstance(trial.params, dict) else trial.params
    value = sum(v if isinstance(v, float) else len(str(v)) for v in params) + 0.1 * rng.standard_normal()
    return opt.tell(trial, value, constraints={"memory": float(rng.random())} if opt.constraints else None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPACES)
def test_a_loaded_optimizer_asks_the_same_questions(kind, tmp_path):
    """Saved before the first fit, which the next answers bring."""
    check_loaded(kind, 8, tmp_path)


def check_loaded(kind, evaluations, tmp_path):
    """Raise AssertionError unless an optimizer that was saved after these evaluations continues as it would have."""
    opt, rng = Optimizer(rng=5, **SPACES[kind]), np.random.default_rng(1)
    for number in range(evaluations):
        tell(opt, asked(opt, rng), number, rng)
    out = [asked(opt, rng), asked(opt, rng)]
    opt.save(tmp_path / "study.json")
    loaded = Optimizer.load(tmp_path / "study.json")
    assert [repr(trial) for trial in loaded.pending] == [repr(trial) for trial in out]
    assert str(loaded.answers) == str(opt.answers)
    for each in (opt, loaded):
        tell(each, each.pending[1], 0, np.random.default_rng(2))
    for number in range(3):
        world = [np.random.default_rng(number) for _ in range(2)]
        trials = [asked(each, its) for each, its in zip((opt, loaded), world, strict=True)]
        assert repr(trials[0]) == repr(trials[1])
        for each, trial, its in zip((opt, loaded), trials, world, strict=True):
            tell(each, trial, number, its)


@pytest.mark.slow
def test_what_drift_has_forgotten_stays_forgotten(tmp_path):
    opt, rng = Optimizer({"x": Float(0, 1)}, drift=50, rng=0), np.random.default_rng(0)
    opt.tell_many([{"x": x, "value": x} for x in rng.random(2100).tolist()])
    opt.save(tmp_path / "study.json")
    loaded = Optimizer.load(tmp_path / "study.json")
    assert len(loaded.answers) == len(opt.answers) == 1100
    assert loaded.ask().params == opt.ask().params


def test_a_trial_of_before_can_be_told_after_loading(tmp_path):
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    first, second = opt.ask(2)
    opt.fail(first)
    opt.save(tmp_path / "study.json")
    loaded = Optimizer.load(tmp_path / "study.json")
    loaded.tell(second, 1.0)
    loaded.tell(first, 2.0)
    assert [answer.value for answer in loaded.answers] == [None, 1.0, 2.0]
    with pytest.raises(ValueError, match="has a value already"):
        loaded.tell(second, 1.0)


def test_every_argument_is_saved(tmp_path):
    """A new argument of Optimizer is an attribute of the same name that is JSON, or has a form of its own."""
    Optimizer({"x": Float(0, 1)}).save(tmp_path / "study.json")
    content = json.loads((tmp_path / "study.json").read_text())
    assert set(inspect.signature(Optimizer).parameters) - {"rng"} <= {*content, *content["options"]}


def test_a_configuration_is_needed_again_unless_it_is_numbers(tmp_path):
    path, numbers, parts = (
        tmp_path / "study.json",
        OptimizerConfig(caution=1.0),
        OptimizerConfig(questions=(Improve(),)),
    )
    Optimizer({"x": Float(0, 1)}, calibration=numbers).save(path)
    assert Optimizer.load(path).calibration == Optimizer.load(path, calibration=numbers).calibration == numbers
    with pytest.raises(ValueError, match=r"was saved with OptimizerConfig\(caution=1.0\).*calibration="):
        Optimizer.load(path, calibration=parts)
    Optimizer({"x": Float(0, 1)}, calibration=parts).save(path)
    assert Optimizer.load(path, calibration=parts).calibration == parts
    with pytest.raises(ValueError, match=r"was saved with OptimizerConfig\(questions=.*got none: pass the same"):
        Optimizer.load(path)


def test_objects_as_options_are_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "study.json"
    Optimizer({"x": Float(0, 1)}).save(path)
    with pytest.raises(ValueError, match="put a name in its place"):
        Optimizer({"f": Choice([abs, max])}).save(path)
    assert list(Optimizer.load(path).space.names) == ["x"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"saved": "a novel"}', "\x80", '{"saved": "noregret.Optimizer"}'])
def test_other_files_are_refused(text, tmp_path):
    path = tmp_path / "study.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"study\.json is damaged or not a saved Optimizer"):
        Optimizer.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 99}, "format 99.*upgrade"),
        ({"answers": [1]}, "damaged"),
        ({"options": {"goal": "win"}}, "damaged.*goal must be"),
    ],
)
def test_damaged_and_newer_files_are_refused(change, words, tmp_path):
    path = tmp_path / "study.json"
    Optimizer({"x": Float(0, 1)}).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=words):
        Optimizer.load(path)


def nested(depth):
    return "[" * depth + "1" + "]" * depth


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("spent", nested(100_000)),
        ("spent", nested(3000)),
        ("answers", f'[{{"where": 0, "value": {10**400}, "noise": null}}]'),
        ("answers", f'[{{"where": {2**63}, "value": 1.0, "noise": null}}]'),
        ("answers", '[{"where": 0, "value": 1e999, "noise": null}]'),
        ("answers", '[{"where": 0, "value": 1.0, "noise": null, "constraints": [1.0]}]'),
        ("answers", '[{"where": 7, "value": 1.0, "noise": null}]'),
        ("forgotten", f"{10**30}"),
        ("seed", '{"entropy": [[1], 2], "spawn_key": []}'),
    ],
)
def test_deep_and_huge_files_are_refused_in_one_line(key, text, tmp_path):
    path = tmp_path / "study.json"
    Optimizer({"x": Float(0, 1)}, rng=0).save(path)
    content = json.loads(path.read_text()) | {key: "HERE"}
    path.write_text(json.dumps(content).replace('"HERE"', text))
    with pytest.raises(ValueError, match=r"study\.json is damaged or not a saved Optimizer") as error:
        Optimizer.load(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600 + len(str(path))


HOSTILE = None, True, -1, 0, 10**6, 2**63, 10**400, 1e308, -1.5, "", "x", [], {}, [1, 2], {"a": 1}, {"()": [1]}, [[[1]]]
"""Replacements of parts of a file."""


def places(record, place=()):
    """All places in a record."""
    yield place
    parts = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, part in parts:
        yield from places(part, (*place, key))


def damaged(content, rng):
    """A copy with one or two parts replaced, left out or added."""
    copy = json.loads(json.dumps(content))
    for place in rng.choices(list(places(copy))[1:], k=rng.choice([1, 1, 2])):
        part = copy
        with suppress(LookupError, TypeError):
            for key in place[:-1]:
                part = part[key]
            how = rng.random()
            if how < 0.6:
                part[place[-1]] = rng.choice(HOSTILE)
            elif how < 0.8:
                del part[place[-1]]
            elif isinstance(part, list):
                part.append(part[place[-1]])
            else:
                part["extra"] = 1
    return copy


def used(opt):
    """Do with an optimizer what users do."""
    context = {"load": 0.5, "region": "eu"} if opt.context else None
    assert [str(opt.answers), str(opt.measurements), repr(opt), repr(opt.pending)]
    opt.ask(context=context)
    for trial in opt.pending[:3]:
        opt.tell(
            trial, {"a": 1.0, "b": 2.0} if opt.goals else 1.0, constraints=dict.fromkeys(opt.constraints, 0.1) or None
        )
    opt.fail(opt.ask(context=context))
    assert opt.front(context) if opt.goals else opt.best(context)


FUZZED = {kind: SPACES[kind] for kind in ("conditions", "constraints", "contexts", "table")} | {
    "fidelity": {"space": {"x": Float(0, 1)}, "fidelity": {"epochs": Int(1, 27, log=True)}},
    "goals": {"space": {"x": Float(0, 1)}, "goals": {"a": "minimize", "b": "maximize"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FUZZED)
def test_damaged_files_are_refused_by_name_or_work(kind, tmp_path):
    assert refused_of(kind, 12, tmp_path) > 6


def refused_of(kind, count, tmp_path):
    """How many of this number of damaged files are refused by name; AssertionError if another one does not work."""
    path, rng, results = tmp_path / "study.json", random.Random(kind), np.random.default_rng(0)
    opt = Optimizer(rng=0, **FUZZED[kind])
    for number in range(8):
        trial = asked(opt, results)
        if kind == "fidelity":
            opt.report(trial, {"epochs": 1}, 0.5)
        if kind == "goals":
            opt.tell(trial, {"a": float(number), "b": None if number == 2 else 1.0})
        elif number < 7:
            tell(opt, trial, number, results)
    opt.save(path)
    content, refused = json.loads(path.read_text()), 0
    used(Optimizer.load(path))
    for _ in range(count):
        path.write_text(json.dumps(damaged(content, rng)))
        try:
            loaded = Optimizer.load(path)
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"{path} ")  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
            continue
        used(loaded)
    return refused
