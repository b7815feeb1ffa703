"""The service with a fidelity: trials say at which to measure, and reports are answered with whether to stop."""

import numpy as np
import pytest
from tests.studies.test_service import client, folder  # noqa: F401

import noregret
from noregret import Float, Int

STUDY = {
    "name": "looks",
    "space": {"x": {"type": "float", "low": 0, "high": 1}},
    "fidelity": {"epochs": {"type": "int", "low": 1, "high": 81, "log": True}},
}


def loss(x, epochs):
    return 4 * (x - 0.95) ** 2 + 0.5 / epochs


@pytest.fixture(scope="module")
def study(client):  # noqa: F811
    """A study that knows 40 values at several fidelities, and has a pending trial 0 at a bad setting."""
    assert client.post("/studies", json=STUDY).status_code == 201
    assert client.post("/studies", json=STUDY).status_code == 200
    assert trial_at(client, "/studies/looks")["params"]["x"] < 0.6
    rng = np.random.default_rng(0)
    past = [(float(rng.random()), int(rng.choice([9, 27, 81]))) for _ in range(40)]
    rows = [{"params": {"x": x}, "fidelity": {"epochs": e}, "value": loss(x, e) + 0.01 * rng.normal()} for x, e in past]
    answer = client.post("/studies/looks/tell", json={"trials": rows})
    assert answer.status_code == 200, answer.text
    return "/studies/looks"


def trial_at(client, study):  # noqa: F811
    return client.post(f"{study}/ask", json={}).json()["trials"][0]


@pytest.mark.slow
def test_reports_are_kept_and_answered_with_whether_to_stop(client, study):  # noqa: F811
    trial = client.get(f"{study}/trials").json()["trials"][0]
    assert 1 <= trial["fidelity"]["epochs"] <= 81
    path = f"{study}/trials/{trial['id']}"

    def stop(epochs, value):
        answer = client.post(f"{path}/report", json={"fidelity": {"epochs": epochs}, "value": value})
        assert answer.status_code == 200, answer.text
        return answer.json()["stop"]

    steps = [1, 3, 9, 27]
    said = [stop(epochs, loss(trial["params"]["x"], epochs)) for epochs in steps]
    assert True in said
    assert all(said[said.index(True) :]), "it stays true"
    told = client.post(f"{path}/tell", json={"value": 3.0})
    assert told.status_code == 200, told.text
    assert client.post(f"{path}/tell", json={"value": 3.0}).status_code == 200, "the same twice counts once"
    record = next(its for its in client.get(f"{study}/trials").json()["trials"] if its["id"] == trial["id"])
    assert record["fidelity"] == {"epochs": steps[said.index(True)]}, "the value is that of the report that ended it"
    late = client.post(f"{path}/report", json={"fidelity": {"epochs": 27}, "value": 1.0})
    assert late.status_code == 409
    assert client.get(f"{study}/best").status_code == 200


def test_bad_reports_change_nothing(client, study):  # noqa: F811
    path = f"{study}/trials/{trial_at(client, study)['id']}"
    for body in ({"value": 1.0}, {"fidelity": {"epochs": 0}, "value": 1.0}, {"fidelity": {"rounds": 3}, "value": 1.0}):
        assert client.post(f"{path}/report", json=body).status_code == 422
    body = {"fidelity": {"epochs": 3}, "value": 1.0}
    assert client.post(f"{study}/trials/9999/report", json=body).status_code == 404
    assert client.post("/studies", json={"name": "plain", "space": STUDY["space"]}).status_code == 201
    trial = trial_at(client, "/studies/plain")
    assert trial.keys() == {"id", "params"}, "a study without a fidelity has none in its answers"
    answer = client.post(f"/studies/plain/trials/{trial['id']}/report", json=body)
    assert answer.status_code == 409
    assert "has no fidelity" in answer.json()["detail"]
    answer = client.post(f"/studies/plain/trials/{trial['id']}/tell", json=body)
    assert answer.status_code == 422
    for other in ({"drift": "auto"}, {"fidelity": {"x": STUDY["fidelity"]["epochs"]}}):
        assert client.post("/studies", json={**STUDY, "name": "odd", **other}).status_code == 422


def test_the_client_has_the_same_methods(client):  # noqa: F811
    study = noregret.connect(str(client.base_url), "mine", space={"x": Float(0, 1)}, fidelity={"epochs": Int(1, 9)})
    trial = study.ask()
    assert 1 <= trial.fidelity["epochs"] <= 9
    study.report(trial, {"epochs": 1}, 0.5)
    assert study.should_stop(trial) is False
    study.tell(trial, 0.25, fidelity={"epochs": 2})
    study.tell_many([{"x": 0.5, "value": 1.0, "fidelity.epochs": 3}])
    assert [its["fidelity"] for its in study.trials()] == [{"epochs": 2}, {"epochs": 3}]
    assert study.describe()["fidelity"]["epochs"]["high"] == 9


def test_reports_of_failed_trials_are_no_values(client):  # noqa: F811
    assert client.post("/studies", json={**STUDY, "name": "failed"}).status_code == 201
    for number in range(12):
        x = trial_at(client, "/studies/failed")["params"]["x"]
        path = f"/studies/failed/trials/{number}"
        assert client.post(f"{path}/report", json={"fidelity": {"epochs": 1}, "value": x}).status_code == 200
        assert client.post(f"{path}/fail", json={}).status_code == 200
    answer = client.get("/studies/failed/best")
    assert (answer.status_code, answer.json()["detail"]) == (409, "the study has no value yet: tell one first")
    assert client.get("/studies/failed").json()["best"] is None
    assert client.get("/studies/failed/").status_code == 200
