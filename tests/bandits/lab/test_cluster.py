"""Trials on a real dask scheduler and two workers, processes on 127.0.0.1; one worker is killed half-way."""

import json
import subprocess
import sys
import time
from functools import partial

import pytest

from noregret.bandits.lab import trials as parallel
from noregret.bandits.lab.trials import Engine, EngineFailed
from noregret.cli import main
from noregret.extra import MissingExtra

pytestmark = pytest.mark.slow

FIGURE = ["kernelized/fig2", "--rounds", "800", "--trials", "3"]
TRIALS = 30


def start(module, *args, log):
    command = [sys.executable, "-m", module, "--host", "127.0.0.1", "--no-dashboard", *map(str, args)]
    with log.open("w") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)


def wait(condition, seconds=300):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it takes too long"
        time.sleep(0.05)


def reproduce(out, *args):
    command = [sys.executable, "-m", "noregret", "reproduce", *FIGURE, "--out", str(out), *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler, and its two workers, which stay dead when killed."""
    file = tmp_path / "scheduler.json"
    processes = [start("distributed.cli.dask_scheduler", "--port", 0, "--scheduler-file", file, log=tmp_path / "log")]
    try:
        wait(file.exists)
        address = json.loads(file.read_text())["address"]
        assert address.startswith("tcp://127.0.0.1:")
        options = [address, "--nthreads", 1, "--no-nanny"]
        logs = [tmp_path / f"worker{i}" for i in range(2)]
        processes += [start("distributed.cli.dask_worker", *options, log=log) for log in logs]
        wait(lambda: all("Registered to" in log.read_text() for log in logs))
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def finished(out):
    return sorted(path.relative_to(out / "trials") for path in (out / "trials").rglob("*.json"))


@pytest.mark.filterwarnings("ignore")  # distributed's own
def test_a_scheduler_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(parallel, "PATIENCE", 0.5)
    address = "tcp://127.0.0.1:9"
    assert main(["reproduce", *FIGURE, "--out", str(tmp_path), "--backend", "dask", "--scheduler", address]) == 2
    assert f"noregret: no dask scheduler answers at {address}" in capsys.readouterr().err


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"needs distributed, .*: pip install '\.\[cluster\]'"):
        list(Engine(backend="dask", scheduler="tcp://127.0.0.1:9").each([partial(abs, 1)]))


def test_workers_with_another_noregret_are_refused():
    class Client:
        def __init__(self, found):
            self.run = lambda function: found

    with pytest.raises(EngineFailed, match=r"worker at tcp://a has noregret 0\.0\.1"):
        parallel._check_versions(Client({"tcp://a": "0.0.1"}))
    with pytest.raises(EngineFailed, match="no workers: start some"):
        parallel._check_versions(Client({}))
