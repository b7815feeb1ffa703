"""Studies with several objectives: from the file to the front."""

import csv
import io
import json
import re
import sys
from threading import Event

import numpy as np
import pytest

from noregret import Float, Optimizer, report
from noregret.cli import main
from noregret.studies.measuring import Keeper, measure
from noregret.studies.store.records import Record
from noregret.studies.study.exchange import read_rows
from noregret.studies.study.reading import load
from noregret.studies.study.study import StudyError

STUDY = """
command = ["{python}", "-c", "{code}", "{x}"]

[budget]
evaluations = 8

[objectives.latency]
result = {json = "latency"}

[objectives.accuracy]
goal = "maximize"
result = {json = "accuracy"}

[baseline]
x = 0.9

[parameters.x]
type = "float"
low = 0
high = 1
"""
CODE = """
import json, random, sys
x = float(sys.argv[1])
noise = random.Random(sys.argv[1])
print(json.dumps({"latency": 1 + x**2 + noise.gauss(0, 0.01), "accuracy": 1 - (1 - x)**2 + noise.gauss(0, 0.01)}))
"""


def file_of(tmp_path, code=CODE, change=lambda text: text):
    script = tmp_path / "measure.py"
    script.write_text(code)
    text = STUDY.replace('"-c", "{code}"', json.dumps(str(script))).replace("{python}", sys.executable)
    path = tmp_path / "study.toml"
    path.write_text(change(text))
    return path


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ('goal = "minimize"', "goal: is for one objective: leave it out"),
        ('result = "wall-time"', "result: is for one objective: leave it out"),
        ("confirm = 2", "confirm: measures the best setting"),
        ("[stop]\nwithin = 1", "stop: is about the best setting"),
    ],
)
def test_what_is_for_one_objective_is_refused(tmp_path, added, said):
    is_table = added.startswith("[")
    path = file_of(tmp_path, change=lambda text: f"{text}\n{added}" if is_table else f"{added}\n{text}")
    with pytest.raises(StudyError, match=re.escape(said)):
        load(path)


def test_one_objective_needs_no_table(tmp_path):
    path = file_of(tmp_path, change=lambda text: re.sub(r"\[objectives.accuracy\]\n.*\n.*\n", "", text))
    with pytest.raises(StudyError, match="must be two or more: for one objective write goal and result"):
        load(path)


def test_two_objectives_cannot_have_the_same_result(tmp_path):
    with pytest.raises(StudyError, match="accuracy: has the same result as latency"):
        load(file_of(tmp_path, change=lambda text: text.replace('"accuracy"', '"latency"')))


NONE = {"latency": None, "accuracy": None}


@pytest.mark.parametrize(
    ("printed", "values", "failure"),
    [
        ('{"latency": 2, "accuracy": 0.5}', {"latency": 2.0, "accuracy": 0.5}, ""),
        ('{"latency": null, "accuracy": 0.5}', {"latency": None, "accuracy": 0.5}, ""),
        (
            '{"latency": null, "accuracy": null}',
            {"latency": None, "accuracy": None},
            "has measured none of the objectives",
        ),
        ('{"latency": 2}', NONE, "objective accuracy: no field 'accuracy'"),
    ],
)
def test_a_null_is_not_measured_and_a_missing_field_is_a_failure(tmp_path, printed, values, failure):
    study = load(file_of(tmp_path, f"print('''{printed}''')"))
    with Keeper() as keeper:
        outcome = measure(study, Record(0, {"x": 0.5}), keeper, Event())
    assert study.measures.values(outcome) == values
    assert failure in outcome.failure
    assert (outcome.state == "failed") == bool(failure)


def test_repeats_have_a_median_of_each_objective(tmp_path):
    code = "import json, pathlib\np = pathlib.Path('n')\nn = int(p.read_text()) if p.exists() else 0\n"
    code += "p.write_text(str(n + 1))\nprint(json.dumps({'latency': [1, 9, 2][n], 'accuracy': [None, 4, 6][n]}))"
    study = load(file_of(tmp_path, code, lambda text: f"repeats = 3\n{text}"))
    with Keeper() as keeper:
        outcome = measure(study, Record(0, {"x": 0.5}), keeper, Event())
    assert study.measures.values(outcome) == {"latency": 2.0, "accuracy": 5.0}
    assert outcome.reading("latency").noise is None


@pytest.mark.slow
def test_a_study_ends_in_a_front_and_continues_after_a_restart(tmp_path, capsys):
    path = file_of(tmp_path)
    assert main(["tune", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"trial 0: latency [\d.]+, accuracy [\d.]+ \(baseline\)", out)
    assert re.search(r"the front: \d+ settings, each better than any other in latency or accuracy", out)
    assert "hypervolume: " in out
    limit = re.search(r"--limit '(accuracy>=[\d.]+)'", out)
    path.write_text(path.read_text().replace("evaluations = 8", "evaluations = 10"))
    assert main(["tune", "--json", str(path)]) == 0
    *trials, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [trial["trial"] for trial in trials] == [8, 9]
    assert all(trial["values"].keys() == {"latency", "accuracy"} and not trial["failed"] for trial in trials)
    for member in last["front"]:
        assert all(
            member["lower"][name] <= member["values"][name] <= member["upper"][name] for name in member["values"]
        )
        assert 0 <= member["probability"] <= 1
        assert f"measure.py {member['params']['x']!r}" in member["command"]
    assert (last["best"], last["command"], last["stopped"]) == (None, None, "budget")
    assert main(["report", str(path), "--limit", limit[1], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    bound = float(limit[1].partition(">=")[2])
    assert found["best"]["upper"]["accuracy"] >= bound
    assert found["best"]["params"] in [member["params"] for member in found["front"]]
    assert str(found["best"]["params"]["x"]) in found["command"]
    assert set(found["gain"]) == {"latency", "accuracy"}
    assert main(["report", str(path), "--weight", "latency=1", "--weight", "accuracy=3"]) == 0
    out = capsys.readouterr().out
    assert "picked by weights latency 1, accuracy 3: latency " in out
    assert "its command:" in out
    page = path.with_suffix(".html").read_text()
    assert "Picked by weights latency 1, accuracy 3" in page
    assert re.search(r"giving up [\d.,]+% \w+ (saves|gains) [\d.,]+% \w+", page)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "cost<=1"], "--limit must be like cost<=0.3, of one of latency, accuracy, got 'cost<=1'"),
        (["--limit", "latency<1"], "--limit must be like"),
        (["--weight", "latency=many"], "--weight must be like"),
    ],
)
@pytest.mark.slow
def test_a_wish_that_cannot_be_read_is_refused(tmp_path, capsys, words, said):
    path = file_of(tmp_path, change=lambda text: text.replace("evaluations = 8", "evaluations = 1"))
    assert main(["report", str(path), *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_an_export_is_read_again_as_it_is(tmp_path, capsys):
    path = file_of(tmp_path, change=lambda text: text.replace("evaluations = 8", "evaluations = 3"))
    assert main(["tune", str(path)]) == 0
    capsys.readouterr()
    assert main(["export", str(path), "--csv", "--out", str(tmp_path / "all.csv")]) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert list(rows[0]) == [
        "trial",
        "state",
        "value.latency",
        "value.accuracy",
        "x",
        "block.machine",
        "started",
        "seconds",
    ]
    assert main(["import", str(path), str(tmp_path / "all.csv")]) == 0
    assert "0 of 3 rows added, 3 known already" in capsys.readouterr().out
    (tmp_path / "past.csv").write_text("x,value.latency,value.accuracy\n0.5,1.2,\n0.6,,\n")
    table = read_rows(load(path), tmp_path / "past.csv")
    assert [load(path).measures.values(row) for row, _ in table.trials] == [{"latency": 1.2, "accuracy": None}]
    assert table.kept_out == ["line 3: it has no value: drop it, or give it the state 'failed' in a column 'state'"]
    (tmp_path / "past.csv").write_text("x,value\n0.5,1.2\n")
    with pytest.raises(StudyError, match=r"column 'value.latency' is missing"):
        read_rows(load(path), tmp_path / "past.csv")


def test_confirm_says_why_it_cannot(tmp_path, capsys):
    assert main(["confirm", str(file_of(tmp_path))]) == 2
    assert "several objectives have none" in capsys.readouterr().err


@pytest.fixture(scope="module")
def informed():
    rng = np.random.default_rng(0)
    optimizer = Optimizer({"x": Float(0, 1)}, goals={"latency": "minimize", "accuracy": "maximize"}, rng=0)
    for x in rng.random(14):
        noise = 0.02 * rng.standard_normal(2)
        optimizer.tell({"x": x}, {"latency": 1 + x**2 + noise[0], "accuracy": 1 - (1 - x) ** 2 + noise[1]})
    return optimizer


@pytest.mark.slow
def test_an_optimizer_has_a_page_with_its_front(informed):
    page = report(informed).html
    assert page.count('class="cross"') == 2 * len(informed.front())  # for wide and for narrow pages
    assert "lower is better" in page
    assert "higher is better" in page
    with pytest.raises(ValueError, match="must have one objective"):
        report(informed, against=informed)
