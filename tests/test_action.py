"""``action.yml``: the steps of the action as a runner would start them, on a small repository."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
INSTALL, COMPARE = ACTION["runs"]["steps"]
BENCH = "echo $(({} + $(od -An -N1 -tu1 /dev/urandom) / 8))\n"
"""Prints a number with some noise: up to 31 more than the one in braces."""

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path):
    """Folder with the checkouts ``base``, ``same`` and ``slow`` of a repository with three commits."""
    home = tmp_path / "repository"
    home.mkdir()

    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, *words], cwd=home, check=True, capture_output=True)

    git("init")
    for name, least in (("base", 1000), ("same", 1000), ("slow", 1100)):
        (home / "bench.sh").write_text(f"# {name}\n{BENCH.format(least)}")
        git("add", "bench.sh")
        git("commit", "-m", name)
        git("worktree", "add", "--detach", f"../{name}")
    return tmp_path


def gate(folder, head, **inputs):
    """Run the step that compares as a runner does; return the process, the outputs and the summary."""
    temporary = folder / "temporary"
    (temporary / "noregret" / "bin").mkdir(parents=True, exist_ok=True)
    for name, words in {"python": "", "noregret": "-m noregret"}.items():
        program = temporary / "noregret" / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        program.chmod(0o755)
    default = {name: its.get("default", "") for name, its in ACTION["inputs"].items()}
    given = {
        **default,
        "base-command": "cd base && sh bench.sh",
        "head-command": f"cd {head} && sh bench.sh",
        "result": "last-number",
        **{name.replace("_", "-"): value for name, value in inputs.items()},
    }
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
        for name, value in COMPARE["env"].items()
    }
    assert not any("${{" in value for value in environment.values())
    output, summary, script = (folder / name for name in ("output", "summary", "script"))
    script.write_text(COMPARE["run"])
    runner = {"RUNNER_TEMP": temporary, "GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
        cwd=folder,
        env={**os.environ, **environment, **{name: str(path) for name, path in runner.items()}},
        capture_output=True,
        text=True,
        timeout=120,
    )
    read = output.read_text() if output.exists() else ""
    lines = r"^(\w+)(?:=(.*)|<<(\w+)\n((?:.*\n)*?)\3)$"
    outputs = {name: plain or text for name, plain, _, text in re.findall(lines, read, re.MULTILINE)}
    return done, outputs, summary.read_text() if read else ""


def test_a_commit_that_is_slower_fails_the_job(repository):
    done, outputs, summary = gate(repository, "slow", within="2%")
    assert done.returncode == 1, done.stderr
    assert outputs["verdict"] == "worse"
    assert 0.02 < float(outputs["lower"]) <= float(outputs["estimate"]) <= float(outputs["upper"]) < 0.15
    assert summary.startswith("### Failed: B is worse than A by more than 2%: ")
    assert "  B  1,1" in summary
    assert "::error title=noregret versus::Failed: " in done.stdout


def test_a_commit_that_is_not_slower_passes(repository):
    done, outputs, summary = gate(repository, "same", within="2%")
    assert done.returncode == 0, done.stderr
    assert set(outputs) == {"verdict", "estimate", "lower", "upper", "summary"} == set(ACTION["outputs"])
    assert outputs["summary"].startswith("Passed: B is not worse than A by more than 2%: ")
    assert "changes for the worse above" in outputs["summary"]
    assert outputs["summary"].endswith("\nA is base, B is head.\n")
    assert float(outputs["upper"]) <= 0.02
    assert summary.startswith("### Passed: B is not worse than A by more than 2%: ")
    assert "::error" not in done.stdout


def test_the_action_installs_what_its_second_step_starts():
    assert '"$GITHUB_ACTION_PATH"' in INSTALL["run"]
    for step in (INSTALL, COMPARE):
        assert "$RUNNER_TEMP/noregret/bin/" in step["run"]
        assert "${{" not in step["run"]  # inputs reach a script by its environment only
