"""Requests and answers of the service, on an application without a server."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest

pytest.importorskip("fastapi")

import httpx
import pydantic
import uvicorn

from noregret.service.http.app import application, configuration
from noregret.service.http.security import LARGEST_REQUEST, Rate
from noregret.service.live import BatchQueue
from noregret.service.models import FloatForm, StudyForm
from noregret.service.studies import AnotherStudy, Studies
from noregret.studies.store.storage import Storage
from noregret.studies.study.study import StudyError

ROOT = Path(__file__).parents[2]
X = {"x": {"type": "float", "low": 0, "high": 1}}
ESTIMATE = ("params", "estimate", "lower", "upper", "level", "feasible")
NAMES = (f"study{number}" for number in count())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("service")


@contextmanager
def serving(app):
    """A client of an application, which is served by a thread."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        server = uvicorn.Server(configuration(app))
        thread = Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{door.getsockname()[1]}", timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def client(folder):
    with serving(application(Studies(Storage("sqlite:///s.db", folder), lease=1000.0))) as client:
        yield client


@pytest.fixture
def study(client):
    """The path of a new study."""
    name = next(NAMES)
    assert client.post("/studies", json={"name": name, "space": X}).status_code == 201
    return f"/studies/{name}"


def ask(http, study, **body):
    answer = http.post(f"{study}/ask", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"trials"}
    return answer.json()["trials"]


def tell(client, study, trial, value, **more):
    return client.post(f"{study}/trials/{trial}/tell", json={"value": value, **more}).status_code


def places(answer):
    """The fields at fault."""
    assert answer.status_code == 422, answer.text
    return [fault["loc"] for fault in answer.json()["detail"]]


@pytest.mark.slow
def test_a_study_is_made_once_and_another_one_of_its_name_is_refused(client):
    body = {
        "name": "made",
        "goal": "maximize",
        "space": {
            **X,
            "n": {"type": "int", "low": 1, "high": 64, "log": True},
            "k": {"type": "choice", "choices": [1, "a"]},
        },
        "constraints": {"memory": {"max": 512}},
        "baseline": {"x": 0.5, "n": 2, "k": "a"},
    }
    assert client.post("/studies", json=body).status_code == 201
    assert client.post("/studies", json=body).status_code == 200
    other = client.post("/studies", json={**body, "constraints": {"memory": {"max": 500}}})
    assert other.status_code == 409
    assert "constraints differs" in other.json()["detail"]
    assert ask(client, "/studies/made")[0]["params"] == body["baseline"]  # the first thing to measure


@pytest.mark.slow
def test_trials_are_asked_for_told_and_listed(client, study):
    first, second, third = ask(client, study, count=3)
    assert [trial["id"] for trial in (first, second, third)] == [0, 1, 2]
    assert first.keys() == {"id", "params"}
    assert 0 <= first["params"]["x"] <= 1
    assert tell(client, study, 0, 1.5, noise=0.1) == 200
    assert client.post(f"{study}/trials/1/fail", json={}).status_code == 200
    listed = client.get(f"{study}/trials").json()["trials"]
    known = [{name: its[name] for name in ("id", "params", "value", "state", "context")} for its in listed]
    assert known == [
        {**first, "value": 1.5, "state": "done", "context": None},
        {**second, "value": None, "state": "failed", "context": None},
        {**third, "value": None, "state": "running", "context": None},
    ]
    assert (listed[0]["noise"], listed[0]["readings"]) == (0.1, {"value": {"value": 1.5, "noise": 0.1}})
    assert (listed[1]["failed"], listed[1]["failure"]) == (True, "reported as a failure")


@pytest.mark.slow
def test_the_same_answer_counts_once_and_another_one_is_refused(client, study):
    ask(client, study, count=2)
    assert [tell(client, study, 0, value) for value in (1.5, 1.5, 2.5)] == [200, 200, 409]
    assert client.post(f"{study}/trials/0/fail", json={}).status_code == 409
    assert [client.post(f"{study}/trials/1/fail", json={}).status_code for _ in range(2)] == [200, 200]
    assert tell(client, study, 1, 1.5) == 409
    assert [trial["value"] for trial in client.get(f"{study}/trials").json()["trials"]] == [1.5, None]


@pytest.mark.slow
def test_a_client_gets_the_trials_again_that_it_has_not_answered(client, study):
    mine = ask(client, study, count=2, client="a")
    assert ask(client, study, count=2, client="a") == mine
    assert ask(client, study, client="b")[0]["id"] == 2
    assert ask(client, study)[0]["id"] == 3
    assert tell(client, study, 0, 1.0) == 200
    assert [trial["id"] for trial in ask(client, study, count=2, client="a")] == [1, 4]


@pytest.mark.slow
def test_what_is_best_and_whether_to_stop(client, study):
    assert client.get(f"{study}/best").status_code == 409
    unknown = {"done": False, "gap": None, "remaining": None, "level": 0.95, "text": "there is no value yet"}
    assert client.get(f"{study}/done", params={"within": "2%"}).json() == unknown
    for _ in range(12):
        (trial,) = ask(client, study)
        assert tell(client, study, trial["id"], (trial["params"]["x"] - 0.3) ** 2) == 200
    best = client.get(f"{study}/best").json()
    assert best.keys() == {*ESTIMATE, "gap", "remaining", "changes", "half_life"}
    assert best["half_life"] is None
    assert abs(best["params"]["x"] - 0.3) < 0.15
    assert best["feasible"] == 1.0
    done = client.get(f"{study}/done", params={"within": 0.5, "confidence": 0.8}).json()
    assert "left to gain" in done.pop("text")
    assert done == {"done": True} | {name: best[name] for name in ("gap", "remaining", "level")}


@pytest.mark.slow
def test_what_is_believed_about_params_is_said_from_the_second_value_on(client, study):
    ask(client, study, count=2)
    for told in range(2):
        answer = client.post(f"{study}/predict", json={"params": {"x": 0.5}})
        assert answer.status_code == 409
        assert answer.json() == {"detail": f"predict() needs at least 2 values, {told} told so far: tell more first"}
        assert tell(client, study, told, 1.0 + told) == 200
    assert client.post(f"{study}/predict", json={"params": {"x": 0.5}}).status_code == 200


@pytest.mark.slow
def test_suggestions_are_those_of_an_optimizer_that_was_told_the_same(client, study):
    from noregret import Float, Optimizer

    optimizer = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0)
    for _ in range(15):
        (trial,), own = ask(client, study), optimizer.ask()
        assert trial["params"] == own.params
        value = abs(own.params["x"] - 0.6)
        optimizer.tell(own, value)
        assert tell(client, study, trial["id"], value) == 200


@pytest.mark.slow
def test_costs_are_told_and_weighed(client, study):
    from noregret import Float, Optimizer

    optimizer = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0)
    for number in range(14):
        (trial,), own = ask(client, study), optimizer.ask()
        assert trial["params"] == own.params
        value, cost = abs(own.params["x"] - 0.6), 100.0 ** own.params["x"]
        if number == 5:
            optimizer.fail(own, cost=cost)
            assert client.post(f"{study}/trials/{trial['id']}/fail", json={"cost": cost}).status_code == 200
        else:
            optimizer.tell(own, value, cost=cost)
            assert tell(client, study, trial["id"], value, cost=cost) == 200
    past = {"params": {"x": 0.5}, "value": 0.1, "cost": 10.0}
    assert client.post(f"{study}/tell", json={"trials": [past]}).status_code == 200
    optimizer.tell({"x": 0.5}, 0.1, cost=10.0)
    assert ask(client, study)[0]["params"] == pytest.approx(optimizer.ask().params, abs=1e-6)
    bad = client.post(f"{study}/trials/14/tell", json={"value": 1.0, "cost": 0})
    assert places(bad) == [["body", "cost"]]


@pytest.mark.slow
def test_constraints_are_told_by_name(client):
    body = {"name": "limited", "space": X, "constraints": {"memory": {"max": 0.5}, "speed": {"min": 1}}}
    assert client.post("/studies", json=body).status_code == 201
    study = "/studies/limited"
    ask(client, study, count=2)
    missing = client.post(f"{study}/trials/0/tell", json={"value": 1.0, "constraints": {"memory": 1}})
    assert places(missing) == [["body", "constraints"]]
    assert "'speed' is missing" in missing.json()["detail"][0]["msg"]
    for trial, memory in ((0, 0.6), (1, 0.4)):
        told = {"memory": memory, "speed": None}
        assert tell(client, study, trial, 1.0, constraints=told) == 200
        assert tell(client, study, trial, 1.0, constraints=told) == 200
    other = {"value": 1.0, "constraints": {"memory": 0.3, "speed": None}}
    refused = client.post(f"{study}/trials/1/tell", json=other)
    assert refused.json() == {"detail": "trial 1 has the value 1.0 with other constraints already, which stays"}
    assert refused.status_code == 409
    assert client.get(f"{study}/best").json()["feasible"] < 1.0


def test_trials_meet_the_conditions_of_a_study(client):
    study = {"name": next(NAMES), "space": {**X, "y": X["x"]}, "require": ["x + y <= 0.5"]}
    assert [client.post("/studies", json=study).status_code for _ in range(2)] == [201, 200]
    assert client.post("/studies", json={**study, "require": []}).status_code == 409
    asked = ask(client, f"/studies/{study['name']}", count=8)
    assert all(trial["params"]["x"] + trial["params"]["y"] <= 0.5 for trial in asked)


def test_safe_trials_start_from_the_baseline(client):
    body = {"name": next(NAMES), "space": X, "constraints": {"m": {"max": 1}}, "baseline": {"x": 0.25}, "safe": 0.9}
    assert [client.post("/studies", json=body).status_code for _ in range(2)] == [201, 200]
    assert client.post("/studies", json={**body, "safe": 0.95}).status_code == 409
    study = f"/studies/{body['name']}"
    assert [trial["params"] for trial in ask(client, study, count=3)] == [{"x": 0.25}] * 3
    assert client.get(study).json()["safe"] == 0.9


def test_a_study_that_was_made_before_there_was_drift_is_the_same(tmp_path):
    form = StudyForm(name="old", space={"x": FloatForm(type="float", low=0, high=1)})
    with closing(Studies(Storage("sqlite:///s.db", tmp_path), lease=1000.0)) as studies:
        assert studies.create(form).result()
        made = studies._found("old").identity["service"]
        assert made.keys() == {"name", "goal", "space", "context", "constraints", "baseline"}
        assert not studies.create(form.model_copy(update={"drift": None})).result()
        with pytest.raises(AnotherStudy, match="drift differs"):
            studies.create(form.model_copy(update={"drift": "auto"})).result()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", "..", "a b", "é", "a" * 101, "a\0", "a\n", "-a", ".hidden"])
def test_names_cannot_lead_anywhere(client, folder, name):
    def files():
        return {path for path in folder.rglob("*") if "s.db" not in path.name}  # copies of it come and go

    before = files()
    assert places(client.post("/studies", json={"name": name, "space": X})) == [["body", "name"]]
    assert files() == before


@pytest.mark.parametrize(
    "path", ["/studies/..%2f..%2fetc%2fpasswd/best", "/studies/%2e%2e/best", "/studies/a%00b/best"]
)
def test_paths_cannot_lead_anywhere(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"goal": "best"}, ["goal"]),
        ({"space": {}}, ["space"]),
        ({"space": {"x": {"type": "float", "low": 2, "high": 1}}}, ["space", "x", "float"]),
        ({"space": {"x": {"type": "float", "low": "0", "high": 1}}}, ["space", "x", "float", "low"]),
        ({"space": {"x": {"type": "real", "low": 0, "high": 1}}}, ["space", "x"]),
        ({"space": {"x": {"type": "int", "low": 0, "high": 1, "steps": 2}}}, ["space", "x", "int", "steps"]),
        ({"space": {"x": {"type": "int", "low": 0, "high": 10**18}}}, ["space", "x", "int", "high"]),
        ({"space": {"x": {"type": "int", "low": 0, "high": 10**400}}}, ["space", "x", "int", "high"]),
        ({"space": {"x": {"type": "float", "low": 0, "high": 10**400}}}, ["space", "x", "float", "high"]),
        ({"constraints": {"m": {"max": 10**400}}}, ["constraints", "m", "max"]),
        ({"baseline": {"x": 10**400}}, ["baseline"]),
        ({"drift": 10**400}, ["drift"]),
        ({"require": ["x <= y"]}, ["require"]),
        ({"require": "x <= 0.5"}, ["require"]),
        ({"require": ["x <= 0.5"], "baseline": {"x": 0.75}}, ["baseline"]),
        ({"space": {"k": {"type": "choice", "choices": []}}}, ["space", "k", "choice", "choices"]),
        ({"space": {**X, "y": {**X["x"], "when": {"z": 1}}}}, ["space"]),
        ({"baseline": {"x": 2}}, ["baseline"]),
        ({"drift": "fast"}, ["drift"]),
        ({"drift": 0.5}, ["drift"]),
        ({"drift": True}, ["drift"]),
        ({"safe": 0.9}, ["safe"]),
        ({"safe": 0.9, "constraints": {"m": {"max": 1}}}, ["safe"]),
        ({"safe": 1, "constraints": {"m": {"max": 1}}, "baseline": {"x": 0}}, ["safe"]),
        ({"constraints": {"m": {}}}, ["constraints", "m"]),
        ({"constraints": {"m": {"max": 1, "min": 0}}}, ["constraints", "m"]),
        ({"command": ["rm"]}, ["command"]),
        ({"storage": "sqlite:///other.db"}, ["storage"]),
    ],
)
def test_the_field_at_fault_is_named(client, change, place):
    body = {"name": "faulty", "space": X, **change}
    assert [["body", *place]] == places(client.post("/studies", json=body))
    assert client.get("/studies/faulty/best").status_code == 404  # nothing was created


@pytest.mark.slow
def test_a_bound_is_told_in_place_of_a_value(client, study):
    for _ in range(2):
        ask(client, study)
    first = client.post(f"{study}/trials/0/tell", json={"at_least": 30.0})
    readings = {"value": {"value": 30.0, "bound": "at_least"}}
    assert first.json() == {"id": 0, "state": "done", "value": 30.0, "readings": readings, "bound": "at_least"}
    assert client.post(f"{study}/trials/0/tell", json={"at_least": 30.0}).status_code == 200
    for other in ({"value": 30.0}, {"at_most": 30.0}):
        assert client.post(f"{study}/trials/0/tell", json=other).status_code == 409
    assert client.post(f"{study}/trials/1/tell", json={"value": 1.0, "at_least": 2.0}).status_code == 422
    assert client.get(f"{study}/best").status_code == 409, "no value is known"
    past = {"trials": [{"params": {"x": 0.5}, "at_most": 3.0}]}
    assert client.post(f"{study}/tell", json=past).json()["trials"][0]["bound"] == "at_most"
    kept = [(its["value"], its.get("bound")) for its in client.get(f"{study}/trials").json()["trials"]]
    assert kept == [(30.0, "at_least"), (None, None), (3.0, "at_most")]


@pytest.mark.slow
@pytest.mark.parametrize("value", ["", "NaN", "1e999", str(10**400), "true", "null", '"1"', "[]"])
def test_values_that_are_none_are_refused_and_change_nothing(client, study, value):
    ask(client, study)
    body = f'{{"value": {value}}}'
    answer = client.post(f"{study}/trials/0/tell", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert client.get(f"{study}/trials").json()["trials"][0]["state"] == "running"


@pytest.mark.slow
def test_further_faults_are_named(client, study):
    assert places(client.post(f"{study}/ask", json={"count": 0})) == [["body", "count"]]
    assert places(client.post(f"{study}/ask", json={"context": {"load": 1}})) == [["body", "context"]]
    assert places(client.get(f"{study}/done")) == [["query", "within"]]
    assert places(client.get(f"{study}/done?within=much")) == [["query", "within"]]
    assert places(client.get(f"{study}/done?within=1&confidence=2")) == [["query", "confidence"]]
    assert places(client.post(f"{study}/trials/x/fail", json={})) == [["path", "id"]]
    assert client.post(f"{study}/trials/7/fail", json={}).status_code == 404
    assert client.post("/studies/none/ask", json={}).status_code == 404
    assert client.put("/studies").status_code == 405
    assert places(client.get(f"{study}/done?within=1&by=luck")) == [["query", "by"]]


@pytest.mark.slow
def test_the_page_is_html_that_loads_nothing_from_elsewhere(client, study):
    assert client.get(f"{study}/").status_code == 200
    for value in (1.0, 2.0, 3.0):
        tell(client, study, ask(client, study)[0]["id"], value)
    page = client.get(f"{study}/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert study.rpartition("/")[2] in page.text


def test_no_other_site_reaches_a_server_without_a_token(client):
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "[127.0.0.1",
        "127.0.0.1:80:evil",
        "0.0.0.0",
    ):
        refused = client.get("/healthz", headers={"Host": host})
        assert refused.status_code == 400
        assert "Host" in refused.json()["detail"]
    for host in ("localhost", "LOCALHOST:1", "[::1]:1", "127.0.0.2"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200
    answer = client.get("/healthz", headers={"Origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},  # a form that is sent
    ],
)
def test_pages_of_other_sites_change_nothing(client, study, headers):
    ask(client, study)
    for path in ("/ask", "/trials/0/fail"):
        refused = client.post(f"{study}{path}", json={}, headers=headers)
        assert refused.status_code == 403
        assert refused.json() == {"detail": "pages of other sites may not use a server without a token"}
    assert [trial["state"] for trial in client.get(f"{study}/trials").json()["trials"]] == ["running"]
    assert tell(client, study, 0, 1.0) == 200


def test_pages_of_the_service_and_links_to_it_work(client, study):
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.post(f"{study}/ask", json={}, headers=own).status_code == 200
    typed, link = {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    for headers in (typed, link):
        assert client.get(f"{study}/", headers=headers).status_code == 200


@pytest.mark.slow
def test_what_is_posted_must_be_json(client, study):
    ask(client, study)
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        for path in ("/ask", "/trials/0/fail", "/trials/0/tell"):
            headers = {} if kind is None else {"Content-Type": kind}
            refused = client.post(f"{study}{path}", headers=headers)
            assert refused.status_code == 415
            assert refused.json() == {"detail": "a POST must be JSON: Content-Type: application/json"}
    as_json = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post(f"{study}/trials/0/fail", headers=as_json).status_code == 200  # no body is needed


@pytest.mark.slow
def test_nothing_is_answered_without_the_token(folder):
    app = application(Studies(Storage("sqlite:///t.db", folder), lease=1000.0), token="secret-word")
    with serving(app) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        for said in (None, "Bearer secret-wor", "secret-word", "Bearer \xe9"):
            headers = {} if said is None else {b"Authorization": said.encode("latin-1")}
            for path in ("/openapi.json", "/studies/a/best", "/nowhere"):
                refused = client.get(path, headers=headers)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == "Bearer"
                assert "secret" not in refused.text
        assert client.head("/healthz").status_code == 200
        assert client.get("/studies", headers={"Authorization": "bearer secret-word"}).status_code == 200
        right = {"Authorization": "Bearer secret-word"}
        assert client.post("/studies", json={"name": "a", "space": X}, headers=right).status_code == 201
        assert client.get("/openapi.json", headers=right).status_code == 200


BROWSER = {"Accept": "text/html,application/xhtml+xml"}
WORD = {"Authorization": "Bearer secret-word"}


@pytest.fixture
def closed(tmp_path):
    """A client of a server with a token and the studies a and b."""
    app = application(Studies(Storage("sqlite:///t.db", tmp_path), lease=1000.0), token="secret-word")
    with serving(app) as client:
        for name in "ab":
            assert client.post("/studies", json={"name": name, "space": X}, headers=WORD).status_code == 201
        yield client


@pytest.mark.slow
def test_a_browser_logs_in_by_a_form_and_may_read(closed):
    asked = closed.get("/studies/a/?x=1", headers=BROWSER)
    assert (asked.status_code, asked.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert '<form method="post">' in asked.text
    assert "form-action 'self'" in asked.headers["content-security-policy"]
    for wrong in ({"token": "secret-wor"}, {"token": ""}, {}, {"token": "\xe9"}):
        refused = closed.post("/studies/a/", data=wrong)
        assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)
    assert "This is not the token." in refused.text or not wrong
    assert closed.post("/", data={"token": "x" * 5000}).status_code == 413
    other_site = {"Sec-Fetch-Site": "cross-site"}
    assert closed.post("/", data={"token": "secret-word"}, headers=other_site).status_code == 403
    entered = closed.post("/studies/a/?x=1", data={"token": " secret-word "})
    assert (entered.status_code, entered.headers["location"]) == (303, "./?x=1")
    cookie = entered.headers["set-cookie"]
    assert "; HttpOnly; SameSite=Strict" in cookie
    assert "Secure" not in cookie
    assert "secret" not in cookie
    behind = closed.post("/docs", data={"token": "secret-word"}, headers={"X-Forwarded-Proto": "https"})
    assert behind.headers["location"] == "./docs"
    assert behind.headers["set-cookie"].endswith("; Secure")
    closed.cookies.clear()
    as_browser = BROWSER | {"Cookie": f"other=1; {cookie.partition(';')[0]}"}
    for path in ("/", "/docs", "/studies/a/", "/studies/b/trials"):
        assert closed.get(path, headers=as_browser).status_code == 200
    for method, path in (("POST", "/studies/a/ask"), ("DELETE", "/studies/a"), ("PUT", "/studies/a/trials/0")):
        refused = closed.request(method, path, headers={**as_browser, "Content-Type": "application/json"})
        assert refused.status_code == 401


@pytest.mark.slow
def test_cookies_and_links_that_were_changed_or_have_ended_open_nothing(closed, monkeypatch):
    entered = closed.post("/", data={"token": "secret-word"})
    name, _, proof = entered.headers["set-cookie"].partition(";")[0].partition("=")
    closed.cookies.clear()
    ends, _, signature = proof.partition(".")
    later, flipped = f"{int(ends) + 1}.{signature}", f"{ends}.{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"
    for bad in (later, flipped, ends, f"{ends}.", ".", "secret-word", "9" * 5000):
        assert closed.get("/", headers={"Cookie": f"{name}={bad}"}).status_code == 401
    assert closed.get("/", headers={"Cookie": f"{name}={proof}"}).status_code == 200
    link = closed.get("/studies/a/link", headers=WORD).json()["link"]
    key = link.partition("key=")[2]
    assert closed.get("/", headers={"Cookie": f"{name}={key}"}).status_code == 401
    assert closed.get("/studies/a/", params={"key": proof}).status_code == 401
    monkeypatch.setattr("noregret.service.http.security.time", lambda: float(ends) + 10 * 365 * 86400)
    assert closed.get("/", headers={"Cookie": f"{name}={proof}"}).status_code == 401
    assert closed.get(f"/{link}").status_code == 401


@pytest.mark.slow
def test_a_link_shows_the_page_of_one_study_and_nothing_else(closed):
    assert closed.get("/studies/a/link").status_code == 401
    assert closed.get("/studies/c/link", headers=WORD).status_code == 404
    link = closed.get("/studies/a/link?days=1", headers=WORD).json()["link"]
    assert re.fullmatch(r"studies/a/\?key=\d+\.[0-9a-f]{64}", link)
    page, key = closed.get(f"/{link}"), link.partition("key=")[2]
    assert (page.status_code, page.headers["referrer-policy"]) == (200, "same-origin")
    assert closed.head(f"/{link}").status_code != 401
    for path in ("/", "/docs", "/studies/b/", "/studies/a", "/studies/a/trials", "/studies/a/best", "/studies/a/link"):
        assert closed.get(path, params={"key": key}).status_code == 401, path
    assert closed.delete(f"/studies/a?key={key}").status_code == 401
    assert closed.post(f"/{link}", json={}).status_code == 401


@pytest.mark.slow
def test_done_says_what_remains(client, study):
    asked = f"{study}/done?within=0.1"
    assert client.get(asked).json()["text"] == "there is no value yet"
    rows = [{"params": {"x": i / 14}, "value": (i / 14 - 0.3) ** 2} for i in range(15)]
    assert client.post(f"{study}/tell", json={"trials": rows}).status_code == 200
    found = client.get(asked).json()
    assert (found["done"], 0 <= found["remaining"] <= 0.1) == (True, True)
    assert found["remaining"] == client.get(f"{study}/best").json()["remaining"]
    assert "left to gain" in found["text"]


def test_a_misspelt_field_is_named_with_the_one_that_is_meant(client, study):
    for body, hint in (({"cnt": 2}, "did you mean 'count'?"), ({"q": 2}, "known are client, context, count")):
        refused = client.post(f"{study}/ask", json=body)
        assert (refused.status_code, hint in refused.text) == (422, True)


@pytest.mark.slow
def test_without_a_token_a_link_is_the_address(client, study):
    assert client.get(f"{study}/link").json() == {"link": f"{study[1:]}/"}


@pytest.mark.slow
def test_logging_in_counts_against_the_rate(tmp_path):
    studies = Studies(Storage("sqlite:///t.db", tmp_path), lease=1000.0)
    with serving(application(studies, token="secret-word", rate=0.01)) as client:
        assert client.post("/", data={"token": "wrong"}).status_code == 401
        assert client.post("/", data={"token": "secret-word"}).status_code == 429


def test_requests_that_are_too_large_are_refused(client):
    big = json.dumps({"name": "a" * LARGEST_REQUEST, "space": X})
    as_json = {"Content-Type": "application/json"}
    assert client.post("/studies", content=big, headers=as_json).status_code == 413
    pieces = (big[start : start + 65536].encode() for start in range(0, len(big), 65536))
    answer = client.post("/studies", content=pieces, headers=as_json)
    assert answer.status_code == 413
    assert "bytes" in answer.json()["detail"]


@pytest.mark.slow
def test_the_rate_is_kept_for_each_address(folder):
    rate = Rate(2.0)
    assert [rate.wait("a", now) for now in (0.0, 0.0, 0.0, 0.25, 0.5)] == [0.0, 0.0, 0.5, 0.25, 0.0]
    assert rate.wait("b", 0.5) == 0.0
    app = application(Studies(Storage("sqlite:///r.db", folder), lease=1000.0), rate=0.001)
    with serving(app) as client:
        assert client.get("/studies/a/best").status_code == 404
        refused = client.get("/studies/a/best")
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 100
        assert client.get("/healthz").status_code == 200


@pytest.mark.slow
def test_no_header_makes_an_address_another_one(folder):
    app = application(Studies(Storage("sqlite:///p.db", folder), lease=1000.0), rate=3)
    with serving(app) as client:
        codes = [
            client.get("/studies/a/best", headers={"X-Forwarded-For": f"10.0.0.{number}"}).status_code
            for number in range(20)
        ]
    assert 429 in codes


def test_threads_that_ask_at_once_get_different_trials(client, study):
    found = []
    threads = [Thread(target=lambda: found.extend(ask(client, study, count=2))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(trial["id"] for trial in found) == list(range(12))


def test_requests_that_wait_are_worked_on_together_and_each_gets_its_own_answer():
    lots, go_on = [], Event()

    def work(requests):
        lots.append(list(requests))
        assert go_on.wait(30)
        return [10 * request for request in requests]

    with ThreadPoolExecutor(2) as pool:
        desk = BatchQueue(pool, work)
        first = desk.submit(1)
        while not lots:
            pass
        waiting = [desk.submit(number) for number in (2, 3, 4)]
        waiting[1].cancel()  # closed connections are not waited for
        go_on.set()
        assert (first.result(30), waiting[0].result(30), waiting[2].result(30)) == (10, 20, 40)
        assert desk.submit(5).result(30) == 50
    assert lots == [[1], [2, 4], [5]]


def test_what_goes_wrong_is_told_to_all_who_asked_and_the_next_are_served():
    def work(requests):
        return [1 / request for request in requests]

    with ThreadPoolExecutor(1) as pool:
        desk = BatchQueue(pool, work)
        with pytest.raises(ZeroDivisionError):
            desk.submit(0).result(30)
        assert desk.submit(2).result(30) == 0.5


@pytest.mark.slow
def test_answers_that_are_told_at_once_all_stand(client, study):
    trials, codes = ask(client, study, count=20), []
    told = [(trial["id"], value) for trial in trials for value in (1.0, 1.0, 2.0)]
    threads = [Thread(target=lambda its=its: codes.append((its[0], tell(client, study, *its)))) for its in told]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = {trial["id"]: trial["value"] for trial in client.get(f"{study}/trials").json()["trials"]}
    for trial in trials:
        expected = [200, 200, 409] if values[trial["id"]] == 1.0 else [200, 409, 409]
        assert sorted(code for id, code in codes if id == trial["id"]) == expected


@pytest.mark.slow
def test_results_have_checksums(client, folder, study):
    ask(client, study, count=2)
    tell(client, study, 0, 1.5)
    client.post(f"{study}/trials/1/fail", json={})
    change = "UPDATE noregret_trials SET document = replace(document, :old, :new) WHERE state = 'done'"
    with closing(Storage("sqlite:///s.db", folder)) as storage:
        storage.check()
        one, other = '{"value": 1.5}', '{"value": 1.25}'  # no part of a number of another study
        for old, new, is_damaged in ((one, other, True), (other, one, False)):
            with storage.transaction() as connection:
                connection.rows(change, old=old, new=new)
            with pytest.raises(StudyError, match="checksum of trial 0") if is_damaged else nullcontext():
                storage.check()


@pytest.mark.slow
def test_the_page_shows_what_is_answered(client):
    page = (ROOT / "docs" / "serve.md").read_text("utf-8")
    curl = r"""\$ curl "?\$url(/[^\s"]*)"?(?: -H "\$json"(?: \\)?\s+-d '([^']*)')?\n(\{.*\}\n)?"""
    requests = re.findall(curl, page)
    assert len(requests) == 10
    for path, body, shown in requests:
        headers = {"Content-Type": "application/json"} if body else {}
        answer = client.request("POST" if body else "GET", path, content=body or None, headers=headers)
        assert not shown or answer.text == shown.strip()


def test_the_description_has_plain_names_and_says_that_errors_are_json(client):
    requests = [its for methods in client.get("/openapi.json").json()["paths"].values() for its in methods.values()]
    names = [its["operationId"] for its in requests]
    assert {"create", "ask", "tell", "tell_many", "best"} <= set(names)
    assert len(set(names)) == len(names)
    faults = [found for its in requests for status, found in its["responses"].items() if status >= "400"]
    assert {kind for found in faults for kind in found["content"]} == {"application/json"}
    assert all("Retry-After" in its["responses"]["503"]["headers"] for its in requests if "503" in its["responses"])


@pytest.mark.parametrize(
    ("body", "said"),
    [(b'{"count": }', "is no JSON"), (b'{"client": "\xe9"}', "UTF-8"), (b"[" * 100_000, "not nested deeply")],
)
def test_bodies_that_are_no_json_are_explained(client, study, body, said):
    refused = client.post(f"{study}/ask", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 422
    assert said in refused.json()["detail"][0]["msg"]


is_old = tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 10)


def meaning(part, forms, within=()):
    """Normal form of a part of an OpenAPI document: equal where two versions of pydantic or FastAPI mean the same.

    References are replaced by what they name, except within themselves. Titles, which are made of names, and the
    order of alternatives have no meaning, and one constant can be said in several ways.
    """
    if isinstance(part, list):
        return [meaning(each, forms, within) for each in part]
    if not isinstance(part, dict):
        return int(part) if isinstance(part, float) and part.is_integer() else part
    if "$ref" in part:
        name = part["$ref"].removeprefix("#/components/schemas/")
        if name in within:
            return part
        rest = {key: its for key, its in part.items() if key != "$ref"}
        return meaning({**forms[name], **rest}, forms, (*within, name))
    plain = {
        key: meaning(its, forms, within)
        for key, its in part.items()
        if not (key == "title" and isinstance(its, str)) and (key, its) != ("additionalProperties", True)
    }
    if is_old:  # it does not describe keys
        plain.pop("propertyNames", None)
    if isinstance(plain.get("allOf"), list) and len(plain["allOf"]) == 1:
        plain = {**plain.pop("allOf")[0], **plain}
    if isinstance(plain.get("enum"), list) and len(plain["enum"]) == 1:
        plain["const"] = plain.pop("enum")[0]
    if "const" in plain:
        plain.pop("type", None)  # that of the constant
    if isinstance(plain.get("type"), list):
        plain["anyOf"] = [{"type": kind} for kind in plain.pop("type")]
    for key in ("anyOf", "oneOf", "enum", "required"):
        if isinstance(plain.get(key), list):
            plain[key] = sorted(plain[key], key=lambda its: json.dumps(its, sort_keys=True))
    return plain


def described(document):
    forms = document["components"]["schemas"]
    return {key: meaning(its, forms) for key, its in {**document, "components": None}.items()}


@pytest.mark.slow
def test_the_description_that_is_checked_in_is_current(client):
    kept, current = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8")), client.get("/openapi.json").json()
    assert described(kept) == described(current)
    assert kept["components"]["schemas"].keys() == current["components"]["schemas"].keys()
    assert kept["components"]["securitySchemes"] == current["components"]["securitySchemes"]


def test_descriptions_are_compared_by_what_they_mean():
    forms = {"Mode": {"title": "Mode", "type": "string", "enum": ["fast"]}}
    one = {"anyOf": [{"$ref": "#/components/schemas/Mode"}, {"type": "null"}], "maximum": 3.0, "title": "A"}
    same = {"anyOf": [{"type": "null"}, {"const": "fast"}], "maximum": 3}
    assert meaning(one, forms) == meaning(same, {})
    for other in (same | {"maximum": 4}, {"anyOf": [{"const": "fast"}], "maximum": 3}, {"maximum": 3}):
        assert meaning(one, forms) != meaning(other, {})
    assert meaning({"properties": {"title": {"type": "string"}}}, {})["properties"]
