"""Migration: what of a study carries over when its file has changed.

Results carry over where each is still the result of a setting. A range or a choice may get wider or narrower: what lies
outside stays stored and is not used. A parameter may be added, with the value it had all along. The command may get
words for such a parameter, and no others. A constraint may be added: earlier results say nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from noregret.tune.study.parameters import in_words
from noregret.tune.study.study import PLACEHOLDER, Params, Study, text

PARAMETER, CONSTRAINT = "parameters.", "constraints."


class NotCarriedOver(ValueError):
    """Measurements of before and after do not belong together; the message says what to do."""


@dataclass(frozen=True)
class Migration:
    """A change of a study file that results survive."""

    identity: dict[str, Any]
    added: Params
    """The parameters that are new, with the value that each had before."""
    changes: tuple[str, ...]
    """What has changed, for people."""


def differing(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between two identities of a study, parameters first: they explain changes of the command."""
    keys = [key for key in was.keys() | now.keys() if was.get(key) != now.get(key)]
    return sorted(keys, key=lambda key: (not key.startswith(PARAMETER), key))


def migration(study: Study, was: dict[str, Any], now: dict[str, Any]) -> Migration:
    """What leads from one identity of a study to the other; NotCarriedOver if nothing does."""
    added: Params = {}
    for key in differing(was, now):
        name = key.removeprefix(PARAMETER)
        if key == "command":
            _check_command(was[key], now[key], added)
        elif not key.startswith(PARAMETER):
            _check_other(key, was, now)
        elif key not in was and name != "candidates":
            added[name] = _value_before(study, name)
        else:
            _check_same_kind(name, was.get(key), now.get(key))
    return Migration(now, added, tuple(_in_words(key, was, now, added) for key in differing(was, now)))


def _check_other(key: str, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Constraints may come and go: what was not measured is not known."""
    if not key.startswith(CONSTRAINT) or (key in was and key in now):
        raise NotCarriedOver(f"change {key} back")


def _value_before(study: Study, name: str) -> Any:
    if name not in study.defaults:
        raise NotCarriedOver(f"say in [parameters.{name}] which value it had so far, such as default = 1")
    return study.defaults[name]


def _check_same_kind(name: str, was: Any, now: Any) -> None:
    if isinstance(was, str) and isinstance(now, str):
        return  # tables of candidates: rows that are still there are found again
    if not isinstance(was, dict):
        raise NotCarriedOver("a table of candidates and named parameters have nothing in common: change it back")
    if now is None:
        raise NotCarriedOver(
            f"they were measured with different values of {name}: keep it, with the one value it is to have from now on"
        )
    if not isinstance(now, dict) or was["type"] != now["type"]:
        raise NotCarriedOver(f"change the type of {name} back to {was['type']!r}")


def _check_command(was: Any, now: Any, added: Params) -> None:
    words = iter(_filled(word, added) for word in _words(now))
    if not all(word in words for word in _words(was)):
        raise NotCarriedOver("change the command back: only words for a new parameter may be added to it")
    if not added and len(_words(was)) != len(_words(now)):
        raise NotCarriedOver("change the command back")


def _words(command: list[Any]) -> list[str]:
    return [word for part in command for word in ([part] if isinstance(part, str) else part)]


def _filled(word: str, added: Params) -> str:
    """The word with the values of new parameters only; other placeholders stay."""
    return PLACEHOLDER.sub(lambda found: text(added[found[1]]) if found[1] in added else found[0], word)


def _in_words(key: str, was: dict[str, Any], now: dict[str, Any], added: Params) -> str:
    name = key.removeprefix(PARAMETER)
    if name in added:
        return f"{name}: new, {in_words(now[key])}; it was {text(added[name])} so far"
    if key == "command":
        return f"command: {f'has words for {_listed(added)} now' if added else 'has other groups of words now'}"
    before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
    return f"{name}: {before}, now {after}"


def _listed(added: Params) -> str:
    return " and ".join(added)
