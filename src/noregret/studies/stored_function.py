"""A Python function whose trials are kept in the store of `noregret tune`: `minimize` with ``storage``."""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any

from noregret.optimizer import CandidateTable, Choice, Optimizer, ParameterSpace
from noregret.studies.learning.suggest import as_study
from noregret.studies.session import Plan
from noregret.studies.store.databases.database import restoring_command
from noregret.studies.store.identity import differing
from noregret.studies.store.storage import Storage
from noregret.studies.store.store import Store
from noregret.studies.study.parameters import in_words
from noregret.studies.study.study import Study, StudyError

NAME = "function"
"""Name of the study in its storage."""


def study_of(optimizer: Optimizer, storage: str, rng: Any, plan: Plan, repeats: tuple[int, int]) -> Study:
    """The study of a function: one without a command."""
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, Integral)):
        raise ValueError(f"with storage, rng must be a whole number, which is stored, or None for 0, got {rng!r}")
    path = Path("storage") if "://" in storage else Path(storage).expanduser().absolute()
    url = storage if "://" in storage else f"sqlite:///{path}"
    return as_study(
        optimizer,
        path,
        _checked_space(optimizer),
        name=NAME,
        storage=url,
        seed=int(rng or 0),
        budget=plan.budget,
        confirm=plan.confirm,
        stop=plan.stop,
        repeats=repeats[0] if repeats[0] == repeats[1] else repeats,
    )


def _checked_space(optimizer: Optimizer) -> Any:
    """The space as a study has it; ValueError if a storage cannot keep its values."""
    space = optimizer.space
    if isinstance(space, ParameterSpace):
        found: Any = dict(space.parameters)
        options = {name: list(its.options) for name, its in found.items() if isinstance(its, Choice)}
    else:
        assert isinstance(space, CandidateTable)
        if space.is_array or not all(isinstance(name, str) for name in space.names):
            raise ValueError(
                "with storage, the rows of a table must be dicts with text as names, such as [{'x': 1.5, 'kind': 'a'}]"
            )
        found = [space.rows[number] for number in range(len(space.rows))]
        options = {name: [row[name] for row in found] for name in space.names}
    for name, values in options.items():
        odd = [value for value in values if not isinstance(value, bool | int | float | str | None)]
        if odd:
            raise ValueError(
                f"with storage, the values of {name!r} must be text, numbers, True, False or None, got {odd[0]!r}: put "
                "a name in its place, and look the object up by it in f"
            )
    return found


def opened(study: Study) -> Store:
    """The store of a study; ValueError if its storage has another one."""
    try:
        return Store(study)
    except StudyError:
        with suppress(StudyError):
            storage = Storage(study.storage, study.folder, restoring_command(study), readonly=True)
            try:
                stored = storage.find(study.name)
            finally:
                storage.close()
            was, now = stored.identity if stored else {}, study.identity()
            for key in differing(was, now) if stored else ():
                before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
                raise OtherStudy(
                    f"storage {storage.where} keeps evaluations of another problem: {key} was {before}, now it is "
                    f"{after}. Change it back, or give another storage"
                ) from None
        raise


class OtherStudy(ValueError):
    """The storage has another problem than the one that is tuned."""
