"""Finds the best x through a server:  python client.py http://127.0.0.1:8420 NAME.

The token of the server, if any, is read from NOREGRET_TOKEN.
"""

import json
import sys

import noregret

url, name = sys.argv[1:]
study = noregret.connect(url, name, space={"x": noregret.Float(0, 1)}, goal="minimize")
study.tell_many(
    [{"x": x, "value": (x - 0.3) ** 2} for x in (0.1, 0.8)]
)  # measurements of the past
for _ in range(12):
    trial = study.ask()
    study.tell(trial, (trial.params["x"] - 0.3) ** 2)  # what you would measure
print(json.dumps({"params": study.best().params}))
