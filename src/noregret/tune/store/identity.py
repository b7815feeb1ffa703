"""Whether a storage holds this study, another one, or none yet."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from optuna.study import StudyDirection

from noregret.tune.study.study import NotYet, Study, StudyError, without_password

FORMAT = 2
"""How studies are written; a larger number is a later form, which this version cannot read."""
FORM, SELF, MADE_BY = "noregret:format", "noregret:study", "noregret:version"


def study_id(storage: Any, study: Study, readonly: bool) -> int:
    """The study's number in the storage, where it is made if need be; StudyError if it is not the same study."""
    known = {found.study_name: found for found in storage.get_all_studies()}
    if study.name not in known:
        if readonly:
            others = f": it has {', '.join(map(repr, known))}" if known else ""
            raise NotYet(f"storage {without_password(study.storage)} has no study {study.name!r} yet{others}")
        return _named(storage, storage.create_new_study([_direction(study)], study.name), study)
    number, attributes = storage.get_study_id_from_name(study.name), known[study.name].user_attrs
    if FORM not in attributes and not readonly and not storage.get_all_trials(number, deepcopy=False):
        return _named(storage, number, study)  # its maker was killed in between
    _check(study, attributes)
    if attributes[FORM] < FORMAT and not readonly:
        storage.set_study_user_attr(number, FORM, FORMAT)  # an earlier version would not respect who holds a trial now
    return int(number)


def _named(storage: Any, number: int, study: Study) -> int:
    """Write down which study it is, the format last: without it nothing counts."""
    storage.set_study_user_attr(number, MADE_BY, version("noregret"))
    storage.set_study_user_attr(number, SELF, study.identity())
    storage.set_study_user_attr(number, FORM, FORMAT)
    return number


def _direction(study: Study) -> StudyDirection:
    return StudyDirection.MINIMIZE if study.goal == "minimize" else StudyDirection.MAXIMIZE


def _check(study: Study, attributes: dict[str, Any]) -> None:
    place = f"{study.path}: storage {without_password(study.storage)}"
    if FORM not in attributes:
        raise StudyError(f"{place}: its study {study.name!r} was not made by noregret: choose another name or storage")
    if attributes[FORM] > FORMAT:
        raise StudyError(
            f"{place}: was written by a newer noregret ({attributes.get(MADE_BY)}, format {attributes[FORM]}); "
            f"this one reads up to format {FORMAT}: upgrade it"
        )
    was, now = attributes[SELF], study.identity()
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            raise StudyError(
                f"{place}: holds another study named {study.name!r}: {key} was {was.get(key, 'absent')}, now it is "
                f"{now.get(key, 'absent')}. Change it back, or give this one another name or storage"
            )
