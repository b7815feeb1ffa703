"""Failures between a study and its workers: lost locks, restarts, hanging servers, trials taken over."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime
from threading import Event, Thread

import pytest
from tests.studies.made import outcome, record, suggested

from noregret.optimizer import Float
from noregret.studies.measuring import Keeper
from noregret.studies.running import Commands, suggester_of
from noregret.studies.session import Session
from noregret.studies.store import leases, trials
from noregret.studies.store.leases import LeaseMonitor
from noregret.studies.store.records import arrived
from noregret.studies.store.store import Store
from noregret.studies.study.study import Budget, Study, StudyError


@pytest.fixture
def study(tmp_path, postgresql):
    """A study on a server."""
    return written(tmp_path, postgresql.new_database())


@pytest.fixture
def anywhere(tmp_path):
    return written(tmp_path, "sqlite:///s.db")


def written(folder, url):
    space = {"x": Float(0.0, 1.0)}
    return Study(folder / "s.toml", ("m", "{x}"), space=space, storage=url, lease=60, budget=Budget(rounds=100))


def suggest(records):
    return suggested({"x": len(records) / 1000}, arrived(records)[1])


def done(number, value):
    return outcome(number, value, "", 0.5)


def holders_killed(postgresql):
    """End the connections that hold the locks of studies."""
    postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")


@pytest.mark.slow
def test_who_lost_the_lock_writes_nothing(study, postgresql):
    """While one worker computes a suggestion its lock is lost, and another one claims a trial."""
    with Store(study) as slow, Store(study) as other:
        slow.tell(done(slow.claim(suggest).trial.number, 1.0))
        between = []

        def interrupted(records):
            if not between:
                holders_killed(postgresql)
                between.append(other.claim(suggest).trial)
            return suggest(records)

        claimed = slow.claim(interrupted).trial
        assert [between[0].number, claimed.number] == [1, 2]
        assert [between[0].told, claimed.told] == [(0,), ()]
        assert [record.params["x"] for record in slow.records()] == [0.0, 0.001, 0.002]


@pytest.mark.slow
@pytest.mark.parametrize("others", [False, True])
def test_a_connection_that_is_lost_in_the_middle_of_writing_is_replaced(study, postgresql, monkeypatch, others):
    """That of the lock, and that of the transaction too."""
    with Store(study) as store:
        add, lost = trials.add, []

        def interrupted(*arguments):
            found = add(*arguments)
            if not lost:
                lost.append(holders_killed(postgresql))
                if others:
                    postgresql.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                    )
            return found

        monkeypatch.setattr(trials, "add", interrupted)
        assert store.claim(suggest).trial.number == 0
        assert [record.number for record in store.records()] == [0]


def test_an_answer_that_two_suggestions_took_for_new_counts_once():
    records = [record(0, {}, "done"), record(1, {}, "done", told=(0,)), record(2, {}, "running", told=(0,))]
    assert arrived(records) == ([0], (1,))


@pytest.mark.slow
def test_connections_notice_when_nobody_answers(study):
    with Store(study) as store, store._storage.snapshot() as connection:
        for name, value in (("statement_timeout", "20s"), ("idle_in_transaction_session_timeout", "1min")):
            assert connection.rows(f"SHOW {name}") == [(value,)]
        parameters = connection._raw.info.get_parameters()
        assert parameters["keepalives_idle"] == "10"
        assert parameters["tcp_user_timeout"] == "30000"


def running_with(text):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if text.encode() in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "postgresql"])
def test_a_clock_that_jumps_hands_no_trial_to_another(tmp_path, request, url):
    url = "sqlite:///s.db" if url == "sqlite" else request.getfixturevalue("postgresql").new_database()
    with Store(written(tmp_path, url)) as store, Store(written(tmp_path, url)) as other:
        number = store.claim(suggest).trial.number
        with store._storage.transaction() as connection:  # as if all times so far were of another day
            then = datetime(2001, 1, 1)
            trials.change(connection, store._found.id, number, lambda its: replace(its, started=then))
        assert other.claim(suggest).trial.number != number


def silence(monkeypatch, lease):
    now = [0.0]
    monkeypatch.setattr(leases, "monotonic", lambda: now[0])
    return LeaseMonitor(lease), now


def test_silence_is_measured_by_who_listens(monkeypatch):
    found, now = silence(monkeypatch, 60)
    who = {"token": "a", "beat": 1e9}
    for moment in range(0, 60, 10):
        now[0] = float(moment)
        assert found.abandoned({3: who}) == []
    now[0] = 70.5
    assert found.abandoned({3: who}) == [3]
    assert found.abandoned({3: {**who, "beat": -5.0}}) == []


def test_who_could_not_look_has_learned_nothing(monkeypatch):
    found, now = silence(monkeypatch, 60)
    who = {"token": "a", "beat": 0.0}
    assert found.abandoned({3: who}) == []
    now[0] = 1e5  # the server was away for a day, or this machine was
    assert found.abandoned({3: who}) == []


def taken_over(number, study):
    """Another worker takes a trial over, as if its holder had sent no heartbeat for long."""
    with Store(study) as other:
        other._leases.abandoned = lambda holders: list(holders)
        assert other.claim(suggest).trial.number == number
        other._leases.abandoned = lambda holders: []
        yield other


def test_who_lost_a_trial_learns_it_and_cannot_give_it_back(anywhere):
    with Store(anywhere) as store:
        number = store.claim(suggest).trial.number
        assert store.heartbeat([number]) == []
        for other in taken_over(number, anywhere):
            assert store.heartbeat([number]) == [number]
            store.give_back(number)
            assert [record.state for record in other.records()] == ["running"]
            assert other.heartbeat([number]) == []


@pytest.mark.slow
def test_threads_of_one_store_do_not_wait_for_each_other(anywhere):
    """One holds what was read and waits for the database, the others the database: none may wait for the former."""
    errors, until = [], time.monotonic() + 3.0
    with Store(replace(anywhere, budget=Budget(rounds=10**6))) as store:

        def work():
            try:
                while time.monotonic() < until:
                    number = store.claim(suggest).trial.number
                    store.heartbeat([number])
                    store.records()
                    store.tell(done(number, 1.0))
            except Exception as error:
                errors.append(error)

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        assert errors == []


class Silent:
    def __init__(self):
        self.lost = []

    def started(self, trial):
        pass

    def told(self, outcome, counted):
        self.lost.append((outcome.number, outcome.failure, counted))

    def refresh(self):
        pass


@pytest.mark.slow
def test_a_worker_that_lost_its_trial_ends_the_command(anywhere):
    study = replace(anywhere, command=("sleep", "601.75"), lease=1, budget=Budget(rounds=1))
    view, stop = Silent(), Event()
    with Store(study, stop=stop) as store, Keeper() as keeper:
        suggester = suggester_of(study)
        commands = Commands(study, suggester, keeper)
        worker = Thread(target=Session(suggester, store, commands, [view], stop, study.lease).run)
        worker.start()
        wait_for(lambda: running_with("sleep\x00601.75"))
        for other in taken_over(0, study):
            wait_for(lambda: not running_with("sleep\x00601.75"))
            wait_for(lambda: view.lost)
            assert view.lost == [(0, "ended, since another worker has it by now", False)]
            assert other.tell(done(0, 1.0))
        worker.join(30)
        assert [record.value() for record in store.records()] == [1.0]


def test_a_keeper_that_was_killed_is_replaced(tmp_path):
    program = """
import os, sys, time
from noregret.studies.measuring import Keeper
import subprocess
keeper = Keeper()
first = keeper.start(["sleep", "601.125"], {}, stdout=subprocess.DEVNULL)
os.kill(keeper._process.pid, 9)
keeper._process.wait()
second = keeper.start(["sleep", "601.125"], {}, stdout=subprocess.DEVNULL)
print("ready", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    assert len(running_with("sleep\x00601.125")) == 2
    process.kill()
    process.communicate()
    wait_for(lambda: not running_with("sleep\x00601.125"))


@pytest.mark.slow
def test_a_flipped_digit_on_a_server_is_reported_and_another_name_starts_anew(study):
    with Store(study) as store:
        store.tell(done(store.claim(suggest).trial.number, 4.5))
        with store._storage.transaction() as connection:
            connection.rows("UPDATE noregret_trials SET document = replace(document, '4.5', '4.25')")
    for use in (Store.records, lambda store: store.claim(suggest)):
        damaged = r"checksum of trial 0 does not fit its result.* give the study another name"
        with pytest.raises(StudyError, match=damaged), Store(study) as store:
            use(store)
    with Store(replace(study, name="another")) as store:
        assert store.records() == []


def test_looks_of_several_threads_come_one_after_another():
    monitor, found = LeaseMonitor(60.0), []
    look = Thread(target=lambda: found.append(monitor.abandoned({})))
    with monitor._lock:
        look.start()
        look.join(0.2)
        assert found == []
    look.join(10)
    assert found == [[]]
