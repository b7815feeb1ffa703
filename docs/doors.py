"""The table in ``doors.md``: which options each way to use noregret has, read from the code.

``python docs/doors.py`` writes the page again. An empty cell needs a reason in `REASONS`.
"""

import inspect
from pathlib import Path

from noregret import Optimizer, minimize
from noregret.service.models import StudyForm
from noregret.studies.study.forms import ConstraintTable, StudyFile

PAGE = Path(__file__).with_name("doors.md")
DOORS = {
    "Optimizer": set(inspect.signature(Optimizer).parameters) | set(inspect.signature(Optimizer.tell).parameters),
    "minimize": set(inspect.signature(minimize).parameters),
    "noregret tune": {*StudyFile.model_fields, *ConstraintTable.model_fields},
    "noregret serve": set(StudyForm.model_fields),
}
"""Names that each door takes: of arguments, of keys of a study file, of fields of a request."""

OPTIONS = {
    "parameters": "what is chosen",
    "table": "rows to choose from, in place of parameters",
    "require": "conditions between parameters",
    "baseline": "the setting in use now",
    "goals": "several objectives",
    "constraints": "bounds on further numbers",
    "safe": "trials meet the constraints, too",
    "context": "what is given, not chosen",
    "fidelity": "cheap looks, and runs that are stopped",
    "drift": "the best setting may change",
    "possible": "least and largest value there can be",
    "tracked": "further numbers, kept and shown",
    "noise": "of each number, if it is known",
    "repeats": "runs of a trial",
    "budget": "evaluations and seconds",
    "stop": "when it is precise enough",
    "confirm": "the recommendation is measured again",
    "workers": "trials at a time",
    "storage": "survives crashes",
}
NAMES = {
    "parameters": {"space", "parameters"},
    "table": {"space", "candidates", "table"},
    "goals": {"goals", "objectives"},
    "budget": {"budget", "evaluations"},
    "tracked": {"measures"},
}
"""Names of an option, where it is called otherwise somewhere; `parameters` and `table` are one argument in Python."""

BY_VALUE = {
    "tracked": {"Optimizer": "`tell` a dict", "minimize": "return a dict", "noregret serve": "`readings` of a tell"},
    "noise": {"minimize": "return a `Reading`", "noregret serve": "`noise`, `readings`"},
    "repeats": {"Optimizer": "`tell` again", "noregret serve": "`readings` of a tell"},
    "stop": {"Optimizer": "`done()`", "noregret serve": "`/done`"},
    "workers": {"Optimizer": "`ask(count)`", "noregret serve": "any number of clients"},
    "storage": {"Optimizer": "`save`, `load`", "noregret serve": "always"},
    "table": {"noregret serve": "`table`"},
}
"""What is not an option but said with each value, or by a method."""

REASONS = {
    ("context", "minimize"): "`f` cannot say what is given before it is asked for: use an Optimizer",
    ("context", "noregret tune"): "A command cannot either",
    ("noise", "noregret tune"): "Commands print numbers: `repeats` measures their noise; imports have it",
    ("confirm", "Optimizer"): "The caller decides what is measured: `expect(best().params)`",
    ("confirm", "noregret serve"): "The clients decide what is measured",
    ("budget", "noregret serve"): "The clients decide when to stop",
}


def cell(option: str, door: str) -> str:
    """What a door has for an option; empty if it has nothing."""
    said = BY_VALUE.get(option, {}).get(door)
    found = DOORS[door] & NAMES.get(option, {option})
    return said or (f"`{min(found)}`" if found else "")


def table() -> str:
    """The table, and the reasons for its empty cells."""
    rows = [["", *DOORS], ["---"] * (len(DOORS) + 1)]
    notes: list[str] = []
    for option, what in OPTIONS.items():
        cells = []
        for door in DOORS:
            found = cell(option, door)
            if not found:
                notes.append(REASONS[option, door])
                found = f"— ({len(notes)})"
            cells.append(found)
        rows.append([f"**{option}**: {what}", *cells])
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([*lines, "", *(f"{i}. {note}." for i, note in enumerate(notes, 1))])


def page() -> str:
    """The whole page."""
    return f"""# Doors and options

One Optimizer is behind four doors: a class to [ask and tell](optimizer.md), a [Python function](minimize.md),
a [command](tune.md), and a [service](serve.md). This table says how each of them calls an option. It is made from
the code (`python docs/doors.py`).

{table()}

Adapters have what their hosts have: Optuna's sampler takes Optuna's spaces, directions and constraints; scikit-learn's
search, Hydra's sweeper, Katib's service and Kernel Tuner's strategy have one objective, parameters and a budget.

## What a trial has

A trial has params and named numbers. An objective, a constraint and the cost are names that the problem knows; all
others are tracked: kept, shown and exported, and no part of any decision. Each number may have a noise and a bound,
and several runs. The same fields are in every output: `opt.trials`, `to_frame`, `noregret export` as CSV, JSON and
Parquet, `GET /studies/NAME/trials`, `noregret tune --json`, `noregret report --json`, the table on the page, and
[trackers](trackers.md). A CSV brings them back by `noregret import`. JSON of a trial is one object everywhere:

```json
{{"id": 3, "params": {{"x": 0.5}}, "state": "done", "value": 3.1, "failed": false,
 "readings": {{"value": {{"value": 3.1}}, "energy": {{"value": 12.0, "noise": 0.5}}}},
 "started": "2026-03-04T05:06:07", "seconds": 0.5}}
```
"""


if __name__ == "__main__":
    PAGE.write_text(page())
