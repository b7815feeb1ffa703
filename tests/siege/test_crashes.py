"""Workers killed again and again: no acknowledged result is lost, none counts twice."""

import json

import pytest
from tests.studies.test_crashes import FORMULA, finish, kill, records_of, suggested_again, written

from noregret.cli import main
from noregret.studies.store.records import arrived
from noregret.studies.study.reading import load

CLOCK = ["sh", "-c", "date +%N.$0", "{x}", "{y}"]
"""Prints another number each time."""


def acknowledged(lines):
    found = [json.loads(line) for line in lines]
    return [(answer["trial"], answer["value"]) for answer in found]


def check_everything(study, lines, records):
    told = acknowledged(lines)
    values = {record.number: record.value() for record in records}
    assert len({number for number, _ in told}) == len(told)  # acknowledged once
    assert all(values[number] == value for number, value in told)  # and as it is in the store
    assert [record.number for record in records] == list(range(len(records)))
    assert all(record.state == "done" for record in records)
    known, new = arrived(records)
    assert sorted([*known, *new]) == list(range(len(records)))  # each answer was taken in once
    loaded = load(study)
    for record in records[:: max(1, len(records) // 25)]:
        assert suggested_again(loaded, records, record.number) == record.params


def test_two_workers_killed_fifty_times_lose_nothing(tmp_path):
    study = written(tmp_path, CLOCK, 10**6)
    lines = kill(study, workers=2, kills=50, seed=0)
    records = finish(study, tmp_path, CLOCK)
    check_everything(study, lines, records)
    assert len(acknowledged(lines)) > 25


def test_two_workers_on_a_server_killed_lose_nothing(tmp_path, postgresql):
    url = postgresql.new_database()
    study = written(tmp_path, CLOCK, 10**6, url)
    lines = kill(study, workers=2, kills=15, seed=1)
    check_everything(study, lines, finish(study, tmp_path, CLOCK, url))


@pytest.mark.parametrize("workers", [1, 3])
def test_every_suggestion_follows_from_what_the_store_says_was_known(tmp_path, workers):
    study = written(tmp_path, FORMULA, 25)
    assert main(["tune", str(study), "--workers", str(workers)]) == 0
    records = records_of(study)
    assert all(suggested_again(load(study), records, record.number) == record.params for record in records)
    assert len({record.value() for record in records}) > 5
