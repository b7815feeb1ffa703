"""Every study that ``tune`` can make has a page, for any results."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.studies.made import record
from tests.studies.test_page_always import assert_shown, values

from noregret.optimizer import Choice, Float, Int, ParameterSpace
from noregret.studies.study.results import JsonField, LastNumber, Pattern, WallTime
from noregret.studies.study.study import Budget, Study

NAME = st.from_regex(r"[A-Za-z_]\w{0,8}", fullmatch=True)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


EXACT = 2**53


@st.composite
def ranges(draw):
    if draw(st.booleans()):
        low, high = sorted(draw(st.tuples(*[st.integers(-EXACT, EXACT) | st.integers(-3, 9)] * 2)))
        return Int(low, high, log=low > 0 and draw(st.booleans()))
    low, high = sorted(draw(st.tuples(*[st.floats(-1e300, 1e300) | st.floats(0, 1)] * 2)))
    return Float(low, high, log=low > 0 and draw(st.booleans()))


def choices():
    value = TEXT | st.integers(-9, 9) | st.booleans()
    few = st.lists(value, min_size=1, max_size=5, unique_by=lambda v: str(v).lower())
    return (few | st.integers(30, 60).map(lambda n: [f"option {i}" for i in range(n)])).map(Choice)


def spaces():
    named = st.dictionaries(NAME, ranges() | choices(), min_size=1, max_size=4)
    cells = {"machine": TEXT, "nodes": st.integers(1, 64), "price": st.floats(-1e9, 1e9)}
    tables = st.sets(st.sampled_from(sorted(cells)), min_size=1).flatmap(
        lambda names: st.lists(st.fixed_dictionaries({name: cells[name] for name in names}), min_size=1, max_size=12)
    )
    return named | named.flatmap(conditional) | tables


@st.composite
def conditional(draw, space):
    """The same parameters, some of which apply only when a switch is on, and are measured in steps."""
    if "switch" in space:
        return space
    on = draw(st.sampled_from([True, [True], [False]]))
    some = {name for name in space if draw(st.booleans())}
    under = {name: replace(its, when={"switch": on}) if name in some else its for name, its in space.items()}
    return {"switch": Choice([True, False]), "step": Int(0, 30, step=3, when={"switch": True})} | under


def params_of(space, rng):
    if not isinstance(space, dict):
        return space[rng.integers(len(space))]
    named = ParameterSpace(space)
    return named.decode(rng.uniform(size=(1, len(named.groups))))[0]


@st.composite
def studies(draw):
    """A study and the records of some of its trials; most settings are measured several times."""
    space, value, share = draw(spaces()), draw(values()), draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    settings_ = [params_of(space, rng) for _ in range(draw(st.integers(1, 6)))]
    records = []
    for number in range(draw(st.sampled_from([0, 1, 2, 7, 25, 45]))):
        params = settings_[rng.integers(len(settings_))]
        told = tuple(r.number for r in records[-1:] if r.is_finished)
        if rng.uniform() < share:
            failed = {"failure": draw(TEXT), "stderr": draw(TEXT), "seconds": 0.1}
            records.append(record(number, params, "failed", told=told, **failed))
        else:
            records.append(record(number, params, "done", value(rng), seconds=0.1, told=told))
    if draw(st.booleans()):
        records.append(record(len(records), settings_[0], draw(st.sampled_from(["running", "waiting"]))))
    result = draw(st.sampled_from([LastNumber(), WallTime(), JsonField("a.<b>"), Pattern("x")]))
    goal = draw(st.sampled_from(["minimize", "maximize"]))
    budget = draw(st.sampled_from([Budget(rounds=50), Budget(seconds=5.0)]))
    return Study(
        Path("s.toml"), ("m", "{x}"), space=space, name=draw(TEXT), goal=goal, result=result, budget=budget
    ), records


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(studies())
def test_every_study_has_a_page(found):
    assert_shown(*found)
