"""Conditional parameters, constraints, and comparison with a baseline."""

import json

import pytest

from noregret.cli import main
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load

SCRIPT = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--depth", type=int)
parser.add_argument("--rate", type=float)
args = parser.parse_args()
assert (args.depth is None) == (args.model == "line") and (args.rate is None) == (args.model == "forest")
cost = abs(args.depth - 6) + 1 if args.model == "forest" else 9 + args.rate
print(json.dumps({"cost": cost, "memory": 100 * (args.depth or 1)}))
"""
STUDY = """
command = ["python3", "run.py", "--model", "{model}", ["--depth", "{depth}"], ["--rate={rate}"]]
result = {json = "cost"}
[budget]
evaluations = 14
[parameters.model]
type = "choice"
choices = ["line", "forest"]
[parameters.depth]
type = "int"
low = 2
high = 8
step = 2
when = {model = "forest"}
[parameters.rate]
type = "float"
low = 0.1
high = 1.0
when = {model = "line"}
"""
LIMIT = """
[constraints.memory]
result = {json = "memory"}
max = 450
"""
BASELINE = """
[baseline]
model = "forest"
depth = 8
"""


def written(folder, more="", study=STUDY):
    (folder / "run.py").write_text(SCRIPT)
    path = folder / "s.toml"
    path.write_text(study + more)
    return path


def said(capsys, *command, code=0):
    assert main([*map(str, command)]) == code
    return capsys.readouterr()


@pytest.mark.slow
def test_words_for_what_does_not_apply_are_dropped(tmp_path, capsys):
    path = written(tmp_path)
    out = said(capsys, "tune", path).out
    assert "failed" not in out
    assert "than your settings" not in out, "there is no baseline"
    with Store(load(path), readonly=True) as store:
        kinds = {tuple(record.params) for record in store.records()}
        depths = {record.params["depth"] for record in store.records() if "depth" in record.params}
    assert kinds == {("model", "depth"), ("model", "rate")}
    assert depths <= {2, 4, 6, 8}
    report = json.loads(said(capsys, "report", "--json", path).out)
    assert report["best"]["params"] == {"model": "forest", "depth": 6}
    assert report["baseline"] is None
    lines = said(capsys, "export", path, "--csv").out.splitlines()
    assert lines[0] == "trial,state,value,noise,model,depth,rate,block.machine,started,seconds"
    assert {tuple(cell == "" for cell in line.split(",")[5:7]) for line in lines[1:]} == {(True, False), (False, True)}
    (tmp_path / "e.csv").write_text("\n".join(lines))
    other = written(tmp_path, study=STUDY.replace("[budget]", 'name = "other"\n[budget]'))
    assert "14 of 14 rows added" in said(capsys, "import", other, tmp_path / "e.csv").out
    said(capsys, "report", path)


def test_the_way_out_of_a_parameter_that_does_not_always_apply(tmp_path, capsys):
    path = written(tmp_path, study=STUDY.replace('["--rate={rate}"]', '"--rate={rate}"'))
    refused = said(capsys, "tune", "--dry-run", path, code=2).err
    assert 'put it into a group, which is dropped then, such as ["--rate", "{rate}"]' in refused
    path = written(tmp_path, study=STUDY.replace('["--rate={rate}"]', '["--rate", "{rate}"]'))
    assert "--model" in said(capsys, "tune", "--dry-run", path).out


@pytest.mark.slow
def test_what_must_stay_within_limits_does(tmp_path, capsys):
    path = written(tmp_path, LIMIT)
    out = said(capsys, "tune", path).out
    assert "meets all constraints (probability" in out
    assert "memory 600 > 450 (model=forest, depth=6)" in out
    assert "memory 400 (model=forest, depth=4)" in out
    report = json.loads(said(capsys, "report", "--json", path).out)
    assert report["best"]["params"] == {"model": "forest", "depth": 4}
    assert report["best"]["feasible"] > 0.9
    assert all("memory" in trial["constraints"] for trial in report["trials"])
    header, *rows = said(capsys, "export", path, "--csv").out.splitlines()
    assert header.split(",")[7] == "constraint.memory"
    assert {row.split(",")[7] for row in rows} <= {"100.0", "200.0", "400.0", "600.0", "800.0"}


@pytest.mark.slow
def test_a_run_without_the_number_of_a_constraint_has_failed(tmp_path, capsys):
    path = written(tmp_path, LIMIT.replace('"memory"}', '"rss"}'))
    out = said(capsys, "tune", path, code=2).out
    assert "failed: constraint memory: no field 'rss' in the JSON" in out


@pytest.mark.slow
def test_the_headline_compares_with_the_settings_of_today(tmp_path, capsys):
    path = written(tmp_path, BASELINE)
    out = said(capsys, "tune", path).out.splitlines()
    assert out[0] == "trial 0: 3 (baseline)"
    headline = out[14]
    assert headline.startswith("66% lower than your settings (between ")
    assert headline.endswith(", at 95%)")
    baseline = json.loads(said(capsys, "report", "--json", path).out)["baseline"]
    assert baseline["params"] == {"model": "forest", "depth": 8}
    gain = baseline["gain"]
    assert gain["lower"] <= gain["estimate"] <= gain["upper"]
    assert gain["estimate"] == pytest.approx(67, abs=2)


@pytest.mark.slow
def test_a_baseline_outside_of_the_study_has_ways_out(tmp_path, capsys):
    path = written(tmp_path, BASELINE.replace("8", "10"))
    refused = said(capsys, "tune", path, code=2).err
    assert (
        "depth must be from 2 to 8, got 10. It must be a setting of this study: widen the ranges, or leave" in refused
    )
    path = written(tmp_path, BASELINE.replace("8", "10"), STUDY.replace("high = 8", "high = 10"))
    assert "--depth 10" in said(capsys, "tune", "--dry-run", path).out


def test_what_is_measured_elsewhere_has_its_constraints_too(tmp_path, capsys):
    path = written(tmp_path, LIMIT)
    data = tmp_path / "past.csv"
    data.write_text("model,depth,value\nforest,4,3\n")
    assert "column 'constraint.memory' is missing" in said(capsys, "import", path, data, code=2).err
    data.write_text(
        "model,depth,rate,value,constraint.memory\nforest,4,,3,400\nline,,0.5,9.5,100\nline,4,0.5,9.5,100\n"
    )
    found = said(capsys, "import", path, data)
    assert found.out.startswith("2 of 3 rows added")
    assert "line 4: " in found.err
    with Store(load(path), readonly=True) as store:
        assert [record.value("memory") for record in store.records()] == [400.0, 100.0]


@pytest.mark.slow
def test_what_the_template_shows_works_once_it_is_no_comment(tmp_path, capsys):
    path = tmp_path / "s.toml"
    said(capsys, "init", path)
    text = path.read_text().replace('"{mode}"]', '"{mode}", ["--depth={depth}"]]', 1)
    for table in ("[baseline]", "[constraints.memory]", "[stop]", "[failure]", "[parameters.depth]"):
        start = text.index(f"# {table}")
        end = text.find("\n\n", start)
        text = text[:start] + "\n".join(line.removeprefix("# ") for line in text[start:end].splitlines()) + text[end:]
    text = text.replace('{json = "rss"}', '"wall-time"').replace("evaluations = 40", "evaluations = 9")
    path.write_text(text.replace('mode = "slow"\n\n', 'mode = "slow"\ndepth = 4\n\n', 1))
    out = said(capsys, "tune", path).out
    assert out.startswith("trial 0: ")
    assert "than your settings" in out or "your settings are the best" in out
