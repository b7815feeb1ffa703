"""Database servers that restart or hang while a study runs."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from threading import Thread

import pytest
from tests.studies import test_server
from tests.studies.test_server import done, running_with, suggest, wait_for

from noregret.studies.store.databases import postgresql as server
from noregret.studies.store.store import Store
from noregret.studies.study.study import Budget

anywhere = test_server.anywhere
study = test_server.study


@pytest.mark.parametrize(
    "call",
    [
        lambda store, number: store.records()[0].number,
        lambda store, number: store.claim(suggest).trial.number,
        lambda store, number: store.heartbeat([number]),
        lambda store, number: store.give_back(number),
        lambda store, number: Store(store.study).close(),
    ],
)
def test_every_call_waits_for_a_server_that_restarts(study, postgresql, call):
    with Store(study) as store:
        number = store.claim(suggest).trial.number
        postgresql.stop()
        answers = []

        def attempt():
            try:
                answers.append(call(store, number))
            except Exception as error:
                answers.append(error)

        caller = Thread(target=attempt)
        caller.start()
        time.sleep(0.5)
        assert answers == []
        postgresql.start()
        caller.join(30)
        assert answers
        assert not isinstance(answers[0], Exception), answers


@pytest.fixture
def hanging(postgresql):
    """Stop every process of the server, which then neither answers nor closes connections."""
    stopped = []

    def hang():
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(postgresql.process.pid)], capture_output=True, text=True, check=True
        )
        stopped.extend([postgresql.process.pid, *map(int, children.stdout.split())])
        send(signal.SIGSTOP)

    def go_on():
        send(signal.SIGCONT)
        stopped.clear()

    def send(what):
        for pid in stopped:
            with suppress(ProcessLookupError):  # that of a connection that was closed just now
                os.kill(pid, what)

    hang.go_on = go_on
    yield hang
    go_on()


def test_a_server_that_hangs_is_waited_for(study, hanging, monkeypatch):
    monkeypatch.setattr(server, "ANSWER_SECONDS", 0.5)
    with Store(study) as store:
        number = store.claim(suggest).trial.number
        hanging()
        answers = []
        teller = Thread(target=lambda: answers.append(store.tell(done(number, 3.0))))
        teller.start()
        time.sleep(1.2)  # long enough for the connection to be given up, and for another one to be tried
        assert answers == []
        hanging.go_on()
        teller.join(40)
        assert answers == [True]
        assert [record.value() for record in store.records()] == [3.0]


def test_a_second_ctrl_c_ends_it_though_the_server_hangs(tmp_path, postgresql, hanging):
    path = tmp_path / "s.toml"
    path.write_text(
        f"""command = ["sh", "-c", "sleep 601.25; echo {{x}}"]
storage = "{postgresql.new_database()}"
[budget]
evaluations = 5
[parameters.x]
type = "float"
low = 0.0
high = 1.0
"""
    )
    process = subprocess.Popen([sys.executable, "-m", "noregret", "tune", path], stderr=subprocess.DEVNULL)
    wait_for(lambda: running_with("sleep\x00601.25"))
    hanging()
    process.send_signal(signal.SIGINT)
    wait_for(lambda: not running_with("sleep\x00601.25"))
    process.send_signal(signal.SIGINT)
    assert process.wait(10) in (-signal.SIGINT, 130)
