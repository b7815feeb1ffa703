"""The store under kills, full disks and many threads."""

import os
import resource
import signal
import time
import traceback
from contextlib import nullcontext
from dataclasses import replace
from threading import Barrier, Thread
from unittest.mock import Mock

import pytest
from tests.studies import test_store
from tests.studies.test_store import done, suggest

from noregret.studies.store.records import arrived
from noregret.studies.store.store import Store
from noregret.studies.study.study import Budget, StudyError

example = test_store.example
file_study = test_store.file_study
filled = test_store.filled
study = test_store.study


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    return "sqlite:///s.db" if request.param == "sqlite" else request.getfixturevalue("postgresql").new_database()


@pytest.mark.parametrize("locked", [True, False])
def test_several_threads_and_stores_neither_lose_nor_duplicate(study, locked):
    """Without the lock of claims too: it saves computing, and nothing depends on it."""
    study = replace(study, budget=Budget(rounds=24), lease=60)
    told, barrier = [], Barrier(4)

    def work():
        with Store(study) as store:
            if not locked:
                store.where = Mock(lock=lambda name, stop: nullcontext(), back_up=store.where.back_up)
            barrier.wait()
            while not (claim := store.claim(suggest)).over:
                if claim.trial and store.tell(done(claim.trial.number, float(claim.trial.number))):
                    told.append(claim.trial.number)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == list(range(24))
    with Store(study, readonly=True) as store:
        records = store.records()
    assert [record.value() for record in records] == [float(i) for i in range(24)]
    assert sorted(number for record in records for number in record.told) == sorted(arrived(records)[0])
    assert [record.params["n"] for record in records] == list(range(1, 25))  # each suggested once, in order


def test_acknowledged_results_survive_kill_9_right_after_the_acknowledgement(study):
    """The process ends right after the commit."""
    for i in range(3):
        child = os.fork()
        if not child:
            store = Store(study)
            store.tell(done(store.claim(suggest).trial.number, float(i)))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    with Store(study) as store:
        assert [record.value() for record in store.records()] == [0.0, 1.0, 2.0]


def test_a_process_killed_while_it_makes_the_study_leaves_one_that_works(study):
    for delay in (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.8):
        child = os.fork()
        if not child:
            try:
                Store(study)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL)
    with Store(study) as store:
        assert store.claim(suggest).trial.number == 0


def test_a_full_disk_is_reported_and_what_was_told_stays(filled, in_child):
    """A limit on file sizes simulates a full disk: writes fail in the same way, for this child only."""

    def fill():
        told = []
        store = Store(filled)
        size = (filled.folder / "s.db").stat().st_size
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            while True:
                trial = store.claim(suggest).trial
                store.tell(done(trial.number, float(trial.number)))
                told.append(trial.number)
        except StudyError as error:
            return {"told": told, "error": str(error)}

    report = in_child(fill)
    assert "the disk is full or failing; the results so far are safe" in report["error"]
    assert report["told"]
    with Store(filled) as store:
        values = {record.number: record.value() for record in store.records() if record.state == "done"}
        assert [values[number] for number in range(30)] == [float(i) for i in range(30)]
        assert all(values[number] == number for number in report["told"])
        assert store.tell(done(store.claim(suggest).trial.number, 1.0))
