"""Checksums: a trial's rows must still be those that were written with its result.

The checksum of a trial covers what its rows hold in Optuna's tables: number, state, value, params with their
distributions, and attributes. It is written in the transaction that finishes the trial. A result without one, of an
earlier version or of another program, is accepted.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from noregret.tune.store.leases import HOLDER

SUM = "noregret:sum"
"""The attribute of a trial that holds its checksum."""

AT_ONCE = 1000
"""Number of trials that are checked together: it bounds the memory."""

Execute = Callable[[str], Iterable[Any]]
"""Runs a statement on a database and gives its rows."""


def seal(execute: Execute, trial: int, state: str, values: Sequence[float | None]) -> str:
    """The checksum of a trial that is about to be finished in this state, with these values."""
    ((number, _),) = execute(f"SELECT number, trial_id FROM trials WHERE trial_id = {trial}")
    return digest(number, state, values, _params(execute, f"{trial}")[trial], _kept(execute, f"{trial}")[trial])


def broken_seals(execute: Execute, study: str = "SELECT study_id FROM studies") -> list[int]:
    """The numbers of the trials whose rows do not fit their checksum; ``study`` selects the ids of the studies."""
    ((last,),) = execute(f"SELECT MAX(trial_id) FROM trials WHERE study_id IN ({study})")
    broken = []
    for first in range(0, (last or 0) + 1, AT_ONCE):
        some = f"trial_id >= {first} AND trial_id < {first + AT_ONCE}"
        broken += _broken_among(execute, f"SELECT trial_id FROM trials WHERE study_id IN ({study}) AND {some}")
    return broken


def _broken_among(execute: Execute, trials: str) -> list[int]:
    """The numbers of the trials whose rows do not fit their checksum; ``trials`` selects their ids."""
    # First: a trial with a checksum is finished, and its rows no longer change.
    sums = {trial: value for trial, _, value in _attributes(execute, f"key = '{SUM}'", trials)}
    params, kept = _params(execute, trials), _kept(execute, trials)
    values: dict[int, list[float]] = defaultdict(list)
    for trial, value in execute(
        f"SELECT trial_id, value FROM trial_values WHERE trial_id IN ({trials}) ORDER BY objective"
    ):
        values[trial].append(value)
    rows = execute(f"SELECT trial_id, number, CAST(state AS VARCHAR) FROM trials WHERE trial_id IN ({trials})")
    return [
        number
        for trial, number, state in rows
        if trial in sums and sums[trial] != json.dumps(digest(number, state, values[trial], params[trial], kept[trial]))
    ]


def digest(number: Any, state: str, values: Iterable[Any], params: Iterable[Any], kept: Iterable[Any]) -> str:
    """The checksum of a trial, from what its rows hold."""
    text = json.dumps(
        [number, state, [_plain(value) for value in values], sorted(map(list, params)), sorted(map(list, kept))]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A number without the sign of zero, which SQLite does not keep."""
    return value + 0.0 if isinstance(value, float) else value


def _params(execute: Execute, trials: str) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    columns = "trial_id, param_name, param_value, distribution_json"
    for trial, name, value, form in execute(f"SELECT {columns} FROM trial_params WHERE trial_id IN ({trials})"):
        found[trial].append([name, _plain(value), form])
    return found


def _kept(execute: Execute, trials: str) -> dict[int, list[Any]]:
    """The attributes, except the checksum itself and the holder, which changes at any time."""
    found: dict[int, list[Any]] = defaultdict(list)
    for trial, key, value in _attributes(execute, f"key NOT IN ('{SUM}', '{HOLDER}')", trials):
        found[trial].append([key, value])
    return found


def _attributes(execute: Execute, which: str, trials: str) -> Iterable[Any]:
    return execute(
        f"SELECT trial_id, key, value_json FROM trial_user_attributes WHERE {which} AND trial_id IN ({trials})"
    )
