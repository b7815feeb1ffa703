"""Imports that are killed."""

import os
import signal
import time
from contextlib import redirect_stdout

from tests.studies import test_numbers
from tests.studies.test_numbers import past, records_of, written

from noregret.cli import main
from noregret.studies.store.store import Store
from noregret.studies.study.exchange import read_rows
from noregret.studies.study.reading import load

study = test_numbers.study


def test_an_import_that_is_killed_is_there_whole_or_not_at_all(tmp_path):
    path = written(tmp_path)
    data = past(tmp_path, "n,value\n" + "".join(f"{1 + i % 6},{i}\n" for i in range(1000)))
    study, acknowledged = load(path), tmp_path / "said"
    Store(study).close()
    for delay in (0.05, 0.15, 0.3, 0.5, 0.8):
        child = os.fork()
        if not child:
            os.dup2(os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            os._exit(noregret_import(path, data))
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        there = len(records_of(study))
        assert there in ((1000,) if "rows added" in acknowledged.read_text() else (0, 1000))
    with Store(study) as store:
        store.add(read_rows(study, data).trials)
        assert len(store.records()) == 1000


def noregret_import(path, data):
    with open(1, "w", closefd=False) as output, redirect_stdout(output):
        return main(["import", str(path), str(data)])
