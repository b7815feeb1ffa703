"""Fits in the background: asks do not wait for them, and suggestions can be computed again from what is stored."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

pytest.importorskip("fastapi")

from tests.studies.made import outcome
from tests.studies.test_service_asking import FORM, SECONDS

from noregret import Optimizer
from noregret.service import choosers as fitting
from noregret.service.choosers import Chooser, chosen
from noregret.service.live import AskRequest, agree
from noregret.service.studies import Studies
from noregret.studies.learning.suggest import replay_of
from noregret.studies.store.storage import Storage


def opened(folder, *processes):
    *choosers, fitter = processes
    studies = Studies(Storage("sqlite:///s.db", folder), 1000.0, choosers, fitter)
    studies.create(FORM).result()
    return studies


@pytest.fixture(scope="module")
def processes():
    """One that chooses and one that fits."""
    with closing(Chooser()) as chooser, closing(Chooser()) as fitter:
        yield chooser, fitter


def told(live, number, params):
    answer = outcome(number, (params["x"] - 0.3) ** 2)
    assert agree(live.tell(answer).result(SECONDS), answer)


def work(live, trials):
    """Ask and tell, one trial after another."""
    for _ in range(trials):
        ((number, params, _),) = live.ask(AskRequest(1)).result(SECONDS)
        told(live, number, params)


def recomputed(live):
    """Expected trials, computed from the stored records only."""
    replay, known = replay_of(live.study), []
    records = live.records()
    for record in records:
        known += record.told
        pending = [its for its in records[: record.number] if its.number not in known]
        yield chosen(pending, [None], replay(live.ledger.outcomes(known)))[0].params


@pytest.mark.slow
def test_suggestions_that_know_of_less_can_be_computed_again(tmp_path, processes, monkeypatch):
    monkeypatch.setattr(fitting, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(fitting, "BEHIND", 8)
    ready, behind = fitting.Fitting.ready, []

    def counting(self, told, fresh, new):
        found = ready(self, told, fresh, new)
        behind.append(len(found.fresh) < len(fresh))
        return found

    monkeypatch.setattr(fitting.Fitting, "ready", counting)
    with closing(opened(tmp_path, *processes)) as studies:
        live = studies["s"]
        with ThreadPoolExecutor(3) as pool:
            for each in [pool.submit(work, live, 15) for _ in range(3)]:
                each.result(SECONDS)
        assert sum(behind) > 3
        for record, params in zip(live.records(), recomputed(live), strict=True):
            assert record.params == pytest.approx(params, abs=1e-6)
        known = [number for record in live.records() for number in record.told]
        assert len(known) == len(set(known)), "each answer becomes known once"
        assert len(known) >= 45 - 3 - 2 * fitting.BEHIND, "and before too many others have come"


class Stopped(Executor):
    """Accepts jobs and runs them on request."""

    def __init__(self):
        self.waiting = []

    def submit(self, work, *arguments):
        future = Future()
        self.waiting.append((future, partial(work, *arguments)))
        return future

    def go_on(self):
        for future, work in self.waiting:
            future.set_result(work())
        self.waiting.clear()


@pytest.mark.slow
def test_no_ask_waits_for_a_fit_that_takes_long(tmp_path, monkeypatch):
    with closing(Chooser()) as fitter, closing(opened(tmp_path, fitter)) as studies:
        live, pool = studies["s"], Stopped()
        monkeypatch.setattr(fitting, "WAIT_SECONDS", SECONDS)
        work(live, 12)
        live.fitting._pool = pool
        monkeypatch.setattr(fitting, "WAIT_SECONDS", 0.0)
        work(live, 5)
        assert len(pool.waiting) == 1
        assert [record.told for record in live.records()[-5:]] == [()] * 5, "what came since is not known"
        assert len(live.ledger.told) == 11
        pool.go_on()
        work(live, 1)
        assert live.records()[-1].told == (11,), "what the fit took in is known"


@pytest.mark.slow
def test_a_client_that_is_alone_is_asked_what_an_optimizer_would(tmp_path, processes, monkeypatch):
    monkeypatch.setattr(fitting, "WAIT_SECONDS", SECONDS)  # on a busy machine too
    with closing(opened(tmp_path, *processes)) as studies:
        live = studies["s"]
        optimizer = Optimizer(live.study.space, goal="minimize", rng=0)
        for _ in range(15):
            ((number, params, _),) = live.ask(AskRequest(1)).result(SECONDS)
            own = optimizer.ask()
            assert params == own.params
            told(live, number, params)
            optimizer.tell(own, (params["x"] - 0.3) ** 2)


@pytest.mark.slow
def test_a_fit_that_fails_is_told_to_who_asked_and_tried_again(tmp_path, processes, monkeypatch):
    with closing(Chooser()) as fitter, closing(opened(tmp_path, fitter)) as studies:
        live, pool = studies["s"], Stopped()
        live.fitting._pool, submit = pool, pool.submit

        def failing(*arguments):
            future = submit(*arguments)
            future.set_exception(ZeroDivisionError("no fit"))
            return future

        monkeypatch.setattr(pool, "submit", failing)
        with pytest.raises(ZeroDivisionError, match="no fit"):
            work(live, 12)
        live.fitting._pool = studies._fitters
        work(live, 5)
