"""Storages of Optuna, written and read by its public functions."""

import math
from dataclasses import replace

import optuna
import pytest
from tests.studies.made import outcome, record, suggested

from noregret.cli import main
from noregret.optimizer import Choice, Float, Int, Reading
from noregret.studies.store.records import arrived
from noregret.studies.store.store import Store
from noregret.studies.study import exchange
from noregret.studies.study.exchange import read_storage, write_storage
from noregret.studies.study.results import JsonField
from noregret.studies.study.study import Budget, Study, StudyError

SPACE = {"x": Float(0.0, 1.0), "n": Int(1, 1000, log=True), "mode": Choice(["a", "b", 2.5])}
FILE = """
command = ["echo", "{x}", "{n}"]
budget.evaluations = 4
[parameters.x]
type = "float"
low = 0
high = 1
[parameters.n]
type = "int"
low = 1
high = 9
"""


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path / "s.toml", ("m",), space=SPACE, storage="sqlite:///s.db", budget=Budget(rounds=99))


def suggest(records):
    number = len(records)
    return suggested({"x": number / 8, "n": number + 1, "mode": ["a", "b", 2.5][number % 3]}, arrived(records)[1])


def theirs(path, name="study"):
    return optuna.load_study(study_name=name, storage=f"sqlite:///{path}")


def test_optuna_reads_every_kind_of_trial(study, tmp_path):
    with Store(study) as store:
        numbers = [store.claim(suggest).trial.number for _ in range(6)]
        store.tell(outcome(numbers[0], 0.1 + 0.2, seconds=1.5))
        store.tell(outcome(numbers[1], None, "exit code 1"))
        store.tell(outcome(numbers[2], 5.0))
        store.tell(outcome(numbers[3], 1.0))
        store.withdraw(numbers[3], "misread")
        store.give_back(numbers[4])
        records = store.records()
        write_storage(study, records, tmp_path / "o.db")
    found = theirs(tmp_path / "o.db")
    assert [trial.state.name for trial in found.trials] == [
        "COMPLETE",
        "FAIL",
        "COMPLETE",
        "FAIL",
        "WAITING",
        "RUNNING",
    ]
    assert [trial.params for trial in found.trials] == [its.params for its in records]
    assert (found.best_value, found.best_trial.number) == (0.1 + 0.2, 0)
    assert found.trials[0].datetime_start == records[0].started
    assert found.trials[0].user_attrs["seconds"] == 1.5
    assert found.trials[1].user_attrs["failure"] == "exit code 1"
    with pytest.raises(StudyError, match=r"o\.db: exists: choose another name"):
        write_storage(study, records, tmp_path / "o.db")


def test_a_missing_objective_fails_and_reports_are_steps(study, tmp_path):
    readers = {"latency": JsonField("t"), "accuracy": JsonField("a")}
    two = replace(study, goals={"latency": "minimize", "accuracy": "maximize"}, results=readers, confirm=0)
    params = suggest([]).params
    rows = [
        record(0, params, "done", values={"latency": 3.0, "accuracy": 0.5}),
        record(1, params, "done", values={"latency": 2.0}),
    ]
    write_storage(two, rows, tmp_path / "two.db")
    found = theirs(tmp_path / "two.db")
    assert [direction.name for direction in found.directions] == ["MINIMIZE", "MAXIMIZE"]
    assert [(trial.state.name, trial.values) for trial in found.trials] == [("COMPLETE", [3.0, 0.5]), ("FAIL", None)]
    steps = record(0, params, "done", 1.0, reports=(Reading(3.0, step=1), Reading(2.0, step=9)))
    write_storage(study, [steps], tmp_path / "steps.db")
    assert theirs(tmp_path / "steps.db").trials[0].intermediate_values == {1: 3.0, 9: 2.0}


def test_a_table_and_conditional_parameters_are_exported(study, tmp_path):
    table = replace(study, space=[{"kind": "a", "n": 1}, {"kind": "b", "n": 4}])
    write_storage(table, [record(0, {"kind": "b", "n": 4}, "done", 1.0)], tmp_path / "t.db")
    assert theirs(tmp_path / "t.db").trials[0].params == {"kind": "b", "n": 4}
    space = {"model": Choice(["line", "forest"]), "depth": Int(2, 8, step=2, when={"model": "forest"})}
    rows = [record(0, {"model": "line"}, "done", 1.0), record(1, {"model": "forest", "depth": 4}, "done", 2.0)]
    write_storage(replace(study, space=space), rows, tmp_path / "c.db")
    assert [trial.params for trial in theirs(tmp_path / "c.db").trials] == [row.params for row in rows]


def test_an_export_that_fails_leaves_no_file(study, tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "_frozen", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_storage(study, [record(0, suggest([]).params, "done", 1.0)], tmp_path / "o.db")
    assert list(tmp_path.glob("*o.db*")) == []


def test_trials_of_optuna_are_imported_once(study, tmp_path):
    url = f"sqlite:///{tmp_path / 'theirs.db'}"
    made = optuna.create_study(study_name="mine", storage=url)

    def objective(trial):
        x, n = trial.suggest_float("x", 0, 1), trial.suggest_int("n", 1, 2000)
        trial.suggest_categorical("mode", ["a", "b"])
        trial.suggest_float("other", 0, 1)
        if trial.number == 2:
            raise RuntimeError("no")
        return math.inf if trial.number == 3 else x + n

    for number, n in enumerate((1, 1999, 5, 7, 9)):
        made.enqueue_trial({"x": number / 10, "n": n, "mode": "b", "other": 0.5})
    made.optimize(objective, n_trials=5, catch=RuntimeError)
    pending = made.ask()
    found = read_storage(study, url)
    assert [(trial.number, trial.state) for trial, _ in found.trials] == [(0, "done"), (2, "failed"), (4, "done")]
    assert [trial.value() for trial, _ in found.trials] == [1.0, None, 9.4]
    assert found.trials[0][0].params == {"x": 0.0, "n": 1, "mode": "b"}
    assert [line.partition(":")[0] for line in found.kept_out] == ["trial 1", "trial 3", f"trial {pending.number}"]
    assert "n must be from 1 to 1000, got 1999" in found.kept_out[0]
    assert found.kept_out[2].endswith("is running, not complete")
    with Store(study) as store:
        assert store.add(found.trials) == 3
        assert store.add(read_storage(study, str(tmp_path / "theirs.db"), "mine").trials) == 0
        assert [its.state for its in store.records()] == ["done", "failed", "done"]


def test_what_cannot_be_imported_is_said(study, tmp_path):
    url = f"sqlite:///{tmp_path / 'theirs.db'}"
    for name, goal in (("one", "minimize"), ("two", "maximize")):
        optuna.create_study(study_name=name, storage=url, direction=goal)
    (tmp_path / "text.db").write_text("nothing")
    for where, name, said in (
        (str(tmp_path / "none.db"), None, "does not exist"),
        (str(tmp_path / "text.db"), None, "cannot be read as a storage of Optuna"),
        (url, None, "has 2 studies: say --study NAME, one of one, two"),
        (url, "three", "has no study 'three': it has one, two"),
        (url, "two", "has the goals maximize, not those of"),
    ):
        with pytest.raises(StudyError, match=said):
            read_storage(study, where, name)


@pytest.mark.slow
def test_the_commands_export_and_import(tmp_path, capsys):
    path, other = tmp_path / "s.toml", tmp_path / "t.toml"
    path.write_text(FILE)
    other.write_text(FILE)
    assert main(["tune", str(path)]) == 0
    out = str(tmp_path / "o.db")
    assert main(["export", str(path), "--optuna", out]) == 0
    assert f"optuna-dashboard sqlite:///{out}" in capsys.readouterr().out
    for said in ("4 of 4 rows added, 0 known already", "0 of 4 rows added, 4 known already"):
        assert main(["import", str(other), out]) == 0
        assert said in capsys.readouterr().out
    assert main(["drop-old", str(path)]) == 0
    assert "there is nothing to delete" in capsys.readouterr().out
