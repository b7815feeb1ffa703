"""Files of saved policies: an .npz archive of the history and the arms, and a JSON record of everything else.

An algorithm is recorded as JSON: a frozen dataclass is the name of its class and its fields, recursively. Its arrays
are stored separately. Nothing is unpickled or imported when a file is read. Only dataclasses of this library and
classes that the caller names are built, and all of them are looked up before the first is built.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import count, repeat
from typing import Any, Literal, NamedTuple

import numpy as np

from noregret.bandits.belief.arms import Box, as_space
from noregret.bandits.belief.cluster import Blocks
from noregret.bandits.decision.loops import Algorithm
from noregret.extra import version
from noregret.files import write_atomically
from noregret.gp.arrays import numpy_of
from noregret.gp.posterior import Floats

FORMAT = 3
"""Version of the format. 3: one letter per event, the noise factors, and the pending arms. 2: rounds, the numbers of
rounds at which arms changed, and a flag that the loop had been asked. 1: no digest of the asks, and no arrays of the
algorithm."""

KINDS: dict[str, Any] = {"s": "send", "l": "learn", "r": "resume", "m": "move"}


class Told(NamedTuple):
    """Rewards of arms, and the factor on the ridge of each; None if all factors are 1."""

    arms: Any
    rewards: Floats
    noise: Floats | None = None


class Event(NamedTuple):
    """Change of a run.

    ``send`` passes rewards to the loop, ``learn`` passes them to the belief only, ``resume`` restarts the loop from the
    belief, ``move`` changes the arms.
    """

    kind: Literal["send", "learn", "resume", "move"]
    content: Any = None
    """The `Told` rewards for 'send' and 'learn', the new arms for 'move'."""


class State(NamedTuple):
    """Policy, as its file keeps it."""

    algorithm: Algorithm
    space: Any
    """The first arms, or the box."""
    seed: np.random.SeedSequence
    """Seed of the loop."""
    history: list[Event]
    held: list[Told]
    out: Any
    """Pending arms, in the order of asking; None for all of the loop's plan."""
    at_once: bool
    given: int
    digest: str
    """Hash of the arms that the loop asked for."""


def write(path: str | os.PathLike[str], state: State) -> None:
    """Write a policy to one file; a crash during writing leaves the previous file intact."""
    space, seed = state.space, state.seed
    arrays: dict[str, Any] = {}
    about = {
        "format": FORMAT,
        "version": version(),
        "asks": state.digest,
        "algorithm": describe(state.algorithm, arrays),
        "repr": repr(state.algorithm),
        "seed": {
            "entropy": np.asarray(seed.entropy).tolist(),
            "spawn_key": np.asarray(seed.spawn_key, dtype=int).tolist(),
        },
        "box": isinstance(space, Box),
        "cluster": isinstance(space, Blocks),
        "events": "".join(event.kind[0] for event in state.history),
        "at_once": state.at_once,
        "given": state.given,
    }
    moves = [event.content for event in state.history if event.kind == "move"]
    if any(isinstance(arms, Blocks) for arms in moves):
        raise ValueError("a policy whose arms were changed to others on a cluster cannot be saved: no file holds these")
    told = [event.content for event in state.history if isinstance(event.content, Told)]
    content: dict[str, Any] = {"about": np.array(json.dumps(about)), "out": state.out}
    is_far = isinstance(space, Blocks)  # arms on a cluster, of which only the shape is kept
    content["arms"] = space.bounds if isinstance(space, Box) else np.array(space.shape) if is_far else numpy_of(space)
    content |= arrays | {f"change_{i}": numpy_of(arms) for i, arms in enumerate(moves)}
    content |= _packed("sent", told) | _packed("held", state.held)
    write_atomically(path, lambda file: np.savez(file, **content))


def read(
    path: str | os.PathLike[str], given: Algorithm | None, arms: Any = None, trusted: Iterable[type] = ()
) -> tuple[State, dict[str, Any]]:
    """Read a policy, and the record of its file; given ``arms`` replace the stored."""
    content, about = _content(path)
    try:
        algorithm = recorded(about, content, given, trusted)
    except RecursionError as error:
        said = "is damaged or not a saved policy (its record is nested too deeply)"
        raise ValueError(f"{os.fspath(path)} {said}") from error
    seed = np.random.SeedSequence(about["seed"]["entropy"], spawn_key=tuple(about["seed"]["spawn_key"]))
    space = Box(content["arms"]) if about.get("box") else _space(path, about, content["arms"], arms)
    out = content["out"] if about["format"] > 2 else None if about["asked"] else content["sent_arms"][:0]
    at_once, ahead = about.get("at_once", False), about.get("given", 0)
    history, held = _history(about, content), _unpacked("held", content)
    return State(algorithm, space, seed, history, held, out, at_once, ahead, about.get("asks", "")), about


def _space(path: str | os.PathLike[str], about: dict[str, Any], stored: Any, arms: Any) -> Any:
    """Arms of a saved policy, or the given ones, if their shape fits."""
    if arms is None:
        if about.get("cluster"):
            raise ValueError(f"the arms of {os.fspath(path)} were on a cluster: pass Policy.load(path, arms=arms)")
        return stored
    arms, shape = as_space(arms), tuple(stored.tolist()) if about.get("cluster") else stored.shape
    if tuple(arms.shape) != shape:
        raise ValueError(f"{os.fspath(path)} was saved with arms of shape {shape}, got {tuple(arms.shape)}")
    return arms


def _content(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays of a saved policy, and the record among them."""
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                content = dict(archive)
            about = json.loads(str(content["about"]))
            newer = about["format"] > FORMAT
            missing = [name for name in _needed(about) if name not in content] if not newer else []
            if missing:
                raise ValueError(f"{missing[0]} is missing")
        except Exception as error:  # a damaged archive fails in many ways
            raise ValueError(f"{os.fspath(path)} is damaged or not a saved policy ({error})") from error
    if newer:
        raise ValueError(
            f"{os.fspath(path)} has format {about['format']}, this noregret reads up to {FORMAT}: upgrade it"
        )
    return content, about


def _needed(about: dict[str, Any]) -> list[str]:
    recent = about["format"] > 2
    parts = ("arms", "rewards", "lengths", *(["noise"] if recent else []))
    pieces = [f"{name}_{part}" for name in ("sent", "held") for part in parts]
    moves = about["events"].count("m") if recent else len(about["changes"])
    return ["arms", *pieces, *(f"change_{i}" for i in range(moves)), *(["out"] if recent else [])]


def _history(about: dict[str, Any], content: dict[str, Any]) -> list[Event]:
    """Events, in order."""
    told: Iterator[Any] = iter(_unpacked("sent", content))
    moves = (content[f"change_{i}"] for i in count())
    sources = {"s": told, "l": told, "m": moves, "r": repeat(None)}
    letters = list(about.get("events", "s" * len(content["sent_lengths"])))
    for i, rounds in enumerate(about.get("changes", ())):  # up to format 2
        letters.insert(rounds + i, "m")
    return [Event(KINDS[letter], next(sources[letter])) for letter in letters]


def recorded(
    about: dict[str, Any], content: dict[str, Any], given: Algorithm | None, trusted: Iterable[type] = ()
) -> Algorithm:
    """Algorithm of a saved policy: rebuilt from its record, or the given one, if it is the same."""
    if given is None:
        try:
            algorithm: Algorithm = rebuild(about["algorithm"], content, trusted)
        except (ValueError, TypeError) as error:  # TypeError: a class has other fields than the saved one
            raise ValueError(f"{error}; or pass the algorithm itself: Policy.load(path, algorithm=...)") from None
        return algorithm
    arrays: dict[str, Any] = {}
    record = json.loads(json.dumps(describe(given, arrays)))
    if nameless(repr(given)) != nameless(about["repr"]):
        raise ValueError(f"the policy was saved with {about['repr']}, but algorithm={given!r} was passed")
    if about["format"] > 1:
        alike = all(name in content and np.array_equal(array, content[name]) for name, array in arrays.items())
        if not (alike and nameless(record) == nameless(about["algorithm"])):
            raise ValueError(
                f"the policy was saved with {about['repr']}, and the algorithm passed differs from it: it has other "
                "numbers in an array, or in a field that its repr does not show"
            )
    return given


def check_asks(digest: str, about: dict[str, Any], path: str) -> None:
    """Raise ValueError unless the replay asked for the same arms as the saved run."""
    if about["format"] < 2:
        message = f"{path} was saved without a digest of its asks: it cannot be checked that it continues identically"
        warnings.warn(message, stacklevel=3)
    elif digest != about["asks"]:
        raise ValueError(
            f"replaying {path} asks for other arms than were asked for then. It was saved by noregret "
            f"{about['version']}, this is {version()}: the algorithm or its dependencies have changed. "
            "To continue from its rewards nevertheless, tell them to a new policy: they are 'sent_arms' and "
            "'sent_rewards' in the file, the arms are 'arms'"
        )


def joined(pieces: list[Told]) -> Told:
    """Concatenate pieces of a round."""
    if len(pieces) == 1:
        return pieces[0]
    arms, rewards = (np.concatenate([piece[i] for piece in pieces]) for i in (0, 1))
    if all(piece.noise is None for piece in pieces):
        return Told(arms, rewards)
    ones = [np.ones(len(piece.rewards)) if piece.noise is None else piece.noise for piece in pieces]
    return Told(arms, rewards, np.concatenate(ones))


def _packed(name: str, pieces: list[Told]) -> dict[str, Any]:
    """Pieces as four arrays: all arms, all rewards, all noise factors, and the length of every piece."""
    arms, rewards, noise = joined(pieces) if pieces else Told(np.empty(0, np.intp), np.empty(0))
    return {
        f"{name}_arms": arms,
        f"{name}_rewards": rewards,
        f"{name}_noise": np.ones(len(rewards)) if noise is None else noise,
        f"{name}_lengths": np.array([len(piece.arms) for piece in pieces], dtype=np.intp),
    }


def _unpacked(name: str, content: dict[str, Any]) -> list[Told]:
    """Pieces from the arrays of `_packed`; factors that are all 1 become None."""
    ends = np.cumsum(content[f"{name}_lengths"])[:-1]
    if not content[f"{name}_lengths"].size:
        return []
    rewards = content[f"{name}_rewards"]
    columns = content[f"{name}_arms"], rewards, content.get(f"{name}_noise", np.ones(len(rewards)))
    pieces = zip(*(np.split(column, ends) for column in columns), strict=True)
    return [Told(arms, values, None if (noise == 1).all() else noise) for arms, values, noise in pieces]


Arrays = dict[str, Any]


def describe(value: Any, arrays: Arrays | None = None) -> Any:
    """Record of a value made of dataclasses, arrays, numbers, strings and tuples of them, for JSON.

    Its arrays are added to ``arrays`` under new names; without ``arrays`` they are part of the record.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.number | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray):
        if arrays is None:
            return {"array": value.tolist(), "dtype": value.dtype.str}
        name = f"algorithm_{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, tuple | list):
        return {"tuple": [describe(item, arrays) for item in value]}
    if is_dataclass(value) and not isinstance(value, type) and "<locals>" not in type(value).__qualname__:
        content = {field.name: describe(getattr(value, field.name), arrays) for field in fields(value) if field.init}
        return {"class": _name(type(value)), "fields": content}
    return {"opaque": repr(value)}


def rebuild(record: Any, arrays: Arrays | None = None, trusted: Iterable[type] = ()) -> Any:
    """Return the value that `describe` recorded.

    ValueError, before anything is built, if the record names a class that is neither of this library nor ``trusted``,
    or contains something that cannot be restored from a file.
    """
    given = {_name(kind): kind for kind in trusted}
    classes = {name: given.get(name) or _own(name) for name in _classes(record)}
    return _built(record, arrays or {}, classes)


def _built(record: Any, arrays: Arrays, classes: dict[str, type]) -> Any:
    if not isinstance(record, dict):
        return record
    if "array" in record:
        stored = record["array"]
        if not isinstance(stored, str):
            return np.array(stored, dtype=record["dtype"])
        if stored not in arrays:
            raise ValueError(f"the array {stored} is missing")
        return arrays[stored]
    if "tuple" in record:
        return tuple(_built(item, arrays, classes) for item in record["tuple"])
    content = {name: _built(value, arrays, classes) for name, value in record["fields"].items()}
    return classes[record["class"]](**content)


def _classes(record: Any) -> Iterator[str]:
    """Names of all classes in a record."""
    if not isinstance(record, dict) or "array" in record:
        return
    if "opaque" in record:
        raise ValueError(f"{record['opaque']} cannot be rebuilt from a file: only dataclasses can")
    if "class" in record:
        yield record["class"]
    for item in record["tuple"] if "tuple" in record else record["fields"].values():
        yield from _classes(item)


def nameless(record: Any) -> Any:
    """Record or repr without the addresses of functions and the modules of this library's classes.

    These differ between processes, and when files move.
    """
    if isinstance(record, str):
        return re.sub(r"^noregret\.[\w.]*:", "noregret:", re.sub(r" at 0x[0-9a-fA-F]+", "", record))
    if isinstance(record, dict):
        return {name: nameless(value) for name, value in record.items()}
    return [nameless(value) for value in record] if isinstance(record, list) else record


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _own(name: str) -> type:
    """Dataclass of this library with this name. If its module has moved, all loaded modules are searched for it."""
    module, _, path = name.partition(":")
    ours = sorted(loaded for loaded in sys.modules if loaded.startswith("noregret."))
    for candidate in (module, *ours) if module.startswith("noregret.") else ():
        found: Any = sys.modules.get(candidate)
        for part in path.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type) and is_dataclass(found) and found.__module__.startswith("noregret."):
            return found
    raise ValueError(
        f"{name} is not a dataclass of noregret, and a file builds no others: if you trust it, pass "
        f"Policy.load(path, trusted=[{path.rpartition('.')[2]}])"
    )
