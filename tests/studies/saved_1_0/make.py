"""Make the studies of this folder with noregret 1.0. The dump of old.db, without names of machines, is studies.sql."""

import json
from dataclasses import replace
from pathlib import Path

from fastapi.testclient import TestClient
from noregret.tune.function import minimize
from noregret.tune.measuring import Outcome
from noregret.tune.service.http.app import application
from noregret.tune.service.studies import Studies
from noregret.tune.store.records import Suggestion, arrived
from noregret.tune.store.storage import Storage
from noregret.tune.store.store import Store
from noregret.tune.study.importing import ImportedRow
from noregret.tune.study.results import JsonField
from noregret.tune.study.study import Budget, Constraint, Objective, Study

from noregret.optimizer import Choice, Float, Int

folder = Path(".")
SPACE = {"x": Float(0.0, 1.0), "n": Int(1, 1000, log=True), "mode": Choice(["a", 2, False])}


def suggest(records):
    n = len(records)
    return Suggestion({"x": n / 8, "n": n + 1, "mode": ["a", 2, False][n % 3]}, arrived(records)[1])


plain = Study(
    folder / "s.toml",
    ("m", "{x}", "{n}", "{mode}"),
    SPACE,
    name="plain",
    storage="sqlite:///old.db",
    lease=60,
    budget=Budget(rounds=100),
    constraints={"memory": Constraint(JsonField("m"), max=5.0)},
)
with Store(plain) as store:
    for i in range(6):
        number = store.claim(suggest).trial.number
        if i == 2:
            store.tell(Outcome(None, "exit code 1", 0.25, "some reason")) if False else store.tell(
                number, Outcome(None, "exit code 1", 0.25, "some reason")
            )
        elif i == 3:
            store.tell(number, Outcome(4.5, bound="at_least", seconds=2.0, constraints={"memory": 3.0}))
        elif i == 4:
            store.tell(
                number,
                Outcome(0.1 + 0.2, runs=(0.2, 0.1 + 0.2, 0.4), seconds=0.5, cost=7.0, constraints={"memory": 1.0}),
            )
        else:
            store.tell(number, Outcome(1.0 + i, seconds=0.5, constraints={"memory": 1.0 + i}))
    store.add(
        [
            ImportedRow({"x": 0.5, "n": 7, "mode": "a"}, 2.5, 0.25, {"memory": 3.0}),
            ImportedRow({"x": 0.25, "n": 9, "mode": 2}, None, failure="exit code 2"),
        ]
    )
    store.claim(suggest)  # runs
    back = store.claim(suggest).trial.number
    store.give_back(back)
two = replace(
    plain,
    name="two",
    objectives={"latency": Objective("minimize", JsonField("t")), "accuracy": Objective("maximize", JsonField("a"))},
    constraints={},
    confirm=0,
)
with Store(two) as store:
    for values in ({"latency": 3.0, "accuracy": 0.5}, {"latency": 2.0, "accuracy": None}):
        n = store.claim(suggest).trial.number
        store.tell(n, Outcome(next(iter(values.values())), values=values))
    n = store.claim(suggest).trial.number
    store.tell(n, Outcome(None, "exit code 1"))

minimize(
    lambda x, kind: (x - 0.3) ** 2 + (kind == "b"),
    {"x": Float(0, 1), "kind": Choice(["a", "b"])},
    evaluations=12,
    storage="sqlite:///old.db",
    rng=0,
    progress=False,
)
# the service

storage = Storage("sqlite:///old.db", folder)
studies = Studies(storage, 1000.0)
client = TestClient(application(studies), base_url="http://127.0.0.1")


def post(path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


space = {"t": {"type": "int", "low": 1, "high": 64, "log": True}, "k": {"type": "choice", "choices": ["a", "b", True]}}
post(
    "/studies",
    name="served",
    goal="minimize",
    space=space,
    context={"load": {"type": "float", "low": 0, "high": 1}},
    constraints={"value": {"max": 512}},
)
for i in range(4):
    t = post("/studies/served/ask", context={"load": 0.5}, client=f"c{i}")["trials"][0]
    if i < 2:
        post(f"/studies/served/trials/{t['id']}/tell", value=3.0 + i, noise=0.5, constraints={"value": 100.0 + i})
    if i == 2:
        post(f"/studies/served/trials/{t['id']}/fail", cost=7.0)
post(
    "/studies/served/tell",
    trials=[{"params": {"t": 4, "k": "b"}, "context": {"load": 0.25}, "value": 9.0, "constraints": {"value": 1.0}}],
)
post(
    "/studies",
    name="steps",
    goal="minimize",
    space=space,
    fidelity={"epochs": {"type": "int", "low": 1, "high": 27, "log": True}},
)
t = post("/studies/steps/ask")["trials"][0]
print(post(f"/studies/steps/trials/{t['id']}/report", fidelity={"epochs": 3}, value=2.0))
post(f"/studies/steps/trials/{t['id']}/tell", value=1.5)
t = post("/studies/steps/ask")["trials"][0]
print(post(f"/studies/steps/trials/{t['id']}/report", fidelity={"epochs": 1}, value=2.5))
seen = {name: client.get(f"/studies/{name}/trials").json() for name in ("served", "steps")}
Path("seen.json").write_text(json.dumps(seen, indent=1))
studies.close()
