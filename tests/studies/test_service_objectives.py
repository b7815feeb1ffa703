"""Studies with several objectives over HTTP, and by the client."""

import json
import math

import pytest

pytest.importorskip("fastapi")

import numpy as np
from tests.studies.test_service import X, ask, places, serving, tell

from noregret import Float, Optimizer, connect
from noregret.optimizer import Gains
from noregret.service.http.app import application
from noregret.service.studies import Studies
from noregret.studies.store.storage import Storage

pytestmark = pytest.mark.slow

GOALS = {"latency": "minimize", "accuracy": "maximize"}
STUDY = {"name": "s", "goals": GOALS, "space": X, "baseline": {"x": 0.9}}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with serving(application(Studies(Storage("sqlite:///s.db", folder), lease=1000.0))) as client:
        assert client.post("/studies", json=STUDY).status_code == 201
        yield client


@pytest.fixture(scope="module")
def measured(client):
    """The same study after 14 values, by the client of Python, and an optimizer with the same ones."""
    study, rng = connect(str(client.base_url), "s"), np.random.default_rng(0)
    twin = Optimizer({"x": Float(0, 1)}, goals=GOALS, rng=0, baseline={"x": 0.9})
    for number in range(14):
        trial = study.ask()
        x = trial.params["x"]
        values = {"latency": 1 + x**2 + rng.normal(0, 0.01), "accuracy": 1 - (1 - x) ** 2 + rng.normal(0, 0.01)}
        told = {"latency": values["latency"]} if number == 5 else values
        study.tell(trial, told)
        study.tell(trial, told)  # counts once
        twin.tell(trial.params, told)
    return study, twin


def test_a_study_has_a_goal_or_goals(client):
    assert client.post("/studies", json=STUDY).status_code == 200
    assert client.post("/studies", json={**STUDY, "goals": dict.fromkeys(GOALS, "minimize")}).status_code == 409
    assert client.post("/studies", json={**STUDY, "name": "t", "goal": "minimize"}).status_code == 422
    assert client.post("/studies", json={**STUDY, "name": "t", "goals": {"a": "minimize"}}).status_code == 422
    assert client.post("/studies", json={"name": "t", "space": X, "goal": None}).status_code == 422
    listed = {its["name"]: its for its in client.get("/studies").json()["studies"]}
    assert (listed["s"]["goal"], listed["s"]["goals"]) == (None, GOALS)
    assert "minimize latency, maximize accuracy" in client.get("/").text


def test_before_there_are_values_enough(client):
    study = "/studies/new"
    assert client.post("/studies", json={**STUDY, "name": "new"}).status_code == 201
    assert client.get(f"{study}/front").status_code == 409
    assert client.get(f"{study}/best", params={"weights": '{"latency": 1}'}).status_code == 409
    assert client.get(f"{study}/").status_code == 200
    (trial,) = ask(client, study)
    for bad, place in (
        (1.0, "value"),
        ({}, "value"),
        ({"latency": None}, "value"),
        ({"cost": 1.0}, "value"),
    ):
        answer = client.post(f"{study}/trials/{trial['id']}/tell", json={"value": bad})
        assert answer.status_code == 422
        assert place in str(places(answer))
    assert tell(client, study, trial["id"], {"accuracy": 0.5}) == 200
    assert tell(client, study, trial["id"], {"accuracy": 0.5}) == 200
    assert tell(client, study, trial["id"], {"accuracy": 0.5, "latency": 1.0}) == 409
    answer = client.post(f"{study}/tell", json={"trials": [{"params": {"x": 0.3}, "value": {"latency": 2.0}}]})
    assert answer.json()["trials"][0]["value"] == {"latency": 2.0, "accuracy": None}
    for path in ("front", 'best?limits={"latency": ["<=", 9]}', 'gain?weights={"latency": 1}'):
        assert client.get(f"{study}/{path}").status_code == 409
    values = [trial["value"] for trial in client.get(f"{study}/trials").json()["trials"]]
    assert values == [{"latency": None, "accuracy": 0.5}, {"latency": 2.0, "accuracy": None}]
    assert client.get(f"{study}/").status_code == 200
    assert ask(client, study)


def test_the_front_of_the_server_is_that_of_an_optimizer(measured):
    study, twin = measured
    theirs, ours = study.front(), twin.front()
    assert [its.params for its in theirs] == [its.params for its in ours]
    for its, other in zip(theirs, ours, strict=True):
        for part in ("values", "lower", "upper"):
            assert getattr(its, part) == pytest.approx(getattr(other, part), rel=1e-6)
    reference = {"latency": 3.0, "accuracy": 0.0}
    for point in (None, reference):
        assert study.hypervolume(point).estimate == pytest.approx(twin.hypervolume(point).estimate, rel=1e-6)
    limits = {"accuracy": (">=", 0.8)}
    assert study.best(limits=limits).params == twin.best(limits=limits).params
    weights = {"latency": 1, "accuracy": 2}
    assert study.best(weights=weights).params == twin.best(weights=weights).params
    assert study.predict({"x": 0.4}).values == pytest.approx(twin.predict({"x": 0.4}).values, rel=1e-6)
    gains = study.gain(weights=weights)
    assert isinstance(gains, Gains)
    assert str(gains) == str(twin.gain(weights=weights))


def test_best_needs_to_know_what_matters(client, measured):
    answer = client.get("/studies/s/best")
    assert answer.status_code == 422
    assert 'weights: {"cost"' in answer.text.replace("\\", "") or "limits" in answer.text
    for limits in ("nonsense", '{"cost": ["<=", 1]}', '{"accuracy": ["<=", 1]}'):
        answer = client.get("/studies/s/best", params={"limits": limits})
        assert (answer.status_code, places(answer)) == (422, [["query", "limits"]])
        answer = client.get("/studies/s/gain", params={"limits": limits})
        assert (answer.status_code, places(answer)) == (422, [["query", "limits"]])
    assert client.get("/studies/s/front", params={"reference": '{"latency": 1}'}).status_code == 422
    assert client.get("/studies/s/done", params={"within": "2%"}).status_code == 409
    assert client.get("/studies/s").json()["best"] is None
    assert client.post("/studies", json={"name": "one", "space": X}).status_code == 201
    assert client.get("/studies/one/front").status_code == 409
    assert client.get("/studies/one/best", params={"limits": json.dumps({"a": ["<=", 1]})}).status_code == 422


def test_the_page_shows_the_front(client, measured):
    page = client.get("/studies/s/").text
    assert page.count('class="cross"') == 2 * len(measured[0].front())


def test_frames_of_the_past(client):
    study = connect(str(client.base_url), "past", space={"x": Float(0, 1)}, goals=GOALS)
    rows = [{"x": 0.1, "value.latency": 1.0, "value.accuracy": 0.2}, {"x": 0.2, "value.latency": 1.5}]
    study.tell_many([*rows, {"x": 0.3, "state": "failed"}])
    assert [trial["value"] for trial in study.trials()] == [
        {"latency": 1.0, "accuracy": 0.2},
        {"latency": 1.5, "accuracy": None},
        None,
    ]
    with pytest.raises(ValueError, match="finite"):
        study.tell({"x": 0.1}, {"latency": math.nan})
