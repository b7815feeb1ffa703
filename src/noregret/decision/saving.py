"""The file of a saved policy: an .npz archive of its history, its arms and a record of everything else, in JSON."""

from __future__ import annotations

import json
import os
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats
from noregret.decision.loops import Algorithm
from noregret.decision.record import describe, nameless, rebuild

FORMAT = 2
"""2: the algorithm's arrays beside its record, a digest of the asks, and the version. 1 had none of them."""


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a saved policy and the record among them."""
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                content = dict(archive)
            about = json.loads(str(content["about"]))
            newer = about["format"] > FORMAT
            missing = [name for name in _needed(about) if name not in content and not newer]
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
    pieces = [f"{name}_{part}" for name in ("sent", "held") for part in ("arms", "rewards", "lengths")]
    return ["arms", *pieces, *(f"change_{i}" for i in range(len(about["changes"])))]


def recorded(about: dict[str, Any], content: dict[str, Any], given: Algorithm | None) -> Algorithm:
    """The algorithm of a saved policy: rebuilt from its record, or the one given, if it is the same."""
    if given is None:
        try:
            algorithm: Algorithm = rebuild(about["algorithm"], content)
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
    """Raise ValueError unless the replay has asked for the arms that the saved run had asked for."""
    if about["format"] < 2:
        message = (
            f"{path} was saved without a digest of what it asked for: whether it goes on the same cannot be checked"
        )
        warnings.warn(message, stacklevel=3)
    elif digest != about["asks"]:
        raise ValueError(
            f"replaying {path} asks for other arms than were asked for then. It was saved by noregret "
            f"{about['version']}, this is {version('noregret')}: the algorithm, or what it computes with, has changed. "
            "To go on from its rewards all the same, tell them to a new policy: they are 'sent_arms' and "
            "'sent_rewards' in the file, the arms are 'arms'"
        )


def packed(name: str, pieces: list[tuple[Any, Floats]]) -> dict[str, Any]:
    """Pieces of arms and rewards as three arrays: all arms, all rewards, and the length of every piece."""
    return {
        f"{name}_arms": np.concatenate([a for a, _ in pieces] or [np.empty(0, np.intp)]),
        f"{name}_rewards": np.concatenate([r for _, r in pieces] or [np.empty(0)]),
        f"{name}_lengths": np.array([len(a) for a, _ in pieces], dtype=np.intp),
    }


def unpacked(name: str, content: dict[str, Any]) -> list[tuple[Any, Floats]]:
    """The pieces that `packed` has made arrays of."""
    ends = np.cumsum(content[f"{name}_lengths"])[:-1]
    if not content[f"{name}_lengths"].size:
        return []
    arms, rewards = np.split(content[f"{name}_arms"], ends), np.split(content[f"{name}_rewards"], ends)
    return list(zip(arms, rewards, strict=True))
