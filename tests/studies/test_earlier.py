"""Studies of noregret 1.0, in Optuna's tables: all of them is read, taken over once, and never lost."""

import hashlib
import json
import os
import signal
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path

import optuna
import psycopg
import pytest
from tests.studies.made import outcome, record, suggested

from noregret.optimizer import Choice, Float, Int, Reading
from noregret.studies.store.databases.sqlite import copies, holds_all, make_copy
from noregret.studies.store.records import Record, arrived
from noregret.studies.store.storage import Storage
from noregret.studies.store.store import Store
from noregret.studies.store.trials import TrialTable
from noregret.studies.study.results import JsonField
from noregret.studies.study.study import Budget, NotYet, Study, StudyError

SAVED = Path(__file__).parent / "saved_1_0"
TABLES = (
    "studies",
    "study_directions",
    "study_system_attributes",
    "study_user_attributes",
    "trials",
    "trial_params",
    "trial_values",
    "trial_intermediate_values",
    "trial_user_attributes",
    "trial_system_attributes",
    "trial_heartbeats",
)
"""Optuna's tables, those first that others refer to."""
NAMES = "plain", "two", "function", "served", "steps"
SPACE = {"x": Float(0.0, 1.0), "n": Int(1, 1000, log=True), "mode": Choice(["a", 2, False])}
TAKEN_OVER = "a newer noregret has taken over this study: upgrade noregret here"


@pytest.fixture(scope="session")
def saved():
    """The database that 1.0 has made."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript((SAVED / "studies.sql").read_text("utf-8"))
        yield connection


class Database:
    """A database of 1.0, as other programs see it."""

    def __init__(self, url, folder):
        self.url, self.path = url, folder / "s.db"
        self.is_file = url.startswith("sqlite")

    def connected(self):
        if self.is_file:
            return closing(sqlite3.connect(self.path, isolation_level=None))
        return psycopg.connect(self.url, autocommit=True)

    def rows(self, *statements):
        """Rows of the last of these statements."""
        with self.connected() as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else cursor.rowcount

    def tables(self):
        if self.is_file:
            return {name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return {name for (name,) in self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}

    def old_rows(self):
        """All rows of Optuna's tables, but for the note that a study was taken over."""
        note = "WHERE key NOT IN ('noregret:moved', 'noregret:format', 'noregret:version')"
        queries = {name: f"SELECT * FROM {name} {note * (name == 'study_user_attributes')}" for name in TABLES}
        return {name: sorted(map(repr, self.rows(query))) for name, query in queries.items()}

    def optuna_url(self):
        return f"sqlite:///{self.path}" if self.is_file else self.url.replace("postgresql:", "postgresql+psycopg:")


@pytest.fixture
def url():
    """The storage; tests/siege runs all of these on PostgreSQL."""
    return "sqlite:///s.db"


@pytest.fixture
def step():
    """The number of statements between two kills; tests/siege kills at every one."""
    return 32


def filled(url, folder, saved):
    """A database with the studies of 1.0."""
    made = Database(url, folder)
    if made.is_file:
        made.rows("PRAGMA journal_mode=WAL")
        with made.connected() as connection:
            connection.executescript("\n".join(saved.iterdump()))
        return made
    optuna.storages.RDBStorage(made.optuna_url()).engine.dispose()
    with made.connected() as connection:
        for table in TABLES:
            found = saved.execute(f"SELECT * FROM {table}")
            names = [name for name, *_ in found.description]
            marks = ", ".join(["%s"] * len(names))
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", found.fetchall())
            sequence = f"pg_get_serial_sequence('{table}', '{names[0]}')"
            connection.execute(f"SELECT setval({sequence}, COALESCE(MAX({names[0]}), 0) + 1) FROM {table}")
    return made


@pytest.fixture
def old(url, tmp_path, saved):
    return filled(url, tmp_path, saved)


@pytest.fixture
def old_file(tmp_path, saved):
    return filled("sqlite:///s.db", tmp_path, saved)


@contextmanager
def opened(old, readonly=False):
    with closing(Storage(old.url, old.path.parent, readonly=readonly)) as storage:
        yield storage


def read(old, readonly=False):
    """All trials of all studies, by the names of these."""
    with opened(old, readonly) as storage:
        found = {name: storage.find(name) for name in NAMES}
        return {name: TrialTable(storage, its.id, its.first).refresh() for name, its in found.items() if its}


def columns(trial):
    """All that is known of a trial, also what does not count when trials are compared."""
    return {its.name: getattr(trial, its.name) for its in fields(Record)}


def shown(trials):
    return {name: list(map(columns, its)) for name, its in trials.items()}


def values(**readings):
    return {name.replace("_of_", "."): tuple(map(Reading, its)) for name, its in readings.items()}


def plain_trials():
    space = [{"x": n / 8, "n": n + 1, "mode": ["a", 2, False][n % 3]} for n in range(10)]
    ran = {"seconds": 0.5}
    bound = {"value": (Reading(4.5, bound="at_least"),), **values(memory=[3.0])}
    repeated = values(value=[0.2, 0.1 + 0.2, 0.4], memory=[1.0], cost=[7.0])
    noisy = {"value": (Reading(2.5, noise=0.25),), **values(memory=[3.0])}
    return [
        Record(0, space[0], state="done", readings=values(value=[1.0], memory=[1.0]), **ran),
        Record(1, space[1], state="done", readings=values(value=[2.0], memory=[2.0]), told=(0,), **ran),
        Record(2, space[2], state="failed", failure="exit code 1", seconds=0.25, stderr="some reason", told=(1,)),
        Record(3, space[3], state="done", readings=bound, seconds=2.0, told=(2,)),
        Record(4, space[4], state="done", readings=repeated, told=(3,), **ran),
        Record(5, space[5], state="done", readings=values(value=[6.0], memory=[6.0]), told=(4,), **ran),
        Record(6, {"x": 0.5, "n": 7, "mode": "a"}, state="done", readings=noisy, mark="4805f374aab3e294"),
        Record(7, {"x": 0.25, "n": 9, "mode": 2}, state="failed", failure="exit code 2", mark="bfceba838cd28fe4"),
        Record(8, space[8], state="running", told=(5, 6, 7)),
        Record(9, {"x": 9 / 8, "n": 10, "mode": "a"}, state="waiting"),
    ]


def two_trials():
    space = [{"x": n / 8, "n": n + 1, "mode": ["a", 2, False][n]} for n in range(3)]
    return [
        Record(0, space[0], state="done", readings=values(latency=[3.0], accuracy=[0.5]), seconds=0.0),
        Record(1, space[1], state="done", readings=values(latency=[2.0]), seconds=0.0, told=(0,)),
        Record(2, space[2], state="failed", failure="exit code 1", seconds=0.0, told=(1,)),
    ]


def served_trials():
    load = {"context": {"load": 0.5}}

    def noisy(value, limited):
        return {"value": (Reading(value, noise=0.5),), **values(constraint_of_value=[limited])}

    failed = {"failure": "reported as a failure", "readings": values(cost=[7.0])}
    mark, past = "4dc26810db9d689d", values(value=[9.0], constraint_of_value=[1.0])
    return [
        Record(0, {"t": 9, "k": "b"}, state="done", readings=noisy(3.0, 100.0), seconds=0.009379, **load),
        Record(1, {"t": 1, "k": True}, state="done", readings=noisy(4.0, 101.0), seconds=0.005589, told=(0,), **load),
        Record(2, {"t": 8, "k": "b"}, state="failed", seconds=0.005893, told=(1,), **failed, **load),
        Record(3, {"t": 46, "k": "a"}, state="running", told=(2,), **load),
        Record(4, {"t": 4, "k": "b"}, context={"load": 0.25}, state="done", readings=past, mark=mark),
    ]


def steps_trials():
    at_one = {"value": (Reading(2.5, step=1.0),)}
    first, second = {"t": 9, "k": "b"}, {"t": 1, "k": True}
    return [
        Record(0, first, fidelity={"epochs": 5}, state="done", readings=values(value=[1.5]), seconds=0.015645),
        Record(1, second, fidelity={"epochs": 1}, state="running", readings=at_one, told=(0,)),
    ]


def function_trials(saved):
    """Trials of the minimised function, whose values follow from its definition."""
    found = saved.execute(
        "SELECT x.param_value, kind.param_value, value_json FROM trials JOIN trial_params AS x USING (trial_id) "
        "JOIN trial_params AS kind USING (trial_id) JOIN trial_user_attributes USING (trial_id) "
        "WHERE study_id = 3 AND x.param_name = 'x' AND kind.param_name = 'kind' AND key = 'noregret:run' "
        "ORDER BY number"
    )
    for number, (x, kind, run) in enumerate(found):
        yield Record(
            number,
            {"x": x, "kind": "ab"[int(kind)]},
            state="done",
            readings=values(value=[(x - 0.3) ** 2 + kind]),
            seconds=json.loads(run)["seconds"],
            told=(number - 1,) if number else (),
        )


def in_database(saved, trials, study):
    """Trials with the times and holders that their rows in the database have."""
    query = "SELECT trial_id, datetime_start, datetime_complete FROM trials WHERE study_id = ? ORDER BY number"
    rows = saved.execute(query, [study]).fetchall()
    for trial, (row, began, ended) in zip(trials, rows, strict=True):
        key = "trial_id = ? AND key = 'noregret:holder'"
        holder = saved.execute(f"SELECT value_json FROM trial_user_attributes WHERE {key}", [row]).fetchone()
        yield replace(
            trial,
            started=None if trial.is_imported else datetime.fromisoformat(began),
            ended=ended and datetime.fromisoformat(ended),
            holder=json.loads(holder[0]) if holder else {},
        )


@pytest.fixture(scope="session")
def expected(saved):
    made = plain_trials(), two_trials(), function_trials(saved), served_trials(), steps_trials()
    studies = enumerate(zip(NAMES, made, strict=True), 1)
    return shown({name: list(in_database(saved, trials, number)) for number, (name, trials) in studies})


@pytest.mark.parametrize("readonly", [True, False])
def test_every_field_of_every_trial_is_read(old, expected, readonly):
    found = shown(read(old, readonly))
    for name in NAMES:
        for trial, right in zip(found[name], expected[name], strict=True):
            assert trial == right
            assert {key: repr(value) for key, value in trial["params"].items()} == {
                key: repr(value) for key, value in right["params"].items()
            }, "True is not 1"


def test_what_is_known_of_the_studies_is_kept(old, saved):
    query = (
        "SELECT value_json FROM study_user_attributes JOIN studies USING (study_id) WHERE study_name = ? AND key = ?"
    )

    def stored(name, key):
        return json.loads(saved.execute(query, [name, f"noregret:{key}"]).fetchone()[0])

    with opened(old) as storage:
        for name in NAMES:
            its = storage.find(name)
            assert its.identity == stored(name, "study")
            assert (its.incarnation, its.first) == (stored(name, "incarnation"), 0)
            assert storage.attributes(its.id)["version"] == "1.0.0"
        assert [its.name for its in storage.listed("service")] == ["served", "steps"]
        assert storage.counted("service") == (2, {"done": 4, "failed": 1, "running": 2})


def test_the_service_says_what_it_said(old):
    pytest.importorskip("fastapi")
    from tests.studies.test_service import serving

    from noregret.service.http.app import application
    from noregret.service.studies import Studies

    seen = json.loads((SAVED / "seen.json").read_text())
    past = {"params": {"t": 4, "k": "b"}, "context": {"load": 0.25}, "value": 9.0, "constraints": {"value": 1.0}}
    with serving(application(Studies(Storage(old.url, old.path.parent), 1000.0))) as client:
        for name, was in seen.items():
            now = client.get(f"/studies/{name}/trials").json()["trials"]
            assert [{key: its[key] for key in before} for its, before in zip(now, was["trials"], strict=True)] == (
                was["trials"]
            )
        for body, code in (
            ({"value": 3.0, "noise": 0.5, "constraints": {"value": 100.0}}, 200),
            ({"value": 3.5, "noise": 0.5, "constraints": {"value": 100.0}}, 409),
        ):
            assert client.post("/studies/served/trials/0/tell", json=body).status_code == code
        held = client.post("/studies/served/ask", json={"context": {"load": 0.5}, "client": "c3"}).json()["trials"]
        assert [(its["id"], its["params"]) for its in held] == [(3, {"t": 46, "k": "a"})]
        body = {"value": 5.0, "constraints": {"value": 1.0}}
        assert client.post("/studies/served/trials/3/tell", json=body).status_code == 200
        told = client.post("/studies/served/tell", json={"trials": [past, past | {"value": 9.5}]}).json()["trials"]
        assert [its["id"] for its in told] == [4, 5], "the past is known by what 1.0 stored of it"
        assert client.post("/studies/served/ask", json={"context": {"load": 0.5}}).json()["trials"][0]["id"] == 6
        body = {"fidelity": {"epochs": 3}, "value": 2.25}
        assert client.post("/studies/steps/trials/1/report", json=body).status_code == 200
        assert client.post("/studies/steps/trials/1/tell", json={"value": 2.0}).status_code == 200


@pytest.fixture
def plain(old):
    """The study of the study file that `plain` was made from."""
    return Study(
        old.path.with_name("s.toml"),
        ("m", "{x}", "{n}", "{mode}"),
        space=SPACE,
        name="plain",
        storage=old.url,
        lease=60,
        budget=Budget(rounds=100),
        constraints={"memory": ("<=", 5.0)},
        results={"memory": JsonField("m")},
    )


def suggest(records):
    return suggested({"x": 0.75, "n": len(records), "mode": False}, arrived(records)[1])


def test_a_study_goes_on(old, plain, expected):
    with Store(plain, readonly=True) as store:
        before = store.records()
    with Store(plain) as store:
        assert store.records() == before
        claimed = store.claim(suggest).trial
        assert (claimed.number, claimed.told) == (10, ())
        assert store.tell(outcome(10, 0.5, constraints={"memory": 1.0}))
        assert store.tell(outcome(10, 0.5, constraints={"memory": 1.0})), "the same outcome again"
        assert not store.tell(outcome(10, 0.25, constraints={"memory": 1.0}))
        assert store.tell(outcome(0, 1.0, constraints={"memory": 1.0})), "that of 1.0 again"
        assert store.tell(outcome(3, 4.5, bound="at_least", constraints={"memory": 3.0}))
        assert store.tell(outcome(4, runs=(0.2, 0.1 + 0.2, 0.4), cost=7.0, constraints={"memory": 1.0}))
        assert store.tell(outcome(2, None, "exit code 1"))
        assert not store.tell(outcome(0, 1.5, constraints={"memory": 1.0}))
        assert store.tell(outcome(8, 8.0, constraints={"memory": 2.0})), "a worker of 1.0 held it"
        assert store.claim(suggest).trial.told == (8, 10)
        assert store.correct(1, 2.5).value() == 2.5
    with Store(plain) as store:
        records = {its.number: its for its in store.records()}
    assert [columns(records[number]) for number in (0, 2, 3, 4, 5, 6, 7)] == [
        expected["plain"][number] for number in (0, 2, 3, 4, 5, 6, 7)
    ]
    assert [records[number].value() for number in (1, 8, 10, 11)] == [2.5, 8.0, 0.5, None]


def test_a_trial_that_was_given_back_goes_to_the_next_claim(old, plain):
    wider = replace(plain, space={**SPACE, "x": Float(0.0, 2.0)})
    with Store(wider, migrate=True) as store:
        claimed = store.claim(suggest).trial
        assert (claimed.number, claimed.params) == (9, {"x": 1.125, "n": 10, "mode": "a"})
        assert store.tell(outcome(9, 1.0, constraints={"memory": 1.0}))


def test_a_study_file_that_has_changed_is_refused_as_before(old, plain):
    with pytest.raises(StudyError, match=r"holds a study named 'plain' whose seed was 0, now it is 1"):
        Store(replace(plain, seed=1))


def test_what_1_0_has_imported_is_not_added_again(old, plain):
    done = record(-1, {"x": 0.5, "n": 7, "mode": "a"}, "done", 2.5, noise=0.25, constraints={"memory": 3.0})
    failed = record(-1, {"x": 0.25, "n": 9, "mode": 2}, "failed", failure="exit code 2")
    with Store(plain) as store:
        assert store.add([(done, ""), (failed, "")]) == 0
        assert store.add([(replace(done, readings=values(value=[2.5], memory=[3.0])), "")]) == 1
        assert len(store.records()) == 10, "one is outside the space"


def test_a_trial_that_was_stopped_and_one_of_an_early_version(old):
    old.rows(
        'UPDATE trial_user_attributes SET value_json = \'{"reports": [[1, 2.5], [3, 2.0]], "stopped": true}\' '
        "WHERE key = 'noregret:reports' AND trial_id = 32",
        "DELETE FROM trial_user_attributes WHERE key = 'noregret:sum' AND trial_id = 31",
        'UPDATE trial_user_attributes SET value_json = \'{"seconds": 1.0, "failure": "", "stderr": "", '
        '"fidelity": {"epochs": 3}, "reports": [[3, 1.5]], "stopped": true}\' '
        "WHERE key = 'noregret:run' AND trial_id = 31",
    )
    for readonly in (True, False):
        first, second = read(old, readonly)["steps"]
        assert second.readings == {"value": (Reading(2.5, step=1.0), Reading(2.0, step=3.0))}
        assert (second.state, second.is_stopped, first.is_stopped) == ("running", True, True)
        assert first.readings == {"value": (Reading(1.5, step=3.0), Reading(1.5))}
        assert (first.fidelity, first.seconds) == ({"epochs": 3}, 1.0)


def test_a_study_of_an_early_version_has_the_same_incarnation_in_all_copies(tmp_path, saved):
    found = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        its = filled("sqlite:///s.db", folder, saved)
        its.rows("DELETE FROM study_user_attributes WHERE key = 'noregret:incarnation'")
        with opened(its) as storage:
            found.append([storage.find(name).incarnation for name in NAMES])
    assert found[0] == found[1]
    assert len(set(found[0])) == len(NAMES)


def test_numbers_of_studies_that_1_0_has_deleted_are_not_given_again(old):
    old.rows(
        "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (2, 'noregret:first', '7')",
        *(f"DELETE FROM {name} WHERE trial_id IN (11, 12, 13)" for name in TABLES[:4:-1]),
        "DELETE FROM trials WHERE study_id = 2",
    )
    with opened(old) as storage:
        its = storage.find("two")
        assert its.first == 7
        assert TrialTable(storage, its.id, its.first).next == 7


def test_a_study_of_a_newer_version_in_the_old_tables_is_refused(old):
    old.rows("UPDATE study_user_attributes SET value_json = '5' WHERE key = 'noregret:format' AND study_id = 3")
    before = old.old_rows()
    for readonly in (True, False):
        with pytest.raises(StudyError, match="study 'function' was written by a newer noregret: upgrade this one"):
            Storage(old.url, old.path.parent, readonly=readonly)
    assert old.old_rows() == before
    assert "noregret_trials" not in old.tables()


def on_disk(folder):
    """Files that are not empty, with their checksums; SQLite keeps its index of a log, which is empty, for later."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if data}


def test_looking_changes_nothing(old, expected):
    files, tables, rows = on_disk(old.path.parent), old.tables(), old.old_rows()
    assert shown(read(old, readonly=True)) == expected
    if old.is_file:
        assert on_disk(old.path.parent) == files
    assert old.tables() == tables
    assert old.old_rows() == rows
    with opened(old, readonly=True) as storage, pytest.raises(NotYet, match="it has 'plain', 'two', 'function'"):
        storage.study(Study(old.path.with_name("s.toml"), ("m",), space=SPACE, name="none", storage=old.url))


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_the_file_as_it_was_is_kept_once(old_file, capsys):
    before, kept = dump(old_file.path), old_file.path.with_name("s.db.before-1.1")
    first = read(old_file)
    assert dump(kept) == before
    assert f"as it was it is {kept}" in capsys.readouterr().err
    made, after = kept.stat(), dump(old_file.path)
    assert read(old_file) == first
    assert dump(old_file.path) == after, "nothing is done twice"
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (made.st_ino, made.st_mtime_ns)
    assert capsys.readouterr().err == ""
    with Store(
        Study(old_file.path.with_name("t.toml"), ("m",), space=SPACE, name="new", storage=old_file.url)
    ) as store:
        store.tell(outcome(store.claim(suggest).trial.number, 1.0))
    assert dump(kept) == before


def test_the_old_rows_stay_until_they_are_dropped(old, expected):
    before = old.old_rows()
    read(old)
    assert old.old_rows() == before
    assert old.rows("SELECT COUNT(*) FROM study_user_attributes WHERE key = 'noregret:moved'") == [(5,)]
    with opened(old) as storage:
        assert storage.drop_old() == list(NAMES)
        assert storage.drop_old() == []
    assert {name for name in old.tables() if not name.startswith("sqlite_")} == {"noregret_studies", "noregret_trials"}
    for readonly in (True, False):
        assert shown(read(old, readonly)) == expected
    if not old.is_file:
        assert old.rows("SELECT COUNT(*) FROM pg_proc WHERE proname LIKE 'noregret%'") == [(0,)]


def test_a_table_of_versions_of_another_program_stays(old):
    old.rows("UPDATE alembic_version SET version_num = '1975ea83b712'")
    with opened(old) as storage:
        assert storage.drop_old() == list(NAMES)
    assert old.rows("SELECT version_num FROM alembic_version") == [("1975ea83b712",)]


def test_studies_of_optuna_stay_as_they_are(old, expected):
    storage = optuna.storages.RDBStorage(old.optuna_url())
    theirs = optuna.create_study(study_name="theirs", storage=storage)
    theirs.set_user_attr("mine", [1])

    def measured(trial):
        trial.report(trial.suggest_float("x", 0, 1), 1)
        trial.set_user_attr("note", "a")
        return trial.params["x"]

    theirs.optimize(measured, n_trials=2)
    for step in (lambda its: None, Storage.drop_old):
        before = theirs.trials
        with opened(old) as ours:
            assert ours.find("theirs") is None
            step(ours)
        again = optuna.load_study(study_name="theirs", storage=storage)
        assert (again.trials, again.user_attrs) == (before, {"mine": [1]})
        theirs.optimize(measured, n_trials=1)
    assert len(theirs.trials) == 4
    assert [its.study_name for its in optuna.get_all_study_summaries(storage)] == ["theirs"]
    assert set(TABLES) < old.tables()
    storage.engine.dispose()
    assert shown(read(old)) == expected


DAMAGE = [
    "UPDATE trial_values SET value = 4.25 WHERE value = 4.5",
    "UPDATE trial_params SET param_value = param_value + 1 WHERE param_name = 'n' AND trial_id = 5",
    "UPDATE trial_params SET param_name = 'm' WHERE param_name = 'n' AND trial_id = 5",
    "UPDATE trial_params SET distribution_json = replace(distribution_json, '1000', '2000') WHERE trial_id = 5",
    "UPDATE trial_user_attributes SET value_json = replace(value_json, '0.5', '0.6') WHERE trial_id = 5",
    "UPDATE trial_user_attributes SET value_json = replace(value_json, '[', '[ ') WHERE trial_id = 5",
    "UPDATE trial_user_attributes SET value_json = '\"0\"' WHERE trial_id = 5 AND key = 'noregret:sum'",
    "UPDATE trial_user_attributes SET value_json = replace(value_json, '0.25', '0.5') WHERE trial_id = 7",
    "UPDATE trials SET state = 'FAIL' WHERE trial_id = 5",
    "UPDATE trials SET state = 'RUNNING' WHERE trial_id = 5",
    "UPDATE trials SET number = 55 WHERE trial_id = 5",
    "DELETE FROM trial_values WHERE trial_id = 5",
    "DELETE FROM trial_params WHERE trial_id = 5 AND param_name = 'x'",
    "DELETE FROM trial_user_attributes WHERE trial_id = 5 AND key = 'noregret:run'",
    "UPDATE trial_params SET distribution_json = '{' WHERE trial_id = 9",
    "UPDATE trial_user_attributes SET value_json = 'x' WHERE trial_id = 9",
    "UPDATE study_user_attributes SET value_json = '{' WHERE key = 'noregret:study' AND study_id = 5",
    "UPDATE study_user_attributes SET value_json = '[]' WHERE key = 'noregret:study' AND study_id = 5",
    "UPDATE study_user_attributes SET value_json = 'null' WHERE key = 'noregret:format' AND study_id = 5",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_is_refused_before_anything_is_written(old, plain, damage):
    assert old.rows(damage)
    files, rows = on_disk(old.path.parent), old.old_rows()
    for readonly in (True, False):
        with pytest.raises(StudyError, match=r"is damaged: what is stored cannot be read .*\. It is left as it is\. "):
            Store(plain, readonly=readonly)
    assert old.old_rows() == rows
    assert "noregret_trials" not in old.tables()
    if old.is_file:
        assert on_disk(old.path.parent) == files


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE trials SET state = 'COMPLETF' WHERE trial_id = 5",
        "UPDATE trial_params SET param_value = 'abc' WHERE trial_id = 9",
        "UPDATE trials SET datetime_start = 'yesterday' WHERE trial_id = 9",
        "UPDATE trial_user_attributes SET value_json = CAST(x'ff' AS TEXT) WHERE trial_id = 9",
    ],
)
def test_rows_that_only_a_file_can_have(old_file, damage):
    assert old_file.rows(damage)
    before = dump(old_file.path) if "x'ff'" not in damage else None
    for readonly in (True, False):
        with pytest.raises(StudyError, match="damaged"):
            Storage(old_file.url, old_file.path.parent, readonly=readonly)
    assert before is None or dump(old_file.path) == before
    assert "noregret_trials" not in old_file.tables()


SENT = [
    "UPDATE trials SET state = 'COMPLETE', datetime_complete = '2026-11-20 00:00:00' WHERE trial_id = 9 "
    "AND state IN ('RUNNING', 'WAITING')",
    "UPDATE trials SET state = 'FAIL', datetime_complete = '2026-11-20 00:00:00' WHERE trial_id = 9 "
    "AND state IN ('RUNNING', 'WAITING')",
    "UPDATE trials SET datetime_start = CASE WHEN state = 'WAITING' THEN '2026-11-20 00:00:00' ELSE datetime_start "
    "END, state = 'RUNNING' WHERE trial_id = 10 AND state IN ('RUNNING', 'WAITING')",
    "UPDATE trials SET state = 'WAITING' WHERE trial_id = 9 AND state = 'RUNNING'",
    "INSERT INTO trials (study_id, number, state, datetime_start) VALUES (1, 10, 'RUNNING', '2026-11-20 00:00:00')",
    "INSERT INTO trials (study_id, number, state, datetime_start, datetime_complete) "
    "VALUES (1, 10, 'COMPLETE', '2026-11-20 00:00:00', '2026-11-20 00:00:00')",
    "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (32, 'noregret:reports', '{\"reports\": []}')"
    " ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json",
    "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (9, 'noregret:holder', '{}') "
    "ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json "
    "WHERE trial_user_attributes.value_json LIKE '%token%'",
    "DELETE FROM trial_user_attributes WHERE trial_id IN (SELECT trial_id FROM trials WHERE study_id = 1)",
    "DELETE FROM trials WHERE study_id = 1",
    "DELETE FROM studies WHERE study_id = 1",
    "UPDATE studies SET study_name = 'plain (set aside 1)' WHERE study_id = 1",
]
"""Statements of 1.0."""


@pytest.mark.parametrize("statement", SENT)
def test_what_a_worker_of_1_0_still_sends_is_refused(old, statement):
    read(old)
    before = old.old_rows()
    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.RaiseException), match=TAKEN_OVER):
        old.rows(statement)
    assert old.old_rows() == before
    formats = old.rows("SELECT value_json FROM study_user_attributes WHERE key = 'noregret:format'")
    assert formats == [("4",)] * 5, "1.0 reads up to 3, and opens no study with another one"


@pytest.mark.parametrize("statement", [each for each in SENT if not each.startswith("DELETE FROM")])
def test_1_0_may_write_until_then(old, statement):
    assert old.rows(statement) == 1


def test_a_new_study_of_1_0_is_taken_over_at_the_next_opening(old, expected):
    read(old)
    about = '{"goal": "minimize", "command": ["m"], "result": "LastNumber()", "seed": 0}'
    old.rows(
        "INSERT INTO studies (study_id, study_name) VALUES (77, 'late')",
        f"INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (77, 'noregret:study', '{about}')",
        "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (77, 'noregret:format', '3')",
        "INSERT INTO trials (trial_id, study_id, number, state) VALUES (777, 77, 0, 'RUNNING')",
    )
    assert shown(read(old)) == expected
    with opened(old) as storage:
        its = storage.find("late")
        assert [trial.state for trial in TrialTable(storage, its.id).refresh()] == ["running"]


def test_copies_of_1_0_are_kept_while_the_newest_lacks_one_of_their_results(old_file):
    path = old_file.path

    def copied():
        with closing(sqlite3.connect(path)) as connection:
            make_copy(path, connection)
        return copies(path)[0].path

    older = copied()
    assert str(copies(path)[0]).endswith("  30 results")
    read(old_file)
    newer = copied()
    assert holds_all(newer, older)
    with opened(old_file) as storage:
        storage.drop_old()
    assert not holds_all(copied(), older)
    os.replace(older, path)
    assert len(read(old_file)) == len(NAMES), "a copy of 1.0 is taken over like any other file"


def killed_at(old, statement):
    """Open the database in a process that is killed at its n-th statement; False if it had fewer."""
    child = os.fork()
    if not child:
        try:
            seen = 0

            def count(*_):
                nonlocal seen
                seen += 1
                if seen == statement:
                    os.kill(os.getpid(), signal.SIGKILL)

            if old.is_file:
                connect = sqlite3.connect

                def traced(*arguments, **options):
                    connection = connect(*arguments, **options)
                    connection.set_trace_callback(count)
                    return connection

                sqlite3.connect = traced
            else:
                execute = psycopg.Connection.execute

                def counted(*arguments, **options):
                    count()
                    return execute(*arguments, **options)

                psycopg.Connection.execute = counted
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with opened(old):
                os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status != 0


@pytest.mark.slow
def test_nothing_is_lost_if_it_is_killed_at_any_statement(tmp_path, saved, expected, url, step, request):
    """What it left is read as before, and the next opening takes it over."""
    statement, moments = 1, set()
    while True:
        folder = tmp_path / str(statement)
        folder.mkdir()
        here = url if url.startswith("sqlite") else request.getfixturevalue("postgresql").new_database()
        old = filled(here, folder, saved)
        before, rows = dump(old.path) if old.is_file else None, old.old_rows()
        was_killed = killed_at(old, statement)
        moments.add("noregret_trials" in old.tables())
        assert old.old_rows() == rows
        assert shown(read(old, readonly=True)) == expected
        assert shown(read(old)) == expected
        assert old.old_rows() == rows
        assert old.rows("SELECT COUNT(*) FROM noregret_trials") == [(32,)]
        if old.is_file:
            assert dump(old.path.with_name("s.db.before-1.1")) == before
            assert not list(folder.glob(".*"))
        if not was_killed:
            break
        statement += step
    assert moments == {True, False}
    assert statement > 80


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
def test_processes_that_open_it_at_once_take_it_over_once(old, expected, turn):
    rows, start = old.old_rows(), time.monotonic() + 0.3
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            try:
                time.sleep(max(0.0, start - time.monotonic()))
                os._exit(0 if shown(read(old)) == expected else 2)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert old.rows("SELECT COUNT(*) FROM noregret_studies") == [(5,)]
    assert old.rows("SELECT COUNT(*) FROM noregret_trials") == [(32,)]
    assert old.old_rows() == rows


def test_the_checksum_of_a_saved_trial_is_that_of_its_rows(saved):
    """The checksums of 1.0, computed here once more: they cover what `DAMAGE` changes."""
    query = "SELECT number, state FROM trials WHERE trial_id = 5"
    params = "SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = 5"
    texts = "SELECT key, value_json FROM trial_user_attributes WHERE trial_id = 5 ORDER BY key"
    (number, state), kept = saved.execute(query).fetchone(), dict(saved.execute(texts))
    right = json.loads(kept.pop("noregret:sum"))
    kept.pop("noregret:holder")
    numbers = [value for (value,) in saved.execute("SELECT value FROM trial_values WHERE trial_id = 5")]
    content = [number, state, numbers, sorted(map(list, saved.execute(params))), sorted(map(list, kept.items()))]
    assert hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16] == right
