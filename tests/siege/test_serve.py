"""``noregret serve`` under kills and hung requests, and several servers on one database."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from tests.studies import test_serve
from tests.studies.test_serve import ROOT, served, server

import noregret
from noregret import Choice, Float, Int
from noregret.cli import main
from noregret.service.client import ServerError

pytest.importorskip("fastapi")

served = test_serve.served


CLIENTS = ROOT / "examples" / "clients"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_running_of_a_server_that_has_ended(tmp_path, end):
    with server(tmp_path) as (address, process):
        noregret.connect(address, "s", space={"x": Float(0, 1)}).ask()
        choosers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert choosers
        process.send_signal(end)
        process.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{chooser}").exists() for chooser in choosers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_half_sent_request_does_not_keep_a_server_from_ending(tmp_path):
    with server(tmp_path) as (address, process):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as line:
            line.sendall(
                f"POST /studies HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                "Content-Length: 1000\r\n\r\n{".encode()
            )
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) in (0, -signal.SIGTERM)
        assert "Traceback" not in process.stderr.read()


def test_a_request_that_hangs_does_not_keep_a_server_from_ending(tmp_path):
    with server(tmp_path) as (address, process), ThreadPoolExecutor(1) as pool:
        study = noregret.connect(address, "s", space={"x": Float(0, 1)})
        study.ask()
        choosers = list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))
        try:
            for chooser in choosers:
                os.kill(chooser, signal.SIGSTOP)
            hangs = pool.submit(study.ask)
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(ServerError, match="the server is stopping: send the request again later"):
                hangs.result(20)
            process.wait(20)
        finally:
            for chooser in choosers:
                os.kill(chooser, signal.SIGKILL)
        assert "Traceback" not in process.stderr.read()


def test_two_servers_on_one_file_neither_lose_nor_duplicate(tmp_path):
    with server(tmp_path) as (one, _), server(tmp_path) as (other, _):
        noregret.connect(one, "s", space={"x": Float(0, 1)})
        acknowledged = {}

        def work(address):
            study = noregret.connect(address, "s")
            for _ in range(8):
                trial = study.ask()
                study.tell(trial, trial.params["x"])
                assert trial.id not in acknowledged
                acknowledged[trial.id] = trial.params["x"]

        threads = [Thread(target=work, args=(address,)) for address in (one, other, one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for address in (one, other):
            trials = noregret.connect(address, "s").trials()
            assert {trial["id"]: trial["value"] for trial in trials} == acknowledged
    assert sorted(acknowledged) == list(range(32))


def test_a_trial_of_which_nothing_is_heard_goes_to_another_client(tmp_path):
    with server(tmp_path, "--lease", "2") as (address, _):
        study = noregret.connect(address, "s", space={"x": Float(0, 1)})
        (lost,), (kept,) = study.ask(1, client="dies"), study.ask(1, client="lives")
        deadline, taken = time.monotonic() + 60, None
        while taken is None and time.monotonic() < deadline:
            time.sleep(0.5)
            assert study.ask(1, client="lives")[0].id == kept.id  # a heartbeat
            (found,) = study.ask(1, client="third")
            taken = found if found.id == lost.id else None
            if taken is None:
                study.tell(found, 1.0)
        assert taken.params == lost.params
        study.tell(lost, 2.0)  # it was only slow, and the first answer stands
        with pytest.raises(ValueError, match="which stays"):
            study.tell(taken, 3.0)


@pytest.mark.parametrize(
    ("tool", "file"),
    [("bash", "client.sh"), ("node", "client.mjs"), ("perl", "client.pl"), (sys.executable, "client.py")],
)
def test_the_clients_in_other_languages_find_the_best(served, tool, file):
    if not shutil.which(tool) or (tool == "bash" and not (shutil.which("curl") and shutil.which("jq"))):
        pytest.skip(f"needs {tool}, curl and jq")
    done = subprocess.run(
        [tool, str(CLIENTS / file), served, file.replace(".", "-")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout.splitlines()[-1])
    assert abs(best["params"]["x"] - 0.3) < 0.2
    trials = noregret.connect(served, file.replace(".", "-")).trials()
    assert {trial["state"] for trial in trials} == {"done"}


def test_several_servers_on_postgresql(postgresql, tmp_path):
    url = postgresql.new_database()
    with server(tmp_path, "--storage", url) as (one, first), server(tmp_path, "--storage", url) as (other, _):
        here, there = noregret.connect(one, "s", space={"x": Float(0, 1)}), noregret.connect(other, "s")
        trials = [its for pair in ((here.ask(), there.ask()) for _ in range(4)) for its in pair]
        assert [trial.id for trial in trials] == list(range(8))
        for trial in trials:
            here.tell(trial, trial.params["x"])
        first.kill()
        assert [trial["value"] for trial in there.trials()] == [trial.params["x"] for trial in trials]
        there.tell(trials[0], trials[0].params["x"])
        with suppress(ValueError):
            there.fail(trials[0])
        assert there.best().params["x"] < 0.5


def test_a_study_is_deleted_while_fits_are_made(served):
    """Clients ask and tell until their study is deleted, and are told so; it is made again three times."""
    for _ in range(3):
        noregret.connect(served, "s", space={"x": Float(0, 1), "y": Float(0, 1)})

        def measure(number):
            study = noregret.connect(served, "s")
            for _ in range(1000):
                trial = study.ask(client=f"{number}")
                study.tell(trial, trial.params["x"])

        with ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(measure, number) for number in range(4)]
            while len(noregret.connect(served, "s").trials()) < 40:
                time.sleep(0.1)
            noregret.connect(served, "s").delete()
            for client in clients:
                with pytest.raises(ValueError, match="there is no study 's'"):
                    client.result(60)


def test_a_server_says_what_an_optimizer_would(served):
    space, baseline = {"x": Float(0, 1)}, {"x": 0.9}
    study = noregret.connect(served, "s", space=space, baseline=baseline)
    for ask in (study.gain, lambda: study.predict({"x": 0.5})):
        with pytest.raises(ValueError, match="tell"):
            ask()
    for _ in range(14):
        trial = study.ask()
        study.tell(trial, 1 + abs(trial.params["x"] - 0.3))
    gain, best = study.gain(), study.best()
    assert gain.best.params == best.params
    assert gain.baseline.params == baseline
    assert gain.lower <= gain.estimate <= gain.upper
    assert gain.estimate == pytest.approx(study.predict(baseline).estimate - best.estimate)
    assert "lower than your settings" in str(gain)
    assert gain.percent.estimate == pytest.approx(100 * gain.estimate / gain.baseline.estimate)
    with pytest.raises(ValueError, match=r"params: .*x must"):
        study.predict({"x": 2})
    with pytest.raises(ValueError, match="make a study with a baseline"):
        noregret.connect(served, "t", space=space).gain()


def test_a_server_knows_contexts(served):
    study = noregret.connect(served, "s", space={"x": Float(0, 1)}, context={"region": Choice(["east", "west"])})
    for number in range(16):
        trial = study.ask(context={"region": ("east", "west")[number % 2]})
        assert trial.context == {"region": ("east", "west")[number % 2]}
        study.tell(trial, abs(trial.params["x"] - 0.3 - 0.4 * (number % 2)))
    assert study.best({"region": "east"}).params["x"] < study.best({"region": "west"}).params["x"]
    assert study.done(1e-9, context={"region": "east"}) is False


def test_a_server_knows_drift(served):
    study = noregret.connect(served, "s", space={"x": Float(0, 1)}, drift=5)
    for best in [0.1] * 10 + [0.9] * 14:
        trial = study.ask()
        study.tell(trial, abs(trial.params["x"] - best))
    found = study.best()
    assert found.params["x"] > 0.6
    assert found.half_life == pytest.approx(5)
    with pytest.raises(ValueError, match="drift differs"):
        noregret.connect(served, "s", space={"x": Float(0, 1)})
    with pytest.raises(ValueError, match="drift: must be 'auto' or a half-life"):
        noregret.connect(served, "t", space={"x": Float(0, 1)}, drift=0)


def test_the_past_is_told_to_a_server_as_to_an_optimizer(served):
    options = {"goal": "maximize", "constraints": {"memory": ("<=", 0.9)}, "context": {"load": Choice([1, 2])}}
    study = noregret.connect(served, "s", space={"x": Float(0, 1), "n": Int(1, 9)}, **options)
    study.tell({"x": np.float64(0.5), "n": np.int64(2)}, 1.5, constraints={"memory": 0.5}, context={"load": 1})
    study.fail({"x": 0.5, "n": 3}, {"load": 2})
    frame = [
        {"x": 0.25, "n": 1, "value": 2, "constraint.memory": 0.5, "context.load": 1},
        {"x": 0.25, "n": 1, "value": 2, "constraint.memory": 0.5, "context.load": 1},
        {"x": 0.5, "n": 2, "value": 1.5, "constraint.memory": 0.5, "context.load": 1},
        {"x": 0.75, "n": 1, "state": "failed", "context.load": 2},
        *({"x": 0.1, "n": 1, "value": number, "noise": 0.1, "context.load": 2} for number in range(1200)),
    ]
    for _ in range(2):
        study.tell_many(frame)
        trials = study.trials()
        assert len(trials) == 2 + 2 + 0 + 1 + 1200, "equal rows are repeats, and the same frame counts once"
    assert [trial["value"] for trial in trials[:5]] == [1.5, None, 2.0, 2.0, None]
    assert trials[-1]["context"] == {"load": 2}
    with pytest.raises(ValueError, match=r"row 1 of the frame: x must be from 0\.0 to 1\.0"):
        study.tell_many([*frame[:1], frame[0] | {"x": 3}])
    about = study.describe()
    assert (about["name"], about["trials"], about["best"]) == ("s", 1205, None)
    study.delete()
    with pytest.raises(ValueError, match="there is no study 's'"):
        study.trials()


def test_a_study_of_a_server_is_left_alone_by_tune(tmp_path, capsys):
    with server(tmp_path) as (address, _):
        noregret.connect(address, "mine", space={"x": Float(0, 1)}).ask()
    study = 'command = ["echo", "{x}"]\nstorage = "sqlite:///studies.db"\n[budget]\nrounds = 2\n[parameters.x]\n'
    (tmp_path / "mine.toml").write_text(f'{study}type = "float"\nlow = 0\nhigh = 1\ndefault = 0.5\n')
    for command in (["tune", "--migrate"], ["export", "--csv"]):
        assert main([*command, str(tmp_path / "mine.toml")]) == 2
        assert "was made by 'noregret serve': read it there, at /studies/mine/trials" in capsys.readouterr().err


def test_a_study_of_tune_is_left_alone(tmp_path):
    study = 'command = ["echo", "{x}"]\nstorage = "sqlite:///studies.db"\n[budget]\nevaluations = 2\n'
    (tmp_path / "t.toml").write_text(f'{study}[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n')
    assert main(["tune", str(tmp_path / "t.toml")]) == 0
    with server(tmp_path) as (address, _):
        with pytest.raises(ValueError, match="there is no study 't'"):
            noregret.connect(address, "t").trials()
        with pytest.raises(ValueError, match="it was made by 'noregret tune'"):
            noregret.connect(address, "t", space={"x": Float(0, 1)})
        noregret.connect(address, "mine", space={"x": Float(0, 1)}).ask()
    assert main(["report", str(tmp_path / "t.toml")]) == 0


def test_the_token_is_needed_and_never_shown(tmp_path, monkeypatch):
    monkeypatch.delenv("NOREGRET_TOKEN", raising=False)
    with server(tmp_path, "--host", "0.0.0.0", token="very-secret") as (address, process):
        address = address.replace("0.0.0.0", "127.0.0.1")
        with pytest.raises(PermissionError, match="a token is needed"):
            noregret.connect(address, "s", space={"x": Float(0, 1)})
        assert noregret.connect(address, "s", token="very-secret", space={"x": Float(0, 1)}).ask().id == 0
        monkeypatch.setenv("NOREGRET_TOKEN", "very-secret")
        assert noregret.connect(address, "s").ask().id == 1
        process.send_signal(signal.SIGINT)
        assert "very-secret" not in process.communicate()[0]
