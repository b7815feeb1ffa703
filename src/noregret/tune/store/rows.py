"""Rows of Optuna's tables that are written without Optuna.

Optuna refuses a choice that has got another option since the first trial of a study, and takes milliseconds for a trial
that is known from elsewhere. What is written here reads the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy
from optuna.distributions import BaseDistribution, CategoricalDistribution, distribution_to_json

from noregret.optimizer.spaces.parameters import identity
from noregret.tune.measuring.measure import Outcome
from noregret.tune.store.checksums import SUM, digest
from noregret.tune.store.records import IMPORTED, RUN, TOLD, run_attribute
from noregret.tune.study.past import Past
from noregret.tune.study.study import Params

PARAM = sqlalchemy.text(
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
    "VALUES (:trial, :name, :value, :form)"
)
TRIAL = sqlalchemy.text(
    "INSERT INTO trials (study_id, number, state, datetime_start, datetime_complete) "
    "VALUES (:study, :number, 'COMPLETE', :now, :now) RETURNING trial_id"
)
VALUE = sqlalchemy.text(
    "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (:trial, 0, :value, 'FINITE')"
)
ATTRIBUTE = sqlalchemy.text(
    "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (:trial, :key, :json)"
)

Distributions = Mapping[str, BaseDistribution]


def add_params(connection: Any, trial: int, params: Params, distributions: Distributions) -> None:
    """Give a trial its params."""
    connection.execute(PARAM, [{"trial": trial, **row} for row in _params(params, distributions)])


def add_past(connection: Any, study: int, first: int, rows: Mapping[str, Past], distributions: Distributions) -> None:
    """Add trials that were made elsewhere, by their marks, numbered from ``first`` on, each with its checksum."""
    now = str(datetime.now())
    params, values, attributes = [], [], []
    for number, (mark, row) in enumerate(rows.items(), first):
        trial = connection.execute(TRIAL, {"study": study, "number": number, "now": now}).scalar()
        its_params, its_attributes = _params(row.params, distributions), _attributes(mark, row)
        listed = [[found["name"], found["value"], found["form"]] for found in its_params]
        its_attributes[SUM] = json.dumps(digest(number, "COMPLETE", [row.value], listed, list(its_attributes.items())))
        params += [{"trial": trial, **found} for found in its_params]
        values.append({"trial": trial, "value": row.value})
        attributes += [{"trial": trial, "key": key, "json": written} for key, written in its_attributes.items()]
    for statement, lines in ((PARAM, params), (VALUE, values), (ATTRIBUTE, attributes)):
        connection.execute(statement, lines)


def _params(params: Params, distributions: Distributions) -> list[dict[str, Any]]:
    return [
        {"name": name, "value": _stored(its, params[name]), "form": distribution_to_json(its)}
        for name, its in distributions.items()
        if name in params
    ]


def _stored(distribution: BaseDistribution, value: Any) -> float:
    """The number that Optuna keeps for a value: of a choice its index, where Optuna itself takes True for 1."""
    if isinstance(distribution, CategoricalDistribution):
        return float(list(map(identity, distribution.choices)).index(identity(value)))
    return float(distribution.to_internal_repr(value))


def _attributes(mark: str, row: Past) -> dict[str, str]:
    run = run_attribute(Outcome(row.value, "", 0.0, constraints=row.constraints))
    attributes = {TOLD: [], IMPORTED: {"row": mark, "noise": row.noise}, RUN: run}
    return {key: json.dumps(value) for key, value in attributes.items()}
