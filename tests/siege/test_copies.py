"""Every byte of a database flipped in turn."""

import random

from tests.tune import test_copies
from tests.tune.test_copies import results, values

from noregret.tune.store.databases.copies import copies
from noregret.tune.study.study import StudyError

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
