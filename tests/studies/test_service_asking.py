"""Concurrent requests: one client key, several servers, and a request that cannot be served."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from threading import Event
from unittest.mock import Mock

import pytest

pytest.importorskip("fastapi")

from tests.studies.made import outcome
from tests.studies.test_service import serving

from noregret.service.http.app import application
from noregret.service.live import AskRequest, BatchQueue, agree
from noregret.service.models import StudyForm
from noregret.service.studies import ASKING, Studies
from noregret.studies.store import trials
from noregret.studies.store.storage import Storage
from noregret.studies.store.trials import ATTEMPTS, Overtaken

FORM = StudyForm.model_validate({"name": "s", "space": {"x": {"type": "float", "low": 0, "high": 1}}})
SECONDS = 60.0
"""Seconds to wait for an answer before a test fails."""


def opened(folder, url="sqlite:///s.db"):
    studies = Studies(Storage(url, folder), lease=1000.0)
    studies.create(FORM).result()
    return studies


@pytest.fixture
def studies(tmp_path):
    with closing(opened(tmp_path)) as studies:
        yield studies


def asked(live, *requests):
    """The trials that each of these requests gets when all come at once, by number."""
    futures = [live.ask(request) for request in requests]
    return [[number for number, *_ in future.result(SECONDS)] for future in futures]


def counted(monkeypatch, name):
    """The calls of a function of the trial table."""
    calls, function = [], getattr(trials, name)

    def counting(*arguments):
        calls.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(trials, name, counting)
    return calls


def numbers(granted):
    return [[number for number, *_ in trials] for trials in granted]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requests", "first", "again", "hand_overs"),
    [
        ([("a", 1)] * 6, [[0]] * 6, [[0]] * 6, 1),
        ([("a", 1), ("b", 1)] * 3, [[0], [1]] * 3, [[0], [1]] * 3, 2),
        ([("a", 1), ("a", 3), ("b", 2), ("a", 2)], [[0], [0, 1, 2], [3, 4], [0, 1]], None, 5),
        ([(None, 1), ("a", 1), (None, 2), ("a", 1)], [[0], [1], [2, 3], [1]], [[4], [1], [5, 6], [1]], 1),
    ],
)
def test_wishes_of_one_key_get_the_same_trials_with_one_hand_over(
    studies, monkeypatch, requests, first, again, hand_overs
):
    live, lot = studies["s"], [AskRequest(count, client) for client, count in requests]
    calls = counted(monkeypatch, "take")
    assert numbers(live._granted(lot)) == first
    assert not calls
    assert numbers(live._granted(lot)) == (again or first)
    assert len(calls) == hand_overs


def test_six_asks_at_once_of_a_client_with_a_pending_trial_all_get_it(studies):
    live = studies["s"]
    assert asked(live, AskRequest(1, "a")) == [[0]]
    assert asked(live, *[AskRequest(1, "a")] * 6) == [[0]] * 6
    assert [record.number for record in live.records()] == [0]


def test_six_first_asks_at_once_of_a_client_get_one_trial(studies):
    assert asked(studies["s"], *[AskRequest(1, "a")] * 6) == [[0]] * 6


@pytest.mark.slow
def test_keys_are_per_context(tmp_path):
    load = {"load": {"type": "choice", "choices": [1, 2]}}
    form = StudyForm.model_validate({**FORM.model_dump(), "name": "context", "context": load})
    with closing(opened(tmp_path)) as studies:
        studies.create(form).result()
        lot = [AskRequest(1, "a", {"load": load}) for load in (1, 2, 1)]
        assert numbers(studies["context"]._granted(lot)) == [[0], [1], [0]]
        assert numbers(studies["context"]._granted(lot)) == [[0], [1], [0]]


def several(folder, url, servers=3, rounds=4):
    """Ask several servers with two keys simultaneously, each key at all servers, and tell the results."""
    with ExitStack() as ending:
        lives = [ending.enter_context(closing(opened(folder, url)))["s"] for _ in range(servers)]
        pool = ending.enter_context(ThreadPoolExecutor(4 * servers))
        for turn in range(rounds):
            requests = [(live, key) for live in lives for key in ("a", "b") for _ in range(2)]
            found = list(pool.map(lambda its: (its[1], asked(its[0], AskRequest(1, its[1]))[0]), requests))
            per_key = {key: {tuple(trials) for its, trials in found if its == key} for key in ("a", "b")}
            assert {key: len(trials) for key, trials in per_key.items()} == {"a": 1, "b": 1}
            (((one,),), ((other,),)) = per_key.values()
            assert sorted((one, other)) == [2 * turn, 2 * turn + 1]
            for number in (one, other):
                answer = outcome(number, 0.5 + number)
                assert agree(lives[turn % servers].tell(answer).result(SECONDS), answer)
        assert [record.value() for record in lives[0].records()] == [0.5 + number for number in range(2 * rounds)]


@pytest.mark.slow
def test_several_servers_give_a_key_one_trial_sqlite(tmp_path):
    several(tmp_path, "sqlite:///s.db")


@pytest.mark.slow
def test_several_servers_give_a_key_one_trial_postgresql(tmp_path, postgresql):
    several(tmp_path, postgresql.new_database())


@pytest.mark.slow
def test_a_request_is_not_tried_again_for_ever(studies, monkeypatch):
    live = studies["s"]
    monkeypatch.setattr(trials, "add", Mock(side_effect=Overtaken))  # as if others always had the number first
    with pytest.raises(Overtaken):
        live.ask(AskRequest(1)).result(SECONDS)
    assert trials.add.call_count == ATTEMPTS
    with serving(application(studies)) as client:
        refused = client.post("/studies/s/ask", json={})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "ask again" in refused.json()["detail"]
        monkeypatch.undo()
        assert client.post("/studies/s/ask", json={}).status_code == 200


@pytest.mark.slow
def test_a_request_that_cannot_be_granted_fails_alone(studies, monkeypatch):
    live, take = studies["s"], trials.take
    assert numbers(live._granted([AskRequest(1, "good"), AskRequest(1, "bad")])) == [[0], [1]]

    def refusing(connection, study, trial, new):
        return new["client"] != "bad" and take(connection, study, trial, new)

    monkeypatch.setattr(trials, "take", refusing)
    with blocked(studies, live):
        good, bad, new = live.ask(AskRequest(1, "good")), live.ask(AskRequest(1, "bad")), live.ask(AskRequest(1))
    assert [number for number, *_ in good.result(SECONDS)] == [0]
    assert [number for number, *_ in new.result(SECONDS)] == [2]
    with pytest.raises(Overtaken):
        bad.result(SECONDS)


def test_an_answer_that_cannot_be_written_fails_alone(studies, monkeypatch):
    live, tell = studies["s"], trials.tell
    live.ask(AskRequest(3)).result(SECONDS)

    def failing(connection, study, outcome):
        if outcome.value() == 13:
            raise KeyError("unlucky")
        return tell(connection, study, outcome)

    monkeypatch.setattr(trials, "tell", failing)
    answers = [outcome(number, value) for number, value in enumerate((11.0, 13.0, 17.0))]
    ready = Event()
    studies._writer.submit(ready.wait, SECONDS)
    told = [live.tell(answer) for answer in answers]
    ready.set()
    assert agree(told[0].result(SECONDS), answers[0])
    assert agree(told[2].result(SECONDS), answers[2])
    with pytest.raises(KeyError):
        told[1].result(SECONDS)
    assert [record.value() for record in live.records()] == [11.0, None, 17.0]


@contextmanager
def blocked(studies, live):
    """Requests inside are one batch."""
    ready = Event()
    for _ in range(ASKING):
        studies._askers.submit(ready.wait, SECONDS)
    yield
    ready.set()


def test_an_exception_that_concerns_all_is_raised_once_for_all():
    lots = []

    def work(requests):
        lots.append(list(requests))
        raise BlockingIOError if 7 in requests else KeyError

    with ThreadPoolExecutor(1) as pool:
        ready = Event()
        pool.submit(ready.wait, SECONDS)
        desk = BatchQueue(pool, work, BlockingIOError)
        answers = [desk.submit(request) for request in (1, 7, 2)]
        ready.set()
        for answer in answers:
            with pytest.raises(BlockingIOError):
                answer.result(SECONDS)
    assert lots == [[1, 7, 2]]


def test_many_trials_are_chosen_in_portions_and_are_the_same(tmp_path, monkeypatch):
    found = []
    for portion in (1000, 3):
        monkeypatch.setattr("noregret.service.live.PORTION", portion)
        (tmp_path / str(portion)).mkdir()
        with closing(opened(tmp_path / str(portion))) as studies:
            live = studies["s"]
            for number in range(4):
                live.ask(AskRequest(1)).result(SECONDS)
                live.tell(outcome(number, float(number))).result(SECONDS)
            found.append(live.ask(AskRequest(10)).result(SECONDS))
    assert found[0] == found[1]


def test_a_request_for_very_many_trials_is_refused_with_advice(studies):
    with serving(application(studies)) as client:
        refused = client.post("/studies/s/ask", json={"count": 101})
        said = "must be at most 100, got 101: ask again for more, best after some results"
        assert refused.status_code == 422
        assert refused.json()["detail"] == [{"loc": ["body", "count"], "msg": said, "type": "value_error"}]
        assert client.get("/openapi.json").json()["components"]["schemas"]["AskForm"]["properties"]["count"] == {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "default": 1,
            "title": "Count",
            "description": "At most 100 trials",
        }
