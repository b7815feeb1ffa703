"""The skill for coding agents: its head has the form that agents read, and its commands run as they are typed."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from noregret.cli import _parsed

FOLDER = Path(__file__).resolve().parents[2] / "skills"
PAGE = (FOLDER / "noregret" / "SKILL.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def test_the_head_has_what_agents_read():
    _, head, body = PAGE.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields.keys() <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert fields["name"] == "noregret"
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 100 < len(fields["description"]) <= 1024
    assert ": " not in fields["description"]  # or YAML would take it for a mapping
    assert len(fields["compatibility"]) <= 500
    assert len(body.splitlines()) < 100


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_parsed(line):
    words = shlex.split(line)
    assert "noregret" in words
    assert _parsed(words[words.index("noregret") + 1 :]).command


def test_options_in_the_text_exist():
    """Those that are named outside of the examples, of the commands that they belong to."""
    for option in ("--goal maximize", "--bounds 0 10", "--result last-number", "--shell", "--gate", "--baseline x"):
        assert option.split()[0] in PAGE
        assert _parsed(["versus", "a", "b", *option.split()])
    assert _parsed(["init", "--evaluations", "20", "--", "./bench"]).evaluations == "20"


@pytest.fixture
def folder(tmp_path):
    """A folder with the programs of the page."""
    for name, seconds in (("old", 0.1), ("new", 0.01), ("base/bench", 0.01), ("head/bench", 0.01), ("bench", 0.01)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\nsleep {seconds}\n")
        path.chmod(0o755)
    return tmp_path


@pytest.mark.slow
def test_the_chain_runs_as_it_is_typed(folder):
    noregret = folder / "bin" / "noregret"
    noregret.parent.mkdir()
    noregret.write_text(f'#!/bin/sh\nexec {sys.executable} -m noregret "$@"\n')
    noregret.chmod(0o755)
    path = {**os.environ, "PATH": f"{noregret.parent}:{os.environ['PATH']}"}
    run = [line for line in COMMANDS if "./old" in line or "chain.json" in line or "verify" in line]
    assert len(run) == 6
    for line in run:
        done = subprocess.run(line, shell=True, cwd=folder, env=path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (line, done.stderr)
        if "show" in line:
            (entry,) = json.loads(done.stdout)["entries"]
            assert entry["state"] == "kept"
