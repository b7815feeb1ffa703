"""A fidelity in `tune`: in study files, runs that are stopped early, and what is stored and shown of them."""

import csv
import io
import json
import math
import time
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from tests.studies.made import outcome, record, suggested

from noregret.optimizer import Float, Int, Reading
from noregret.studies.display import LineView
from noregret.studies.learning.findings import Findings, summary
from noregret.studies.learning.suggest import believed
from noregret.studies.measuring import Keeper, measure
from noregret.studies.page.page import content
from noregret.studies.running import suggester_of
from noregret.studies.store.store import Store
from noregret.studies.study.exchange import exported, read_rows
from noregret.studies.study.reading import load
from noregret.studies.study.results import JsonSteps, Pattern
from noregret.studies.study.study import Budget, Study, StudyError

FILE = """command = "./train --rate {rate} --epochs {epochs}"
result = {json = "loss", step = "epoch"}
[fidelity]
parameter = "epochs"
low = 1
high = 81
[budget]
evaluations = 9
[parameters.rate]
type = "float"
low = 0
high = 1
"""
SPACE = {"x": Float(0, 1)}
EPOCHS = {"epochs": Int(1, 81, log=True)}
LOSS = Pattern(r"epoch (?P<step>\d+): (?P<value>[\d.]+)")
ENDLESS = 'i=1; while true; do echo "epoch $i: 0.$i"; i=$((i+1)); sleep 0.01; done'


@pytest.fixture(scope="module")
def keeper():
    with Keeper() as found:
        yield found


def study_of(folder, *command, **options):
    return Study(folder / "s.toml", command, space=SPACE, fidelity=EPOCHS, result=LOSS, **options)


def is_alive(pid):
    """Test whether a process runs; zombies do not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Verdict:
    """A judge that stops runs from a step on, and remembers what it saw."""

    limit = math.inf

    def __init__(self, step):
        self.step, self.seen = step, []

    def is_enough(self, values):
        return True

    def is_to_stop(self, trial, reports):
        self.seen.append(reports)
        return reports[-1].step >= self.step


def test_a_study_file_may_have_a_fidelity(tmp_path):
    (tmp_path / "s.toml").write_text(FILE)
    study = load(tmp_path / "s.toml")
    assert study.fidelity == EPOCHS
    assert study.steps == JsonSteps("loss", "epoch")
    assert study.arguments({"rate": 0.5}) == ["./train", "--rate", "0.5", "--epochs", "81"]
    assert study.arguments({"rate": 0.5, "epochs": 9})[-1] == "9"
    assert "fidelity.epochs" in study.identity()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("low = 1\n", "low = 0\n", r"s.toml:3: \[fidelity\] low must be above 0 on a log scale, got 0"),
        ("low = 1\n", "low = 0\nlog = false\n", r"s.toml:3: \[fidelity\] fidelity 'epochs' must begin above 0"),
        ("high = 81", "high = 81\nstep = 3", r"s.toml:7: \[fidelity\] step: unknown key"),
        ('"epochs"', '"rate"', r"s.toml:4: \[fidelity\] parameter: 'rate' is tuned, too"),
        ('"epochs"', '"2x"', r"s.toml:4: \[fidelity\] parameter: must be a word such as epochs, got '2x'"),
        ("[fidelity]", "drift = 'auto'\n[fidelity]", r"s.toml:4: fidelity: there may be fidelity or drift"),
        ("[fidelity]", "repeats = 3\n[fidelity]", r"s.toml:3: repeats: a trial with a fidelity runs once"),
        ('{json = "loss", step = "epoch"}', "{regex = '(?P<step>.) (.)'}", r"s.toml:2: result: .*needs a group value"),
    ],
)
def test_what_does_not_go_with_a_fidelity_is_refused(tmp_path, old, new, said):
    (tmp_path / "s.toml").write_text(FILE.replace(old, new))
    with pytest.raises(StudyError, match=said):
        load(tmp_path / "s.toml")


BOTH = """command = "./train --rate {{rate}} --epochs {{epochs}}"
[parameters.rate]
type = "float"
low = 0.1
high = 1.0
[baseline]
rate = 0.5
[budget]
evaluations = 9
{}"""
FIDELITY = "[fidelity]\nparameter = 'epochs'\nlow = 1\nhigh = 9\n"
SAFE = "[constraints.memory]\nresult = {json = 'm'}\nmax = 9.0\nsafe = 0.9\n"
GOALS = "".join(f"[objectives.{name}]\ngoal = 'minimize'\nresult = {{json = '{name}'}}\n" for name in ("loss", "cost"))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (FIDELITY + SAFE, r"s.toml:10: fidelity: there may be fidelity or safe, not both: a cheaper run may break"),
    ],
)
def test_what_the_optimizer_refuses_together_is_refused_in_one_line(tmp_path, parts, said):
    (tmp_path / "s.toml").write_text(BOTH.format(parts))
    with pytest.raises(StudyError, match=said) as error:
        load(tmp_path / "s.toml")
    assert "\n" not in str(error.value)


def test_a_command_that_cannot_know_the_fidelity_is_refused(tmp_path):
    (tmp_path / "s.toml").write_text(FILE.replace(" --epochs {epochs}", "").replace(', step = "epoch"', ""))
    with pytest.raises(StudyError, match=r"s.toml:1: command: it does not know the fidelity 'epochs': add \{epochs\}"):
        load(tmp_path / "s.toml")


def test_steps_are_read_from_lines_and_bad_numbers_are_left_out():
    text = "epoch 1: 0.5\nepoch 2: .\nother\nepoch 3: 0.25\n"
    assert LOSS.steps(text) == [
        Reading(0.5, step=1),
        Reading(0.25, step=3),
    ]
    lines = '{"loss": 1, "e": 1}\nother\n{"loss": NaN, "e": 2}\n{"loss": 0.5, "e": 3}\n[1]\n{"e": 4}\n'
    assert JsonSteps("loss", "e").steps(lines) == [Reading(1.0, step=1), Reading(0.5, step=3)]


def trial_of(epochs):
    return record(0, {"x": 0.5}, fidelity={"epochs": epochs})


@pytest.mark.slow
def test_a_hopeless_run_is_ended_with_all_its_processes_and_its_last_value_kept(keeper, tmp_path):
    study = study_of(tmp_path, "sh", "-c", f"sleep 601.25 & echo $! > child; {ENDLESS} # {{epochs}}")
    judge = Verdict(9)
    found = measure(study, trial_of(81), keeper, Event(), judge)
    last = found.reports()[-1]
    assert (found.value(), found.fidelity, found.is_stopped) == (last.value, {"epochs": last.step}, True)
    assert 9 <= last.step < 81
    assert str(last.value) == f"0.{int(last.step)}".rstrip("0")
    assert all(len(reports) <= 6 for reports in judge.seen)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_a_run_that_does_not_know_its_fidelity_is_ended_there(keeper, tmp_path):
    found = measure(study_of(tmp_path, "sh", "-c", ENDLESS), trial_of(3), keeper, Event(), Verdict(99))
    assert not found.is_stopped
    assert found.fidelity["epochs"] >= 3
    assert found.failure == ""


def test_a_run_that_ends_by_itself_has_the_fidelity_that_was_asked(keeper, tmp_path):
    study = study_of(tmp_path, "printf", r"epoch 1: 0.5\nepoch 2: 0.25\n# {epochs}")
    found = measure(study, trial_of(3), keeper, Event(), Verdict(1))
    assert (found.value(), found.fidelity, found.is_stopped) == (0.25, {"epochs": 3}, False)
    assert found.reports() == [Reading(0.5, step=1), Reading(0.25, step=2)]
    failed = measure(study_of(tmp_path, "false", "{epochs}"), trial_of(3), keeper, Event())
    assert (failed.value(), failed.state) == (None, "failed")


def curves(count, seed=0):
    """Trials whose loss falls with the epochs to (x - 0.3)^2, some of them cut."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        x, epochs = float(rng.random()), int(rng.choice([9, 27, 81]))
        yield record(number, {"x": x}, "done", loss(x, epochs) + 0.01 * rng.normal(), fidelity={"epochs": epochs})


def loss(x, epochs):
    return (x - 0.3) ** 2 + 0.5 / epochs


@pytest.mark.slow
def test_a_bad_run_is_hopeless_and_a_good_one_is_not(tmp_path):
    study = study_of(tmp_path, "true", "{epochs}")
    suggest = suggester_of(study)
    assert not suggest.is_to_stop(record(-1, {"x": 0.9}, fidelity={"epochs": 81}), [Reading(1.0, step=9)])
    suggestion = suggest(list(curves(40)))
    assert suggestion.fidelity == {"epochs": 81}, "with intermediate results, a run can be stopped at any time"
    for x, is_to_stop in ((0.95, True), (0.3, False)):
        reports = [Reading(loss(x, epochs), step=epochs) for epochs in (3, 9)]
        assert suggest.is_to_stop(record(-1, {"x": x}, fidelity={"epochs": 81}), reports) == is_to_stop


def test_stopped_runs_are_stored_told_exported_imported_and_shown(tmp_path, capsys):
    study = study_of(tmp_path, "true", "{epochs}", budget=Budget(rounds=9), storage="sqlite:///s.db")
    reports = Reading(0.9, step=3), Reading(0.5, step=9)
    stopped = outcome(0, 0.5, fidelity={"epochs": 9}, reports=reports, is_stopped=True)
    done = outcome(1, 0.25, fidelity={"epochs": 81})
    with Store(study) as store:
        for x in (0.25, 0.75, 0.5):
            trial = store.claim(lambda records, x=x: suggested({"x": x}, [], fidelity={"epochs": 81})).trial
            assert trial.fidelity == {"epochs": 81}
        assert store.tell(stopped)
        assert store.tell(done)
        store.give_back(2)
        assert store.tell(stopped), "the same outcome twice counts once"
        found = store.records()
    assert [its.readings for its in found] == [stopped.readings, done.readings, {}]
    assert found[2].fidelity == {"epochs": 81}, "a trial that waits is measured at the fidelity that was asked"
    known = believed(study, found)
    assert [(its.value, its.fidelity) for its in known.answers] == [(0.5, {"epochs": 9}), (0.25, {"epochs": 81})]
    findings = Findings(study, found, known)
    assert [its["stopped"] for its in summary(findings)["trials"]] == [True, False, False]
    assert "2 measurements of 9 planned, 1 at lower epochs (1 stopped early)" in content(findings)
    table = exported(study, found, "csv")
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    assert [(row["state"], row["fidelity.epochs"]) for row in rows[:4]] == [
        ("reported", "3"),
        ("reported", "9"),
        ("stopped", "9"),
        ("done", "81"),
    ]
    assert json.loads(exported(study, found, "json"))[0]["fidelity.epochs"] == 9
    (tmp_path / "t.csv").write_bytes(table)
    imported = read_rows(study, tmp_path / "t.csv")
    assert [row.fidelity for row, _ in imported.trials] == [{"epochs": 9}, {"epochs": 81}]
    with Store(study) as store:
        assert store.add(imported.trials) == 0, "an export of the same study has nothing new"
    LineView(study, []).told(found[0], counted=True)
    assert capsys.readouterr().out == "trial 0: 0.5, stopped early at epochs=9 (x=0.25)\n"


def test_intermediate_results_of_failed_runs_are_no_results(tmp_path):
    """Also if the trials are read again, as by another worker."""
    study = study_of(tmp_path, "true", storage="sqlite:///s.db", budget=Budget(rounds=20))
    with Store(study) as store:
        for number in range(12):
            reports = tuple(Reading(number / 12, step=step) for step in (1, 3))
            trial = store.claim(lambda records, n=number: suggested({"x": n / 12}, (), fidelity={"epochs": 81})).trial
            assert store.tell(outcome(trial.number, None, "exit code 1", reports=reports))
        records = store.records()
        optimizer = believed(study, records)
        assert Findings(study, records, optimizer).best is None
        assert summary(Findings(study, records, optimizer))["best"] is None
        with pytest.raises(ValueError, match="needs a value"):
            optimizer.best()
        assert store.claim(suggester_of(study)).trial.number == 12


def test_a_command_that_prints_results_and_fails_has_none(keeper, tmp_path):
    study = study_of(tmp_path, "sh", "-c", "echo epoch 1: 0.5; exit 1")
    found = measure(study, trial_of(81), keeper, Event(), Verdict(99))
    assert (found.value(), found.failure) == (None, "exit code 1")
