"""Choosers: a separate process gives the same as the server itself, and may die at any time."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event
from time import sleep

import pytest

pytest.importorskip("fastapi")

from tests.studies.made import record

from noregret import Float
from noregret.optimizer import Replay
from noregret.service.choosers import Chooser, ModelClient, chosen, itself

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


@pytest.fixture(scope="module")
def chooser():
    with closing(Chooser()) as process:
        yield process


def guide(chooser=None):
    return ModelClient(Replay(SPACE, "minimize", 0), chooser)


def answer(params, number=0):
    return record(number, params, "done", (params["x"] - 0.3) ** 2 + params["y"])


def asked(led, rounds, turn=lambda number, answers: None):
    """Trials asked for, with three pending; ``turn`` may change the results before each."""
    answers, out, found = [], [], []
    for number in range(rounds):
        turn(number, answers)
        new = led(answers, partial(chosen, out, [None] * (1 + number % 2)))
        found += new
        out += new
        while len(out) > 3:
            first = out.pop(0)
            answers.append(answer(first.params, first.number))
    return [(trial.number, trial.params) for trial in found]


def swap_last(number, answers):
    """Another server has noted the last two answers in another order."""
    if number % 5 == 4:
        answers[-2:] = answers[:-3:-1]


@pytest.mark.slow
@pytest.mark.parametrize("turn", [lambda number, answers: None, swap_last])
def test_a_chooser_asks_what_the_server_itself_would(chooser, turn):
    assert asked(guide(chooser), 14, turn) == asked(guide(), 14, turn)


def test_a_chooser_has_several_studies_and_gives_optimizers(chooser):
    first, second = guide(chooser), guide(chooser)
    answers = [answer({"x": number / 10, "y": 0.5}, number) for number in range(9)]
    assert first(answers, itself).best() == guide()(answers, itself).best()
    assert [its.params for its in second(answers[:3], itself).answers] == [its.params for its in answers[:3]]
    assert len(first(answers, itself, settled=4).answers) == 9


def _stumbles(optimizer):
    raise ValueError(f"{len(optimizer.answers)} answers are too many")


def _gives_what_does_not_travel(optimizer):
    return lambda: optimizer


def test_what_goes_wrong_is_told_to_who_asked_and_the_next_is_served(chooser):
    led, answers = guide(chooser), [answer({"x": 0.5, "y": 0.5})]
    with pytest.raises(ValueError, match="1 answers are too many"):
        led(answers, _stumbles)
    with pytest.raises(RuntimeError, match="pickle"):
        led(answers, _gives_what_does_not_travel)
    assert len(led(answers, itself).answers) == 1


@pytest.mark.slow
def test_where_a_chooser_has_died_the_server_goes_on_as_if_it_had_not():
    with closing(Chooser()) as process:

        def kill(number, answers):
            if number == 7:
                os.kill(process._process.pid, signal.SIGKILL)

        assert asked(guide(process), 14, kill) == asked(guide(), 14)


def test_a_study_that_is_closed_is_forgotten(chooser):
    led = guide(chooser)
    led([], itself)
    study = led._study
    del led
    assert study in chooser._gone
    guide(chooser)([], itself)
    assert study not in chooser._gone


def _rests(optimizer):
    sleep(0.1)


def test_a_study_with_many_requests_keeps_no_other_waiting(chooser):
    first, second, order, has_begun = guide(chooser), guide(chooser), [], Event()

    def many():
        for number in range(8):
            has_begun.set()
            first([], _rests)
            order.append(number)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(many)
        assert has_begun.wait(30)
        second([], _rests)
        order.append("other")
        done.result(30)
    assert order.index("other") <= 2
