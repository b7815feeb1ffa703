"""More of `tests.tune.test_service`, nightly."""

import pytest
from tests.tune.test_service import NAMES, X, ask, client, folder, tell
from tests.tune.test_service_studies import besieged


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
