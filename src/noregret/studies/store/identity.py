"""Identity of a stored study: whether a storage holds this study, an earlier form of it, another one, or none yet.

Migration: observations carry over where each is still the result of a setting. A range or a choice may get wider or
narrower: observations outside stay stored and are not used. A parameter may be added, with the value it had all along.
The command may get words for such a parameter, and no others. A constraint may be added: earlier observations say
nothing about it. Conditions of ``require`` may change: observations that violate one stay evidence.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from noregret.extra import version
from noregret.studies.study.parameters import in_words, read_form
from noregret.studies.study.study import PLACEHOLDER, SERVICE, Params, Study, StudyError, text, without_password

FORMAT = 4
"""Version of the stored form; a larger number is a later form, which this version cannot read."""
FORM, SELF, MADE_BY = "format", "identity", "version"
"""Parts of a stored study: its form, what it is, and the version that made it."""

PARAMETER, CONSTRAINT = "parameters.", "constraints."
WORDS = "command", "prepare", "env"
"""Parts of an identity that are lists of words with placeholders."""


def form_of(study: Study) -> dict[str, Any]:
    """All that is stored of a new study: its maker, what it is, and the form in which it is stored."""
    return {MADE_BY: version(), SELF: study.identity(), FORM: FORMAT}


def check_form(study: Study, about: dict[str, Any]) -> None:
    """StudyError if a newer noregret has written a study."""
    if about[FORM] > FORMAT:
        raise StudyError(
            f"{_place(study)}: was written by a newer noregret ({about.get(MADE_BY)}, format {about[FORM]}); "
            f"this one reads up to format {FORMAT}: upgrade it"
        )


def _place(study: Study) -> str:
    return f"{study.path}: storage {without_password(study.storage)}"


class ChangedStudy(StudyError):
    """The study file has changed since the study was stored; ``key`` is the first part of its identity that has."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


def needed_migration(study: Study, attributes: dict[str, Any]) -> Migration | None:
    """Changes of the study file since the study was last worked on; None if there are none that matter.

    Raises
    ------
    ChangedStudy
        If observations from before and after do not belong together.
    """
    was, now = _in_form_of_now(attributes[SELF]), study.identity()
    if was == now:
        return None
    if SERVICE in was and SERVICE not in now:
        raise StudyError(
            f"{_place(study)}: its study {study.name!r} was made by 'noregret serve': read it there, at "
            f"/studies/{study.name}/trials, or give this one another name or storage"
        )
    try:
        return migration(study, was, now)
    except NotCarriedOver as error:
        raise ChangedStudy(
            f"{_changed(study, was, now)}. Its results do not carry over: {error}. Or start a new study: give it "
            f'another name in the file, such as name = "{study.name} 2"',
            differing(was, now)[0],
        ) from None


def refusal(study: Study, attributes: dict[str, Any]) -> ChangedStudy:
    """Error about a study file that has changed and can be migrated."""
    was, now = _in_form_of_now(attributes[SELF]), study.identity()
    command = shlex.join(["noregret", "tune", "--migrate", str(study.path)])
    return ChangedStudy(
        f"{_changed(study, was, now)}. '{command}' continues with the results that carry over. Or change it back, or "
        "give it another name in the file, which starts a new study",
        differing(was, now)[0],
    )


def restart_advice(study: Study, error: ChangedStudy) -> str:
    """Message about a study file that has changed, and a stored study without a result."""
    command = shlex.join(["noregret", "tune", str(study.path)])
    return f"{_place(study)}: its {error.key} has changed, and no trial had a result: '{command}' starts it again"


def restarted(error: ChangedStudy, count: int, aside: str) -> str:
    """Report that a study was started again, without its trials, which belong to another one now."""
    trials = "its one trial had no result" if count == 1 else f"none of its {count} trials had a result"
    return f"{error.key} has changed, and {trials}: the study starts again (the trials are kept as {aside!r})"


def _in_form_of_now(identity: dict[str, Any]) -> dict[str, Any]:
    return {key: read_form(stored) for key, stored in identity.items()}


def _changed(study: Study, was: dict[str, Any], now: dict[str, Any]) -> str:
    key = differing(was, now)[0]
    before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
    return f"{_place(study)}: holds a study named {study.name!r} whose {key} was {before}, now it is {after}"


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
        if key in WORDS:
            _check_words(key, was.get(key, []), now.get(key, []), added)
        elif not key.startswith(PARAMETER):
            _check_other(key, was, now)
        elif key not in was and name != "candidates":
            if name not in study.defaults:
                raise NotCarriedOver(f"say in [parameters.{name}] which value it had so far, such as default = 1")
            added[name] = study.defaults[name]
        else:
            _check_same_kind(name, was.get(key), now.get(key))
    return Migration(now, added, tuple(_in_words(key, was, now, added) for key in differing(was, now)))


def _check_other(key: str, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a change of anything but constraints, which may be added and removed, and conditions, which may change."""
    if key == "require":
        return
    if not key.startswith(CONSTRAINT) or (key in was and key in now):
        raise NotCarriedOver(f"change {key} back")


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
    if now["type"] == "flag" and any(was[end] != now[end] for end in ("off", "on")):
        raise NotCarriedOver(f"change the words of {name} back, or give the flag another name and a default")


def _check_words(key: str, was: Any, now: Any, added: Params) -> None:
    words = iter(_filled(word, added) for word in _words(now))
    if not all(word in words for word in _words(was)):
        raise NotCarriedOver(f"change the {key} back: only words for a new parameter may be added to it")
    if not added and len(_words(was)) != len(_words(now)):
        raise NotCarriedOver(f"change the {key} back")


def _words(command: list[Any]) -> list[str]:
    return [word for part in command for word in ([part] if isinstance(part, str) else part)]


def _filled(word: str, added: Params) -> str:
    """The word with the values of new parameters only; other placeholders stay."""
    return PLACEHOLDER.sub(lambda found: text(added[found[1]]) if found[1] in added else found[0], word)


def _in_words(key: str, was: dict[str, Any], now: dict[str, Any], added: Params) -> str:
    name = key.removeprefix(PARAMETER)
    if name in added:
        return f"{name}: new, {in_words(now[key])}; it was {text(added[name])} so far"
    if key in WORDS:
        words = f"words for {' and '.join(added)}" if added else "other groups of words"
        return f"{key}: has {words} now"
    before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
    return f"{name}: {before}, now {after}"
