"""The examples do what they say."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from noregret.cli import main
from noregret.tune.study.reading import load

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", ["tune_sqlite", "cloud_table"])
def test_the_first_command_of_each_study_runs(name, capsys):
    assert main(["tune", str(EXAMPLES / name / "study.toml"), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("python3 ")
    study = load(EXAMPLES / name / "study.toml")
    middle = study.space[0] if name == "cloud_table" else {k: p.values()[0] for k, p in study.space.items()}
    done = subprocess.run(study.arguments(middle), cwd=study.folder, capture_output=True, text=True, check=True)
    assert re.search(r"\d", done.stdout)


def test_the_sqlite_workload_takes_every_choice():
    study = load(EXAMPLES / "tune_sqlite" / "study.toml")
    for journal in study.space["journal_mode"].options:
        params = {"page_size": 4096, "cache_kib": 64, "mmap_mib": 1, "journal_mode": journal, "synchronous": "normal"}
        done = subprocess.run(study.arguments(params), cwd=study.folder, capture_output=True, text=True, check=True)
        assert 1 < json.loads(done.stdout)["milliseconds"] < 60_000


@pytest.mark.parametrize(
    ("name", "words"), [("ask_tell", "'key': .* ns per number"), ("optuna_sampler", "recommended: ")]
)
def test_the_scripts_end_in_what_they_found(name, words):
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=True)
    assert re.search(words, done.stdout), done.stdout
