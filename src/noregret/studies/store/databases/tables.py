"""The tables of studies and trials; `noregret.studies.store.trials` says what the rows are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from noregret.studies.store.databases.connections import Transaction

TABLES = """
CREATE TABLE noregret_studies (id {identity} PRIMARY KEY{counted}, name TEXT NOT NULL, kind TEXT NOT NULL,
    incarnation TEXT NOT NULL, first INTEGER NOT NULL, deleted INTEGER, document TEXT NOT NULL, checksum TEXT NOT NULL);
CREATE UNIQUE INDEX noregret_names ON noregret_studies (name) WHERE deleted IS NULL;
CREATE TABLE noregret_trials (study BIGINT NOT NULL REFERENCES noregret_studies (id), number INTEGER NOT NULL,
    state TEXT NOT NULL, ended TEXT, holder TEXT NOT NULL, revision INTEGER NOT NULL, document TEXT NOT NULL,
    checksum TEXT NOT NULL, PRIMARY KEY (study, number));
CREATE INDEX noregret_states ON noregret_trials (study, state, ended);
CREATE INDEX noregret_revisions ON noregret_trials (study) WHERE revision > 0;
"""
"""An id is not used again when its study was deleted."""
ON_FILE = TABLES.format(identity="INTEGER", counted=" AUTOINCREMENT")
ON_SERVER = TABLES.format(identity="BIGINT GENERATED ALWAYS AS IDENTITY", counted="")
CREATE = (
    "INSERT INTO noregret_studies (name, kind, incarnation, first, document, checksum) "
    "VALUES (:name, :kind, :incarnation, :first, :document, :checksum) RETURNING id"
)


def make(transaction: Transaction) -> None:
    """Make the tables, unless they are there."""
    if not transaction.has_table("noregret_trials"):
        for statement in (ON_SERVER if transaction.is_server else ON_FILE).split(";"):
            if statement.strip():
                transaction.rows(statement)


def digest(*columns: object) -> str:
    """Checksum of the columns of a row."""
    return hashlib.sha256(" ".join(map(str, columns)).encode()).hexdigest()[:16]


def add_study(
    transaction: Transaction, name: str, about: Mapping[str, Any], incarnation: str = "", first: int = 0
) -> tuple[int, int, str]:
    """Make a study, with all that says what it is; return its id, the number of its first trial and its incarnation."""
    ((deleted,),) = transaction.rows("SELECT MAX(deleted) FROM noregret_studies WHERE name = :name", name=name)
    first, incarnation = max(first, deleted or 0), incarnation or token_hex(8)
    kind = next(iter(about["identity"]), "")
    given = {"name": name, "kind": kind, "incarnation": incarnation, "first": first}
    ((number,),) = transaction.rows(CREATE, **given, **document_of(about))
    return number, first, incarnation


def document_of(about: Mapping[str, Any]) -> dict[str, str]:
    """All that is stored of a study, with its checksum."""
    document = json.dumps(about)
    return {"document": document, "checksum": digest(document)}


def about_of(document: str, checksum: str) -> dict[str, Any]:
    """All that is stored of a study; ValueError if it is not what was written."""
    if checksum != digest(document):
        raise ValueError("the checksum of a study does not fit what is stored of it")
    found: dict[str, Any] = json.loads(document)
    return found
