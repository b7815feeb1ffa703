"""Workers that are killed at any time: nothing acknowledged is lost, nothing counts twice, and the study continues."""

import subprocess
import sys
from pathlib import Path

import pytest

from noregret.cli import main
from noregret.studies.learning.suggest import as_told, replay_of
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load

pytestmark = pytest.mark.slow

KILLING = Path(__file__).parents[1] / "killing.py"

STUDY = """
command = {command}
storage = "{storage}"
lease = 1
confirm = 0  # studies are compared whose budgets differ
[budget]
evaluations = {rounds}
[parameters.x]
type = "int"
low = 0
high = 999
[parameters.y]
type = "float"
low = 0.0
high = 1.0
"""


FORMULA = ["awk", "BEGIN { print ({x} - 300) ^ 2 / 1e5 + {y} }".replace("{ ", "{{ ").replace(" }", " }}")]
"""Prints the same number each time."""


def written(folder, command, rounds, storage="sqlite:///s.db"):
    path = folder / "s.toml"
    path.write_text(STUDY.format(command=command, rounds=rounds, storage=storage))
    return path


def kill(study, workers, kills, seed):
    """Run workers, kill them, and return the lines that they have printed."""
    output = study.with_suffix(".out")
    subprocess.run([sys.executable, KILLING, study, output, *map(str, (workers, kills, seed))], check=True, timeout=300)
    return output.read_text().splitlines()


def records_of(study):
    with Store(load(study), readonly=True) as store:
        return store.records()


def finish(study, folder, command, storage="sqlite:///s.db"):
    """Finish running trials without starting new ones."""
    rounds = len(records_of(study))
    written(folder, command, rounds, storage)
    assert main(["tune", str(study)]) == 0
    return records_of(study)


def suggested_again(study, records, number):
    """Suggestion of a trial, computed again from the records that were known then."""
    earlier = [record for record in records if record.number < number]
    told = [trial for record in [*earlier, records[number]] for trial in record.told]
    pending = [record for record in earlier if record.number not in told]
    return replay_of(study)([as_told(study, records[number]) for number in told], pending).ask().params


def test_a_killed_study_makes_the_suggestions_of_one_that_was_not(tmp_path):
    (tmp_path / "killed").mkdir()
    (tmp_path / "whole").mkdir()
    study = written(tmp_path / "killed", FORMULA, 10**6)
    kill(study, workers=1, kills=2, seed=0)
    records = finish(study, tmp_path / "killed", FORMULA)
    assert len(records) >= 3
    assert main(["tune", str(written(tmp_path / "whole", FORMULA, len(records)))]) == 0
    whole = records_of(tmp_path / "whole" / "s.toml")
    assert [(record.params, record.value()) for record in records] == [
        (record.params, record.value()) for record in whole
    ]
