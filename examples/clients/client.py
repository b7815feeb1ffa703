"""Finds the best x through a server:  python client.py http://127.0.0.1:8420 NAME.

The token of the server, if any, is read from NOREGRET_TOKEN.
"""

import json
import sys

import noregret

url, name = sys.argv[1:]
study = noregret.connect(url, name, space={"x": noregret.Float(0, 1)}, goal="minimize")
past = [{"x": 0.1, "value": 0.04}, {"x": 0.8, "value": 0.25}]
study.tell_many(past)  # telling it again changes nothing
for _ in range(12):
    trial = study.ask()
    study.tell(trial, (trial.params["x"] - 0.3) ** 2)  # what you would measure
print(json.dumps({"params": study.best().params}))
