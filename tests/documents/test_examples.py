"""The examples work as described."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from noregret.cli import main
from noregret.optimizer import axis_of
from noregret.tune.study.reading import load

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["tune_compression", "cloud_table"])
def test_the_first_command_of_each_study_runs(name, capsys):
    assert main(["tune", str(EXAMPLES / name / "study.toml"), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("python3 ")
    study = load(EXAMPLES / name / "study.toml")
    middle = study.space[0] if name == "cloud_table" else {k: axis_of(p).values()[0] for k, p in study.space.items()}
    done = subprocess.run(study.arguments(middle), cwd=study.folder, capture_output=True, text=True, check=True)
    assert re.search(r"\d", done.stdout)


def test_the_demo_ends_in_a_gain_over_its_baseline(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "tune_compression", tmp_path / "demo")
    study = folder / "study.toml"
    study.write_text(re.sub(r"evaluations = \d+", "evaluations = 6", study.read_text()))
    script = folder / "compress.py"
    script.write_text(re.sub(r"FILES = \d+", "FILES = 3", script.read_text()))
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out
    assert re.search("than your settings|your settings are the best", out), out
    assert "constraint" in out


def test_time_against_size_ends_in_a_front(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "tune_compression", tmp_path / "demo")
    study, script = folder / "time_and_size.toml", folder / "compress.py"
    study.write_text(study.read_text().replace("evaluations = 60\nseconds = 40", "evaluations = 5"))
    script.write_text(re.sub(r"FILES = \d+", "FILES = 3", script.read_text()))
    assert main(["tune", str(study)]) == 0
    assert re.search(r"the front: .*\n +time +size +probability  setting\n", capsys.readouterr().out)


def test_a_training_is_tuned_with_cheap_looks(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "training", tmp_path / "training")
    study = folder / "study.toml"
    text = study.read_text().replace("evaluations = 40", "evaluations = 3").replace("high = 81", "high = 9")
    study.write_text(text.replace("python3", sys.executable))  # the one that has scikit-learn
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out
    assert "failed" not in out
    assert " at epochs=" in out
    assert re.search(r" train.py --rate \S+ --alpha \S+ --epochs 9\n", out), out


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_flags_of_gcc_are_tuned_with_a_study_of_thirty_lines(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "gcc_flags", tmp_path / "gcc")
    study = folder / "study.toml"
    assert len(study.read_text().splitlines()) <= 30
    assert len(load(study).flags) >= 20
    study.write_text(study.read_text().replace("evaluations = 80", "evaluations = 3"))
    bench = folder / "bench.c"
    bench.write_text(bench.read_text().replace("define N 300", "define N 30").replace("10000)", "100)"))
    assert main(["tune", "--dry-run", str(study)]) == 0
    assert capsys.readouterr().out == "gcc -O2 bench.c -o bench -lm && ./bench\n"  # the baseline: no flag
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out
    assert "failed" not in out
    assert re.search(r"best: 0\.\d+ s, ", out), out


def test_each_flag_of_the_example_is_known_to_gcc(tmp_path):
    study = load(EXAMPLES / "gcc_flags" / "study.toml")
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }")
    for value in (False, True):
        flags = study.preparation(dict.fromkeys(study.names, value))[2:-4]
        assert len(flags) > 2
        done = subprocess.run(["gcc", "-Werror", *flags, "-c", "a.c"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_higher_levels_and_larger_blocks_compress_more():
    study = load(EXAMPLES / "tune_compression" / "study.toml")
    assert smallest(study, {"level": 6, "block_kib": 1024}) < smallest(study, {"level": 1, "block_kib": 64})


def smallest(study, params):
    """Compressed size with a setting, in percent: the smaller one of two runs."""
    runs = [
        subprocess.run(study.arguments(params), cwd=study.folder, capture_output=True, check=True) for _ in range(2)
    ]
    sizes = [json.loads(run.stdout) for run in runs]
    assert all(size["ms_per_mb"] > 1 for size in sizes)
    return min(size["size_percent"] for size in sizes)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ask_tell", "'key': .* ns per number"),
        ("minimize", "than your settings|your settings are the best"),
        ("optuna_sampler", "recommended: "),
    ],
)
def test_the_scripts_end_in_what_they_found(name, words):
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=True)
    assert re.search(words, done.stdout), done.stdout
