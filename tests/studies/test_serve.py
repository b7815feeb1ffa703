"""``noregret serve`` as a process: refused requests, killed helpers, and several servers on one database."""

import os
import re
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import noregret
from noregret import Choice, Float, Int, Optimizer
from noregret.cli import main
from noregret.optimizer import Trial
from noregret.service.client import Connection

pytest.importorskip("fastapi")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@contextmanager
def server(folder, *options, token=None, files=None):
    """A server's address and process, with this number of file descriptors; killed at the end, if it still runs."""
    command = [sys.executable, "-m", "noregret", "serve", "--port", "0", *options]
    environment = os.environ | ({"NOREGRET_TOKEN": token} if token else {})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    with subprocess.Popen(
        command, cwd=folder, env=environment, preexec_fn=limit if files else None, **pipes
    ) as process:
        try:
            yield process.stdout.readline().split()[0], process
        finally:
            process.kill()


@pytest.fixture
def served(tmp_path):
    with server(tmp_path) as (address, _):
        yield address


def test_what_is_acknowledged_survives_the_end_of_the_server(tmp_path):
    with server(tmp_path) as (address, process):
        study = noregret.connect(address, "s", space={"x": Float(0, 1), "n": Int(1, 9), "k": Choice(["a", "b"])})
        first, second = study.ask(2, client="me")
        study.tell(first, 0.1 + 0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with server(tmp_path) as (address, process):
        study = noregret.connect(address, "s")
        assert [trial["value"] for trial in study.trials()] == [0.1 + 0.2, None]
        assert study.ask(1, client="me")[0].params == second.params
        study.tell(first, 0.1 + 0.2)
        with pytest.raises(ValueError, match=r"has the value 0\.30000000000000004 already, which stays"):
            study.tell(first, 0.3)
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert len(list(tmp_path.glob("studies.db.bak.*"))) == 1


def test_the_methods_of_an_optimizer_that_a_server_has_are_those_that_are_named():
    page = (ROOT / "docs" / "serve.md").read_text("utf-8")
    named = " ".join(re.search(r"has the methods ([^\[]*) of an\s+\[Optimizer\]", page)[1].split())
    shared = vars(Connection).keys() & vars(Optimizer).keys() - {"trials"}  # a property there
    assert set(re.findall(r"`(\w+)`", named)) == {name for name in shared if not name.startswith("_")}
    assert f"It has an `Optimizer`'s methods {named}" in " ".join(noregret.connect.__doc__.split())


def test_a_server_asks_tells_and_concludes_as_an_optimizer(served):
    space = {"x": Float(0, 1), "k": Choice(["a", "b"]), "d": Int(1, 4, when={"k": "a"})}
    study = noregret.connect(served, "s", space=space, goal="maximize", constraints={"memory": ("<=", 0.9)})
    tied = noregret.connect(served, "tied", space={"a": Int(1, 9), "b": Int(1, 9)}, require=["a < b"])
    assert all(trial.params["a"] < trial.params["b"] for trial in tied.ask(4))
    with pytest.raises(ValueError, match="no value yet"):
        study.best()
    study.fail(study.ask())
    for trial in study.ask(12):
        assert ("d" in trial.params) == (trial.params["k"] == "a")
        study.tell(trial, -abs(trial.params["x"] - 0.5), constraints={"memory": trial.params["x"]})
    best = study.best()
    assert abs(best.params["x"] - 0.5) < 0.3
    assert best.lower <= best.estimate <= best.upper
    assert best.gap > 0
    assert study.done(within=0.0001) is False
    assert [trial["state"] for trial in study.trials()] == ["failed"] + ["done"] * 12
    for bad in (lambda: study.tell([1], 1.0), lambda: study.fail({"x": 1}), lambda: study.ask(0)):
        with pytest.raises(ValueError, match=r"must be one of ask|params: .*'k'|count"):
            bad()
    with pytest.raises(ValueError, match="there is another study named 's': goal differs"):
        noregret.connect(served, "s", space=space, constraints={"memory": ("<=", 0.9)})
    with pytest.raises(ValueError, match="there is no study 'other'"):
        noregret.connect(served, "other").ask()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.float32("-inf"), 10**400])
def test_numbers_that_are_not_finite_are_refused_before_they_are_sent(bad):
    study, trial = noregret.connect("http://127.0.0.1:9", "nobody listens there"), Trial(0, {"x": 0.5})
    with pytest.raises(ValueError, match=r"value is -?(nan|inf|10+): pass a finite number, or fail\(trial\)"):
        study.tell(trial, bad)
    with pytest.raises(ValueError, match="noise must be the value's standard deviation, above 0"):
        study.tell(trial, 1.0, noise=bad)
    with pytest.raises(ValueError, match="constraint 'memory' must be a finite number"):
        study.tell(trial, 1.0, constraints={"memory": bad})


def test_what_cannot_be_served_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("NOREGRET_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    for options, said in (
        (["--host", "0.0.0.0"], "so a token is needed: --token-file FILE"),
        (["--host", "no.such.host.invalid", "--token-file", "empty"], "a token must be ASCII"),
        (["--token-file", "nowhere"], "--token-file nowhere cannot be read"),
        (["--storage", "nonsense"], "storage must be a URL"),
        (["--storage", "sqlite:///nowhere/s.db"], "cannot be opened"),
    ):
        assert main(["serve", "--port", "0", *options]) == 2
        assert said in capsys.readouterr().err
