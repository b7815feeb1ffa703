"""Lists, descriptions and deletion of studies, observations of the past, and the server's pages and metrics."""

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from threading import Barrier, Event

import pytest

pytest.importorskip("fastapi")

from prometheus_client.parser import text_string_to_metric_families
from tests.studies import test_service
from tests.studies.made import outcome, record
from tests.studies.test_service import NAMES, X, ask, places, serving, tell
from tests.studies.test_service_asking import SECONDS, asked, opened

from noregret.service.http.app import application
from noregret.service.http.metrics import Metrics
from noregret.service.live import AskRequest, Deleted, NoStudy
from noregret.service.models import StudyForm
from noregret.service.studies import Studies
from noregret.studies.store.databases.sqlite import copies, holds_all, make_copy
from noregret.studies.store.storage import Storage


def past(params):
    """An observation of the past, without an origin."""
    return record(-1, params, "done", 1.0), ""


client, folder, study = test_service.client, test_service.folder, test_service.study


def told(client, study, *trials):
    return client.post(f"{study}/tell", json={"trials": list(trials)})


def listed(client, study):
    return client.get(f"{study}/trials").json()["trials"]


@pytest.mark.slow
def test_studies_are_listed_by_name_in_portions(tmp_path):
    with serving(application(Studies(Storage("sqlite:///s.db", tmp_path), lease=1000.0))) as client:
        assert client.get("/studies").json() == {"studies": [], "next": None}
        assert "There are no studies yet" in client.get("/").text
        for name in ("b", "c", "a"):
            client.post("/studies", json={"name": name, "goal": "maximize", "space": X})
        ask(client, "/studies/b", count=3)
        tell(client, "/studies/b", 0, 1.0)
        client.post("/studies/b/trials/1/fail", json={})
        first = client.get("/studies?limit=2").json()
        assert [its["name"] for its in first["studies"]] == ["a", "b"]
        assert first["next"] == "b"
        a, b = first["studies"]
        assert (a["trials"], a["last"]) == (0, None)
        assert b["goal"] == "maximize"
        assert b["states"] == {"running": 1, "done": 1, "failed": 1}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", b["last"])
        rest = client.get("/studies?after=b").json()
        assert ([its["name"] for its in rest["studies"]], rest["next"]) == (["c"], None)
        page = client.get("/")
        assert '<a href="studies/b/">b</a>' in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert places(client.get("/studies?limit=0")) == [["query", "limit"]]


@pytest.mark.slow
def test_a_study_is_described_with_its_best(client, study):
    empty = client.get(study).json()
    assert (empty["name"], empty["trials"], empty["best"]) == (study.rpartition("/")[2], 0, None)
    ask(client, study, count=2)
    tell(client, study, 0, 1.0)
    found = client.get(study).json()
    assert found["space"]["x"]["high"] == 1
    assert (found["goal"], found["trials"], found["states"]["running"]) == ("minimize", 2, 1)
    assert found["best"] == client.get(f"{study}/best").json()
    load = {"load": {"type": "choice", "choices": [1, 2]}}
    client.post("/studies", json={"name": "described", "space": X, "context": load})
    told(client, "/studies/described", {"params": {"x": 0.5}, "context": {"load": 1}, "value": 2})
    assert client.get("/studies/described").json()["best"] is None
    assert client.get('/studies/described?context={"load":2}').json()["best"]["params"] == {"x": 0.5}
    assert listed(client, "/studies/described")[0]["context"] == {"load": 1}


@pytest.mark.slow
def test_the_past_is_told_once_with_trials_in_one_request(client, study):
    ask(client, study, count=2)
    rows = [
        {"params": {"x": 1}, "value": 3, "noise": 0.5},
        {"id": 1, "value": 2.0},
        {"params": {"x": 0.25}, "failed": True},
        {"params": {"x": 1}, "value": 3, "noise": 0.5, "key": "again"},
        {"id": 0, "failed": True},
    ]
    answer = told(client, study, *rows)
    assert answer.status_code == 200, answer.text
    assert [its["id"] for its in answer.json()["trials"]] == [2, 1, 3, 4, 0]
    assert [its["value"] for its in answer.json()["trials"]] == [3.0, 2.0, None, 3.0, None]
    assert told(client, study, *rows).json() == answer.json(), "the same request twice counts once"
    assert told(client, study, rows[0], rows[0]).json()["trials"] == 2 * [answer.json()["trials"][0]]
    assert [(its["params"].get("x"), its["state"]) for its in listed(client, study)][2:] == [
        (1.0, "done"),
        (0.25, "failed"),
        (1.0, "done"),
    ]
    own = listed(client, study)[1]
    assert told(client, study, {"params": own["params"], "value": 2.0}).json()["trials"][0]["id"] == 1, "it is known"
    (new,) = ask(client, study)
    assert new["id"] == 5


@pytest.mark.slow
def test_one_bad_observation_keeps_all_others_out(client, study):
    ask(client, study, count=2)
    tell(client, study, 1, 2.0)
    good = {"id": 0, "value": 1.0}, {"params": {"x": 0.5}, "value": 1.0}
    before = listed(client, study)
    for bad, place in (
        ({"id": 7, "value": 1.0}, ["id"]),
        ({"params": {"x": 2}, "value": 1.0}, ["params"]),
        ({"params": {"y": 2}, "value": 1.0}, ["params"]),
        ({"params": {"x": 0.5}, "value": 1.0, "context": {"load": 1}}, ["context"]),
        ({"params": {"x": 0.5}, "value": 1.0, "constraints": {"memory": 1}}, ["constraints"]),
        ({"params": {"x": 0.5}, "value": 1.0, "noise": 0}, ["noise"]),
        ({"params": {"x": 0.5}, "value": "1"}, ["value"]),
        ({"params": {"x": 0.5}}, []),
        ({"value": 1.0}, []),
        ({"id": 0, "params": {"x": 0.5}, "value": 1.0}, []),
        ({"id": 0, "value": 1.0, "failed": True}, []),
        ({"id": 0, "value": 1.0, "key": "a"}, []),
        ({"params": {"x": 0.5}, "failed": True, "noise": 1.0}, []),
        ({"params": {"x": 0.5}, "value": 1.0, "values": 1}, ["values"]),
    ):
        assert places(told(client, study, *good, bad)) == [["body", "trials", 2, *place]], bad
        assert listed(client, study) == before
    other = told(client, study, *good, {"id": 1, "value": 3.0})
    assert other.status_code == 409
    assert other.json() == {"detail": "trials[2]: trial 1 has the value 2.0 already, which stays: nothing was stored"}
    assert listed(client, study) == before
    assert places(told(client, study)) == [["body", "trials"]]
    assert told(client, study, *good).status_code == 200


@pytest.mark.slow
def test_what_was_told_of_the_past_is_known_to_the_next_question(client, study):
    from noregret import Float, Optimizer

    optimizer = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0)
    past = [(number / 20, (number / 20 - 0.3) ** 2) for number in range(20)]
    for x, value in past:
        optimizer.tell({"x": x}, value)
    assert told(client, study, *({"params": {"x": x}, "value": value} for x, value in past)).status_code == 200
    assert ask(client, study)[0]["params"] == optimizer.ask().params


def left_over(storage):
    """The number of trials that belong to no study, and of deleted studies of which more than the numbers is stored."""
    kept = "SELECT id FROM noregret_studies WHERE deleted IS NULL"
    orphans = f"SELECT COUNT(*) FROM noregret_trials WHERE study NOT IN ({kept})"
    deleted = "SELECT COUNT(*) FROM noregret_studies WHERE deleted IS NOT NULL AND document || checksum <> ''"
    with storage.snapshot() as connection:
        return [number for query in (orphans, deleted) for ((number,),) in [connection.rows(query)]]


@pytest.mark.slow
def test_a_deleted_study_leaves_no_rows_and_its_name_is_free(client, folder):
    path = f"/studies/{next(NAMES)}"
    form = {"name": path.rpartition("/")[2], "space": X}
    client.post("/studies", json=form)
    ask(client, path, count=3)
    tell(client, path, 0, 1.0)
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    for request in ("ask", "trials/0/tell", "trials/1/fail", "tell"):
        body = {"ask": {}, "tell": {"trials": [{"id": 0, "value": 1.0}]}}.get(request, {"value": 1.0})
        answer = client.post(f"{path}/{request}", json={} if "fail" in request else body)
        assert answer.status_code == 404
        assert f"there is no study '{form['name']}'" in answer.json()["detail"]
    assert form["name"] not in {its["name"] for its in client.get("/studies").json()["studies"]}
    with closing(Storage("sqlite:///s.db", folder, readonly=True)) as storage:
        assert set(left_over(storage)) == {0}
    assert client.post("/studies", json=form).status_code == 201
    assert listed(client, path) == []
    assert ask(client, path)[0]["id"] == 3, "the ids of the old study are never used again"


@pytest.mark.slow
def test_other_sites_and_requests_without_the_token_delete_nothing(client, study, folder):
    assert client.delete(study, headers={"Origin": "http://evil.example"}).status_code == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.delete(study, headers=link).status_code == 403
    assert listed(client, study) == []
    with serving(application(Studies(Storage("sqlite:///d.db", folder), lease=1000.0), token="word")) as closed:
        right = {"Authorization": "Bearer word"}
        assert closed.post("/studies", json={"name": "a", "space": X}, headers=right).status_code == 201
        for method, path in (("DELETE", "/studies/a"), ("GET", "/"), ("GET", "/docs"), ("GET", "/metrics")):
            assert closed.request(method, path).status_code == 401
        assert closed.delete("/studies/a", headers=right).status_code == 204


@pytest.mark.slow
def test_a_request_that_waits_is_answered_when_its_study_is_deleted(tmp_path):
    with closing(opened(tmp_path)) as studies:
        live = studies["s"]
        asked(live, AskRequest(2))
        live._lock.acquire()  # as during a fit
        waits = [live.ask(AskRequest(1)) for _ in range(3)]
        studies.delete("s")
        told = live.tell(outcome(0, 1.0))
        live._lock.release()
        for answer in waits:
            with pytest.raises(Deleted):
                answer.result(SECONDS)
        assert told.result(SECONDS) is None
        with pytest.raises(NoStudy):
            studies["s"]


@pytest.mark.slow
@pytest.mark.parametrize("trials", [0, 2])
def test_nothing_is_written_for_a_study_that_is_deleted_while_a_trial_is_chosen(tmp_path, trials):
    with closing(opened(tmp_path)) as one, closing(opened(tmp_path)) as other:
        live = one["s"]
        asked(live, *[AskRequest(1)] * trials)
        propose = live._propose

        def interrupted(plans):
            propose(plans)
            other.delete("s")

        live._propose = interrupted
        with pytest.raises(Deleted):
            asked(live, AskRequest(1))
        assert set(left_over(one._storage)) == {0}


def deleted_elsewhere(folder, url):
    """One server deletes a study, and perhaps makes it again, while another one has it open."""
    row = past({"x": 0.5})
    with closing(opened(folder, url)) as one, closing(opened(folder, url)) as other:
        for number in range(3):
            live = other["s"]
            asked(live, *[AskRequest(2)] * number)  # none at first: then a new trial follows upon none
            one.delete("s")
            if number == 2:
                opened(folder, url).close()
                asked(one["s"], AskRequest(1))
            else:
                with pytest.raises(NoStudy):
                    asked(live, AskRequest(1))
                with pytest.raises(NoStudy):
                    other["s"]
            assert live.tell(outcome(0, 1.0)).result(SECONDS) is None, "also if another study has its ids"
            for refused in (live.records, live.findings, live.look, lambda live=live: live.tell_many([row])):
                with pytest.raises(Deleted):
                    refused()
            if number != 2:
                opened(folder, url).close()
        assert [record.state for record in other["s"].records()] == ["running"]
        assert set(left_over(other._storage)) == {0}


@pytest.mark.slow
def test_a_study_that_another_server_deletes_is_gone_sqlite(tmp_path):
    deleted_elsewhere(tmp_path, "sqlite:///s.db")


@pytest.mark.slow
def test_a_study_that_another_server_made_again_is_found_at_once(tmp_path):
    with ExitStack() as ending:
        one, other = (
            ending.enter_context(serving(application(Studies(Storage("sqlite:///s.db", tmp_path), lease=1000.0))))
            for _ in range(2)
        )
        for first, goal in ((0, "minimize"), (2, "maximize")):
            assert one.post("/studies", json={"name": "s", "goal": goal, "space": X}).status_code == 201
            assert ask(other, "/studies/s", count=2)[0]["id"] == first
            assert other.get("/studies/s").json()["goal"] == goal
            assert one.delete("/studies/s").status_code == 204
        assert one.post("/studies", json={"name": "s", "space": X}).status_code == 201
        assert other.delete("/studies/s").status_code == 204
        assert one.post("/studies/s/ask", json={}).status_code == 404


def late(folder, url):
    """Clients of a deleted study answer after a study of its name, with another space, was made on another server."""
    with ExitStack() as ending:
        one, other = (
            ending.enter_context(serving(application(Studies(Storage(url, folder), lease=1000.0)))) for _ in range(2)
        )
        one.post("/studies", json={"name": "s", "space": X})
        assert ask(one, "/studies/s", count=12)[-1]["id"] == 11
        assert one.delete("/studies/s").status_code == 204
        epochs = {"epochs": {"type": "int", "low": 1, "high": 9}}
        form = {"name": "s", "space": {"z": X["x"]}, "goal": "maximize", "fidelity": epochs}
        assert other.post("/studies", json=form).status_code == 201
        assert [trial["id"] for trial in ask(other, "/studies/s", count=12)] == list(range(12, 24))
        for client in (one, other):
            for number in (0, 9, 11):
                path = f"/studies/s/trials/{number}"
                assert client.post(f"{path}/tell", json={"value": 9.0}).status_code == 404
                assert client.post(f"{path}/fail", json={}).status_code == 404
                assert client.post(f"{path}/report", json={"fidelity": {"epochs": 3}, "value": 1.0}).status_code == 404
                (fault,) = told(client, "/studies/s", {"id": number, "value": 9.0}).json()["detail"]
                assert fault["msg"] == f"there is no trial {number}: nothing was stored"
        assert {trial["state"] for trial in listed(one, "/studies/s")} == {"running"}
        assert tell(one, "/studies/s", 21, 1.0) == 200
        assert tell(other, "/studies/s", 12, 1.0) == 200
        assert told(one, "/studies/s", {"params": {"z": 0.5}, "value": 2.0}).json()["trials"][0]["id"] == 24
        assert one.get("/studies/s/").status_code == 200
        for _ in range(2):  # the second one had no trial
            assert one.delete("/studies/s").status_code == 204
            assert other.post("/studies", json=form).status_code == 201
        assert ask(other, "/studies/s")[0]["id"] == 25
        assert other.post("/studies", json={"name": "t", "space": X}).status_code == 201
        assert ask(one, "/studies/t")[0]["id"] == 0


@pytest.mark.slow
def test_answers_of_a_deleted_study_are_not_those_of_a_new_one_sqlite(tmp_path):
    late(tmp_path, "sqlite:///s.db")


def test_a_study_that_was_made_again_starts_after_the_old_numbers(tmp_path):
    for _ in range(2):
        with closing(opened(tmp_path)) as studies:
            live = studies["s"]
            (number,) = asked(live, AskRequest(1))[0]
            live.tell(outcome(number, 1.0 + number)).result(SECONDS)
            if not number:
                studies.delete("s")
    with closing(opened(tmp_path)) as studies:
        assert [(trial.number, trial.value()) for trial in studies["s"].records()] == [(1, 2.0)]


def test_the_id_of_a_deleted_study_is_not_given_again(tmp_path):
    found = []
    for _ in range(2):
        with closing(opened(tmp_path)) as studies:
            found.append(studies._storage.find("s"))
            with studies._storage.snapshot() as transaction:
                assert [its.is_in(transaction) for its in found] == [False] * (len(found) - 1) + [True]
            studies.delete("s")
    assert found[0].id < found[1].id
    assert found[0].incarnation != found[1].incarnation


def besieged(folder, url, turns=3):
    """Two servers whose studies are made, asked, told and deleted by eight threads at once."""
    with ExitStack() as ending:
        all_studies = [Studies(Storage(url, folder), lease=1000.0) for _ in range(2)]
        clients = [ending.enter_context(serving(application(studies))) for studies in all_studies]
        for client in clients:
            client.get("/nowhere")  # FastAPI builds its routes now, with warnings off: a filter that threads share
        pool, together = ending.enter_context(ThreadPoolExecutor(8)), Barrier(8)
        codes = set()

        def work(number):
            client, path = clients[number % 2], f"/studies/{'ab'[number // 2 % 2]}"
            together.wait(SECONDS)
            for turn in range(turns):
                made = client.post("/studies", json={"name": path[-1], "space": X})
                answers = [made, client.post(f"{path}/ask", json={"count": 2, "client": f"{number}"})]
                trials = answers[-1].json().get("trials", [])
                past = {"params": {"x": 0.5}, "value": number + turn / 1000}
                answers += [
                    client.post(f"{path}/trials/{trials[0]['id']}/tell", json={"value": 1.0}) if trials else made,
                    client.post(
                        f"{path}/tell", json={"trials": [*({"id": its["id"], "value": 1} for its in trials), past]}
                    ),
                    client.get(f"{path}/trials"),
                    client.get("/studies"),
                ]
                if number < 4 and turn % 3 == 2:
                    answers.append(client.delete(path))
                for answer in answers:
                    codes.add(answer.status_code)
                    assert answer.status_code in (200, 201, 204, 404, 409, 422), answer.text

        for done in [pool.submit(work, number) for number in range(8)]:
            done.result(10 * SECONDS)
        assert {200, 201, 204} <= codes
        assert set(left_over(all_studies[0]._storage)) == {0}
        for studies in all_studies:
            studies._storage.check()
        for path in ("/studies/a", "/studies/b"):
            clients[0].post("/studies", json={"name": path[-1], "space": X})
            assert listed(clients[0], path) == listed(clients[1], path)


def test_observations_that_another_server_tells_at_once_count_once(tmp_path):
    rows = [past({"x": number / 10}) for number in range(10)]
    with ExitStack() as ending:
        lives = [ending.enter_context(closing(opened(tmp_path)))["s"] for _ in range(2)]
        asked(lives[0], AskRequest(1))
        pool = ending.enter_context(ThreadPoolExecutor(4))
        found = list(pool.map(lambda live: live.tell_many([(outcome(0, 1.0), ""), *rows]), 2 * lives))
        assert found == 4 * [list(range(11))]
        assert [record.value() for record in lives[1].records()] == 11 * [1.0]


def test_copies_with_a_deleted_study_need_not_be_kept(tmp_path):
    path = tmp_path / "s.db"

    def copied():
        with closing(sqlite3.connect(path)) as connection:
            make_copy(path, connection)
        return copies(path)[0].path

    with closing(opened(tmp_path)) as studies:
        studies.create(test_service.StudyForm.model_validate({"name": "other", "space": X})).result()
        for name in ("s", "other"):
            studies[name].tell_many([past({"x": 0.5})])
        older = copied()
        studies.delete("s")
        newer = copied()
        assert holds_all(newer, older)
        with closing(sqlite3.connect(newer)) as connection, connection:
            connection.execute("DELETE FROM noregret_trials")
        assert not holds_all(newer, older), "the results of the other study are missing"


def test_metrics_count_requests_by_route_whatever_their_path(client, study):
    for path in ("/nowhere", "/nowhere/else", f"{study}/trials"):
        client.get(path)
    client.request("BREW", "/coffee")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert {name: family.type for name, family in families.items()} == {
        "noregret_info": "gauge",
        "noregret_requests": "counter",
        "noregret_request_seconds": "histogram",
        "noregret_open_studies": "gauge",
        "noregret_pending_fits": "gauge",
        "noregret_storage_up": "gauge",
        "noregret_studies": "gauge",
        "noregret_trials": "gauge",
        "process_resident_memory_bytes": "gauge",
        "noregret_helpers_resident_memory_bytes": "gauge",
    }
    requests = {tuple(its.labels.values()): its.value for its in families["noregret_requests"].samples}
    assert requests["GET", "other", "404"] >= 2
    assert requests["other", "other", "404"] == 1
    routes = {its.labels["route"] for its in families["noregret_request_seconds"].samples}
    assert "/studies/{name}/trials" in routes
    assert {its.labels["state"] for its in families["noregret_trials"].samples} == {"running", "done", "failed"}
    assert not re.search("nowhere|BREW|coffee|study\\d", answer.text)


def test_latencies_are_counted_in_classes_that_add_up(tmp_path):
    with closing(opened(tmp_path)) as studies:
        metrics = Metrics(studies)
        for seconds in (0.001, 0.3, 0.3, 1000.0):
            metrics.count("GET", "/", 200, seconds)
        text = metrics.text().decode()
        assert "noregret_storage_up 1.0" in text
    samples = [its for family in text_string_to_metric_families(text) for its in family.samples]
    found = {its.labels["le"]: its.value for its in samples if its.name.endswith("_bucket")}
    assert found | {"0.005": 1, "0.25": 1, "0.5": 3, "60.0": 3, "+Inf": 4} == found


def test_metrics_say_that_the_storage_cannot_be_read(tmp_path, monkeypatch):
    with closing(opened(tmp_path)) as studies:
        monkeypatch.setattr(studies, "counted", lambda: None)
        text = Metrics(studies).text().decode()
    assert "noregret_storage_up 0.0" in text
    assert "noregret_studies" not in text


@pytest.mark.slow
def test_all_requests_are_described_on_a_page_that_loads_nothing_from_elsewhere(client, browser):
    answer = client.get("/docs")
    assert not re.search(r'(src|href)="(https?:)?//', answer.text)
    assert "unsafe" not in answer.headers["content-security-policy"]
    shown = browser(str(client.base_url.join("/docs")), "--dump-dom", "--virtual-time-budget=60000")
    assert "CONSOLE" not in shown.stderr, shown.stderr
    described = re.findall(r'opblock-summary-method">(\w+)<.*?data-path="([^"]*)"', shown.stdout)
    paths = client.get("/openapi.json").json()["paths"]
    assert sorted(described) == sorted((method.upper(), path) for path in paths for method in paths[path])


EPOCHS = {"epochs": {"type": "int", "low": 1, "high": 9}}
GOALS = {"goals": {"loss": "minimize", "cost": "minimize"}}
SAFE = {"safe": 0.9, "constraints": {"memory": {"max": 1}}, "baseline": {"x": 0.5}}


@pytest.mark.parametrize("fields", [{**GOALS, "fidelity": EPOCHS}, {**SAFE, **GOALS}])
def test_several_objectives_go_with_a_fidelity_and_with_safe_questions(client, fields):
    space = {"x": {"type": "float", "low": 0, "high": 1}}
    assert client.post("/studies", json={"name": "several", "space": space, **fields}).status_code == 201
    for _ in range(6):
        (trial,) = client.post("/studies/several/ask", json={}).json()["trials"]
        path, x = f"/studies/several/trials/{trial['id']}", trial["params"]["x"]
        if "fidelity" in fields:
            said = client.post(f"{path}/report", json={"fidelity": {"epochs": 1}, "value": 1.0})
            assert said.status_code == 409
            assert "has several objectives: tell their values" in said.text
        told = {"id": trial["id"], "value": {"loss": x, "cost": 1 - x}}
        told |= {"constraints": {"memory": 0.5}} if "safe" in fields else {}
        assert client.post("/studies/several/tell", json={"trials": [told]}).status_code == 200
    assert client.get("/studies/several/front").json()["front"]
    assert client.get("/studies/several/").status_code == 200
    assert client.delete("/studies/several").status_code == 204


@pytest.mark.parametrize(
    ("fields", "place", "said"),
    [
        ({**SAFE, "fidelity": EPOCHS}, "fidelity", "there may be fidelity or safe, not both"),
        ({"drift": "auto", "fidelity": EPOCHS}, "fidelity", "there may be fidelity or drift, not both"),
    ],
)
def test_what_the_optimizer_refuses_together_is_refused_before_a_study_is_made(client, fields, place, said):
    refused = client.post("/studies", json={"name": "both", "space": X, **fields})
    assert refused.status_code == 422
    (fault,) = refused.json()["detail"]
    assert fault["loc"] == ["body", place]
    assert said in fault["msg"]
    assert client.get("/studies/both").status_code == 404


def test_other_requests_are_answered_while_a_study_is_checked(client, monkeypatch):
    begun, may_end = Event(), Event()
    checked = StudyForm.checked

    def slowly(form):
        begun.set()
        assert may_end.wait(30)
        return checked(form)

    monkeypatch.setattr(StudyForm, "checked", slowly)
    with ThreadPoolExecutor(60) as pool:
        names = [f"slow{number}" for number in range(50)]  # more than the server has threads for requests
        made = [pool.submit(client.post, "/studies", json={"name": name, "space": X}) for name in names]
        assert begun.wait(30)
        assert client.get("/healthz", timeout=10).status_code == 200
        assert client.get("/studies", timeout=10).status_code == 200
        may_end.set()
        assert {its.result().status_code for its in made} == {201}


def test_conditions_are_limited_in_number(client):
    body = {"name": "many", "space": X, "require": [f"x < 1 + {number}" for number in range(51)]}
    refused = client.post("/studies", json=body).json()["detail"]
    said = "must be at most 50 conditions, got 51: join some with 'and', or compute one parameter from others"
    assert refused == [{"loc": ["body", "require"], "msg": said, "type": "value_error"}]
    assert client.post("/studies", json={**body, "require": body["require"][:50]}).status_code == 201
