"""``noregret mcp``: the tools by the package's own client, in memory and over stdio."""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import numpy as np
import pytest

pytest.importorskip("mcp")

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client

from noregret.cli import main
from noregret.comparison import Comparison
from noregret.service import answers
from noregret.service.mcp import TOOLS, server
from noregret.service.studies import Studies
from noregret.studies.store.storage import Storage

X = {"x": {"type": "float", "low": 0, "high": 1}}
NAMES = (f"study{number}" for number in count())


class Agent:
    """A client of the tools."""

    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def result(self, tool, **arguments):
        return self.portal.call(self.client.call_tool, tool, arguments)

    def __call__(self, tool, **arguments):
        """The answer of a tool: the same as JSON and as text."""
        found = self.result(tool, **arguments)
        assert not found.is_error, found.content
        (said,) = found.content
        assert json.loads(said.text) == found.structured_content
        assert next(iter(found.structured_content)) == "summary"
        return found.structured_content

    def fault(self, tool, **arguments):
        """The text of an error."""
        found = self.result(tool, **arguments)
        assert found.is_error
        assert found.structured_content is None
        return found.content[0].text

    def create(self, **more):
        """The name of a new study."""
        name = next(NAMES)
        self("create_study", name=name, **{"space": X, **more})
        return name


@contextmanager
def connected(target):
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(target)) as client:
        yield Agent(portal, client)


@contextmanager
def over_stdio(folder):
    """A client of a process, whose id is in the file ``pid``."""
    start = f"echo $$ > pid; exec {sys.executable} -m noregret mcp"
    parameters = StdioServerParameters(command="sh", args=["-c", start], cwd=folder, env=dict(os.environ))
    with open(folder / "stderr", "a") as errors, connected(stdio_client(parameters, errlog=errors)) as agent:
        yield agent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def studies(folder):
    found = Studies(Storage("sqlite:///s.db", folder), lease=1000.0)
    yield found
    found.close()


@pytest.fixture(scope="module")
def agent(studies, folder):
    with connected(server(studies, folder)) as agent:
        yield agent


@pytest.fixture(scope="module")
def measured(agent, studies):
    """The name of a study of a noisy parabola with its minimum 1 at 0.3, and a baseline at 0.9."""
    name, rng = agent.create(baseline={"x": 0.9}), np.random.default_rng(0)
    points = [0.9, 0.9, *np.linspace(0, 1, 21)]
    rows = [{"params": {"x": x}, "value": 1 + 4 * (x - 0.3) ** 2 + rng.normal(0, 0.02)} for x in points]
    said = agent("tell_many", study=name, trials=rows)
    assert said["ids"] == list(range(23))
    assert said["summary"].startswith("Stored. 23 values.")
    return name


def test_tools_say_what_they_take_and_what_they_change(agent):
    tools = {tool.name: tool for tool in agent.portal.call(agent.client.list_tools).tools}
    assert tools.keys() == TOOLS.keys()
    assert tools.keys() >= {"create_study", "ask", "tell", "best", "gain", "remaining", "versus", "report", "describe"}
    assert {name for name, tool in tools.items() if not tool.annotations.read_only_hint} == {
        "create_study",
        "ask",
        "tell",
        "tell_many",
        "correct",
        "withdraw",
        "progress",
        "ledger",
        "report",
    }
    tell = tools["tell"].input_schema
    assert tell["required"] == ["study"]
    assert tell["properties"].keys() >= {
        "study",
        "id",
        "params",
        "value",
        "failed",
        "at_least",
        "within",
        "constraints",
    }
    assert tell["properties"]["at_least"]["type"] == "number"  # null for absence is not named
    versus = tools["versus"].input_schema["properties"]
    assert versus["a"]["items"] == {
        "anyOf": [{"type": "boolean"}, {"type": "number"}, {"type": "null"}]
    }  # null for a failed run is
    assert tools["report"].input_schema["properties"].keys() == {"study"}
    assert tools["list_studies"].input_schema["properties"] == {}
    assert all(tool.description for tool in tools.values())
    assert len(json.dumps([tool.input_schema for tool in tools.values()])) < 17_000  # an agent reads all of it
    assert '"stop"' in agent.client.instructions


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("create_study", {"space": X}, "name: is needed"),
        ("create_study", {"name": "a b", "space": X}, "name: must be 1 to 100 letters, .*got 'a b'"),
        ("create_study", {"name": "a", "space": {"x": {"low": 0}}}, 'space.x: must have a "type": "float"'),
        ("create_study", {"name": "a", "space": {"x": {"type": "int", "low": 2, "high": 1}}}, "swap them"),
        ("create_study", {"name": "a", "space": X, "gaol": 1}, "gaol: is no field"),
        (
            "create_study",
            {"name": "a", "space": {"x": {"type": "int", "lwo": 0, "high": 1}}},
            "space.x.int.lwo: unknown key: did you mean 'low'",
        ),
        ("ask", {"study": "nothing"}, "There is no study 'nothing': list_studies .* create_study makes one"),
        ("ask", {"study": "THIS", "count": 0}, "count: .*got 0"),
        ("ask", {"study": "THIS", "context": {"load": 1}}, "context: "),
        ("tell", {"study": "THIS", "id": 0}, 'must have a value, or "failed": true'),
        ("tell", {"study": "THIS", "value": 1.0}, "must have the id of a trial, or params"),
        ("tell", {"study": "THIS", "id": 0, "value": "fast"}, "value: .*valid number, got 'fast'"),
        ("tell", {"study": "THIS", "id": 0, "value": 1, "failed": True}, "and not both"),
        ("tell", {"study": "THIS", "id": 0, "value": {"a": 1}}, "value: value must have .* 'a' would only be tracked"),
        ("tell", {"study": "THIS", "id": 0, "value": 1, "within": "much"}, "within must be .* got 'much'.$"),
        ("tell", {"study": "THIS", "id": 99, "value": 1}, "^Nothing was changed. id: there is no trial 99"),
        ("tell", {"study": "THIS", "params": {"x": 2}, "value": 1}, "params: x must be from 0.0 to 1.0, got 2"),
        ("tell", {"study": "THIS", "id": 0, "value": 1, "constraints": {"m": 1}}, "constraints: unknown"),
        ("best", {"study": "THIS", "weights": {"a": 1}}, "weights: is for several objectives"),
        ("gain", {"study": "THIS"}, "nothing to compare with"),
        ("remaining", {"study": "THIS", "confidence": 95}, "confidence must be a probability"),
        ("versus", {"a": [1, 2], "b": [1]}, "b: must have as many values as a, .* got 1 and 2: measure the missing"),
        ("versus", {"a": [1], "b": [1], "within": "-1%"}, "within must be"),
        ("versus", {"a": [1], "b": [1], "bounds": [1, 0]}, "bounds: bounds must be two finite numbers, the smaller"),
        ("versus", {"a": [1], "b": [2], "bounds": [0, 1]}, "b.0: value of option 1 must be within the bounds, 0 to 1"),
        ("progress", {"study": "THIS", "id": 0, "fidelity": {"e": 1}, "value": 1}, "the study has no fidelity"),
        ("predict", {"study": "THIS", "params": {"y": 1}}, "params: .*unknown 'y'"),
        ("optimise", {}, "there is no tool 'optimise': the tools are create_study, ask"),
    ],
)  # fmt: skip
def test_bad_input_is_explained_and_changes_nothing(agent, tool, arguments, said):

    name = agent.create()
    agent("ask", study=name)
    before = agent("describe", study=name), len(agent("list_studies")["studies"])
    text = agent.fault(tool, **{key: name if its == "THIS" else its for key, its in arguments.items()})
    assert re.search(said, text), text
    assert (agent("describe", study=name), len(agent("list_studies")["studies"])) == before


def test_a_study_is_made_once(agent):
    name = agent.create()
    agent("tell", study=name, params={"x": 0.5}, value=1.0)
    said = agent("create_study", name=name, space=json.dumps(X))["summary"]  # some models send JSON in a string
    assert said == f"Study {name!r} exists, as described: 1 value. Next: ask for params to measure."
    assert "goal differs. Choose another name" in agent.fault("create_study", name=name, space=X, goal="maximize")


def test_results_are_stored_once_and_the_first_stays(agent, studies):
    name = agent.create(constraints={"memory": {"max": 4}})
    asked = agent("ask", study=name, count=3)["trials"]
    assert [trial["id"] for trial in asked] == [0, 1, 2]
    assert [trial["id"] for trial in agent("describe", study=name)["pending"]] == [0, 1, 2]
    assert agent("tell", study=name, id=1, failed=True)["summary"].startswith(
        "Stored trial 1. Continue: there is no value"
    )
    for start in ("Stored trial 0. ", "Trial 0 has this result already, it counts once. "):
        said = agent("tell", study=name, id=0, value=2.5, constraints={"memory": 3}, cost=7.0, noise=0.1)
        assert said["summary"].startswith(start)
        assert said["id"] == 0
        assert said["stop"] is False
    assert "has the value 2.5 already, which stays" in agent.fault(
        "tell", study=name, id=0, value=3, constraints={"memory": 3}
    )
    agent("tell", study=name, id=2, at_least=9.0)
    for start in ("Stored trial 3. ", "Trial 3 has this result already"):
        said = agent("tell", study=name, params={"x": 0.25}, value=2.0, constraints={"memory": 3})
        assert said["summary"].startswith(start)
    records = studies[name].records()
    assert [(its and its.value, its and its.bound) for its in (record.reading() for record in records)] == [
        (2.5, None),
        (None, None),
        (9.0, "at_least"),
        (2.0, None),
    ]
    assert (records[0].value("cost"), records[0].reading().noise, records[0].value("memory")) == (7.0, 0.1, 3.0)
    assert agent("describe", study=name)["states"] == {"running": 0, "done": 3, "failed": 1}


def test_readings_are_kept_corrected_and_withdrawn(agent, studies):
    name = agent.create(constraints={"memory": {"max": 4}})
    for number in range(2):
        agent("ask", study=name)
        readings = {"memory": [3, 3.5], "energy": {"value": 12, "noise": 0.5}}
        agent("tell", study=name, id=number, value=2.5, readings=readings)
    found = agent("correct", study=name, id=0, readings={"value": 1.5, "energy": None}, because="read wrongly")
    assert found["summary"] == "Trial 0 is corrected. 2 values."
    assert agent("withdraw", study=name, id=1, because="unplugged")["summary"].endswith("1 value, 1 failed.")
    first, second = studies[name].records()
    assert (first.value(), first.value("memory"), first.value("energy")) == (1.5, 3.25, None)
    assert first.earlier[0].failure == "read wrongly"
    assert (second.state, second.failure) == ("withdrawn", "unplugged")
    assert "readings: value must have" in agent.fault("tell", study=name, params={"x": 0.5}, readings={"valu": 1})
    assert "there is no trial 9" in agent.fault("withdraw", study=name, id=9)
    agent("ask", study=name)
    assert "no outcome yet" in agent.fault("correct", study=name, id=2, readings={"value": 1.5})
    table = agent.create(space=None, table=[{"x": 1}, {"x": 2}])
    assert agent("ask", study=table)["trials"][0]["params"]["x"] in (1, 2)


def test_nothing_is_stored_of_a_list_with_a_fault(agent):
    name = agent.create()
    rows = [{"params": {"x": 0.5}, "value": 1.0}, {"id": 4, "value": 1.0}]
    assert "trials.1.id: there is no trial 4: nothing was stored" in agent.fault("tell_many", study=name, trials=rows)
    assert agent("describe", study=name)["states"]["done"] == 0


def test_best_says_first_that_nothing_is_shown(agent):
    name = agent.create(baseline={"x": 0.9})
    rows = [{"params": {"x": x}, "value": value} for x, value in ((0.9, 1.0), (0.2, 0.9), (0.5, 1.1), (0.7, 0.95))]
    agent("tell_many", study=name, trials=rows)
    best = agent("best", study=name)
    assert best["summary"].startswith("Nothing is shown to be better than your settings; most promising: x")
    assert best["params"] == {"x": 0.9}


@pytest.mark.slow
def test_answers_are_those_of_the_service_with_intervals(agent, studies, measured):
    optimizer = studies[measured].known().optimizer
    best = optimizer.best()
    found = agent("best", study=measured)
    assert found["params"] == best.params
    for name in ("estimate", "lower", "upper", "remaining"):
        assert found[name] == pytest.approx(getattr(best, name), rel=1e-5)
    assert found["lower"] < 1 < found["upper"]
    assert f"({found['lower']:.3g} to {found['upper']:.3g}), at 95%." in found["summary"]
    assert found["changes"][0]["from"] == 0.9
    assert found["changes"][0]["to"] == found["params"]["x"]
    predicted = agent("predict", study=measured, params=best.params)
    assert predicted["estimate"] == pytest.approx(best.estimate)
    assert predicted["lower"] < 1 < predicted["upper"]
    gain = agent("gain", study=measured)
    assert gain["lower"] < 4 * 0.6**2 < gain["upper"]
    assert (gain["best"]["params"], gain["baseline"]["params"]) == (best.params, {"x": 0.9})
    assert str(optimizer.gain()) in gain["summary"]
    listed = next(its for its in agent("list_studies")["studies"] if its["name"] == measured)
    assert (
        listed
        == answers.listed(studies, "", 1000).model_dump(exclude_none=True)["studies"][
            [its.name for its in studies.listed("", 1000)].index(measured)
        ]
    )


@pytest.mark.slow
def test_it_says_when_to_stop(agent, studies, measured):
    stop, go = agent("remaining", study=measured, within="60%"), agent("remaining", study=measured, within=1e-9)
    assert stop["stop"]
    assert stop["summary"].startswith("Stop: by the model, at most ")
    assert "; the aim is 60% (95%). Use {x: 0." in stop["summary"]
    assert not go["stop"]
    assert go["summary"].startswith("Continue: by the model, at most ")
    assert "; the aim is 1e-09 (95%). 23 values." in go["summary"]
    surer = agent("remaining", study=measured, within=1e-9, confidence=0.99)
    assert "; the aim is 1e-09 (99%). 23 values." in surer["summary"]
    for within in (0.5 * stop["remaining"], 2 * stop["remaining"]):
        verdict = agent("remaining", study=measured, within=within)
        is_done = studies[measured].known().optimizer.done(within, 0.95, "model")
        assert verdict["stop"] == is_done == (within > stop["remaining"])


@pytest.mark.slow
def test_noise_alone_is_no_reason_to_stop(agent):
    name, rng = agent.create(), np.random.default_rng(1)
    rows = [{"params": {"x": x}, "value": rng.normal(5, 1)} for x in np.linspace(0, 1, 15)]
    agent("tell_many", study=name, trials=rows)
    found = agent("remaining", study=name, within="50%")
    assert found["remaining"] is None
    assert found["summary"].startswith(
        "Continue: no setting is shown to be better than another: noise alone may explain the results; "
    )
    assert "15 values. If it stays so, params matter little beside the noise" in found["summary"]


@pytest.mark.slow
def test_constraints_that_nothing_meets_are_named(agent):
    name = agent.create(constraints={"memory": {"max": 1}})
    rows = [{"params": {"x": x}, "value": x, "constraints": {"memory": 9 + x}} for x in np.linspace(0, 1, 15)]
    agent("tell_many", study=name, trials=rows)
    found = agent("remaining", study=name, within="90%")
    assert not found["stop"]
    assert "meet all constraints with probability" in found["summary"]
    assert found["best"]["feasible"] < 0.5


@pytest.mark.slow
def test_several_objectives_have_a_front(agent):
    name = agent.create(goals={"time": "minimize", "cost": "minimize"}, baseline={"x": 0.5})
    assert "tell more first" in agent.fault("best", study=name)
    for _ in range(6):
        (trial,) = agent("ask", study=name)["trials"]
        x = trial["params"]["x"]
        said = agent("tell", study=name, id=trial["id"], value={"time": 1 + x, "cost": 2 - x})
    assert said["stop"] is None
    assert said["hypervolume"]["lower"] <= said["hypervolume"]["estimate"] <= said["hypervolume"]["upper"]
    front = agent("best", study=name)["front"]
    assert len(front) == 6
    assert all(its["lower"]["time"] <= its["values"]["time"] <= its["upper"]["time"] for its in front)
    picked = agent("best", study=name, limits={"cost": ["<=", 1.6]})
    assert picked["values"]["cost"] < 1.6
    assert picked["params"] in [its["params"] for its in front]
    assert "unknown objective" in agent.fault("best", study=name, limits={"cots": ["<=", 1.6]})
    assert agent("gain", study=name, weights={"time": 1, "cost": 3})["gains"].keys() == {"time", "cost"}
    assert "a number for at least one of" in agent.fault("tell", study=name, params={"x": 0.1}, value={"time": None})


@pytest.mark.slow
def test_contexts_and_fidelities_are_passed_on(agent):
    name = agent.create(context={"load": {"type": "float", "low": 0, "high": 1}})
    assert "context" in agent.fault("ask", study=name)
    for load in (0.1, 0.9, 0.1):
        (trial,) = agent("ask", study=name, context={"load": load})["trials"]
        agent("tell", study=name, id=trial["id"], value=trial["params"]["x"] + load)
    assert agent("best", study=name, context={"load": 0.1})["estimate"] is not None
    assert "best" not in agent("describe", study=name)
    other = agent.create(fidelity={"epochs": {"type": "int", "low": 1, "high": 9}})
    (trial,) = agent("ask", study=other)["trials"]
    assert trial["fidelity"].keys() == {"epochs"}
    assert "at this fidelity" in agent("ask", study=other)["summary"]
    agent("tell", study=other, id=trial["id"], value=1.0, fidelity={"epochs": 3})


@pytest.mark.slow
def test_a_run_that_is_not_promising_is_stopped_early(agent, studies):
    name = agent.create(fidelity={"epochs": {"type": "int", "low": 1, "high": 81, "log": True}})
    (trial,) = agent("ask", study=name)["trials"]
    rng = np.random.default_rng(0)
    past = [(float(rng.random()), int(rng.choice([9, 27, 81]))) for _ in range(40)]
    values = [4 * (x - 0.95) ** 2 + 0.5 / epochs + 0.01 * rng.normal() for x, epochs in past]
    rows = [
        {"params": {"x": x}, "fidelity": {"epochs": epochs}, "value": value}
        for (x, epochs), value in zip(past, values, strict=True)
    ]
    agent("tell_many", study=name, trials=rows)
    id = trial["id"]
    stops = [
        agent("progress", study=name, id=id, fidelity={"epochs": epochs}, value=4 + 0.5 / epochs)
        for epochs in (1, 3, 9, 27)
    ]
    assert stops[-1] == {"summary": "Stop this run, and tell its value so far.", "stop": True}
    agent("tell", study=name, id=id, value=4.1)
    assert studies[name].records()[id].is_stopped
    assert "has an outcome already" in agent.fault("progress", study=name, id=id, fidelity={"epochs": 2}, value=1)
    assert "there is no trial 999" in agent.fault("progress", study=name, id=999, fidelity={"epochs": 2}, value=1)


def test_versus_is_the_comparison_and_stores_nothing(agent, studies):
    rng = np.random.default_rng(0)
    a, b = rng.normal(10, 0.1, 12).tolist(), rng.normal(9, 0.1, 12).tolist()
    comparison = Comparison()
    for pair in zip(a, b, strict=True):
        for option, value in enumerate(pair):
            comparison.tell(option, value)
    found = agent("versus", a=a, b=b)
    assert found["verdict"] == "better"
    assert found["summary"] == f"{comparison}."
    assert (found["lower"], found["upper"]) == pytest.approx((comparison.lower, comparison.upper), rel=1e-5)
    assert agent("versus", a=a, b=b, goal="maximize")["verdict"] == "worse"
    assert agent("versus", a=a, b=[1.001 * each for each in a], within="5%")["verdict"] == "equal"
    assert (found["quantity"], found["warnings"]) == ("median change", [])
    few = agent("versus", a=[1.0, None], b=[2.0, 3.0])
    assert (few["verdict"], few["upper"], few["pairs"]) == ("undecided", None, 2)
    assert f"measure another pair, {few['next']} first, and call again with all values" in few["summary"]
    assert "stop, or give within" in few["summary"]
    assert "or give within" not in agent("versus", a=[1.0], b=[2.0], within="1%")["summary"]
    assert "A failed in 5 of 5 runs. Stop: " in agent("versus", a=[None] * 5, b=[2.0] * 5)["summary"]


def test_a_ledger_judges_changes_and_writes_their_receipts(agent, folder, capsys):
    a, b = [1.0 + 0.001 * place for place in range(14)], [0.9 + 0.001 * place for place in range(14)]
    empty = agent("ledger", name="chain")
    assert (empty["entries"], "No change is kept." in empty["summary"]) == ([], True)
    found = agent("ledger", name="chain", action="new", a=a, b=b)
    assert found["summary"].startswith("Entry 1: keep, as its e-value of 4,")
    assert "Next: keep it. B is better than A by 9.94% (" in found["summary"]
    assert "is open: keep or discard it first" in agent.fault("ledger", name="chain", action="new", a=a, b=b)
    assert agent("ledger", name="chain", action="keep")["state"] == "kept"
    found = agent("ledger", name="chain", action="new", a=a[:7], b=b[:7])
    assert found["summary"].startswith("Entry 2: discard, as its e-value of 53.54 is below 246.4. Next: discard it.")
    assert "entry 2 may not be kept" in agent.fault("ledger", name="chain", action="keep")
    assert agent("ledger", name="chain", action="keep", force=True)["forced"]
    shown = agent("ledger", name="chain")
    assert "Of 1 kept change, at most 5% are false in expectation, at any time." in shown["summary"]
    assert "outside of the guarantee: 2." in shown["summary"]
    assert main(["verify", *(entry["receipt"] for entry in shown["entries"])]) == 0
    assert main(["ledger", str(folder / "noregret-chain.ledger.json"), "show"]) == 0
    assert "Kept by force, outside of the guarantee: 2." in capsys.readouterr().out
    assert "a: must have the measurements of A" in agent.fault("ledger", name="chain", action="new")
    assert "b: must have as many values" in agent.fault("ledger", name="chain", action="new", a=a)
    assert len(agent("ledger", name="chain")["entries"]) == 2


def test_versus_compares_runs_that_pass_or_fail(agent):
    found = agent("versus", a=[True, False] * 20, b=[True] * 40, goal="maximize")
    assert (found["verdict"], found["quantity"], found["estimate"]) == ("better", "difference of means", 0.5)
    assert found["summary"].startswith("B is better than A: 50 points more runs pass (")
    assert agent("versus", a=[1, 0] * 20, b=[1] * 40, goal="maximize")["quantity"] == "difference of means"
    scores = agent("versus", a=[3, 5] * 20, b=[6, 4.5] * 20, bounds=[0, 10], goal="maximize")
    assert scores["summary"].startswith("Undecided: mean 1.25 higher (")
    tied = agent("versus", a=[7, 8, 8] * 10, b=[7, 8, 9] * 10, within="5%")
    assert tied["verdict"] == "undecided"
    assert "give the bounds" in tied["warnings"][0]


@pytest.mark.parametrize(
    "values", [([None] * 3, [None] * 3), ([1.5] * 3, [None] * 3), ([], []), ([2, None], [None, 3])]
)
def test_versus_says_numbers_or_null(agent, values):
    """Some of these said nan before."""
    found = agent("versus", a=values[0], b=values[1])
    assert not re.search(r"\b(nan|inf)\b", json.dumps(found, allow_nan=False))


def test_names_reach_agents_as_plain_text(agent):
    """Control sequences and marks of direction are escaped in text; the data are exact."""
    odd = "a\x1b[31m\u202eb\x9b"
    name = agent.create(space={"mode": {"type": "choice", "choices": [odd, "plain"]}}, baseline={"mode": odd})
    asked = agent.portal.call(agent.client.call_tool, "ask", {"study": name})
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", asked.content[0].text)
    assert json.loads(asked.content[0].text) == asked.structured_content
    assert asked.structured_content["trials"][0]["params"]["mode"] == odd
    agent("tell", study=name, params={"mode": odd}, value=1.0)
    assert r"a\x1b[31m" in agent("best", study=name)["summary"]
    assert "\x1b" not in agent.fault("predict", study=name, params={odd: 1})


@pytest.mark.slow
def test_a_report_is_written_beside_the_storage(agent, measured, folder):
    found = agent("report", study=measured)
    page = folder / f"noregret-{measured}.html"
    assert found["path"] == str(page)
    assert page.read_text().startswith("<!doctype html>")
    assert found["importance"]["x"]["upper"] == 1.0
    page.unlink()
    page.mkdir()
    assert "cannot be written: " in agent.fault("report", study=measured)


@pytest.mark.slow
def test_calls_may_overlap(agent, studies):
    name = agent.create()
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda _: agent("ask", study=name)["trials"][0], range(8)))
        assert sorted(trial["id"] for trial in asked) == list(range(8))
        list(pool.map(lambda trial: agent("tell", study=name, id=trial["id"], value=trial["params"]["x"]), asked))
    assert [record.value() for record in studies[name].records()] == [
        trial["params"]["x"] for trial in sorted(asked, key=lambda trial: trial["id"])
    ]


def test_a_study_that_was_deleted_and_made_again_is_found(agent, studies):
    name = agent.create()
    agent("ask", study=name)
    studies.delete(name)
    assert "There is no study" in agent.fault("describe", study=name)
    agent("create_study", name=name, space=X)
    assert agent("ask", study=name)["trials"][0]["id"] == 1, "ids are not used again"


def test_a_fault_of_the_server_is_a_result_and_not_the_end(agent, studies, monkeypatch, caplog):
    monkeypatch.setattr(studies, "listed", lambda after, limit: 1 / 0)
    assert "a fault of the server" in agent.fault("list_studies")
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    agent("list_studies")


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp"]) == 2
    assert "pip install '.[mcp]'" in capsys.readouterr().err


@pytest.mark.slow
def test_an_agent_tunes_over_stdio_until_it_is_told_to_stop(tmp_path):
    rng = np.random.default_rng(3)

    def value(x):
        return 5 + 8 * (x - 0.3) ** 2 + rng.normal(0, 0.05)

    with over_stdio(tmp_path) as agent:
        agent("create_study", name="q", space=X, baseline={"x": 0.9})
        measured = [{"params": {"x": x}, "value": value(x)} for x in (0.9, *np.linspace(0, 1, 11))]
        agent("tell_many", study="q", trials=measured)
        for _ in range(30):
            (trial,) = agent("ask", study="q")["trials"]
            said = agent("tell", study="q", id=trial["id"], value=value(trial["params"]["x"]), within="20%")
            if said["stop"]:
                break
        assert said["summary"].startswith(f"Stored trial {trial['id']}. Stop: ")
        assert agent("remaining", study="q", within="20%")["stop"]
        best = agent("best", study="q")
        assert abs(best["params"]["x"] - 0.3) < 0.15
        assert best["lower"] < 5.2
        assert agent("gain", study="q")["lower"] > 1
        assert os.path.exists(agent("report", study="q")["path"])
    assert (tmp_path / "stderr").read_text() == ""


@pytest.mark.slow
def test_huge_numbers_have_a_report(agent):
    goals = {"a": "minimize", "b": "maximize"}
    for more, value in (({}, 1e308), ({"goals": goals}, {"a": 1e308, "b": -1e308})):
        study = agent.create(**more)
        for number in range(3):
            given = value if number else {"a": -1e308, "b": 1e308} if more else -1e308
            agent("tell", study=study, params={"x": number / 3}, value=given, cost=1e308)
        assert "report is in" in agent("report", study=study)["summary"]
        assert agent("best", study=study)["summary"]


def test_versus_says_how_long_a_decision_takes_and_ends(agent):
    rng = np.random.default_rng(3)
    a, b = rng.normal(10, 1, 40).tolist(), rng.normal(9.8, 1, 40).tolist()
    found = agent("versus", a=a[:10], b=[value - 0.5 for value in a[:10]], within="20%")
    assert (found["verdict"], found["more_pairs"]) == ("equal", 0)
    found = agent("versus", a=a, b=b)
    assert found["verdict"] == "undecided"
    assert f"about {found['more_pairs']} more pairs" in found["summary"]
    alike = agent("versus", a=a, b=a[1:] + a[:1])
    assert alike["more_pairs"] is None or alike["more_pairs"] > 400
    assert "Stop: after 40 pairs no decision is in sight. Say that no difference is shown." in alike["summary"]


def test_versus_counts_an_item_once(agent):
    once = agent("versus", a=[1.0] * 8, b=[2.0] * 8)
    twice = agent("versus", a=[1.0] * 8, b=[2.0] * 8, items=["one", "two"] * 4)
    assert (once["verdict"], twice["verdict"]) == ("worse", "undecided")
    assert (once["items"], twice["items"], twice["pairs"]) == (None, 2, 2)
