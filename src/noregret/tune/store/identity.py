"""Identity of a stored study: whether a storage holds this study, an earlier form of it, another one, or none yet.

Migration: observations carry over where each is still the result of a setting. A range or a choice may get wider or
narrower: observations outside stay stored and are not used. A parameter may be added, with the value it had all along.
The command may get words for such a parameter, and no others. A constraint may be added: earlier observations say
nothing about it. Conditions of ``require`` may change: observations that violate one stay evidence.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from optuna.study import StudyDirection

from noregret.tune.study.parameters import in_words, read_form
from noregret.tune.study.study import PLACEHOLDER, NotYet, Params, Study, StudyError, text, without_password

FORMAT = 3
"""Version of the stored form; a larger number is a later form, which this version cannot read."""
FORM, SELF, MADE_BY = "noregret:format", "noregret:study", "noregret:version"


PARAMETER, CONSTRAINT = "parameters.", "constraints."


def study_id(storage: Any, study: Study, readonly: bool) -> int:
    """The study's number in the storage, where it is made if need be; StudyError if it was not made by noregret."""
    known = {found.study_name: found for found in storage.get_all_studies()}
    if study.name not in known:
        if readonly:
            others = f": it has {', '.join(map(repr, known))}" if known else ""
            raise NotYet(f"storage {without_password(study.storage)} has no study {study.name!r} yet{others}")
        direction = StudyDirection.MINIMIZE if study.goal == "minimize" else StudyDirection.MAXIMIZE
        return _named(storage, storage.create_new_study([direction], study.name), study)
    number, attributes = storage.get_study_id_from_name(study.name), known[study.name].user_attrs
    if FORM not in attributes and not readonly and not storage.get_all_trials(number, deepcopy=False):
        return _named(storage, number, study)  # its maker was killed in between
    _check_form(study, attributes)
    if attributes[FORM] < FORMAT and not readonly:
        storage.set_study_user_attr(number, FORM, FORMAT)  # an earlier version would not know what counts as a round
    return int(number)


def _named(storage: Any, number: int, study: Study) -> int:
    """Store the identity of the study, the format last: a study without it is incomplete."""
    storage.set_study_user_attr(number, MADE_BY, version("noregret"))
    storage.set_study_user_attr(number, SELF, study.identity())
    storage.set_study_user_attr(number, FORM, FORMAT)
    return number


def _place(study: Study) -> str:
    return f"{study.path}: storage {without_password(study.storage)}"


def _check_form(study: Study, attributes: dict[str, Any]) -> None:
    if FORM not in attributes:
        raise StudyError(
            f"{_place(study)}: its study {study.name!r} was not made by noregret: choose another name or storage"
        )
    if attributes[FORM] > FORMAT:
        raise StudyError(
            f"{_place(study)}: was written by a newer noregret ({attributes.get(MADE_BY)}, format {attributes[FORM]}); "
            f"this one reads up to format {FORMAT}: upgrade it"
        )


def needed_migration(study: Study, attributes: dict[str, Any]) -> Migration | None:
    """Changes of the study file since the study was last worked on; None if there are none that matter.

    Raises
    ------
    StudyError
        If observations from before and after do not belong together.
    """
    was, now = _in_form_of_now(attributes[SELF]), study.identity()
    if was == now:
        return None
    try:
        return migration(study, was, now)
    except NotCarriedOver as error:
        raise StudyError(
            f"{_changed(study, was, now)}. Its results do not carry over: {error}. Or give this one another name or "
            "storage"
        ) from None


def refusal(study: Study, attributes: dict[str, Any]) -> StudyError:
    """Error about a study file that has changed and can be migrated."""
    was, now = _in_form_of_now(attributes[SELF]), study.identity()
    command = shlex.join(["noregret", "tune", "--migrate", str(study.path)])
    return StudyError(
        f"{_changed(study, was, now)}. '{command}' continues with the results that carry over. Or change it back, or "
        "give this one another name or storage"
    )


def _in_form_of_now(identity: dict[str, Any]) -> dict[str, Any]:
    return {key: read_form(stored) for key, stored in identity.items()}


def _changed(study: Study, was: dict[str, Any], now: dict[str, Any]) -> str:
    key = differing(was, now)[0]
    before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
    return f"{_place(study)}: holds another study named {study.name!r}: {key} was {before}, now it is {after}"


class NotCarriedOver(ValueError):
    """Observations from before and after do not belong together; the message says what to do."""


@dataclass(frozen=True)
class Migration:
    """A change of a study file that results survive."""

    identity: dict[str, Any]
    added: Params
    """The parameters that are new, with the value that each had before."""
    changes: tuple[str, ...]
    """Changes in words."""


def differing(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Keys that differ between two identities of a study, parameters first: they explain changes of the command."""
    keys = [key for key in was.keys() | now.keys() if was.get(key) != now.get(key)]
    return sorted(keys, key=lambda key: (not key.startswith(PARAMETER), key))


def migration(study: Study, was: dict[str, Any], now: dict[str, Any]) -> Migration:
    """Migration from one identity of a study to the other; NotCarriedOver if there is none."""
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
    """Refuse a change of anything but constraints, which may be added and removed, and conditions, which may change."""
    if key == "require":
        return
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
        words = f"words for {' and '.join(added)}" if added else "other groups of words"
        return f"command: has {words} now"
    before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
    return f"{name}: {before}, now {after}"
