"""Every byte of a database flipped in turn."""

import random
import sqlite3
import tracemalloc
from contextlib import closing
from datetime import datetime

import pytest
from tests.studies import test_copies
from tests.studies.made import record
from tests.studies.test_copies import RESULTS, check_damaged, results, values

from noregret.studies.store import trials
from noregret.studies.store.databases.sqlite import copies
from noregret.studies.store.store import Store
from noregret.studies.study.study import StudyError

db = test_copies.db
example = test_copies.example
study = test_copies.study


def test_whatever_byte_is_flipped_it_is_reported_or_changes_no_result(study, db):
    good, rng, reported = db.read_bytes(), random.Random(0), 0
    before = results(copies(db)[0])
    expected = values(study)
    for _ in range(40):
        position = rng.randrange(len(good))
        db.write_bytes(good[:position] + bytes([good[position] ^ 1 << rng.randrange(8)]) + good[position + 1 :])
        try:
            assert values(study) == expected, position
        except StudyError:
            reported += 1
    assert reported > 0
    assert results(copies(db)[0]) == before


def test_the_memory_that_a_copy_takes_does_not_grow_with_the_results(study, db):
    peaks, ended = [], datetime.now()
    with Store(study) as store:
        for first, last in ((RESULTS, 2_000), (2_000, 20_000)):
            with closing(sqlite3.connect(db)) as connection:
                made = [record(number, {}, "done", 1.5, ended=ended) for number in range(first, last)]
                connection.executemany(trials.INSERT, [{"study": 1} | trials._row(its) for its in made])
                connection.commit()
            store.back_up(older_than=0.0)  # this one is compared with
            tracemalloc.start()
            store.back_up(older_than=0.0)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert len(copies(db)) == 2  # the first one, as it is the oldest, and the newest
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"this is no database" * 100,
        lambda data: b"",
        lambda data: data[:100],
        lambda data: data[: len(data) // 2],
        lambda data: b"\0" * len(data),
    ],
)
def test_a_damaged_file_is_reported_left_alone_and_has_a_copy(study, db, damage, capsys):
    check_damaged(study, db, damage, capsys)
