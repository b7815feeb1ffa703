"""Corrections of a study: what was recorded wrongly is replaced or taken out, and stays on record."""

import json
import sqlite3
from contextlib import closing
from threading import Thread

import pytest
from tests.studies.made import outcome, suggested

from noregret.cli import main
from noregret.optimizer import Float, Reading
from noregret.studies.learning.suggest import believed
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load
from noregret.studies.study.results import JsonField
from noregret.studies.study.study import Study, StudyError

FILE = """
command = ["sh", "-c", 'echo "{{\\"v\\": {x}, \\"joules\\": 7, \\"mb\\": 5}}"', "{x}"]
result = {json = "v"}
[budget]
evaluations = 6
[constraints.memory]
result = {json = "mb"}
max = 9
[measures.energy]
result = {json = "joules"}
unit = "J"
[parameters.x]
type = "int"
low = 1
high = 9
"""


@pytest.fixture
def study(tmp_path):
    found = Study(tmp_path / "s.toml", ("m",), space={"x": Float(0, 1)}, storage="sqlite:///s.db")
    found = Study(**{**vars(found), "constraints": {"memory": ("<=", 9.0)}})
    with Store(found) as store:
        for number in range(8):
            trial = store.claim(lambda records, x=number: suggested({"x": x / 8})).trial
            value = 70.0 if number == 3 else abs(number / 8 - 0.5)
            store.tell(outcome(trial.number, value, constraints={"memory": 4.0}))
    return found


def records_of(study):
    with Store(study, readonly=True) as store:
        return store.records()


def test_a_corrected_study_believes_what_it_would_have_if_told_so_at_once(study):
    before = records_of(study)
    with Store(study) as store:
        found = store.correct(3, 0.125, "a slip of the pen")
        assert (found.value(), found.value("memory"), found.state) == (0.125, 4.0, "done")
    after = records_of(study)
    assert after[3].earlier[0].value() == 70.0
    assert after[3].earlier[0].failure == "a slip of the pen"
    assert [its.readings for its in after[:3]] == [its.readings for its in before[:3]]
    told = [outcome(its.number, its.value(), constraints={"memory": 4.0}) for its in after]
    told = [type(its)(**{**vars(one), "readings": its.readings}) for one, its in zip(after, told, strict=True)]
    one, other = (believed(study, each).best() for each in (after, told))
    assert (one.params, one.estimate, one.lower) == (other.params, other.estimate, other.lower)


def test_a_withdrawn_trial_is_no_evidence(study):
    with Store(study) as store:
        store.withdraw(3, "the wrong cable")
    after = records_of(study)
    assert (after[3].state, after[3].failure, after[3].value()) == ("withdrawn", "the wrong cable", 70.0)
    rest = [its for its in after if its.number != 3]
    one, other = (believed(study, each).best() for each in (after, rest))
    assert (one.params, one.estimate, one.lower) == (other.params, other.estimate, other.lower)
    with Store(study) as store:
        assert store.correct(3, 0.2).state == "done", "a withdrawn trial may get another value"


def test_a_correction_to_the_same_value_changes_no_belief(study):
    before = believed(study, records_of(study)).best()
    with Store(study) as store:
        store.correct(2, 0.25)
    after = believed(study, records_of(study)).best()
    assert (before.params, before.estimate) == (after.params, after.estimate)


def test_corrections_of_two_processes_are_all_kept_and_seen_by_the_others(study):
    with Store(study) as one, Store(study) as other:
        assert other.records()[0].value() == 0.5
        threads = [Thread(target=its.correct, args=(n, float(n))) for n, its in enumerate([one, other] * 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for store in (one, other):
            assert [its.value() for its in store.records()] == [float(n) for n in range(8)]
    with Store(study) as store:
        for value in (1.5, 2.5):
            store.correct(1, value)
        assert [its.value() for its in store.records()[1].earlier] == [0.375, 1.0, 1.5]


def test_what_cannot_be_corrected_is_refused_and_changes_nothing(study):
    before = records_of(study)
    with Store(study) as store:
        store.claim(lambda records: suggested({"x": 0.5}))
        for number, value, said in (
            (99, 1.0, "trial 99 does not exist"),
            (8, 1.0, "trial 8 has no outcome yet"),
            (1, float("nan"), "trial 1: value is nan"),
            (1, {"lateny": 1.0, "value": None}, "at least one of"),
        ):
            with pytest.raises(StudyError, match=said):
                store.correct(number, value)
    assert [its.readings for its in records_of(study)[:8]] == [its.readings for its in before]


def test_changed_corrections_in_the_database_are_noticed(study):
    with Store(study) as store:
        store.correct(3, 0.125)
    with closing(sqlite3.connect(study.folder / "s.db")) as connection, connection:
        sql = "UPDATE noregret_trials SET document = replace(document, '0.125', '0.5') WHERE revision = 1"
        assert connection.execute(sql).rowcount == 1
    with pytest.raises(StudyError, match="the checksum of trial 3 does not fit its result"):
        records_of(study)


@pytest.mark.slow
def test_the_command_line_corrects_and_withdraws_and_tracked_numbers_are_everywhere(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    assert load(path).tracked == {"energy": "J"}
    assert load(path).results["energy"] == JsonField("joules")
    assert main(["tune", str(path)]) == 0
    assert "memory 5, energy 7 J" in capsys.readouterr().out
    assert main(["correct", str(path), "2", "100", "--because", "misread"]) == 0
    assert "trial 2 has been corrected: value 100" in capsys.readouterr().out
    assert main(["correct", str(path), "1", "value=50", "energy=8.5"]) == 0
    assert main(["withdraw", str(path), "3", "--because", "wrong cable"]) == 0
    assert "trial 3 has been withdrawn" in capsys.readouterr().out
    assert main(["report", str(path), "--json"]) == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    assert [its["readings"]["energy"]["value"] for its in trials] == [7, 8.5, 7, 7, 7, 7]
    assert (trials[2]["value"], trials[2]["earlier"][0]["failure"]) == (100, "misread")
    assert (trials[3]["state"], trials[3]["failure"]) == ("withdrawn", "wrong cable")
    for words, said in (("1 x", "the right value must be a number"), ("77 1", "trial 77 does not exist")):
        assert main(["correct", str(path), *words.split()]) == 2
        assert said in capsys.readouterr().err
    assert main(["report", str(path)]) == 0


def test_a_name_that_is_taken_is_refused(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(FILE.replace("measures.energy", "measures.memory"))
    with pytest.raises(StudyError, match=r"\[measures\] memory: is the name of another number"):
        load(path)


def test_a_tracked_number_that_is_missing_is_no_failure(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(FILE.replace("joules", "watts", 1))
    assert main(["tune", str(path)]) == 0
    assert "energy" not in capsys.readouterr().out
    with Store(load(path), readonly=True) as store:
        assert all(its.readings.keys() == {"value", "memory"} for its in store.records())
        assert store.records()[0].readings["memory"] == (Reading(5.0),)
