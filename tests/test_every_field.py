"""Every field of a trial is in every output, and comes back.

Each field has a value of its own, so that an output has it if the value is somewhere among what it says of the trial.
"""

import base64
import csv
import gzip
import io
import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from math import isclose
from pathlib import Path

import pytest
from tests.conftest import needs

from noregret.integrations.trackers import Tracker
from noregret.optimizer import Choice, Float, Int, Optimizer, Reading, Trial, corrected, dump, key, load, withdrawn
from noregret.studies.display import Objects
from noregret.studies.learning.findings import Findings, summary
from noregret.studies.learning.suggest import believed
from noregret.studies.page.page import page
from noregret.studies.store.records import Record
from noregret.studies.store.store import Store
from noregret.studies.study.exchange import exported, read_rows
from noregret.studies.study.study import Study

SPACE = {"x": Float(0, 1)}
START = datetime(2026, 3, 4, 5, 6, 7, 125000)
LIMITS = {"memory": ("<=", 512)}
GOALS = {"latency": "minimize", "loss": "minimize"}


def made(number, x, readings, **more):
    readings = {name: each if isinstance(each, tuple) else (each,) for name, each in readings.items()}
    times = {"started": START + timedelta(seconds=number), "seconds": 0.5625 + number}
    times["ended"] = times["started"] + timedelta(seconds=times["seconds"])
    context, block = {"machine": f"machine {number}"}, {"seed": 70 + number, "day": f"day {number}"}
    return Trial(
        number, {"x": x}, context=context, block=block, **{"state": "done", "readings": readings, **times, **more}
    )


def trials_of(names, fidelity):
    """Trials with every field, for these objectives."""
    first, *_ = names
    rest = {"memory": Reading(480.5, noise=2.25), "cost": Reading(9.375), "energy": Reading(12.125, noise=0.4375)}
    whole = {name: Reading(3.1875 + place, noise=0.15625 + place) for place, name in enumerate(names)}
    at = {"fidelity": {"epochs": 81}} if fidelity else {}
    found = [
        made(0, 0.03125, whole | rest, pair="17 5f0c2a1b", **at),
        made(1, 0.09375, {first: Reading(5.8125, bound="at_least"), "energy": Reading(7.125, bound="at_most")}, **at),
        made(2, 0.15625, {"energy": Reading(3.0625)}, state="failed", failure="exit code 19", **at),
        made(3, 0.21875, {first: tuple(map(Reading, (2.0625, 2.1875, 2.9375)))}, **at),
    ]
    found.append(corrected(made(4, 0.28125, whole, **at), {first: (Reading(4.3125),)}, "read off wrongly"))
    found.append(withdrawn(made(5, 0.34375, {first: Reading(8.4375)}, **at), "the wrong cable"))
    if fidelity:
        reports = Reading(6.5625, step=9), Reading(6.0625, step=27), Reading(5.9375)
        found.append(made(6, 0.40625, {first: reports}, fidelity={"epochs": 27}, is_stopped=True))
    return found


def said_of(trial):
    """What an output must say of a trial: numbers, and text."""
    yield from (trial.params["x"], trial.context["machine"], trial.seconds, *filter(None, [trial.failure, trial.pair]))
    yield from trial.block.values()
    for each in (*trial.earlier, trial):
        for readings in each.readings.values():
            for reading in readings:
                yield from filter(None, (reading.value, reading.noise, reading.bound, reading.step))
    yield from (trial.fidelity or {}).values()
    yield from (each.failure for each in trial.earlier)
    yield trial.started.isoformat(timespec="milliseconds")
    yield "stopped" if trial.is_stopped else trial.state


def flat(found):
    """All numbers and texts in JSON."""
    if isinstance(found, dict):
        yield from (each for name, part in found.items() for each in (name, *flat(part)))
    elif isinstance(found, list):
        yield from (each for part in found for each in flat(part))
    else:
        yield found


def said_before(earlier):
    return earlier.readings, earlier.failure


def says(said, wanted):
    if isinstance(wanted, str):
        return any(wanted in str(each) for each in said)
    numbers = (each for each in map(number, said) if each is not None)
    return any(isclose(each, wanted) for each in numbers)


def number(cell):
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def missing(found, trials, without=()):
    """What an output, by trial, does not say."""
    return [
        (trial.number, wanted)
        for trial in trials
        for wanted in said_of(trial)
        if not any(wanted == each for each in without) and not says(list(flat(found.get(trial.number, []))), wanted)
    ]


def by_trial(rows):
    found = {}
    for row in rows:
        found.setdefault(int(row["trial"]), []).append(dict(row))
    return found


@pytest.fixture(params=["one objective", "two objectives"])
def study(request):
    several = request.param == "two objectives"
    context = {"machine": Choice([f"machine {number}" for number in range(7)])}
    study = Study(Path("s.toml"), (), space=SPACE, constraints=LIMITS, context=context, tracked={"energy": ""})
    if several:
        return replace(study, goals=GOALS, confirm=0)
    return replace(study, fidelity={"epochs": Int(1, 81, log=True)})


@pytest.fixture
def trials(study):
    return trials_of(list(study.measures.objectives), study.fidelity)


def optimizer_of(study, trials):
    options = {"goals": study.goals} if study.goals else {"goal": "minimize", "fidelity": study.fidelity}
    optimizer = Optimizer(SPACE, rng=0, context=study.context, constraints={"memory": ("<=", 512)}, **options)
    optimizer.add(trials)
    return optimizer


def csv_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_trials_of_an_optimizer_and_their_frame_have_every_field(study, trials, tmp_path):
    optimizer = optimizer_of(study, trials)
    optimizer.save(tmp_path / "o.json")
    for its in (optimizer, Optimizer.load(tmp_path / "o.json")):
        assert [(key(one), one.state) for one in its.trials] == [(key(one), one.state) for one in trials]
        described = {one.number: its.measures.described(one) for one in its.trials}
        assert missing(described, trials, without=["stopped"]) == []
        assert all(dump(load(json.loads(json.dumps(dump(one))))) == dump(one) for one in its.trials)
    needs("pandas")
    rows = optimizer.to_frame().to_dict("records")
    assert missing(by_trial(rows), trials) == []


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_an_export_has_every_field(study, trials, form):
    if form == "parquet":
        frames = needs("pandas")
        needs("pyarrow")
    content = exported(study, trials, form)
    if form == "csv":
        found = by_trial(csv_rows(content.decode()))
    elif form == "json":
        found = by_trial(json.loads(content))
    else:
        frame = frames.read_parquet(io.BytesIO(content))
        started = frame["started"].astype(object)
        frame["started"] = [its.isoformat(timespec="milliseconds") for its in started]
        found = by_trial(frame.to_dict("records"))
    assert missing(found, trials) == []


def test_an_export_is_imported_with_every_field(study, trials, tmp_path):
    """By a study that has another storage; and the store keeps it all."""
    (tmp_path / "t.csv").write_bytes(exported(study, trials, "csv"))
    read = read_rows(study, tmp_path / "t.csv")
    assert read.kept_out == []
    same = ("params", "context", "fidelity", "state", "readings", "failure", "started", "seconds", "is_stopped", "pair")
    for one, (other, _) in zip(trials, read.trials, strict=True):
        assert {name: getattr(one, name) for name in same} == {name: getattr(other, name) for name in same}
        assert [(its.readings, its.failure) for its in one.earlier] == [
            (its.readings, its.failure) for its in other.earlier
        ]
    stored = replace(study, path=tmp_path / "s.toml", storage="sqlite:///s.db")
    with Store(stored) as store:
        assert store.add(read.trials) == len(trials)
        assert store.add(read.trials) == 0
    with Store(stored, readonly=True) as store:
        records = store.records()
    for one, other in zip(trials, records, strict=True):
        assert {name: getattr(one, name) for name in same} == {name: getattr(other, name) for name in same}
        assert [(its.readings, its.failure) for its in one.earlier] == [
            (its.readings, its.failure) for its in other.earlier
        ]


def test_json_of_tune_and_report_have_every_field(study, trials, capsys):
    found = Findings(study, trials, believed(study, trials))
    told = {its["trial"]: its for its in json.loads(json.dumps(summary(found)))["trials"]}
    assert missing(told, trials) == []
    view = Objects(study, [])
    for trial in trials:
        view.told(Record(**vars(trial)), counted=True)
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    assert missing({its["trial"]: its for its in lines}, trials) == []


def test_the_table_on_the_page_has_every_field(study, trials):
    text = page(Findings(study, trials, believed(study, trials)))
    data = re.search(r"data:application/gzip;base64,([^\"]+)", text)[1]
    rows = csv_rows(gzip.decompress(base64.b64decode(data)).decode())
    assert missing(by_trial(rows), trials) == []


def test_trackers_get_every_field(study, trials):
    found = {}

    class Writer:
        def start(self, name, study):
            pass

        def trial(self, number, params, values, best):
            found[number] = [dict(params), dict(values)]

        def finish(self, params, best, has_failed):
            pass

    tracker = Tracker("test", Writer)
    tracker.start("test", {})
    measures = study.measures
    for trial in trials:
        tracker.log(trial, measures, None)
    tracker.finish(None)
    finals = [replace(its, earlier=(), readings={n: (its.reading(n),) for n in its.readings}) for its in trials]
    untold = {
        *(its.pair for its in finals),
        *(its.started.isoformat(timespec="milliseconds") for its in finals),
        "done",
        "stopped",
        "failed",
    }
    assert missing(found, finals, without=[*untold, "withdrawn"]) == []
