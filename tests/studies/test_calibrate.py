"""`noregret calibrate`, and the ways to compare commands by items, a bar, quantiles, and samples of a run."""

import csv
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from noregret.cli import main
from noregret.comparison import EProcess
from noregret.comparison.sequences import losses_allowed
from noregret.studies.calibrate import calibrated
from noregret.studies.study.reading import load
from noregret.studies.study.results import JsonField, JsonQuantile, NoResult, sought

NUMBERS = ["--result", "last-number"]


def run(capsys, *args):
    """Exit code, object on standard output, and errors."""
    code = main(list(map(str, args)))
    out, err = capsys.readouterr()
    return code, json.loads(out) if out.startswith("{") else out, err


def calibration(rng, pairs=60, noise=0.03, trend=0.0, shift=0.0):
    evidence = EProcess()
    for pair in range(pairs):
        level = 1 + trend * pair / pairs
        evidence.observe(rng.normal(level, noise), option=0)
        evidence.observe(rng.normal(level + shift, noise))
    race = SimpleNamespace(comparison=SimpleNamespace(evidence=evidence, confidence=0.95))
    return calibrated(race)


def test_the_noise_and_the_price_are_those_of_the_runs():
    """Noise of 3%: the medians over 30 calibrations are near those of 200 comparisons."""
    rng = np.random.default_rng(0)
    found = [calibration(rng) for _ in range(30)]
    assert np.median([its.noise for its in found]) == pytest.approx(0.03, rel=0.1)
    counts = np.arange(1, 2001)
    allowed = np.array([losses_allowed(int(count), 0.95) for count in counts])
    for place, change in enumerate((0.01, 0.02, 0.05)):
        wins = (rng.normal(change, 0.03 * np.sqrt(2), size=(200, len(counts))) > 0).cumsum(axis=1)
        shown = counts - wins <= allowed
        truth = np.median(np.where(shown.any(axis=1), counts[shown.argmax(axis=1)], len(counts)))
        assert np.median([its.prices[place].pairs for its in found]) == pytest.approx(truth, rel=0.3)


def test_a_machine_that_drifts_is_said_and_one_that_does_not_is_not():
    rng = np.random.default_rng(1)
    assert sum(calibration(rng).drift is not None for _ in range(100)) <= 4
    drifts = [calibration(rng, trend=0.1).drift for _ in range(20)]
    assert all(drift is not None and 0.02 < drift < 0.12 for drift in drifts)


def test_a_command_is_calibrated(capsys):
    program = f"{sys.executable} -c 'import random; print(random.gauss(100, 2))'"
    code, found, _ = run(capsys, "calibrate", program, *NUMBERS, "--budget", "12", "--json")
    assert code == 0
    assert found["pairs"] == 12
    assert 0.004 < found["noise"] < 0.06
    assert [price["change"] for price in found["prices"]] == [0.01, 0.02, 0.05]
    assert found["prices"][0]["pairs"] > found["prices"][2]["pairs"] >= 6
    assert "\nAgainst itself" in found["summary"] or "\nIt differs from itself" in found["summary"]
    code, _, errors = run(capsys, "calibrate", "echo 1", *NUMBERS, "--budget", "3")
    assert code == 2
    assert "only 3 pairs of runs have ended, and it takes 7: raise --budget" in errors


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (
            ["false"],
            ["'false' has failed, which loses its pair if the other run ends: ", "'false' has failed 3 times in a row"],
        ),
        (["sleep 9", "--budget", "0.2s"], ["(the command was running): raise --budget, or fix the command"]),
        (["echo 'a"], ["COMMAND: must be words as in a shell"]),
    ],
)
def test_a_command_that_fails_is_one_command_in_messages(capsys, words, messages):
    code, _, errors = run(capsys, "calibrate", *words, "--result", "max-rss")
    assert code == 2
    for line, said in zip(errors.splitlines(), messages, strict=True):
        assert said in line
    assert not re.search(r"\b[AB]\b", errors)


def test_items_are_run_once_by_both_commands(tmp_path, capsys):
    words = "versus", "expr 10 + '{item}'", "expr 20 + '{item}'"
    table = tmp_path / "runs.csv"
    options = *NUMBERS, "--items", tmp_path / "items", "--json", "--save", table, "--seed", "1"
    (tmp_path / "items").write_text("1\n\n2\n 30 \n4\n5\n6\n7\n", encoding="utf-8")
    code, found, _ = run(capsys, *words, *options, "--goal", "maximize", "--repeats", "2")
    assert (code, found["verdict"], found["pairs"], found["items"]) == (0, "better", 7, 7)
    assert "items like these" in found["summary"]
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert sorted({row["item"] for row in rows}) == ["1", "2", "30", "4", "5", "6", "7"]
    assert all(float(row[words[2]]) - float(row[words[1]]) == 10 for row in rows)
    assert len(rows) == 14


def test_an_item_is_quoted_for_a_shell(tmp_path, capsys):
    (tmp_path / "items").write_text("$(echo 5); echo 7\nb 'c'\n", encoding="utf-8")
    words = "versus", "echo {item} | wc -c", "echo {item} | wc -c", "--shell", *NUMBERS
    code, found, _ = run(capsys, *words, "--items", tmp_path / "items", "--json")
    assert code == 4
    assert found["medians"] == [12.0, 12.0]  # of 18 and 6 characters
    assert found["stopped"] == "items"


def test_a_command_against_a_bar(capsys):
    code, found, _ = run(capsys, "versus", "--bar", "3.28", "echo 3.27", *NUMBERS, "--json")
    assert (code, found["verdict"], found["pairs"], found["bar"]) == (0, "better", 7, 3.28)
    assert found["runs"] == [0, 7]
    assert found["evalue"] > 40
    assert run(capsys, "versus", "--bar", "3.28", "echo 3.29", *NUMBERS, "--json")[0] == 1
    assert run(capsys, "versus", "--bar", "1", "echo 1", *NUMBERS, "--json", "--budget", "9")[0] == 4


def test_quantiles_of_runs_and_of_the_samples_of_a_run(capsys):
    program = "import random; print(random.expovariate(1) * {}) "
    one, other = (f'{sys.executable} -c "{program.format(factor)}"' for factor in (1, 50))
    code, found, _ = run(capsys, "versus", one, other, *NUMBERS, "--quantile", "0.7", "--json", "--budget", "40")
    assert (code, found["quantity"]) == (1, "change of the 0.7-quantile")
    fast, slow = (f"echo '{json.dumps({'t': [1] * 98 + [last] * 2})}'" for last in (2, 5))
    code, found, _ = run(capsys, "versus", slow, fast, "--result", "json=t", "--goal", "p99", "--json")
    assert code == 0
    assert found["medians"] == [5.0, 2.0]


def test_a_quantile_of_samples_needs_a_list():
    assert sought("maximize", JsonField("x")) == ("maximize", JsonField("x"))
    with pytest.raises(ValueError, match="give a JSON field that is a list of numbers"):
        sought("p99", JsonQuantile("x", 0.5))
    for printed in ('{"t": 3}', '{"t": []}', '{"t": [1, "x"]}', '{"t": [1, true]}'):
        with pytest.raises(NoResult):
            JsonQuantile("t", 0.9).read(SimpleNamespace(stdout=printed))
    assert JsonQuantile("t", 0.5).read(SimpleNamespace(stdout='{"t": [3, 1, 2]}')) == 2


def test_the_goal_of_a_study_may_be_a_quantile_of_samples(tmp_path, capsys):
    study = tmp_path / "study.toml"
    text = """command = "true {x}"
result = {json = "t"}
goal = "p99"
budget = {evaluations = 3}
parameters.x = {type = "float", low = 0.0, high = 1.0}
"""
    study.write_text(text, encoding="utf-8")
    found = load(study)
    assert (found.goal, found.result) == ("minimize", JsonQuantile("t", 0.99))
    study.write_text(text.replace('{json = "t"}', '"wall-time"').replace("p99", "p999"), encoding="utf-8")
    code, _, errors = run(capsys, "tune", study)
    assert code == 2
    assert "must be 'minimize', 'maximize', or a quantile to minimize such as 'p99', got 'p999'" in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bar", "1", "echo 1", "echo 2"], "--bar is in the place of A"),
        (["echo 1"], "--bar NUMBER"),
        (["echo {item}", "echo 1", "--items", "items"], r"write {item} where the item stands"),
        (["echo {item}", "echo {item}", "--items", "missing"], "cannot be read"),
        (["echo {item}", "echo {item}", "--items", "items"], "must have two lines or more, each with another item"),
        (["echo 1", "echo 1", "--quantile", "2"], "quantile must be between 0 and 1"),
        (["echo 1", "echo 1", "--goal", "p0"], "a quantile to minimize such as 'p99', got 'p0'"),
        (["echo 1", "echo 1", "--goal", "p99"], "give a JSON field that is a list of numbers"),
    ],
)
def test_wrong_arguments_are_refused_with_what_to_do(tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items").write_text("one\none\n", encoding="utf-8")
    code, _, errors = run(capsys, "versus", *NUMBERS, *words)
    assert code == 2
    assert message in errors
