"""Named readings, corrections, withdrawals and tables, over HTTP, by the client and by the tools for agents."""

import json
from contextlib import closing

import numpy as np
import pytest

pytest.importorskip("fastapi")

from tests.studies import test_service
from tests.studies.test_service import NAMES, X, ask, places, tell
from tests.studies.test_service_asking import opened

from noregret import Float, Optimizer, connect
from noregret.optimizer import Reading
from noregret.service.studies import Studies
from noregret.studies.store.storage import Storage

client, folder, study = test_service.client, test_service.folder, test_service.study

READINGS = {"memory": 480, "energy": {"value": 12.0, "noise": 0.5}, "load": [0.1, {"value": 0.2}, 0.6]}
GOALS = {"latency": "minimize", "accuracy": "maximize"}


def listed(client, study):
    return client.get(f"{study}/trials").json()["trials"]


def made(client, **more):
    name = next(NAMES)
    answer = client.post("/studies", json={"name": name, "space": X, **more})
    assert answer.status_code == 201, answer.text
    return f"/studies/{name}"


def test_unknown_names_are_stored_and_listed_and_decide_nothing(client, study):
    plain, twin = study, made(client)
    for number in range(6):
        (one,), (other,) = ask(client, plain), ask(client, twin)
        assert one["params"] == other["params"]
        assert tell(client, plain, number, one["params"]["x"]) == 200
        assert tell(client, twin, number, one["params"]["x"], readings=READINGS) == 200
        assert tell(client, twin, number, one["params"]["x"], readings=READINGS) == 200, "the same counts once"
    assert client.get(f"{plain}/best").json() == client.get(f"{twin}/best").json()
    assert tell(client, twin, 0, 1.0, readings={"memory": 481}) == 409
    first = listed(client, twin)[0]
    assert first["readings"] == {
        "value": {"value": first["value"]},
        "memory": {"value": 480.0},
        "energy": {"value": 12.0, "noise": 0.5},
        "load": [{"value": 0.1}, {"value": 0.2}, {"value": 0.6}],
    }


def test_all_that_is_stored_of_a_trial_is_listed(client):
    load, epochs = {"load": {"type": "int", "low": 1, "high": 9}}, {"epochs": {"type": "int", "low": 1, "high": 9}}
    study = made(client, constraints={"memory": {"max": 512}}, context=load, fidelity=epochs)
    ask(client, study, count=3, context={"load": 2})
    for at in (1, 3):
        body = {"fidelity": {"epochs": at}, "value": 4.0 + at}
        assert client.post(f"{study}/trials/0/report", json=body).status_code == 200
    body = {"noise": 0.5, "constraints": {"memory": 320}, "cost": 7, "readings": {"energy": 3}}
    assert tell(client, study, 0, 4.5, fidelity={"epochs": 9}, **body) == 200
    assert client.post(f"{study}/trials/1/fail", json={"cost": 2, "reason": "no memory left"}).status_code == 200
    done, failed, running = listed(client, study)
    assert done.pop("seconds") >= 0
    assert done.pop("started") <= done.pop("ended")
    assert done == {
        "id": 0,
        "trial": 0,
        "params": done["params"],
        "state": "done",
        "failed": False,
        "value": 4.5,
        "noise": 0.5,
        "constraints": {"memory": 320.0},
        "cost": 7.0,
        "context": {"load": 2},
        "fidelity": {"epochs": 9},
        "stopped": False,
        "readings": {
            "value": [{"value": 5.0, "step": 1}, {"value": 7.0, "step": 3}, {"value": 4.5, "noise": 0.5}],
            "memory": {"value": 320.0},
            "cost": {"value": 7.0},
            "energy": {"value": 3.0},
        },
    }
    assert (failed["state"], failed["failure"], failed["reason"]) == ("failed", *2 * ["no memory left"])
    assert (failed["cost"], failed["value"]) == (2.0, None)
    assert (running["state"], running["value"], running["context"]) == ("running", None, {"load": 2})
    assert running["fidelity"].keys() == {"epochs"}


def test_a_reading_has_noise_or_a_bound_or_several_runs(client):
    study = made(client, goals=GOALS, constraints={"memory": {"max": 512}})
    ask(client, study, count=2)
    readings = {
        "latency": [{"value": 3.0, "noise": 0.1}, 4.0, 8.0],
        "accuracy": {"value": 0.5, "bound": "at_least"},
        "memory": {"value": 300, "noise": 5},
    }
    answer = client.post(f"{study}/trials/0/tell", json={"readings": readings})
    assert answer.status_code == 200, answer.text
    assert answer.json()["value"] == {"latency": 4.0, "accuracy": 0.5}
    assert answer.json()["readings"] == {
        "latency": [{"value": 3.0, "noise": 0.1}, {"value": 4.0}, {"value": 8.0}],
        "accuracy": {"value": 0.5, "bound": "at_least"},
        "memory": {"value": 300.0, "noise": 5.0},
    }
    assert listed(client, study)[0]["constraints"] == {"memory": 300.0}
    rows = [{"id": 1, "value": {"latency": 1.0}, "readings": {"accuracy": {"value": 0.9, "noise": 0.1}, "memory": 1}}]
    assert client.post(f"{study}/tell", json={"trials": rows}).status_code == 200
    assert listed(client, study)[1]["values"] == {"latency": 1.0, "accuracy": 0.9}


@pytest.mark.parametrize(
    ("body", "place", "said"),
    [
        ({"readings": {"latncy": 1.0, "accuracy": 0.5}}, ["readings"], "'latency' is missing; 'latncy' would only be"),
        ({"value": {"latncy": 1.0, "accuracy": 0.5}}, ["value"], "'latency' is missing; 'latncy' would only be"),
        ({"value": {"latency": 1}, "readings": {"latency": 1}}, ["readings", "latency"], "given once, got it twice"),
        ({"value": {"latency": 1}, "noise": 0.1}, ["noise"], "give it with its number"),
        ({"value": 1.0}, ["value"], "a number for each of"),
        ({"readings": {"energy": 1.0}}, ["readings"], "'latency' is missing"),
        ({"readings": {"latency": "1", "accuracy": 1}}, ["readings", "latency"], "valid number"),
        ({"readings": {"latency": {"value": 1, "noise": 0}}}, ["readings", "latency", "noise"], "greater than 0"),
        ({"readings": {"latency": {"noise": 1}}}, ["readings", "latency", "value"], "required"),
        ({"readings": {"latency": [], "accuracy": 1}}, ["readings", "latency"], "at least 1 item"),
        ({"readings": {"latency": 1, "accuracy": 1, "cost": -1}}, ["readings", "cost"], "above 0"),
        ({"readings": {}}, ["value"], "must be a number"),
    ],
)
def test_bad_readings_are_refused_with_their_place(client, body, place, said):
    study = made(client, goals=GOALS)
    ask(client, study)
    answer = client.post(f"{study}/trials/0/tell", json=body)
    assert places(answer) == [["body", *place]], answer.text
    assert said in answer.json()["detail"][0]["msg"]
    many = client.post(f"{study}/tell", json={"trials": [{"params": {"x": 0.5}, **body}]})
    assert many.status_code == 422
    assert listed(client, study)[0]["state"] == "running"


def test_a_correction_is_as_if_it_had_been_told_so(client, study):
    right, wrong = study, made(client)
    for number in range(8):
        (one,), (other,) = ask(client, right), ask(client, wrong)
        if one["params"] != other["params"]:
            break
        value = (one["params"]["x"] - 0.3) ** 2
        tell(client, right, number, value)
        tell(client, wrong, number, value + 100 * (number == 7), readings={"energy": 5})
    body = {"value": value, "because": "the clock was off"}
    for _ in range(2):  # the same twice counts once
        answer = client.put(f"{wrong}/trials/7", json=body)
        assert answer.status_code == 200, answer.text
        corrected = answer.json()
        assert corrected["readings"] == {"value": {"value": value}, "energy": {"value": 5.0}}
        (before,) = corrected["earlier"]
        assert (before["value"], before["failure"]) == (value + 100, "the clock was off")
    assert listed(client, wrong)[7] == corrected
    assert client.get(f"{wrong}/best").json() == client.get(f"{right}/best").json()
    assert ask(client, wrong)[0]["params"] == ask(client, right)[0]["params"]
    assert tell(client, wrong, 7, value + 100, readings={"energy": 5}) == 200, "a late copy of the first one changes"
    assert listed(client, wrong)[7]["value"] == value, "nothing"
    assert tell(client, wrong, 7, 55.0) == 409


def test_what_is_withdrawn_does_not_count_and_may_count_again(client, study):
    for number in range(3):
        ask(client, study)
        tell(client, study, number, [5.0, -1000.0, 4.0][number])
    best = client.get(f"{study}/best").json()["estimate"]
    assert best < -500
    for _ in range(2):
        answer = client.request("DELETE", f"{study}/trials/1", json={"because": "unplugged"})
        assert answer.status_code == 200, answer.text
        assert (answer.json()["state"], answer.json()["failure"]) == ("withdrawn", "unplugged")
        assert answer.json()["value"] == -1000.0, "it stays on record"
    assert client.get(f"{study}/best").json()["estimate"] > 0
    assert client.get(f"{study}/").status_code == 200
    assert client.get(study).json()["trials"] == 3
    ask(client, study)
    assert tell(client, study, 1, -1000.0) == 200
    assert listed(client, study)[1]["state"] == "withdrawn", "an outcome that is sent again changes nothing"
    assert client.put(f"{study}/trials/1", json={}).json()["state"] == "done"
    assert client.get(f"{study}/best").json()["estimate"] == pytest.approx(best)
    assert client.delete(f"{study}/trials/0?because=why").json()["failure"] == "why"


def test_bad_corrections_change_nothing(client):
    study = made(client, goals=GOALS)
    ask(client, study, count=2)
    assert tell(client, study, 0, {"latency": 1.0, "accuracy": 0.5}) == 200
    before = listed(client, study)
    assert client.put(f"{study}/trials/1", json={"readings": {"latency": 1}}).status_code == 409
    assert client.delete(f"{study}/trials/1").status_code == 409
    assert client.put(f"{study}/trials/9", json={"readings": {"latency": 1}}).status_code == 404
    assert client.delete(f"{study}/trials/9").status_code == 404
    nothing = {"latency": None, "accuracy": None}
    for body, place in (({"value": 1.0}, "value"), ({"value": nothing}, "value"), ({"readings": nothing}, "readings")):
        assert places(client.put(f"{study}/trials/0", json=body)) == [["body", place]]
    assert listed(client, study) == before
    assert client.put(f"{study}/trials/0", json={"readings": {"latency": [2, 3, 9]}}).status_code == 200
    after = listed(client, study)[0]
    assert after["value"] == {"latency": 3.0, "accuracy": 0.5}
    assert [its["value"] for its in after["readings"]["latency"]] == [2.0, 3.0, 9.0]


def test_corrections_are_stored_and_reach_other_servers(tmp_path):
    with closing(opened(tmp_path)) as one, closing(Studies(Storage("sqlite:///s.db", tmp_path), 1000.0)) as other:
        from noregret.service import answers, models

        rows = [models.OutcomeForm(params={"x": x / 10}, value=float(x)) for x in range(5)]
        answers.told(one["s"], models.OutcomesForm(trials=rows))
        assert other["s"].known().optimizer.best(None).params["x"] < 0.1
        answers.corrected(one["s"], 4, models.CorrectionForm(value=-9.0))
        answers.withdrawn(other["s"], 0, "")
        for studies in (one, other):
            assert studies["s"].known().optimizer.best(None).params["x"] > 0.35
            assert [record.state for record in studies["s"].records()] == ["withdrawn", *4 * ["done"]]
        again = answers.told(one["s"], models.OutcomesForm(trials=rows))
        assert [its.id for its in again.trials] == list(range(5)), "what was corrected is known as it was, too"
    with closing(opened(tmp_path)) as studies:
        assert [record.value() for record in studies["s"].records()] == [0.0, 1.0, 2.0, 3.0, -9.0]


def test_the_client_tells_corrects_and_withdraws_as_an_optimizer(client):
    limits = {"memory": ("<=", 512)}
    study = connect(str(client.base_url), next(NAMES), space={"x": Float(0, 1)}, constraints=limits)
    twin = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0, constraints=limits)
    for number in range(14):
        trial, own = study.ask(), twin.ask()
        assert trial.params == pytest.approx(own.params)
        x, energy = own.params["x"], Reading(12.0, noise=0.5)
        told = {"value": Reading((x - 0.3) ** 2, noise=0.1), "memory": 480, "energy": energy}
        for each, its in ((study, trial), (twin, own)):
            each.tell(its, told)
            if number == 3:
                each.correct(its, {"value": 2.0, "energy": None}, reason="read wrongly")
            if number == 11:
                each.withdraw(its.id, "broken")
    study.tell(trial, told)
    study.tell({"x": 0.5}, 1.0, readings={"memory": Reading(1.0), "runs": [1, 2]})
    assert study.trials()[-1]["readings"]["runs"] == [{"value": 1.0}, {"value": 2.0}]
    for theirs, ours in zip(study.trials(), twin.trials, strict=False):
        ours = json.loads(json.dumps(twin.measures.described(ours)))
        for name in ("id", "params", "state", "value", "noise", "constraints", "readings", "failure"):
            assert theirs.get(name) == ours.get(name)
        assert len(theirs.get("earlier", ())) == len(ours.get("earlier", ()))
    assert study.trials()[3]["earlier"][0]["failure"] == "read wrongly"
    with pytest.raises(ValueError, match=r"value.*missing.*'vlaue' would only be tracked"):
        study.tell({"x": 0.5}, {"vlaue": 1.0, "memory": 1})
    with pytest.raises(ValueError, match="'energy' must be a finite number"):
        study.tell({"x": 0.5}, 1.0, readings={"energy": float("nan")})


def test_frames_carry_tracked_numbers(client):
    study = connect(str(client.base_url), next(NAMES), space={"x": Float(0, 1)})
    rows = [{"x": 0.1 * n, "value": n, "measure.energy": 2 * n, "noise.energy": 0.5} for n in range(3)]
    for _ in range(2):
        study.tell_many([*rows, {"x": 0.9, "state": "failed"}])
        assert [its.get("readings", {}).get("energy") for its in study.trials()] == [
            *({"value": 2.0 * n, "noise": 0.5} for n in range(3)),
            None,
        ]


def test_a_study_of_the_rows_of_a_table(client):
    rng = np.random.default_rng(0)
    table = [{"a": float(rng.random()), "kind": kind} for kind in ("p", "q") for _ in range(8)]
    name = next(NAMES)
    body = {"name": name, "table": table}
    assert [client.post("/studies", json=body).status_code for _ in range(2)] == [201, 200]
    assert client.post("/studies", json={**body, "table": table[1:]}).status_code == 409
    study, twin = connect(str(client.base_url), name, space=table), Optimizer(table, goal="minimize", rng=0)
    for _ in range(10):
        trial, own = study.ask(), twin.ask()
        assert trial.params == own.params
        assert trial.params in table
        value = (trial.params["a"] - 0.5) ** 2 + (trial.params["kind"] == "p")
        study.tell(trial, value)
        twin.tell(own, value)
    assert study.best().params == twin.best().params
    study.tell_many([{**table[0], "value": 1.0}])
    assert study.describe()["table"] == table
    assert client.get(f"/studies/{name}/").status_code == 200
    bad = {"params": {"a": 2.0, "kind": "p"}, "value": 1.0}
    assert places(client.post(f"/studies/{name}/tell", json={"trials": [bad]})) == [["body", "trials", 0, "params"]]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"table": [{"x": 1}], "space": X}, []),
        ({}, []),
        ({"table": []}, ["table"]),
        ({"table": [{"x": 1}, {"y": 1}]}, ["table"]),
        ({"table": [{"x": [1]}]}, ["table", 0, "x"]),
        ({"table": [{"x": 1}, {"x": 2}], "baseline": {"x": 3}}, ["baseline"]),
    ],
)
def test_tables_that_are_none_are_refused(client, body, place):
    answer = client.post("/studies", json={"name": "none", **body})
    assert places(answer)[0][: 1 + len(place)] == ["body", *place], answer.text


def test_a_study_has_the_range_of_its_values(client):
    study = made(client, possible=[0, None])
    ask(client, study, count=2)
    assert tell(client, study, 0, 0.5) == 200
    assert tell(client, study, 1, -0.5) == 422
    for wrong in ([1, 0], {"latency": [0, 1]}, [0]):
        body = {"name": next(NAMES), "space": X, "possible": wrong}
        assert client.post("/studies", json=body).status_code == 422
    assert client.get(study).json()["possible"] == [0, None]


def test_blocks_are_stored_and_a_clients_name_is_its_machine(client, study):
    (mine,), (other,), (third,) = (ask(client, study, client="n7"), ask(client, study), ask(client, study))
    assert tell(client, study, mine["id"], 1.0, block={"seed": 3}) == 200
    assert tell(client, study, other["id"], 2.0) == 200
    assert tell(client, study, third["id"], 3.0, block={"machine": "n8"}) == 200
    past = {"trials": [{"params": mine["params"], "value": 1.0, "block": {"seed": seed}} for seed in (4, 5, 5)]}
    assert client.post(f"{study}/tell", json=past).status_code == 200
    blocks = [{"machine": "n7", "seed": 3}, None, {"machine": "n8"}, {"seed": 4}, {"seed": 5}]
    assert [its.get("block") for its in listed(client, study)] == blocks
    (late,) = ask(client, study)
    answer = client.post(f"{study}/trials/{late['id']}/tell", json={"value": 1.0, "block": {"machine": None}})
    assert answer.status_code == 422
    assert "machine" in answer.text
