"""Copies of a database, logs that belong to another file, and damage: nothing is destroyed, all is reported."""

import os
import re
import shlex
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.studies.made import outcome, suggested

from noregret.cli import main
from noregret.studies.store import trials
from noregret.studies.store.databases.sqlite import KEPT_COPIES, SPACING_SECONDS, copies, examine, fresh, holds_all
from noregret.studies.store.records import arrived
from noregret.studies.store.storage import Storage
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load
from noregret.studies.study.study import StudyError

TEXT = """
command = ["echo", "{n}", "{x}"]
storage = "sqlite:///s.db"
confirm = 0
[budget]
evaluations = 12
[parameters.n]
type = "int"
low = 0
high = 9
[parameters.x]
type = "float"
low = 0.0
high = 1.0
"""
RESULTS = 10


def suggest(records):
    return suggested({"n": len(records) % 10, "x": len(records) / 100}, arrived(records)[1])


def add(store, value):
    number = store.claim(suggest).trial.number
    assert store.tell(outcome(number, value, "", 0.5))


def results(copy):
    """Every result in a copy."""
    with closing(sqlite3.connect(copy.path)) as connection:
        return set(
            connection.execute(
                "SELECT number, state, document FROM noregret_trials WHERE state NOT IN ('waiting', 'running')"
            )
        )


def values(study):
    with Store(study, readonly=True) as store:
        return [record.value() for record in store.records()]


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copies")
    (folder / "s.toml").write_text(TEXT)
    with Store(replace(load(folder / "s.toml"), lease=60)) as store:
        for i in range(RESULTS):
            add(store, i - 0.5)
    return folder


@pytest.fixture
def study(example, tmp_path):
    """A study of ten results, closed, so that it has a recent copy."""
    shutil.copytree(example, tmp_path, dirs_exist_ok=True)
    for file in tmp_path.rglob("*"):
        os.utime(file)
    return load(tmp_path / "s.toml")


@pytest.fixture
def db(study):
    return study.folder / "s.db"


def advised(text):
    """Run the command that a message names."""
    return shlex.split(re.search(r"'noregret ((?:restore|tune) [^\n]*?\.toml)'", text)[1])


@pytest.mark.slow
def test_a_missing_database_beside_copies_is_refused_and_both_ways_out_work(study, db, capsys):
    db.unlink()
    for command in ("tune", "report"):
        assert main([command, str(study.path)]) == 2
        said = capsys.readouterr().err
        assert re.search(r"s.db: is missing, but has copies, the newest .*s.db.bak.1", said)
    assert [copy.number for copy in copies(db)] == [1]
    assert not db.exists()
    assert main(advised(said)) == 0
    assert re.search(r"\n +1  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  10 results", capsys.readouterr().out)
    assert main([*advised(said), "1"]) == 0
    assert len(values(study)) == RESULTS
    db.unlink()
    for copy in copies(db):
        copy.path.rename(study.folder / f"kept{copy.number}")
    assert main(["tune", str(study.path)]) == 0
    assert len(values(study)) == 12


@pytest.mark.slow
def test_a_copy_that_holds_what_the_database_lacks_is_never_deleted(study, db):
    db.rename(study.folder / "elsewhere")
    copies(db)[0].path.rename(study.folder / "copy")
    with Store(study) as store:
        add(store, 77.0)
    (study.folder / "copy").rename(study.folder / "s.db.bak.9")
    for value in range(3):
        with Store(study) as store:
            add(store, float(value))
    found = {copy.number: len(results(copy)) for copy in copies(db)}
    assert found[9] == RESULTS
    assert found[max(found)] == 4


@pytest.mark.slow
def test_generations_are_kept_apart_in_time_and_not_too_many(study, db):
    made, now = {}, time.time()
    for i in range(8):
        with Store(replace(study, budget=replace(study.budget, rounds=99))) as store:
            add(store, 100.0 + i)
        for copy in copies(db):
            made.setdefault(copy.number, len(made))
            moment = now + made[copy.number] * SPACING_SECONDS / 2
            os.utime(copy.path, (moment, moment))
    counts = [len(results(copy)) for copy in copies(db)]
    assert counts[0] == RESULTS + 8
    assert counts == sorted(counts, reverse=True)
    assert 3 <= len(counts) <= KEPT_COPIES
    times = [copy.time for copy in copies(db)][1:]
    assert all(later - earlier >= SPACING_SECONDS for later, earlier in pairwise(times))


def test_copies_are_made_though_the_clock_was_set_back(study, db):
    for copy in copies(db):
        os.utime(copy.path, (time.time() + 1e6, time.time() + 1e6))
    with Store(study):
        assert [copy.number for copy in copies(db)] == [2, 1]


def test_restoring_destroys_nothing(study, db, capsys):
    with Store(study) as store:
        add(store, 123.0)
    before = db.read_bytes()
    assert main(["restore", str(study.path)]) == 0
    listed = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(line[0], line[3]) for line in listed] == [("2", "11"), ("1", "10")]
    assert main(["restore", str(study.path), "1"]) == 0
    assert "what was there before is now" in capsys.readouterr().out
    assert (study.folder / "s.db.aside.1").read_bytes() == before
    assert values(study) == [i - 0.5 for i in range(RESULTS)]
    assert main(["restore", str(study.path), "2"]) == 0
    assert values(study)[-1] == 123.0
    assert (study.folder / "s.db.aside.2").exists()


@pytest.mark.slow
def test_what_cannot_be_restored_changes_nothing(study, db, capsys):
    before = db.read_bytes()
    assert main(["restore", str(study.path), "7"]) == 2
    said = capsys.readouterr().err
    assert "s.db: has no copy 7: " in said
    assert main(advised(said)) == 0
    with Store(study):
        assert main(["restore", str(study.path), "1"]) == 2
    assert "is being worked on: end 'noregret tune' first" in capsys.readouterr().err
    path = copies(db)[0].path
    path.write_bytes(path.read_bytes()[:9000])
    assert main(["restore", str(study.path), str(copies(db)[0].number)]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert main(["restore", str(study.path)]) == 0
    assert "damaged" in capsys.readouterr().out
    for copy in copies(db):
        copy.path.unlink()
    assert main(["restore", str(study.path)]) == 2
    assert "has no copies: 'noregret tune' makes one at the first result" in capsys.readouterr().err
    assert db.read_bytes() == before
    assert main(["tune", str(study.path)]) == 0
    assert main(["restore", str(study.path)]) == 0


def test_the_copies_of_a_server_are_its_own_business(study, capsys):
    study.path.write_text(TEXT.replace("sqlite:///s.db", "postgresql://u:secret@127.0.0.1:1/d"))
    assert main(["restore", str(study.path)]) == 2
    assert "127.0.0.1:1/d: is on a server, whose copies are made and put back there" in capsys.readouterr().err


def hot_log(study):
    """The log that a killed process leaves."""
    store = Store(study)
    add(store, 55.0)
    log = (study.folder / "s.db-wal").read_bytes()
    store.close()
    assert log
    return log


@pytest.mark.slow
def test_the_log_of_a_deleted_file_is_not_applied_to_a_new_one(study, db, capsys):
    log = hot_log(study)
    for path in (db, *(copy.path for copy in copies(db))):
        path.unlink()
    (study.folder / "s.db-wal").write_bytes(log)
    (study.folder / "s.db-shm").write_bytes(b"\1" * 32768)
    assert main(["tune", str(study.path)]) == 0
    said = capsys.readouterr().err
    assert re.search(r"found the log of another file beside .*s.db; it is now .*s.db.aside.1-wal", said)
    assert (study.folder / "s.db.aside.1-wal").read_bytes() == log
    assert len(values(study)) == 12
    assert results(copies(db)[0])


@pytest.mark.slow
@pytest.mark.parametrize("command", ["tune", "report"])
def test_the_log_of_another_file_is_not_applied_to_a_copy_in_its_place(study, db, capsys, command):
    log = hot_log(study)
    shutil.copyfile(copies(db)[-1].path, db)
    (study.folder / "s.db-wal").write_bytes(log[:32] + log[32:] * 3)
    before = results(copies(db)[-1])
    assert main([command, str(study.path)]) == 0
    if command == "tune":
        assert "s.db.aside.1-wal" in capsys.readouterr().err
        assert before < results(copies(db)[0])
    else:
        assert (study.folder / "s.db-wal").exists()


def test_what_a_killed_process_left_of_a_copy_is_not_used(study, db):
    for name in (".s.db.copying", ".s.db.copying-journal", ".s.db.new-journal", ".s.db.copying-wal"):
        (study.folder / name).write_bytes(os.urandom(5000))
    with Store(study) as store:
        add(store, 1.0)
    assert len(results(copies(db)[0])) == RESULTS + 1
    assert not list(study.folder.glob(".s.db.copying*"))
    fresh(study.folder / ".s.db.new")
    assert not list(study.folder.glob(".s.db.new*"))


@pytest.mark.slow
def test_a_damaged_file_is_reported_left_alone_and_has_a_copy(study, db, capsys):
    check_damaged(study, db, lambda data: data[:8192] + os.urandom(len(data) - 8192), capsys)


def check_damaged(study, db, damage, capsys):
    """Raise AssertionError unless a damaged file is reported and left alone, and the advice of the message works."""
    bad = damage(db.read_bytes())
    db.write_bytes(bad)
    for command in ("tune", "report"):
        assert main([command, str(study.path)]) == 2
        said = capsys.readouterr().err
        assert re.search(r"s.db: the file is damaged or is no SQLite database. It is left as it is. 'noregret re", said)
    assert db.read_bytes() == bad
    assert main([*advised(said), "1"]) == 0
    assert values(study) == [i - 0.5 for i in range(RESULTS)]
    db.write_bytes(bad)
    for copy in copies(db):
        copy.path.unlink()
    assert main(["tune", str(study.path)]) == 2
    assert "It has no copy; to start over, move it away" in capsys.readouterr().err
    db.rename(study.folder / "away")
    assert main(["tune", str(study.path)]) == 0


FLIPS = [
    "UPDATE noregret_trials SET document = replace(document, '4.5', '4.25') WHERE number = 5",
    "UPDATE noregret_trials SET document = replace(document, '\"n\": 5', '\"n\": 6') WHERE number = 5",
    "UPDATE noregret_trials SET document = replace(document, '\"seconds\": 0.5', '\"seconds\": 0.6') WHERE number = 5",
    "UPDATE noregret_trials SET document = replace(document, '[', '[ ') WHERE number = 5",
    "UPDATE noregret_trials SET document = '' WHERE number = 5",
    "UPDATE noregret_trials SET checksum = replace(checksum, substr(checksum, 1, 1), 'x') WHERE number = 5",
    "UPDATE noregret_trials SET state = 'failed' WHERE number = 5",
    "UPDATE noregret_trials SET state = 'running' WHERE number = 5",
    "UPDATE noregret_trials SET ended = '2001-01-01T00:00:00' WHERE number = 5",
    "UPDATE noregret_trials SET ended = NULL WHERE number = 5",
    "UPDATE noregret_trials SET revision = 1 WHERE number = 5",
    "UPDATE noregret_trials SET number = 55 WHERE number = 5",
]


@pytest.mark.slow
@pytest.mark.parametrize("flip", FLIPS)
def test_a_flipped_digit_is_reported_and_never_copied(study, db, flip, capsys):
    before = results(copies(db)[0])
    with sqlite3.connect(db) as connection:
        assert connection.execute(flip).rowcount == 1
    connection.close()
    for command in ("tune", "report"):
        assert main([command, str(study.path)]) == 2
        said = capsys.readouterr().err
        assert re.search(r"the checksum of trial \d+ does not fit its result. It is left as it is", said)
    assert [results(copy) for copy in copies(db)] == [before]
    assert main([*advised(said), "1"]) == 0
    assert values(study) == [i - 0.5 for i in range(RESULTS)]


@pytest.mark.parametrize("flip", FLIPS)
def test_a_digit_that_flips_while_a_study_is_open_is_reported_at_the_next_copy(study, db, flip):
    before = results(copies(db)[0])
    store = Store(study)
    with sqlite3.connect(db) as connection:
        connection.execute(flip)
    connection.close()
    with pytest.raises(StudyError, match=r"the checksum of trial 55? does not fit"):
        store.back_up(older_than=0.0)
    with pytest.raises(StudyError, match=r"the checksum of trial 55? does not fit"):
        store.close()
    assert [results(copy) for copy in copies(db)] == [before]


@pytest.mark.parametrize("at_once", [1, 4, trials.AT_ONCE])
@pytest.mark.parametrize("flip", FLIPS)
def test_a_flipped_digit_is_found_however_many_rows_are_checked_at_once(study, db, monkeypatch, at_once, flip):
    monkeypatch.setattr(trials, "AT_ONCE", at_once)
    with closing(Storage("sqlite:///s.db", study.folder)) as storage:
        storage.check()
        with sqlite3.connect(db) as connection:
            connection.execute(flip)
        connection.close()
        with pytest.raises(StudyError, match=r"the checksum of trial 55? does not fit"):
            storage.check()


def test_a_result_that_comes_while_rows_are_checked_is_no_damage(study, monkeypatch):
    monkeypatch.setattr(trials, "AT_ONCE", 1)
    with Store(study) as store:
        claimed, read = [store.claim(suggest).trial.number for _ in range(2)], []
        record_of = trials._record

        def interrupted(row):
            if len(read) == RESULTS // 2:
                read.append(None)
                store.tell(outcome(claimed[1], 3.5, "", 0.5))
            read.append(None)
            return record_of(row)

        monkeypatch.setattr(trials, "_record", interrupted)
        store._storage.check()
        assert len(read) > RESULTS


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE noregret_trials SET state = 'donf' WHERE number = 10",
        "UPDATE noregret_trials SET document = '{' WHERE number = 10",
        "UPDATE noregret_trials SET holder = 'x' WHERE number = 10",
        "UPDATE noregret_trials SET holder = '[3]' WHERE number = 10",
        "UPDATE noregret_trials SET number = 12 WHERE number = 10",
        "UPDATE noregret_trials SET revision = 'x' WHERE number = 10",
        "UPDATE noregret_trials SET document = CAST(x'ff' AS TEXT) WHERE number = 10",
        "UPDATE noregret_trials SET ended = 'yesterday' WHERE number = 10",
        "UPDATE noregret_studies SET document = '{'",
        "UPDATE noregret_studies SET document = replace(document, 'minimize', 'maximize')",
        "UPDATE noregret_studies SET document = replace(document, '\"format\": 4', '\"format\": 3')",
        "UPDATE noregret_studies SET checksum = ''",
    ],
)
def test_damaged_rows_give_a_message_and_no_traceback(study, db, damage, capsys):
    store = Store(study)
    store.claim(suggest)
    store.close()
    with sqlite3.connect(db) as connection:
        assert connection.execute(damage).rowcount
    connection.close()
    for command in ("tune", "report"):
        assert main([command, str(study.path)]) == 2
        said = capsys.readouterr().err
        assert "damaged" in said
    assert main([*advised(said), "1"]) == 0
    assert values(study) == [i - 0.5 for i in range(RESULTS)]


@pytest.mark.slow
def test_who_always_fails_starts_again_with_another_command(study, db, capsys):
    failing = TEXT.replace('["echo", "{n}", "{x}"]', '["sh", "-c", "exit 3", "{n}", "{x}"]')
    study.path.write_text(
        failing.replace("evaluations = 12", "evaluations = 99").replace("storage", 'name = "first"\nstorage')
    )
    assert main(["tune", str(study.path)]) == 2
    assert "A study without any result starts again when the command in its file is another" in capsys.readouterr().err
    study.path.write_text(TEXT.replace("storage", 'name = "first"\nstorage'))
    assert main(["report", str(study.path)]) == 2
    said = capsys.readouterr().err
    assert "its command has changed, and no trial had a result" in said
    assert main(advised(said)) == 0  # noregret tune
    again = "the study starts again (the trials are kept as 'first (set aside 2)')"
    assert f"command has changed, and none of its 10 trials had a result: {again}" in capsys.readouterr().err
    assert [record is not None for record in values(load(study.path))] == [True] * 12
    newest, *older = (copy.path for copy in copies(db))
    assert all(holds_all(newest, copy) for copy in older)  # so that older copies are deleted some day


def test_damage_that_cannot_even_be_quoted_is_damage():
    """SQLite's message about a damaged index quotes its name, which may not be text any more."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE noregret_studies (name TEXT)")
        examine(connection)
        connection.text_factory = lambda data: (data + b"\xd9").decode()
        with pytest.raises(sqlite3.DatabaseError, match="malformed: it holds text that is none"):
            examine(connection)
