"""More of `tests.studies.test_service`, nightly."""

import json

import pytest
from tests.studies.test_service import NAMES, X, ask, client, folder, places, study, tell
from tests.studies.test_service_studies import GOALS, besieged, client, deleted_elsewhere, late, told


def test_a_baseline_is_compared_with_in_each_context(client):
    regions = {"region": {"type": "choice", "choices": ["eu", "us"]}}
    body = {"name": "both", "space": X, "context": regions, "baseline": {"x": 0.5}}
    assert client.post("/studies", json=body).status_code == 201
    for number in range(24):
        here = {"region": ("eu", "us")[number % 2]}
        (trial,) = ask(client, "/studies/both", context=here)
        assert number or trial["params"] == {"x": 0.5}, "the first thing to measure"
        best = 0.5 if here["region"] == "eu" else 0.9
        assert tell(client, "/studies/both", trial["id"], 1 + (trial["params"]["x"] - best) ** 2) == 200
    page = client.get("/studies/both/").text
    assert "compared with your settings" in page
    assert "lower than your settings" in page


def test_a_study_may_change_as_time_passes(client):
    body = {"name": "drifting", "space": X, "drift": 6}
    assert client.post("/studies", json=body).status_code == 201
    assert client.post("/studies", json={**body, "drift": 6.0}).status_code == 200
    other = client.post("/studies", json={**body, "drift": None})
    assert (other.status_code, other.json()["detail"]) == (
        409,
        "there is another study named 'drifting': drift differs",
    )
    for best in [0.1] * 12 + [0.9] * 20:
        (trial,) = ask(client, "/studies/drifting")
        assert tell(client, "/studies/drifting", trial["id"], abs(trial["params"]["x"] - best)) == 200
    found = client.get("/studies/drifting/best").json()
    assert found["half_life"] == pytest.approx(6)
    assert found["params"]["x"] > 0.6
    assert client.post("/studies", json={**body, "name": "auto", "drift": "auto"}).json()["drift"] == "auto"


@pytest.mark.parametrize(
    "values",
    [
        [1e308, -1e308, 1.7e308],
        [1.7976931348623157e308] * 3,
        [1.7976931348623157e308, 1.7976931348623155e308],
        [5e-324, 0.0, 1e-323],
        [1e308] * 7 + [-1.7976931348623157e308] * 7,
    ],
)
def test_the_page_shows_values_of_any_size(client, values):
    path = f"/studies/{next(NAMES)}"
    space = {**X, "y": {"type": "float", "low": 1e-308, "high": 1e308, "log": True}}
    made = {"name": path.rpartition("/")[2], "space": space, "constraints": {"m": {"max": 1e308}}, "baseline": None}
    assert client.post("/studies", json=made).status_code == 201
    for value in values:
        assert tell(client, path, ask(client, path)[0]["id"], value, constraints={"m": value}) == 200
        assert client.get(f"{path}/").status_code == 200
    assert client.get(f"{path}/best").status_code == 200


def test_studies_are_deleted_again_and_again_while_they_are_asked_and_told(tmp_path, postgresql):
    besieged(tmp_path, "sqlite:///s.db", turns=20)
    besieged(tmp_path, postgresql.new_database(), turns=20)


def test_a_study_that_another_server_deletes_is_gone_postgresql(tmp_path, postgresql):
    deleted_elsewhere(tmp_path, postgresql.new_database())


def test_answers_of_a_deleted_study_are_not_those_of_a_new_one_postgresql(tmp_path, postgresql):
    late(tmp_path, postgresql.new_database())


def test_studies_are_deleted_while_they_are_asked_and_told_postgresql(tmp_path, postgresql):
    besieged(tmp_path, postgresql.new_database())


HUGE = 1e308


@pytest.mark.parametrize("count", [2, 14])
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, lambda sign: {"value": 1.0, "cost": HUGE}),
        ({}, lambda sign: {"value": sign * HUGE, "cost": 1e-300 if sign > 0 else HUGE, "noise": HUGE}),
        (GOALS, lambda sign: {"value": {"loss": sign * HUGE, "cost": -sign * HUGE}}),
        ({"constraints": {"m": {"max": HUGE}}}, lambda sign: {"value": 1.0, "constraints": {"m": sign * HUGE}}),
    ],
)
def test_huge_numbers_have_a_page_and_answers(client, fields, told, count):
    name = next(NAMES)
    assert client.post("/studies", json={"name": name, "space": X, "baseline": {"x": 0.5}, **fields}).status_code == 201
    for number, trial in enumerate(ask(client, f"/studies/{name}", count=count)):
        body = told((-1) ** number)
        assert client.post(f"/studies/{name}/trials/{trial['id']}/tell", json=body).status_code == 200
    for path in ("", "/", "/trials", "/front", "/best", "/gain", "/done?within=2%25"):
        answer = client.get(f"/studies/{name}{path}")
        assert answer.status_code in ((200, 409, 422) if path[1:2].isalpha() else (200,)), (path, answer.text)
    assert ask(client, f"/studies/{name}")


def test_a_context_is_given_with_each_question(client):
    load = {"load": {"type": "float", "low": 0, "high": 1}}
    body = {"name": "context", "space": X, "context": load}
    assert client.post("/studies", json=body).status_code == 201
    assert places(client.post("/studies", json={**body, "baseline": {"x": 2}})) == [["body", "baseline"]]
    study = "/studies/context"
    assert places(client.post(f"{study}/ask", json={})) == [["body", "context"]]
    assert places(client.post(f"{study}/ask", json={"context": {"load": 2}})) == [["body", "context"]]
    assert places(client.get(f"{study}/best?context=x")) == [["query", "context"]]
    for number in range(24):
        here = {"load": number % 2}
        (trial,) = ask(client, study, context=here, client="me")
        assert ask(client, study, context=here, client="me") == [trial]
        assert tell(client, study, trial["id"], (trial["params"]["x"] - 0.2 - 0.6 * here["load"]) ** 2) == 200
    for number in (0, 1):
        here = json.dumps({"load": number})
        best = client.get(f"{study}/best", params={"context": here}).json()
        assert abs(best["params"]["x"] - 0.2 - 0.6 * number) < 0.2
        assert client.get(f"{study}/done", params={"within": 10, "context": here}).status_code == 200
    assert client.get(f"{study}/trials").json()["trials"][1]["context"] == {"load": 1}
    page = client.get(f"{study}/").text
    assert "expected result, where load=1" in page
    assert "The best setting in every measured context" in page


def test_studies_are_deleted_while_they_are_asked_and_told_sqlite(tmp_path):
    besieged(tmp_path, "sqlite:///s.db")
