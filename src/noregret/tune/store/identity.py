"""Whether a storage holds this study, an earlier form of it, another one, or none yet."""

from __future__ import annotations

import shlex
from importlib.metadata import version
from typing import Any

from optuna.study import StudyDirection

from noregret.tune.store.migrating import Migration, NotCarriedOver, differing, migration
from noregret.tune.study.parameters import in_words, read_form
from noregret.tune.study.study import NotYet, Study, StudyError, without_password

FORMAT = 3
"""How studies are written; a larger number is a later form, which this version cannot read."""
FORM, SELF, MADE_BY = "noregret:format", "noregret:study", "noregret:version"


def study_id(storage: Any, study: Study, readonly: bool) -> int:
    """The study's number in the storage, where it is made if need be; StudyError if it was not made by noregret."""
    known = {found.study_name: found for found in storage.get_all_studies()}
    if study.name not in known:
        if readonly:
            others = f": it has {', '.join(map(repr, known))}" if known else ""
            raise NotYet(f"storage {without_password(study.storage)} has no study {study.name!r} yet{others}")
        return _named(storage, storage.create_new_study([_direction(study)], study.name), study)
    number, attributes = storage.get_study_id_from_name(study.name), known[study.name].user_attrs
    if FORM not in attributes and not readonly and not storage.get_all_trials(number, deepcopy=False):
        return _named(storage, number, study)  # its maker was killed in between
    _check_form(study, attributes)
    if attributes[FORM] < FORMAT and not readonly:
        storage.set_study_user_attr(number, FORM, FORMAT)  # an earlier version would not know what counts as a round
    return int(number)


def _named(storage: Any, number: int, study: Study) -> int:
    """Write down which study it is, the format last: without it nothing counts."""
    storage.set_study_user_attr(number, MADE_BY, version("noregret"))
    storage.set_study_user_attr(number, SELF, study.identity())
    storage.set_study_user_attr(number, FORM, FORMAT)
    return number


def _direction(study: Study) -> StudyDirection:
    return StudyDirection.MINIMIZE if study.goal == "minimize" else StudyDirection.MAXIMIZE


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
    """What has changed in the study file since it was last worked on; None if nothing that matters has.

    Raises
    ------
    StudyError
        If measurements of before and after do not belong together.
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
    """What to do about a study file that has changed so that it can be migrated."""
    was, now = _in_form_of_now(attributes[SELF]), study.identity()
    command = shlex.join(["noregret", "tune", "--migrate", str(study.path)])
    return StudyError(
        f"{_changed(study, was, now)}. '{command}' goes on with the results that carry over. Or change it back, or "
        "give this one another name or storage"
    )


def _in_form_of_now(identity: dict[str, Any]) -> dict[str, Any]:
    return {key: read_form(stored) for key, stored in identity.items()}


def _changed(study: Study, was: dict[str, Any], now: dict[str, Any]) -> str:
    key = differing(was, now)[0]
    before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
    return f"{_place(study)}: holds another study named {study.name!r}: {key} was {before}, now it is {after}"
