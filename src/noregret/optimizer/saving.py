"""Files of saved optimizers: the arguments, the seed and the history of an `Optimizer`, as JSON.

Everything else is computed from them. Nothing is unpickled or imported when a file is read.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any, get_args

import numpy as np

from noregret.extra import version
from noregret.files import write_atomically
from noregret.gp.seeds import child
from noregret.optimizer.config import OptimizerConfig
from noregret.optimizer.measures import LARGEST_VALUE, Constraint, Measures, clipped
from noregret.optimizer.model.history import Answer, Signed
from noregret.optimizer.space.contexts import Contexts
from noregret.optimizer.space.parameters import Choice, Float, Int
from noregret.optimizer.space.space import ParameterSpace, Space
from noregret.optimizer.space.table import CandidateTable
from noregret.optimizer.trial import State, Trial, dump, load

FORMAT = 2
"""Version of the format; a larger number is a later format, which this version cannot read."""
KIND = "noregret.Optimizer"
"""First entry of a file, which tells it from other JSON files."""
OTHERWISE = "space", "rng", "baseline", "calibration"
"""Arguments of an `Optimizer` with a form of their own; all others are attributes of it, and stored as they are."""
MOST_SAID = 300
"""Characters of a message about a damaged file. By taste."""
TUPLE = "()"
"""The one entry of an object that stands for a tuple; ``Float()`` is that of an object that stands for a Float."""
CLASSES: dict[str, Any] = {f"{kind.__name__}()": kind for kind in (Float, Int, Choice, Constraint)}


def write(path: str | os.PathLike[str], optimizer: Any) -> None:
    """Write an optimizer to a file; a crash during writing leaves the previous file intact."""
    seed, names = optimizer._root_seed, list(signature(type(optimizer)).parameters)
    if optimizer.goals:
        names.remove("goal")
    content = {
        "saved": KIND,
        "format": FORMAT,
        "version": version(),
        "space": _space(optimizer.space),
        "baseline": None if optimizer.baseline is None else _params(optimizer.space, optimizer.baseline),
        "options": {name: _plain(getattr(optimizer, name)) for name in names if name not in OTHERWISE},
        "calibration": _steps(optimizer.calibration),
        "seed": {"entropy": np.asarray(seed.entropy).tolist(), "spawn_key": list(map(int, seed.spawn_key))},
        "forgotten": optimizer._forgotten,
        "spent": optimizer._spent,
        "points": _points(optimizer),
        "answers": [_answer(answer) for answer in optimizer._history.answers()],
        "trials": optimizer._log.record(),
    }
    text = json.dumps(content, allow_nan=False).encode()
    write_atomically(path, lambda file: file.write(text))


def read(path: str | os.PathLike[str], make: Callable[..., Any], calibration: OptimizerConfig | None) -> Any:
    """Read an optimizer, which ``make`` makes from its arguments."""
    where = os.fspath(path)
    with open(path, "rb") as file:
        text = file.read()
    try:
        content = json.loads(text)
        if content["saved"] != KIND:
            raise ValueError(f"it holds {content['saved']!r}")
        is_newer = content["format"] > FORMAT
        if not is_newer:
            return _restored(content, make, _calibration(content["calibration"], calibration))
    except OtherCalibration as error:
        raise ValueError(f"{where} {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{where} is damaged or not a saved Optimizer ({repr(error)[:MOST_SAID]})") from error
    raise ValueError(f"{where} has format {content['format']}, this noregret reads up to {FORMAT}: upgrade it")


def _restored(content: Mapping[str, Any], make: Callable[..., Any], calibration: OptimizerConfig) -> Any:
    """Optimizer with the stored arguments and history."""
    space = _stored_space(content["space"])
    seed, baseline = content["seed"], content["baseline"]
    optimizer = make(
        space,
        rng=np.random.SeedSequence(_wholes(seed["entropy"]), spawn_key=_wholes(seed["spawn_key"])),
        baseline=space[baseline] if isinstance(baseline, int) else _value(baseline),
        calibration=calibration,
        **_value(content["options"]),
    )
    history, space_rows = optimizer._history, getattr(optimizer.space, "rows", None)
    for point in content["points"]:
        params = space_rows[point["params"]] if space_rows else _value(point["params"])
        about = _value(point.get("context")), _value(point.get("fidelity"))
        at = None if "at" not in point else np.array(point["at"], dtype=float)
        if at is not None and (at.shape != (len(history.space.groups),) or not np.isfinite(at).all()):
            raise ValueError(f"a point has other coordinates than the space: {repr(point['at'])[:40]}")
        history.intern(optimizer._contexts.checked(params, *about), at)
    points, answers, trials = len(history.params), content["answers"], content["trials"]
    if content["format"] == 1:
        answers, trials = _of_format_1(content, optimizer.measures)
    _check_trials(trials, points, optimizer._contexts)
    optimizer._log.restore(trials, [_stored_answer(answer, points, optimizer.measures) for answer in answers])
    if points != len(content["points"]):
        raise ValueError("two of its points are the same")
    optimizer._forgotten = _whole(content["forgotten"])
    optimizer._spent = _measured(content.get("spent", 0.0))
    if optimizer._forgotten:
        optimizer._seed = child(optimizer._root_seed, 6, optimizer._forgotten)
    optimizer._start()
    return optimizer


def _check_trials(record: Mapping[str, Any], points: int, contexts: Contexts) -> None:
    """Raise ValueError unless trials fit each other, and are at points that there are."""
    count, running = _whole(record["next"]), set()
    for where, lost_at, trial in record["kept"]:
        _whole(load(trial).number, below=count)
        _whole(where, below=points)
        _whole(lost_at, -(2**63))
        if not isinstance(trial.get("token", ""), str) or trial["state"] not in get_args(State):
            raise ValueError(f"trial {trial['id']} must have a token that is text, and a state")
        running |= {trial["id"]} if trial["state"] == "running" else set()
    for number in record["answers"]:
        _whole(number, below=count)
    for number, reached, *rungs in record.get("runs", ()):
        if number not in running:
            raise ValueError(f"trial {number} must be running, as it has reported")
        contexts.fidelity.checked(reached)  # type: ignore[union-attr]  # None is damage, too
        list(map(_whole, rungs))
    _whole(record.get("reports", 0), below=len(record["answers"]) + 1)


def _whole(value: Any, least: int = 0, below: float = 2**63) -> int:
    """A whole number; ValueError if it is none, or out of range."""
    if not isinstance(value, int) or not least <= value < below:
        raise ValueError(f"{repr(value)[:40]} must be a whole number from {least} to below {below}")
    return value


def _wholes(value: Any) -> Any:
    """A whole number of any size, or a list of them."""
    return (
        [_whole(each, below=math.inf) for each in value] if isinstance(value, list) else _whole(value, below=math.inf)
    )


def _measured(value: Any) -> float:
    """A number, or nan for one that is not known; ValueError if it is none, or infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        raise ValueError(f"{repr(value)[:40]} must be a finite number")
    return float(value)


class OtherCalibration(ValueError):
    """The configuration is not the one that an optimizer was saved with."""


def _steps(calibration: OptimizerConfig) -> dict[str, Any]:
    """Fields of a configuration that are not the default ones: numbers as they are, everything else as text."""
    default = OptimizerConfig()
    both = {its.name: (getattr(calibration, its.name), getattr(default, its.name)) for its in fields(OptimizerConfig)}
    others = {name: ours for name, (ours, usual) in both.items() if ours != usual}
    # without addresses of functions, which differ between processes
    texts = {name: re.sub(r" at 0x[0-9a-fA-F]+", "", repr(step)) for name, step in others.items()}
    return {name: step if isinstance(step, int | float) else texts[name] for name, step in others.items()}


def _calibration(stored: Mapping[str, Any], given: OptimizerConfig | None) -> OptimizerConfig:
    """The configuration: the given one, or one that is rebuilt from numbers; OtherCalibration if it is another."""
    numbers: dict[str, Any] = {name: step for name, step in stored.items() if isinstance(step, int | float)}
    config = given or OptimizerConfig(**numbers)
    if _steps(config) != stored:
        was, came = ", ".join(f"{name}={old}" for name, old in stored.items()), "none" if given is None else repr(given)
        raise OtherCalibration(
            f"was saved with OptimizerConfig({was}), got {came}: pass the same with Optimizer.load(path, "
            "calibration=...)"
        )
    return config


def _space(space: Space) -> dict[str, Any]:
    """The space as JSON: parameters by name, or the columns and rows of a table."""
    if isinstance(space, ParameterSpace):
        return {"parameters": _plain(space.parameters)}
    assert isinstance(space, CandidateTable)
    rows = [space.rows[number] for number in range(len(space.rows))]
    if space.is_array:
        return {"columns": None, "rows": [row.tolist() for row in rows]}
    return {"columns": _plain(list(rows[0])), "rows": [[_plain(row[name]) for name in rows[0]] for row in rows]}


def _stored_space(record: Mapping[str, Any]) -> Any:
    """The space as `Optimizer` takes it."""
    if "parameters" in record:
        return _value(record["parameters"])
    if record["columns"] is None:
        return np.array(record["rows"], dtype=float)
    names = _value(record["columns"])
    return [dict(zip(names, _value(row), strict=True)) for row in record["rows"]]


def _params(space: Space, params: Any) -> Any:
    """Params by name, or the number of a row of a table."""
    return space.key(params) if isinstance(space, CandidateTable) else _plain(params)


def _points(optimizer: Any) -> list[dict[str, Any]]:
    """Points in the order of their numbers, with their coordinates where the params do not give the same to the bit."""
    history, points = optimizer._history, []
    encoded = history.space.encode(history.params) if history.params else history.points
    for params, at, usual in zip(history.params, history.points, encoded, strict=True):
        chosen, context, fidelity = optimizer._contexts.without_context(params)
        point = {"params": _params(optimizer.space, chosen)}
        point |= {} if context is None else {"context": _plain(context)}
        point |= {} if fidelity is None else {"fidelity": _plain(fidelity)}
        points.append(point if (at == usual).all() else point | {"at": at.tolist()})
    return points


def _answer(answer: Answer) -> dict[str, Any]:
    """Answer as JSON, with larger values better and None for a noise that is not known."""
    numbers = {
        name: [value, None if noise != noise else noise, bound]
        for name, (value, noise, bound) in answer.numbers.items()
    }
    return {"where": answer.where, "numbers": numbers, **({"run": answer.run} if answer.run >= 0 else {})}


def _stored_answer(record: Mapping[str, Any], points: int, measures: Measures) -> Answer:
    """Answer of a record; ValueError unless it is one that this optimizer can have."""
    numbers = {}
    for name, (value, noise, bound) in record["numbers"].items():
        if abs(_measured(value)) > LARGEST_VALUE or value != value:
            raise ValueError(f"{value} must be a number of at most {LARGEST_VALUE:g} in size")
        if name not in measures or measures[name].role == "tracked":
            raise ValueError(f"an answer has a measure {name!r}, and the optimizer has none of this name")
        noise = math.nan if noise is None else _measured(noise)
        if noise <= 0 or (measures[name].role == "cost" and value <= 0):
            raise ValueError("the noise and the cost of an answer must be above 0")
        numbers[name] = Signed(value, noise, _whole(bound, -1, 2))
    return Answer(_whole(record["where"], below=points), numbers, _whole(record.get("run", -1), -1))


def _of_format_1(content: Mapping[str, Any], measures: Measures) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Answers and trials of a file of 1.0: values had the sign of the user's, and the past had no numbers."""
    answers, record, runs = [], dict(content["trials"]), dict[int, int]()
    numbers, following = [], itertools.count(record["next"])
    for stored, number in zip(content["answers"], record["answers"], strict=True):
        values = stored.get("values") or [stored["value"]]
        is_failure, bound = values == [None], _whole(stored.get("bound", 0), -1, 2)
        read = [*zip(measures.objectives, values, strict=not is_failure)]
        limited = [*zip(measures.constraints, stored["constraints"], strict=not is_failure)]
        known = {
            name: [measures[name].sign * clipped(_measured(value)), noise, int(measures[name].sign) * cut]
            for pairs, noise, cut in ((read, stored["noise"], bound), (limited, None, 0))
            for name, value in pairs
            if value is not None
        }
        if stored.get("cost") is not None:
            known[measures.cost] = [stored["cost"], None, 0]
        run = stored.get("run", -1)
        if number is None:
            number = runs.setdefault(run, next(following)) if run >= 0 else next(following)
        numbers.append(number)
        answers.append({"where": stored["where"], "numbers": known, "run": run if run < 0 else number})
    states: dict[int, State] = dict.fromkeys(record["failed"], "failed") | dict.fromkeys(record["told"], "done")
    kept = [
        [where, lost_at, dump(Trial(number, None, token, state=states.get(number, "running")))]
        for number, where, token, lost_at in record["sent"]
    ]
    return answers, record | {"kept": kept, "next": next(following), "answers": numbers}


def _plain(value: Any) -> Any:
    """A value as JSON; a tuple or a parameter, which JSON does not have, is an object with one entry."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):
        return {TUPLE: [_plain(each) for each in value]}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    name = f"{type(value).__name__}()"
    if name in CLASSES:
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return {name: {key: _plain(part) for key, part in parts.items() if part is not None}}
    raise ValueError(
        f"what is saved must be text, numbers, True, False, None or tuples of these, got {value!r}: put a name in its "
        "place, and look the object up by it"
    )


def _value(record: Any) -> Any:
    """The value that `_plain` made a record of."""
    if isinstance(record, list):
        return [_value(each) for each in record]
    if isinstance(record, dict):
        name = next(iter(record), "")
        if name == TUPLE:
            return tuple(_value(record[name]))
        values = {key: _value(each) for key, each in record.items()}
        return CLASSES[name](**values[name]) if name in CLASSES else values
    return record
