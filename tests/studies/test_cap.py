"""Runs that take too long are stopped, and what is known of them is kept."""

import json
import math
import sys
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest
from tests.studies.made import record

from noregret import Float
from noregret.optimizer import Reading
from noregret.studies import measuring, words
from noregret.studies.measuring import CommandRun, Keeper, measure
from noregret.studies.page.page import page
from noregret.studies.running import findings, plan_of, suggester_of
from noregret.studies.store.records import Record
from noregret.studies.store.store import Store
from noregret.studies.study.exchange import exported
from noregret.studies.study.reading import load
from noregret.studies.study.results import WallTime
from noregret.studies.study.study import Study, StudyError

SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep({t})")


def study(tmp_path, **options):
    space = {"t": Float(0.0, 10.0)}
    defaults = {"result": WallTime(), "storage": "sqlite:///s.db", "cap": 2.0}
    return Study(tmp_path / "s.toml", SLEEP, space=space, **(defaults | options))


def measured(its, seconds, limit):
    with Keeper() as keeper:
        return measure(its, Record(0, {"t": seconds}), keeper, Event(), SimpleNamespace(limit=limit))


def test_a_run_beyond_the_limit_is_a_bound_and_no_failure(tmp_path):
    outcome = measured(study(tmp_path), 30.0, 0.2)
    assert (outcome.value(), outcome.reading().bound, outcome.failure) == (0.2, "at_least", "")
    assert 0.2 <= outcome.seconds < 10


def test_a_run_within_the_limit_is_a_value(tmp_path):
    outcome = measured(study(tmp_path), 0.0, 60.0)
    assert outcome.reading().bound is None
    assert 0 < outcome.value() < 60


def test_a_time_out_is_a_bound_where_there_is_a_limit_and_a_failure_before(tmp_path):
    short = study(tmp_path, timeout=0.2)
    assert measured(short, 30.0, 5.0).reading().bound == "at_least"
    assert "timeout" in measured(short, 30.0, math.inf).failure


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([9, 9, 9], (5.0, "at_least", 3)),  # the other two are not started
        ([1, 9, 2, 3, 9], (3.0, None, 5)),
        ([9, 1, 9, 9], (5.0, "at_least", 4)),
        ([1, 2, 3, 4, 5], (3.0, None, 5)),
    ],
)
def test_the_median_of_five_repeats_is_a_bound_if_three_are_stopped(tmp_path, monkeypatch, times, expected):
    left, limits = [7.0, *times], []  # the warm-up takes longer than the limit, and is not stopped

    def run_command(command, timeout, **_):
        limits.append(timeout)
        seconds = left.pop(0)
        ended = f"still running after {timeout:g} s (timeout)" if seconds > timeout else ""
        return CommandRun("", "", None if ended else 0, min(seconds, timeout), ended)

    monkeypatch.setattr(measuring, "run_command", run_command)
    outcome = measure(
        study(tmp_path, repeats=5, warmup=1), Record(0, {"t": 0.0}), None, Event(), SimpleNamespace(limit=5.0)
    )
    assert (outcome.value(), outcome.reading().bound, len(limits) - 1) == expected
    assert limits[:2] == [3600.0, 5.0]
    assert outcome.reading().bound is None or outcome.reading().noise is None


@pytest.mark.parametrize("lines", ['result = "last-number"', 'result = "user-time"', 'goal = "maximize"'])
def test_a_cap_needs_times_to_be_made_small(tmp_path, lines):
    text = (
        'command = "sleep {t}"\ncap = 2\n[parameters.t]\ntype = "float"\nlow = 0\nhigh = 1\n[budget]\nevaluations = 9\n'
    )
    path = tmp_path / "s.toml"
    path.write_text(f'result = "wall-time"\n{text}')
    assert load(path).cap == 2.0
    path.write_text(f"{lines}\n{text}" if "result" in lines else f'result = "wall-time"\n{lines}\n{text}')
    with pytest.raises(StudyError, match=r'cap: needs result = "wall-time" and goal = "minimize"'):
        load(path)
    path.write_text(f'result = "wall-time"\n{text}'.replace("cap = 2", "cap = 0.5"))
    with pytest.raises(StudyError, match="cap: must be a number from 1"):
        load(path)


def records(*told):
    return [
        record(number, {"t": t}, "done", value, seconds=value, bound=bound)
        for number, (t, value, bound) in enumerate(told)
    ]


def test_the_faster_of_two_settings_is_repeated_for_the_limit_then_no_more(tmp_path):
    suggest = suggester_of(study(tmp_path))
    two = [(5.0, 5.1, None), (2.0, 2.1, None)]
    assert suggest(records(*two)).params == {"t": 2.0}
    assert suggest.limit == math.inf
    assert suggest(records(*two, (2.0, 2.0, None))).params == {"t": 2.0}
    after = suggest(records(*two, (2.0, 2.0, None), (2.0, 2.05, None)))
    assert after.params != {"t": 2.0}
    assert 4.1 < suggest.limit < 8.0
    assert plan_of(study(tmp_path, cap=None))._repeated(suggest.latest[1], []) is None


def test_what_was_cut_short_is_stored_exported_and_shown(tmp_path):
    mine = study(tmp_path)
    with Store(mine) as store:
        for seconds in (0.02, 0.01, 0.03, 0.04, None):
            claim = store.claim(lambda known: suggester_of(mine)(known))
            readings = {"value": (Reading(seconds or 0.0),)}  # the page depends on the values
            whole = replace(measured(mine, 0.0, 60.0), readings=readings)
            outcome = measured(mine, 30.0, 0.05) if seconds is None else whole
            store.tell(replace(outcome, id=claim.trial.number))
        found = findings(mine, store)
        assert [its.reading().bound for its in store.records()] == [None] * 4 + ["at_least"]
        assert found.optimizer.answers[-1].bound == "at_least"
        assert (len(found.done), len(found.cut)) == (4, 1)
        text = exported(mine, store.records(), "csv").decode()
        assert text.splitlines()[0].endswith(",bound,started,seconds")
        assert ",at_least," in text.splitlines()[-1]
        assert [row.get("bound") for row in json.loads(exported(mine, store.records(), "json"))] == [None] * 4 + [
            "at_least"
        ]
        html = page(found)
    assert "&gt; 0.05" in html
    assert "1 cut short" in html
    assert 'class="cut ring"' in html


def test_words():
    assert words.cut_short(3.1, 2.0) == "stopped after 3.1 s: slower than twice the best"
    assert words.cut_short(60.0, 2.0, 60.0) == "stopped after 60 s (timeout): at least that slow"
