"""Numbers in and out: export, import, JSON for scripts, and the end of a study."""

import csv
import io
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import pandas
import pytest
from tests.conftest import needs
from tests.studies.made import outcome, record, suggested

from noregret.cli import main
from noregret.optimizer import Choice, Float, Int
from noregret.studies.store.records import arrived
from noregret.studies.store.store import Store
from noregret.studies.study.exchange import exported, read_rows
from noregret.studies.study.reading import load
from noregret.studies.study.study import Budget, Study, StudyError

STUDY = """
command = ["awk", "BEGIN {{{{ print ({{n}} - 3)^2; exit {{n}} == 5 }}}}"]
[budget]
{budget}
[parameters.n]
type = "int"
low = 1
high = 6
{more}
"""
SPACE = {"x": Float(0.0, 1.0), "n": Int(1, 9), "mode": Choice(["a", 2, False])}


def written(folder, budget="evaluations = 6", more="", name="s.toml"):
    path = folder / name
    path.write_text(STUDY.format(budget=budget, more=more))
    return path


def changed(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def said(capsys, *command, code=0):
    assert main([*map(str, command)]) == code
    return capsys.readouterr()


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path / "s.toml", ("m",), space=SPACE, storage="sqlite:///s.db", budget=Budget(rounds=100))


def suggest(records):
    return suggested({"x": 0.25, "n": 1 + len(records), "mode": [2, "a", False][len(records) % 3]}, arrived(records)[1])


@pytest.fixture
def filled(study):
    with Store(study) as store:
        for told in ((0.1 + 0.2, "", 0.5), (None, "exit code 1", 0.25)):
            store.tell(outcome(store.claim(suggest).trial.number, *told))
        store.claim(suggest)
    return study


def records_of(study):
    with Store(study, readonly=True) as store:
        return store.records()


def test_an_export_has_every_trial_and_reads_back_exactly(filled):
    rows = list(csv.DictReader(io.StringIO(exported(filled, records_of(filled), "csv").decode())))
    columns = ["trial", "state", "value", "noise", "x", "n", "mode", "block.machine", "failure", "started", "seconds"]
    assert list(rows[0]) == columns
    assert [row["state"] for row in rows] == ["done", "failed", "running"]
    assert (float(rows[0]["value"]), rows[0]["noise"], rows[0]["mode"], float(rows[0]["seconds"])) == (
        0.1 + 0.2,
        "",
        "2",
        0.5,
    )
    listed = json.loads(exported(filled, records_of(filled), "json"))
    assert [row["mode"] for row in listed] == [2, "a", False]
    assert (listed[0]["value"], listed[1]["value"], listed[2]["seconds"]) == (0.1 + 0.2, None, None)


def test_an_export_to_parquet_has_typed_columns(filled):
    needs("pyarrow")
    frame = pandas.read_parquet(io.BytesIO(exported(filled, records_of(filled), "parquet")))
    assert list(frame["value"].fillna(-1.0)) == [0.1 + 0.2, -1.0, -1.0]
    assert frame["n"].dtype == "int64"
    assert frame["started"].dtype.kind == "M"
    assert list(frame["mode"]) == ["2", "a", "False"]


@pytest.mark.slow
def test_a_parameter_called_like_a_column_of_an_export_has_a_column_of_its_own(tmp_path):
    study = Study(
        tmp_path / "s.toml", ("m",), space={"value": Int(1, 3), "seconds": Int(1, 3)}, storage="sqlite:///s.db"
    )
    with Store(study) as store:
        store.add([(record(-1, {"value": 2, "seconds": 3}, "done", 0.5), "")])
        text = exported(study, store.records(), "csv").decode()
    assert text.splitlines()[0] == "trial,state,value,noise,params.value,params.seconds,started,seconds"
    (tmp_path / "e.csv").write_text(text)
    ((found, _),) = read_rows(study, tmp_path / "e.csv").trials
    assert (found.params, found.value()) == ({"value": 2, "seconds": 3}, 0.5)


@pytest.mark.slow
def test_export_on_the_command_line(tmp_path, capsys):
    path = written(tmp_path)
    said(capsys, "tune", path)
    text = said(capsys, "export", path, "--csv").out
    assert said(capsys, "export", path, "--out", tmp_path / "all.csv").out.strip() == str(tmp_path / "all.csv")
    assert (tmp_path / "all.csv").read_text() == text
    assert len(json.loads(said(capsys, "export", path, "--json").out)) == 6
    needs("pyarrow")
    said(capsys, "export", path, "--parquet", "--out", tmp_path / "all.parquet")
    assert len(pandas.read_parquet(tmp_path / "all.parquet")) == 6
    refused = {
        ("--out", tmp_path / "x.xls"): "must end in .csv, .json or .parquet",
        ("--json", "--out", tmp_path / "x.csv"): "must end in .json, as --json says",
        (): "export needs a format: --csv, --json, --parquet, --optuna, or --out",
        ("--csv", "--out", tmp_path / "none" / "x.csv"): "cannot be written",
    }
    for arguments, message in refused.items():
        assert message in said(capsys, "export", path, *arguments, code=2).err
    assert not list(tmp_path.glob("x.*"))


def test_without_the_extra_parquet_says_what_to_install(filled, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[frames\]'"):
        exported(filled, records_of(filled), "parquet")


PAST = """x,n,mode,value,noise
0.5,3,a,1.5,0.25
0.5,3,a,1.5,0.25
0.25,4.0,2.0,2.5,
1,1,FALSE,-1e3,
"""


def past(folder, text=PAST):
    path = folder / "past.csv"
    path.write_text(text)
    return path


def test_rows_of_the_past_are_kept_once_and_are_no_rounds(study, tmp_path):
    rows = read_rows(study, past(tmp_path)).trials
    with Store(replace(study, budget=Budget(rounds=1))) as store:
        assert store.add(rows) == 3
        assert store.add(rows) == 0
        trial = store.claim(suggest).trial
        assert trial.told == (0, 1, 2)
        store.tell(outcome(trial.number, 1.0, "", 0.1))
        assert store.claim(suggest).over
    records = records_of(study)
    assert [(r.params, r.value(), r.reading().noise, r.is_imported) for r in records[:3]] == [
        ({"x": 0.5, "n": 3, "mode": "a"}, 1.5, 0.25, True),
        ({"x": 0.25, "n": 4, "mode": 2}, 2.5, None, True),
        ({"x": 1.0, "n": 1, "mode": False}, -1000.0, None, True),
    ]
    assert [r.is_imported for r in records[3:]] == [False]


def test_a_study_that_imports_its_own_export_learns_nothing_new(filled, tmp_path):
    path = past(tmp_path, exported(filled, records_of(filled), "csv").decode())
    found = read_rows(filled, path)
    assert found.kept_out == ["line 4: its trial is running, not done"]
    with Store(filled) as store:
        assert store.add(found.trials) == 0


def test_rows_that_cannot_be_used_are_kept_out_counted_and_listed(study, tmp_path):
    text = PAST + "2,3,a,1,\n0.5,3.5,a,1,\n0.5,3,b,1,\n0.5,3,a,,\n0.5,3,a,nan,\n0.5,3,a,1,-1\n,3,a,1,\n"
    found = read_rows(study, past(tmp_path, text))
    assert len(found.trials) == 4
    assert found.kept_out == [
        "line 6: x must be from 0.0 to 1.0, got 2.0",
        "line 7: n must be a whole number, got 3.5",
        "line 8: mode must be one of ['a', 2, False], got 'b'",
        "line 9: it has no value: drop it, or give it the state 'failed' in a column 'state'",
        "line 10: value must be a finite number between -1e100 and 1e100, got nan",
        "line 11: noise must be the value's standard deviation, above 0, got -1.0",
        "line 12: params must have a value for each of ['x', 'n', 'mode']: 'x' is missing",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAST.replace("noise", "host"), r"column 'host' is of no parameter: these are x, n, mode. Rename it, or add"),
        (PAST.replace("x,", "y,").replace("noise", "host"), r"column 'x' is missing, it has y, n, mode, value, host"),
        (PAST.replace("value", "score"), r"column 'value' is missing"),
        (PAST.replace("noise", "value"), r"column 'value' comes twice"),
        (PAST + "1,2\n", r"line 6 must have 5 fields as the header has, got 2"),
        ("x\n", r"must have a header and at least one row"),
        ('x,"n\n', r"cannot be read"),
    ],
)
def test_files_that_are_no_tables_of_the_past_are_refused_whole(study, tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        read_rows(study, past(tmp_path, text))


@pytest.mark.slow
def test_import_on_the_command_line(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 2")
    data = past(tmp_path, "n,value,host\n2,1,a\n4,1,b\n9,36,b\n")
    assert "column 'host' is of no parameter" in said(capsys, "import", path, data, code=2).err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["past.csv", "s.toml"]
    found = said(capsys, "import", path, data, "--ignore")
    assert found.out == "2 of 3 rows added, 0 known already, 1 kept out\n"
    assert "line 4: n must be from 1 to 6, got 9" in found.err
    assert said(capsys, "import", path, data, "--ignore").out.startswith("0 of 3 rows added, 2 known already")
    lines = said(capsys, "tune", path).out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["trial 2", "trial 3", "best"]
    data.write_text("n,value\n9,1\n")
    assert "no row can be used; line 2: n must be" in said(capsys, "import", path, data, code=2).err
    assert "cannot be read" in said(capsys, "import", path, tmp_path / "none.csv", code=2).err


def test_a_row_of_the_past_whose_noise_was_changed_in_the_database_is_noticed(study):
    with Store(study) as store:
        store.add([(record(-1, {"x": 0.5, "n": 3, "mode": "a"}, "done", 1.5, noise=0.25), "")])
    with closing(sqlite3.connect(study.folder / "s.db")) as connection, connection:
        changed = connection.execute("UPDATE noregret_trials SET document = replace(document, '0.25', '0.5')")
        assert changed.rowcount == 1
    with pytest.raises(StudyError, match="the checksum of trial 0 does not fit"):
        Store(study)


@pytest.mark.slow
def test_json_for_scripts(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 9")
    objects = [json.loads(line) for line in said(capsys, "tune", "--json", path).out.splitlines()]
    assert [found["trial"] for found in objects[:-1]] == list(range(9))
    for found in objects[:-1]:
        n, failed = found["params"]["n"], found["failed"]
        assert (found["value"], failed) == ((None, True) if n == 5 else ((n - 3) ** 2, False))
        assert not failed or found["reason"] == "exit code 1"
    assert objects[-1]["best"]["params"] == {"n": 3}
    assert objects[-1]["stopped"] == "budget"
    report = json.loads(said(capsys, "report", "--json", path).out)
    assert report["best"] == objects[-1]["best"]
    reasons = {its["trial"]: its["reason"] for its in report["trials"] if its["failed"]}
    assert reasons == {its["trial"]: its["reason"] for its in objects[:-1] if its["failed"]}
    assert set(report["best"]) == {
        "params",
        "estimate",
        "lower",
        "upper",
        "level",
        "gap",
        "feasible",
        "remaining",
        "changes",
    }
    assert [trial["params"] for trial in report["trials"]] == [found["params"] for found in objects[:-1]]
    said(capsys, "report", path, "--out", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == report
    assert "must end in .html or .json" in said(capsys, "report", path, "--out", tmp_path / "r.pdf", code=2).err
    assert "must end in .json" in said(capsys, "report", path, "--json", "--out", tmp_path / "r.html", code=2).err
    assert not (tmp_path / "r.pdf").exists()


def test_json_has_no_numbers_that_json_does_not_know(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 1")
    last = said(capsys, "tune", "--json", path).out.splitlines()[-1]
    assert json.loads(last, parse_constant=pytest.fail)["best"]["lower"] is None


STOP = "[stop]\nwithin = 0.5\nconfidence = 0.9\n"


@pytest.mark.slow
def test_a_study_stops_when_it_is_precise_enough_and_goes_on_when_more_is_wanted(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 12", more=STOP)
    first = said(capsys, "tune", path).out
    rounds = first.count("trial ")
    assert rounds < 12
    assert "Precise enough: no other setting is better by more than 0.5 (90%). Lower within, or leave" in first
    assert json.loads(said(capsys, "report", "--json", path).out)["stopped"] == "within"
    again = said(capsys, "tune", path).out
    assert "trial " not in again
    assert "Precise enough" in again
    changed(path, "within = 0.5", "within = 1e-9")
    assert json.loads(said(capsys, "report", "--json", path).out)["stopped"] is None
    said(capsys, "tune", path)
    changed(path, STOP.replace("within = 0.5", "within = 1e-9"), "")
    said(capsys, "tune", path)
    assert json.loads(said(capsys, "report", "--json", path).out)["stopped"] == "budget"
    assert len(records_of(load(path))) == 12


@pytest.mark.slow
def test_whichever_comes_first_ends_a_study_and_says_what_to_do(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 3", more=STOP)
    assert "Raise [budget] evaluations to continue." in said(capsys, "tune", path).out
    changed(path, "evaluations = 3", "evaluations = 4")
    assert said(capsys, "tune", path).out.count("trial ") == 1
    changed(path, "evaluations = 4", "seconds = 0.01")
    assert "Time limit reached. Run the same command to continue." in said(capsys, "tune", path).out
    assert json.loads(said(capsys, "report", "--json", path).out)["stopped"] == "budget"


MANY = "".join(f"[parameters.x{i}]\ntype = 'float'\nlow = 0\nhigh = 1\n" for i in range(3))


@pytest.mark.slow
def test_a_stop_that_can_never_hold_is_told_with_what_to_do(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 2", more=f"{MANY}{STOP}by = 'certificate'\n")
    changed(path, "print ({n} - 3)^2", "print ({n} - 3)^2 + {x0} + {x1} + {x2}")
    warned = said(capsys, "tune", path).err
    assert (
        "[stop] cannot hold within 2 evaluations: it takes measurements near almost all settings, 404 at least"
        in warned
    )
    changed(path, "by = 'certificate'", "by = 'model'")
    assert said(capsys, "tune", path).err == ""
    changed(path, "by = 'model'", "by = 'certificate'")
    changed(path, "evaluations = 2", "seconds = 0.01")
    assert said(capsys, "tune", path).err == ""
    changed(path, "seconds = 0.01", "evaluations = 404\nseconds = 0.01")
    assert said(capsys, "tune", path).err == ""


@pytest.mark.slow
def test_measurements_from_elsewhere_may_be_enough(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 60", more=STOP)
    rows = "".join(f"{n},{(n - 3) ** 2 + d}\n" for n in range(1, 7) for d in (0.01, -0.01, 0.02, -0.02))
    said(capsys, "import", path, past(tmp_path, f"n,value\n{rows}"))
    assert said(capsys, "tune", path).out.count("trial ") <= 5


@pytest.mark.slow
def test_the_first_failure_comes_with_the_last_lines_of_its_error_output(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 3\n[failure]\nstop_after = 9")
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i {{n}} >&2; done; exit 4"
    changed(path, path.read_text().splitlines()[1], f'command = ["sh", "-c", "{script.replace("{{n}}", "{n}")}"]')
    out = said(capsys, "tune", path, code=3).out.splitlines()
    assert out[0].startswith("trial 0: failed: exit code 4 (n=")
    assert [line.split()[:3] for line in out[1:9]] == [["|", "line", str(i)] for i in range(3, 11)]
    assert [line.split(":")[0] for line in out[9:11]] == ["trial 1", "trial 2"]


def test_numbers_for_people_have_four_digits(tmp_path, capsys):
    path = written(tmp_path, budget="evaluations = 1")
    changed(path, "print ({n} - 3)^2", 'printf \\"%.9f\\", 1 / 3 + {n} - {n}')
    assert said(capsys, "tune", path).out.startswith("trial 0: 0.3333 (n=")
