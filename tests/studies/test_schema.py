"""One description of a problem: forms, keywords and the JSON Schema of study files are made from it."""

import copy
import functools
import inspect
import json
import math
import operator
import random
import subprocess
import sys
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest

import noregret
from noregret.cli import main
from noregret.optimizer import Check, Float, Optimizer, Options, ProblemDescription
from noregret.service.client import Connection
from noregret.service.models import StudyForm
from noregret.studies.study import checks, reading
from noregret.studies.study.forms import StudyFile, form_of, schema
from noregret.studies.study.parameters import problem_form, problem_in
from noregret.studies.study.reading import load
from noregret.studies.study.study import StudyError

ROOT = Path(__file__).resolve().parents[2]
FILES = [*sorted(ROOT.glob("examples/*/study.toml")), ROOT / "src/noregret/studies/study/template.toml"]
LINE = {"x": Float(0, 1)}


def validator():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def test_the_schema_of_the_documentation_is_the_one_that_the_command_prints(capsys):
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "study.schema.json").read_text("utf-8")


def test_every_key_of_a_study_file_is_described_and_no_value_is_null():
    found = schema()
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for name, its in found["properties"].items():
        assert "description" in its or "$ref" in its, name
    assert '"null"' not in json.dumps(found)
    assert found["properties"]["workers"] == {
        "default": 1,
        "description": "Commands at a time",
        "maximum": 256,
        "minimum": 1,
        "type": "integer",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_study_files_meet_the_schema(path):
    assert list(validator().iter_errors(tomllib.loads(path.read_text("utf-8")))) == []


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("gaol = 'minimize'", []),
        ("goal = 'up'", ["goal"]),
        ("workers = 0", ["workers"]),
        ("timeout = '60 s'", ["timeout"]),
        ("result = {xml = 'a'}", ["result"]),
        ("repeats = [1]", None),
        ("parameters.y = {type = 'int', low = 1}", ["parameters", "y"]),
        ("flags.a = ['']", ["flags", "a"]),
        ("stop = {within = '1%', by = 'luck'}", ["stop", "by"]),
    ],
)
def test_editors_find_what_reading_refuses(tmp_path, line, place):
    text = f"command = 'a {{x}}'\nbudget.seconds = 3\nparameters.x.type = 'bool'\n{line}\n"
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(ValueError, match=line.split()[0].split(".")[0]):
        load(tmp_path / "s.toml")
    errors = [list(error.path) for error in validator().iter_errors(tomllib.loads(text))]
    assert place is None or place in errors, errors


def test_init_names_the_schema_and_writes_it_beside_the_file(tmp_path, capsys):
    for words in ([], ["--", "./bench", "{n:1..64}"]):
        path = tmp_path / f"s{len(words)}.toml"
        assert main(["init", str(path), *words]) == 0
        assert path.read_text().startswith("#:schema ./.noregret/study.schema.json\n# ")
    assert json.loads((tmp_path / ".noregret" / "study.schema.json").read_text()) == schema()
    assert (tmp_path / ".noregret" / ".gitignore").read_text() == "*\n"


def test_every_option_of_a_problem_is_an_argument_of_the_optimizer_and_of_each_door():
    options = {its.name for its in fields(ProblemDescription)} - {"space", "tracked"}
    assert set(Options.__annotations__) == options - {"goal", "context"}
    for taker in (Optimizer, Connection.create):
        assert options <= set(inspect.signature(taker).parameters)
    for taker in (noregret.minimize, noregret.maximize):
        assert set(Options.__annotations__) <= set(inspect.signature(taker).parameters)
    assert options <= set(StudyForm.model_fields)
    assert options - {"context", "safe", "goals"} <= set(StudyFile.model_fields)


@dataclass(frozen=True, kw_only=True)
class Patient(ProblemDescription):
    patience: Annotated[int | None, checks.whole(1, 9), "Trials to wait"] = None


def test_an_option_that_is_added_to_the_description_is_a_key_and_a_field():
    form = form_of(Patient, besides=[its.name for its in fields(ProblemDescription)])
    assert form.model_json_schema()["properties"]["patience"]["description"] == "Trials to wait"
    assert form(patience=3).patience == 3
    with pytest.raises(ValueError, match="must be a whole number from 1 to 9, got 0"):
        form(patience=0)


def test_a_problem_comes_back_from_json():
    options = {"goals": {"a": "minimize", "b": "maximize"}, "constraints": {"m": ("<=", 3.0), "n": (">=", 1.0)}}
    problem = ProblemDescription(
        space=LINE, context=LINE, require=("x <= 0.5",), drift="auto", baseline={"x": 0.5}, **options
    )
    again = problem_in(json.loads(json.dumps(problem_form(problem))))
    assert again.for_optimizer() == problem.for_optimizer() | {"require": ["x <= 0.5"]}


@pytest.mark.parametrize("tune", [noregret.minimize, noregret.maximize])
def test_an_unknown_keyword_is_refused_by_name(tune):
    with pytest.raises(TypeError, match=rf"{tune.__name__}\(\) got an unexpected keyword argument 'evaluatons'"):
        tune(lambda x: x, LINE, evaluatons=4)


WITHOUT_PYDANTIC = """
import sys
sys.modules["pydantic"] = None
from noregret import Float, minimize
from noregret.cli import main
print(main(["tune", "s.toml"]))
print(len(minimize(lambda x: x, {"x": Float(0, 1)}, evaluations=3, storage="s.db").optimizer.trials))
print(main(["versus", "true", "true", "--budget", "1"]))
"""


@pytest.mark.slow
def test_functions_and_versus_need_no_pydantic_and_study_files_say_what_to_install(tmp_path):
    (tmp_path / "s.toml").write_text("")
    command = [sys.executable, "-c", WITHOUT_PYDANTIC]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    refused, trials, *_, undecided = done.stdout.splitlines()
    assert (refused, trials, undecided) == ("2", "3", "4"), done.stderr
    assert "pip install '.[tune]'" in done.stderr


def test_a_check_says_what_may_be_given_by_its_type_or_by_a_schema():
    @dataclass
    class Sizes:
        plain: Annotated[int, Check(int), "A number"] = 1
        either: Annotated[int, Check(int, {"type": ["integer", "string"]}), "A number or text"] = 1

    found = form_of(Sizes).model_json_schema()["properties"]
    assert (found["plain"]["type"], found["either"]["type"]) == ("integer", ["integer", "string"])


WHOLE = """
command = ["./m", "--rate={rate}", "{size}", "{mode}", "{flags}", ["{deep}"]]
result = {json = "score"}
env = {A = "{size}"}
repeats = [1, 3]
track = {mlflow = true}
budget = {evaluations = 50, seconds = 60}
failure = {ok_exit_codes = [0, 3], output = "ERROR"}
stop = {within = "1%"}
baseline = {rate = 0.5, size = 3, mode = "fast", deep = 3, v = true}
require = [{expression = "rate < 2"}]
flags = {o = ["", "-o"]}
[parameters]
rate = {type = "float", low = 0.001, high = 1, log = true}
size = {type = "int", low = 1, high = 64}
mode = {type = "choice", choices = ["fast", 2, true]}
deep = {type = "int", low = 1, high = 9, step = 2, default = 3, when = {mode = "fast"}}
v = {type = "flag", on = "-v"}
[constraints]
m = {result = "max-rss", max = 3}
n = {result = {regex = "a(.)"}, min = 3, safe = 0.9}
[measures]
e = {result = "last-number", unit = "J"}
"""
ODD = [0, -1, 1.5, math.nan, math.inf, 10**400, "", "a", "x\0", "2%", True, [], [1], [[]], [{}], {}, {"a": 1}]
ODD += [{"type": "int"}, {"type": []}, {"json": 3}, ["", "-a"], [{"expression": 1}], {"result": "wall-time", "max": 1}]
NAMES = ["result", "when", "env", "flags", "parameters", "low", "default", "a b", "", "value", "cost", "int", "[key]"]


def keys(table, above=()):
    for key, value in table.items() if isinstance(table, dict) else ():
        yield (*above, key)
        yield from keys(value, (*above, key))


@pytest.mark.parametrize("seed", range(8))
def test_any_file_is_a_study_or_refused_in_our_words(tmp_path, monkeypatch, seed):
    rng, refused = random.Random(seed), []
    for _ in range(40):
        content = tomllib.loads(WHOLE)
        for _ in range(rng.choice([1, 1, 2, 5])):
            *above, key = rng.choice(list(keys(content)))
            table = functools.reduce(operator.getitem, above, content)
            value = table.pop(key) if rng.random() < 0.5 else rng.choice(ODD)
            if rng.random() < 0.7:
                table[rng.choice([key, *NAMES])] = copy.deepcopy(value)
        monkeypatch.setattr(reading, "_parsed", lambda path, content=content: ("", content))
        try:
            load(tmp_path / "s.toml").identity()
        except StudyError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert not any("Input should" in said for said in refused)
