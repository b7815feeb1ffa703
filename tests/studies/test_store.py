"""The store's contract, on a SQLite file and on a PostgreSQL server."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from threading import Event, Thread

import optuna
import psycopg
import pytest
from tests.studies.made import outcome, record, suggested

from noregret.optimizer import Choice, Float, Int
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import believed
from noregret.studies.running import suggester_of
from noregret.studies.store import identity, trials
from noregret.studies.store import storage as opened
from noregret.studies.store.databases.connections import Interrupted
from noregret.studies.store.databases.database import database
from noregret.studies.store.databases.postgresql import DriverError
from noregret.studies.store.databases.sqlite import SQLite
from noregret.studies.store.records import arrived
from noregret.studies.store.store import Store
from noregret.studies.study.parameters import form, read_form
from noregret.studies.study.results import JsonField
from noregret.studies.study.study import Budget, Study, StudyError

SPACE = {"x": Float(0.0, 1.0), "n": Int(1, 1000, log=True), "mode": Choice(["a", 2, False])}


@pytest.fixture
def url():
    """The storage; tests/siege runs all of these on PostgreSQL."""
    return "sqlite:///s.db"


@pytest.fixture
def study(url, tmp_path):
    return Study(tmp_path / "s.toml", ("m",), space=SPACE, storage=url, lease=1, budget=Budget(rounds=100))


@pytest.fixture
def file_study(tmp_path):
    return Study(tmp_path / "s.toml", ("m",), space=SPACE, storage="sqlite:///s.db", lease=1, budget=Budget(rounds=100))


def suggest(records):
    number = len(records)
    params = {"x": number / 1000 + 0.1, "n": number + 1, "mode": ["a", 2, False][number % 3]}
    return suggested(params, arrived(records)[1])


def done(number, value):
    return outcome(number, value, "", 0.5)


def failed(number):
    return outcome(number, None, "exit code 1", 0.25, stderr="some\0 reason")


@pytest.mark.slow
def test_true_is_another_choice_than_1(file_study):
    study = replace(file_study, space={"mode": Choice([1, 2.5, "a", True])}, baseline={"mode": 1})
    with Store(study) as store:
        for mode in (True, True, 2.5):
            claimed = store.claim(lambda records, mode=mode: suggested({"mode": mode}, arrived(records)[1])).trial
            store.tell(done(claimed.number, 1.0))
        records = store.records()
    assert [repr(record.params["mode"]) for record in records] == ["True", "True", "2.5"]
    assert Findings(study, records, believed(study, records)).gain is None  # the baseline is unknown


@pytest.mark.slow
def test_what_is_told_is_there_for_everybody(study):
    with Store(study) as store:
        first, second, third = (store.claim(suggest).trial for _ in range(3))
        assert store.tell(done(first.number, 0.1 + 0.2))
        assert store.tell(failed(second.number))
    with Store(study, readonly=True) as store:
        records = store.records()
    assert [record.number for record in records] == [0, 1, 2]
    assert [record.state for record in records] == ["done", "failed", "running"]
    assert [record.params for record in records] == [trial.params for trial in (first, second, third)]
    assert records[0].value() == 0.1 + 0.2
    assert (records[1].failure, records[1].stderr, records[1].seconds) == ("exit code 1", "some reason", 0.25)


@pytest.mark.slow
def test_the_same_result_told_twice_counts_once_and_another_one_does_not(study):
    with Store(study) as store:
        trial = store.claim(suggest).trial
        assert store.tell(done(trial.number, 1.0))
        assert store.tell(done(trial.number, 1.0))
        assert not store.tell(done(trial.number, 2.0))
        assert not store.tell(failed(trial.number))
        assert [record.value() for record in store.records()] == [1.0]


def test_each_suggestion_records_what_was_newly_known(study):
    with Store(study) as store:
        trials = [store.claim(suggest).trial for _ in range(3)]
        store.tell(done(trials[2].number, 1.0))
        store.tell(failed(trials[0].number))
        assert store.claim(suggest).trial.told == (0, 2)
        store.tell(done(trials[1].number, 3.0))
        assert store.claim(suggest).trial.told == (1,)
        assert arrived(store.records()) == ([0, 2, 1], ())


@pytest.mark.slow
def test_a_trial_goes_to_another_worker_after_its_lease_and_not_before(study):
    with Store(study) as dead, Store(study) as other:
        trial = dead.claim(suggest).trial
        assert other.claim(suggest).trial.number == 1
        deadline = time.monotonic() + 10
        while (found := other.claim(suggest).trial).number != trial.number:
            assert time.monotonic() < deadline
            other.tell(done(found.number, 0.0))
            time.sleep(0.2)
        assert found.params == trial.params
        assert other.tell(done(trial.number, 1.0))
        assert not dead.tell(done(trial.number, 2.0))  # it was slow; its answer comes too late


@pytest.mark.slow
def test_a_heartbeat_keeps_the_lease(study):
    with Store(study) as slow, Store(study) as other:
        number = slow.claim(suggest).trial.number
        for _ in range(10):
            time.sleep(0.3)
            slow.heartbeat([number])
            assert other.claim(suggest).trial.number != number


def test_an_answer_that_comes_between_lease_and_new_worker_counts(study):
    with Store(study) as slow, Store(study) as other:
        number = slow.claim(suggest).trial.number
        slow.give_back(number)
        assert slow.tell(done(number, 1.0))
        assert other.claim(suggest).trial.number == 1


def test_given_back_is_taken_at_once_with_the_same_params(study):
    with Store(study) as store:
        trial = store.claim(suggest).trial
        store.give_back(trial.number)
        again = store.claim(suggest).trial
        assert (again.number, again.params) == (trial.number, trial.params)
        store.tell(done(again.number, 1.0))
        store.give_back(again.number)  # too late: nothing happens
        assert store.records()[0].state == "done"


def lose_an_answer(store):
    """Lose the connection once, just after the next commit."""
    transaction, lost = store._storage.transaction, []

    @contextmanager
    def losing():
        with transaction() as connection:
            yield connection
        if not lost:
            lost.append(True)
            if isinstance(store.where, SQLite):
                raise sqlite3.OperationalError("database is locked")
            raise DriverError("lost") from psycopg.OperationalError("lost")

    store._storage.transaction = losing
    return lost


def test_a_commit_whose_answer_is_lost_is_recognised(study):
    with Store(study) as store:
        number = store.claim(suggest).trial.number
        lost = lose_an_answer(store)
        assert store.heartbeat([number]) == []
        assert lost
        lost = lose_an_answer(store)
        assert store.tell(done(number, 1.0))
        assert lost
        trial = store.claim(suggest).trial
        lost = lose_an_answer(store)
        store.give_back(trial.number)
        assert lost
        assert store.claim(suggest).trial.number == trial.number
        assert [record.value() for record in store.records()] == [1.0, None]


def test_the_budget_is_kept_and_waits_for_what_is_out(study):
    with Store(replace(study, budget=Budget(rounds=2))) as store:
        first, second = store.claim(suggest), store.claim(suggest)
        assert store.claim(suggest).trial is None
        assert not store.claim(suggest).over
        store.tell(done(first.trial.number, 1.0))
        store.tell(failed(second.trial.number))
        assert store.claim(suggest).over


def test_measurements_from_elsewhere_are_kept_once_and_are_no_rounds(study):
    params = [{"x": 0.5, "n": 1 + i, "mode": ["a", 2, False][i % 3]} for i in range(4)]
    rows = [
        (record(-1, its, "done", 1.5 * i, noise=0.25, constraints={"memory": 3.0}), "") for i, its in enumerate(params)
    ]
    with Store(replace(study, budget=Budget(rounds=2))) as store:
        first = store.claim(suggest).trial
        assert store.add(rows[:3]) == 3
        assert store.add([*rows, rows[3]]) == 1
        store.tell(done(first.number, 1.0))
        second = store.claim(suggest).trial
        assert (second.number, second.told) == (5, (0, 1, 2, 3, 4))
        store.tell(done(second.number, 2.0))
        assert store.claim(suggest).over
    with Store(study) as store:  # its checksums fit
        found = [record for record in store.records() if record.is_imported]
    assert [(its.params, its.readings) for its in found] == [(row.params, row.readings) for row, _ in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"goal": "maximize"},
        {"command": ("other",)},
        {"seed": 1},
        {"space": {**SPACE, "x": Float(0.0, 2.0)}},
        {"space": {"x": Float(0.0, 1.0)}},
    ],
)
def test_another_study_of_the_same_name_is_refused(study, change):
    with Store(study) as store:
        store.tell(done(store.claim(suggest).trial.number, 1.0))
    with pytest.raises(StudyError, match=r"s.toml: storage .* holds a study named 'study' whose .* was .*now it is"):
        Store(replace(study, **change))
    with Store(replace(study, **change, name="other")) as store:
        assert store.records() == []
    with Store(study) as store:
        assert len(store.records()) == 1


def test_what_does_not_change_the_measurements_may_change(study):
    with Store(study):
        pass
    with Store(replace(study, budget=Budget(seconds=3.0), workers=3, timeout=1.0, lease=5)) as store:
        assert store.records() == []


def test_a_newer_format_is_refused(study, monkeypatch):
    monkeypatch.setattr(identity, "FORMAT", identity.FORMAT + 1)
    with Store(study):
        pass
    monkeypatch.undo()
    with pytest.raises(StudyError, match=r"written by a newer noregret \(.*format 5\).*reads up to format 4: upgrade"):
        Store(study)


def test_a_new_file_has_our_tables_and_no_others(file_study, tmp_path):
    Store(file_study).close()
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    assert names == [("noregret_studies",), ("noregret_trials",), ("sqlite_sequence",)]


@pytest.mark.parametrize("is_there_first", [False, True])
def test_an_optuna_study_that_is_not_ours_is_refused(study, is_there_first):
    if not is_there_first:
        Store(study).close()
    where = database(study)
    where = f"sqlite:///{where.path}" if isinstance(where, SQLite) else where.url.replace(":", "+psycopg:", 1)
    storage = optuna.storages.RDBStorage(where)
    theirs = optuna.create_study(study_name="theirs", storage=storage)
    theirs.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    before = theirs.trials
    with pytest.raises(StudyError, match="'theirs' was not made by noregret"):
        Store(replace(study, name="theirs"))
    with Store(study) as store:
        assert store.records() == []
    assert optuna.load_study(study_name="theirs", storage=storage).trials == before
    storage.engine.dispose()


def test_looking_at_what_is_not_there_creates_nothing(study, tmp_path):
    with pytest.raises(StudyError, match="yet"):
        Store(study, readonly=True)
    assert list(tmp_path.iterdir()) == []
    with Store(study):
        pass
    with pytest.raises(StudyError, match="has no study 'other' yet: it has 'study'"):
        Store(replace(study, name="other"), readonly=True)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "storage must be a URL such as sqlite:///study.db, got 'nonsense'"),
        ("sqlite://", "storage must be sqlite:///FILE or postgresql"),
        ("sqlite:///s.db?mode=ro", "storage must be sqlite:///FILE or postgresql"),
        ("sqlite:///:memory:", "storage must be sqlite:///FILE or postgresql"),
        ("mysql://u:secret@h/d", r"or postgresql://USER@HOST/DATABASE, got 'mysql://u:\*\*\*@h/d'"),
        ("postgresql://u:secret@h:port/d", r"storage must be a URL such as postgresql://USER@HOST:5432/DATABASE"),
        ("sqlite:///.", "is not a file: choose another name"),
        ("sqlite:///no/folder/s.db", "cannot be opened: does its folder exist"),
        ("postgresql://u:secret@127.0.0.1:1/d", r"storage postgresql://u:\*\*\*@127.0.0.1:1/d: cannot be reached"),
    ],
)
def test_storages_that_cannot_be(file_study, url, message, monkeypatch):
    monkeypatch.setattr(opened, "OPENING_SECONDS", 0.2)
    with pytest.raises(StudyError, match=message) as caught:
        Store(replace(file_study, storage=url))
    assert "secret" not in str(caught.value)
    assert not file_study.folder.with_name(f"{file_study.folder.name}.lock").exists()


def test_a_server_without_its_driver(file_study, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StudyError, match=r"this needs psycopg, .*: pip install '\.\[postgresql\]'"):
        Store(replace(file_study, storage="postgresql://u@127.0.0.1/d"))


@pytest.mark.slow
def test_any_name_will_do_for_a_file(file_study):
    study = replace(file_study, storage="sqlite:///a {b} 5% #1 é.db")
    with Store(study) as store:
        store.tell(done(store.claim(suggest).trial.number, 1.0))
    assert (study.folder / "a {b} 5% #1 é.db").exists()
    with Store(study, readonly=True) as store:
        assert store.records()[0].value() == 1.0


@pytest.mark.slow
def test_a_database_that_is_missing_on_the_server(file_study, postgresql):
    url = f"postgresql://noregret@127.0.0.1:{postgresql.port}/missing"
    with pytest.raises(StudyError, match=r'cannot be reached or used: .*database "missing" does not exist'):
        Store(replace(file_study, storage=url))


@pytest.mark.slow
def test_a_role_that_may_not_write(file_study, postgresql):
    url = postgresql.new_database()
    postgresql.execute("CREATE ROLE reader LOGIN")
    with pytest.raises(StudyError, match=r"cannot be written: .*permission denied"):
        Store(replace(file_study, storage=url.replace("noregret@", "reader@")))


@pytest.mark.slow
def test_a_server_that_restarts_loses_nothing(file_study, postgresql):
    study = replace(file_study, storage=postgresql.new_database(), lease=60)
    with Store(study) as store:
        trial = store.claim(suggest).trial
        postgresql.stop()
        answer = []
        teller = Thread(target=lambda: answer.append(store.tell(done(trial.number, 4.0))))
        teller.start()
        time.sleep(0.7)
        assert not answer
        postgresql.start()
        teller.join(30)
        assert answer == [True]
        assert store.records()[0].value() == 4.0


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """A folder with a study of 30 results."""
    folder = tmp_path_factory.mktemp("example")
    with Store(Study(folder / "s.toml", ("m",), space=SPACE, storage="sqlite:///s.db")) as store:
        for i in range(30):
            store.tell(done(store.claim(suggest).trial.number, float(i)))
    return folder


@pytest.fixture
def filled(file_study, example):
    shutil.copytree(example, file_study.folder, dirs_exist_ok=True)
    return file_study


def test_the_database_of_another_program_is_refused(file_study):
    with sqlite3.connect(file_study.folder / "s.db") as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    with pytest.raises(StudyError, match="is the database of another program"):
        Store(file_study)


@pytest.mark.slow
def test_a_torn_log_costs_only_what_was_never_acknowledged(filled):
    """After a power failure the unfinished write is missing; everything before it is stored."""
    store = Store(filled)
    store.tell(done(store.claim(suggest).trial.number, 30.0))
    log = filled.folder / "s.db-wal"
    copy = filled.folder / "copy"
    copy.mkdir()
    torn = log.read_bytes() + os.urandom(3000)
    for name, data in (("s.db", (filled.folder / "s.db").read_bytes()), ("s.db-wal", torn)):
        (copy / name).write_bytes(data)
    store.close()
    with Store(replace(filled, path=copy / "s.toml")) as found:
        assert [record.value() for record in found.records()] == [float(i) for i in range(31)]


@pytest.mark.slow
@pytest.mark.parametrize("meanwhile", ["a copy is made", "somebody looks on", "somebody opens it"])
def test_whoever_leaves_takes_nothing_away_from_who_stays(file_study, meanwhile):
    with Store(file_study) as store:
        first, second = (store.claim(suggest).trial for _ in range(2))
        store.tell(done(first.number, 1.0))
        if meanwhile == "a copy is made":
            store.back_up(older_than=0.0)
        else:
            Store(file_study, readonly=meanwhile == "somebody looks on").close()
        leave = "import sqlite3; c = sqlite3.connect('s.db'); c.execute('SELECT * FROM noregret_trials').fetchall()"
        subprocess.run([sys.executable, "-c", f"{leave}; c.close()"], cwd=file_study.path.parent, check=True)
        store.tell(done(second.number, 2.0))
        look = "import json, sqlite3; rows = sqlite3.connect('s.db').execute('SELECT document FROM noregret_trials'); "
        look += "print([json.loads(text)['readings'] for text, in rows])"
        seen = subprocess.check_output([sys.executable, "-c", look], cwd=file_study.path.parent, text=True)
    assert seen == "[{'value': {'value': 1.0}}, {'value': {'value': 2.0}}]\n"


@pytest.mark.slow
@pytest.mark.parametrize("readonly", [False, True])
def test_half_a_write_of_a_killed_process_is_undone_by_whoever_opens_the_study(file_study, example, readonly):
    """As if killed while SQLite switched to a log: the unfinished write is in ``s.db-journal``."""
    found, left = file_study.folder / "found", file_study.folder / "left"
    shutil.copytree(example, found)
    with closing(sqlite3.connect(found / "s.db", isolation_level=None)) as writer:
        for command in (
            "PRAGMA journal_mode=DELETE",
            "PRAGMA cache_size=1",
            "BEGIN",
            "UPDATE noregret_trials SET document = ''",
        ):
            writer.execute(command)
        writer.execute("CREATE TABLE large AS SELECT randomblob(100000)")
        shutil.copytree(found, left)
    assert (left / "s.db-journal").exists()
    with Store(replace(file_study, path=left / "s.toml"), readonly=readonly) as store:
        assert [record.value() for record in store.records()] == [float(i) for i in range(30)]


def test_waiting_for_the_lock_ends_when_everything_stops(study):
    stop = Event()
    with Store(study) as holder, Store(study, stop=stop) as waiter, holder.where.lock(study.name):
        stop.set()
        with pytest.raises(Interrupted):
            waiter.claim(suggest)


CONDITIONAL = {
    "model": Choice(["line", "forest"]),
    "depth": Int(2, 8, step=2, when={"model": "forest"}),
    "share": Float(0.1, 0.7, step=0.1, when={"model": "forest"}),
    "rate": Float(0.001, 1.0, log=True, when={"model": "line"}),
}


@pytest.mark.slow
def test_a_trial_has_the_parameters_that_apply(file_study):
    """And is read back with these; one that lacks a parameter is not part of the study."""
    study = replace(file_study, space=CONDITIONAL)
    suggester = suggester_of(study)
    with Store(study) as store:
        for _ in range(12):
            trial = store.claim(suggester).trial
            store.tell(done(trial.number, trial.params.get("depth", 5) + trial.params.get("share", 0.5)))
        records = store.records()
    assert {tuple(record.params) for record in records} == {("model", "depth", "share"), ("model", "rate")}
    with Store(study, readonly=True) as store:
        assert store.records() == records
    with Store(study) as store, store._storage.transaction() as connection:
        trials.add(connection, store._found.id, len(records), record(-1, {}, "done", 1.0))
    with Store(study, readonly=True) as store:
        assert store.records() == records
    best = believed(study, records).best().params
    assert best == {"model": "forest", "depth": 2, "share": best["share"]}


def test_a_study_from_before_steps_and_conditions_is_the_same_study(file_study):
    stored = [repr(parameter) for parameter in SPACE.values()]
    assert stored == [
        "Float(low=0.0, high=1.0, log=False)",
        "Int(low=1, high=1000, log=True)",
        "Choice(options=('a', 2, False))",
    ]
    assert [read_form(found) for found in stored] == [form(parameter) for parameter in SPACE.values()]


@pytest.mark.slow
def test_what_a_branch_does_is_shown_at_the_best_of_the_other_branch(file_study):
    study = replace(file_study, space=CONDITIONAL)
    suggester, records = suggester_of(study), []
    for number in range(15):
        params = suggester(records).params
        value = params.get("depth", 5) + params.get("share", 0.5)
        records.append(record(number, params, "done", value, told=(number - 1,) if number else ()))
    findings = Findings(study, records, believed(study, records))
    effects = {effect.name: effect for effect in findings.effects}
    assert set(effects) == {"model", "depth", "share"}, "the rate does not apply at the best point"
    assert effects["model"].values == ("line", "forest")
    assert effects["model"].estimate[0] > effects["model"].estimate[1] + 1
    assert effects["depth"].values == (2, 4, 6, 8)


def test_nothing_is_acknowledged_once_the_file_is_gone(file_study, tmp_path):
    store = Store(file_study)
    claimed = store.claim(suggest).trial
    (tmp_path / "s.db").unlink()
    for call in (lambda: store.tell(done(claimed.number, 1.0)), lambda: store.claim(suggest), store.close):
        with pytest.raises(StudyError, match=r"s\.db: the file was deleted, moved or replaced"):
            call()
    assert not (tmp_path / "s.db").exists()


@pytest.mark.slow
def test_several_objectives_are_stored(study):
    readers = {"latency": JsonField("t"), "accuracy": JsonField("a")}
    study = replace(study, goals={"latency": "minimize", "accuracy": "maximize"}, results=readers, confirm=0)
    both, one = {"latency": 3.0, "accuracy": 0.5}, {"latency": 2.0, "accuracy": None}
    with Store(study) as store:
        first, second, third = (store.claim(suggest).trial.number for _ in range(3))
        assert store.tell(outcome(first, values=both))
        assert store.tell(outcome(second, values=one))
        assert store.tell(outcome(third, None, "exit code 1"))
        assert not store.tell(outcome(first, values={"latency": 3.1, "accuracy": 0.5}))
        row = record(-1, {"x": 0.5, "n": 3, "mode": "a"}, "done", values={"latency": 1.0, "accuracy": 0.1}), ""
        assert store.add([row, row]) == 1
        assert store.add([row]) == 0
    with Store(study) as store:  # checks all checksums
        records = store.records()
    known = [study.measures.values(its) for its in records]
    assert known == [both, one, dict.fromkeys(readers), study.measures.values(row[0])]
    assert [record.state for record in records] == ["done", "done", "failed", "done"]


def test_an_outcome_has_the_machine_of_its_worker(file_study, monkeypatch):
    """And what else it shares with others; so an optimizer of all workers knows the offset of each machine."""
    for number, machine in enumerate(["n7", "n8", ""]):
        monkeypatch.setattr("noregret.studies.store.store.node", lambda machine=machine: machine)
        with Store(file_study) as store:
            store.claim(suggest)
            told = done(number, 1.0 + number)
            assert store.tell(told if number else replace(told, block={"seed": 3}))
    with Store(file_study, readonly=True) as store:
        blocks = [{"machine": "n7", "seed": 3}, {"machine": "n8"}, None]
        assert [record.block for record in store.records()] == blocks
        assert [trial.block for trial in believed(file_study, store.records()).trials] == blocks
