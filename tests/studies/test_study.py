"""Study files: their content, and errors with line and key."""

import re
from pathlib import Path

import pytest

from noregret.cli import main
from noregret.optimizer import Choice, Float, Int
from noregret.studies.learning.suggest import replay_of
from noregret.studies.study.reading import line_of, load
from noregret.studies.study.results import JsonField, LastNumber, NoResult, Pattern, WallTime, usable
from noregret.studies.study.study import Budget, FailureRules, StudyError

GOOD = """\
goal = "maximize"
command = ["./measure", "--rate={rate}", "{size}", "{mode}", "{{literal}}"]
result = {json = "score"}
storage = "sqlite:///elsewhere.db"
workers = 3
timeout = 12.5

[budget]
evaluations = 50
seconds = 60

[failure]
ok_exit_codes = [0, 3]
output = "ERROR"
retries = 2

[parameters.rate]
type = "float"
low = 0.001
high = 1
log = true

[parameters.size]
type = "int"
low = 1
high = 64

[parameters.mode]
type = "choice"
choices = ["fast", 2, true]
"""


def written(folder, text):
    path = folder / "my.toml"
    path.write_text(text)
    return path


def test_a_study_file_is_read(tmp_path):
    study = load(written(tmp_path, GOOD))
    assert (study.name, study.goal, study.workers, study.timeout) == ("my", "maximize", 3, 12.5)
    assert study.result == JsonField("score")
    assert study.budget == Budget(50, 60.0)
    assert study.failure == FailureRules((0, 3), "ERROR", 10, 2)
    assert study.space == {"rate": Float(0.001, 1.0, True), "size": Int(1, 64), "mode": Choice(["fast", 2, True])}


def test_the_deprecated_name_of_evaluations_works_and_warns(tmp_path, capsys):
    path = written(tmp_path, GOOD.replace("evaluations", "rounds"))
    assert load(path).budget == Budget(50, 60.0)
    said = f"noregret: {path}:9: [budget] rounds: is deprecated and goes in noregret 2.0: write evaluations\n"
    assert capsys.readouterr().err == said
    load(written(tmp_path, GOOD))
    assert capsys.readouterr().err == ""


def test_defaults_are_the_plain_ones(tmp_path):
    study = load(
        written(
            tmp_path, 'command = ["m", "{x}"]\nbudget.evaluations = 3\n[parameters.x]\ntype = "int"\nlow = 0\nhigh = 1'
        )
    )
    assert (study.goal, study.result, study.storage) == ("minimize", LastNumber(), "sqlite:///.noregret/my.db")
    assert (study.workers, study.seed) == (1, 0)


def test_values_become_words_of_the_command_and_nothing_else(tmp_path):
    study = load(written(tmp_path, GOOD))
    nasty = {"rate": 0.1, "size": 7, "mode": "; rm -rf / $(reboot) `x` 'y' \"z\" {size} \n"}
    assert study.arguments(nasty) == ["./measure", "--rate=0.1", "7", nasty["mode"], "{literal}"]


def test_choices_that_differ_on_the_command_line_are_different(tmp_path):
    study = load(written(tmp_path, GOOD.replace('["fast", 2, true]', '[1, 2.5, "a", true]')))
    words = [study.arguments({"rate": 0.1, "size": 7, "mode": mode})[3] for mode in study.space["mode"].options]
    assert words == ["1", "2.5", "a", "true"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('goal = "maximize"', 'gaol = "maximize"', r"my.toml:1: gaol: unknown key: did you mean 'goal'"),
        ("storage =", "storge =", r"my.toml:4: storge: unknown key: did you mean 'storage'"),
        (
            "storage =",
            "place =",
            r"my.toml:4: place: unknown key: known are .* stop, storage, timeout, track, warmup, workers",
        ),
        (
            'goal = "maximize"',
            'goal = "up"',
            r"my.toml:1: goal: must be 'minimize', 'maximize', or a quantile to minimize such as 'p99', got 'up'",
        ),
        ("workers = 3", "workers = 0", r"my.toml:5: workers: must be a whole number from 1 to 256, got 0"),
        ("workers = 3", 'workers = "3"', r"my.toml:5: workers: must be a whole number"),
        ("workers = 3", "workers = true", r"my.toml:5: workers: must be a whole number"),
        ("timeout = 12.5", "timeout = -1", r"my.toml:6: timeout: must be a number of seconds above 0, got -1"),
        ("timeout = 12.5", "timeout = nan", r"my.toml:6: timeout: must be a finite number"),
        (
            "evaluations = 50",
            "evaluation = 50",
            r"my.toml:9: \[budget\] evaluation: unknown key: did you mean 'evaluations'",
        ),
        ("evaluations = 50\nseconds = 60\n", "", r"my.toml:8: \[budget\] must say when to stop"),
        ("[budget]", "[budjet]", r"my.toml:8: budjet: unknown table: did you mean \[budget\]\?$"),
        ("low = 0.001", "low = 10", r"my.toml:17: \[parameters.rate\] low must not be above high, got 10.0 and 1.0"),
        ("low = 0.001", "low = 0", r"my.toml:17: \[parameters.rate\] low must be above 0 on a log scale"),
        (
            "low = 0.001",
            'low = "a"',
            r"my.toml:19: \[parameters.rate\] low: must be a finite number, got 'a': write it without",
        ),
        ("low = 0.001\n", "", r"my.toml:17: \[parameters.rate\] 'low' is missing"),
        ("low = 1\n", "low = 1.5\n", r"my.toml:25: \[parameters.size\] low: must be a whole number"),
        ('type = "int"', 'type = "integer"', r"my.toml:24: \[parameters.size\] type: must be one of 'float', 'int'"),
        ("high = 64", "high = 64\nunit = 2", r"my.toml:27: \[parameters.size\] unit: unknown key: known are"),
        (
            "high = 64",
            "high = 64\nstep = 2",
            r"my.toml:23: \[parameters.size\] high must be low plus a whole number of",
        ),
        ("high = 64", "high = 64\nstep = 0", r"my.toml:27: \[parameters.size\] step: must be a whole number from 1"),
        ("high = 64", "high = 64\nwhen = 'mode'", r"my.toml:27: \[parameters.size\] when: must be a table, got 'mode'"),
        (
            "high = 64",
            "high = 64\nwhen = {mod = 2}",
            r"\[parameters\] parameter 'size' has a condition on 'mod', which",
        ),
        (
            "high = 64",
            "high = 64\nwhen = {mode = 3}",
            r"\[parameters\] parameter 'size' has a condition on a value that",
        ),
        ("high = 64", "high = 64\nwhen = {size = 3}", r"\[parameters\] the conditions of parameters .* circle"),
        (
            "high = 64",
            "high = 64\nwhen = {mode = 2}",
            r"my.toml:2: command: parameter 'size' does not always apply: put",
        ),
        ("high = 64", "high = 64\ndefault = 65", r"my.toml:27: \[parameters.size\] default: size must be from 1 to 64"),
        (
            "[failure]",
            "[stop]\nwithin = 0\n[failure]",
            r"my.toml:13: \[stop\] within: must be a number above 0, or a part",
        ),
        ("[failure]", "[stop]\nwithin = '2'\n[failure]", r"\[stop\] within: must be a number above 0, or a part"),
        ("[failure]", "[stop]\nwithin = 1\nconfidence = 95\n[failure]", r"confidence: must be a probability between"),
        (
            "[failure]",
            "[stop]\nwithin = 1\nby = 'luck'\n[failure]",
            r"by: must be one of 'model', 'certificate', got 'luck'",
        ),
        ("[failure]", "[stop]\nconfidence = 0.9\n[failure]", r"my.toml:12: \[stop\] 'within' is missing"),
        ("[failure]", "[baseline]\nrate = 0.5\nsize = 3\n[failure]", r"my.toml:12: \[baseline\] .*'mode' is missing"),
        ("[failure]", "[baseline]\nrat = 0.5\n[failure]", r"my.toml:13: \[baseline\] rat: unknown key: parameters are"),
        (
            "[failure]",
            "[baseline]\nrate = 5.0\nsize = 3\nmode = 2\n[failure]",
            r"my.toml:12: \[baseline\] rate must be from 0.001 to 1.0, got 5.0. It must be a setting of this study",
        ),
        ("[failure]", "[constraints.m]\nmax = 3\n[failure]", r"my.toml:12: \[constraints.m\] 'result' is missing"),
        (
            "[failure]",
            "[constraints.m]\nresult = 'last-number'\n[failure]",
            r"\[constraints.m\] must have either max or min",
        ),
        (
            "[failure]",
            "[constraints.m]\nresult = 'wall-time'\nmax = 3\nmin = 2\n[failure]",
            r"must have either max or min: for both, write two constraints with the same result",
        ),
        (
            "[failure]",
            "[constraints.a]\nresult = 'wall-time'\nmax = 3\n[constraints.b]\nresult = 'wall-time'\nmin = 4\n[failure]",
            r"my.toml:12: \[constraints\] a: contradicts b: the same number cannot be at most 3 and at least 4",
        ),
        ("[failure]", "[constraints.'a b']\nmax = 3\n[failure]", r"a constraint's name must be a word"),
        ('["fast", 2, true]', '["fast", "fast"]', r"my.toml:30: \[parameters.mode\] choices: .* 'fast' comes twice"),
        ('["fast", 2, true]', '[2, "2"]', r"choices: must differ from each other on the command line"),
        (
            '["fast", 2, true]',
            "[1, 1.0]",
            r"my.toml:28: \[parameters.mode\] options of a Choice must differ, got 1.0 twice",
        ),
        ('["fast", 2, true]', "[]", r"choices: must be a list"),
        ('["fast", 2, true]', '["a\\u0000b"]', r"choices: .* zero bytes"),
        ("{size}", "{sise}", r"my.toml:2: command: \{sise\} is the placeholder of no parameter: .* rate, size, mode"),
        (', "{size}"', "", r"my.toml:2: command: parameter 'size' is not in it and can have no effect"),
        ('"./measure", ', '"", ', r"my.toml:2: command: must start with the program"),
        ('["./measure",', '"./measure", [', r"is not valid TOML: .*line 2"),
        ('{json = "score"}', '{xml = "score"}', r"my.toml:3: result: must be 'last-number', 'wall-time'"),
        ('{json = "score"}', '{regex = "("}', r"my.toml:3: result: must be a regular expression"),
        ("retries = 2", "retries = -1", r"my.toml:15: \[failure\] retries: must be a whole number from 0 to 1000"),
        ("ok_exit_codes = [0, 3]", "ok_exit_codes = []", r"my.toml:13: \[failure\] ok_exit_codes: must be a list"),
        ("[parameters.rate]", "[parameters.'a b']", r"\[parameters.a b\] a parameter's name must be a word"),
        ("[failure]", "candidates = 'x.csv'\n[failure]", r"budget"),
        (
            "low = 0.001",
            f"low = -{10**400}",
            r"my.toml:19: \[parameters.rate\] low: must be a finite number, got -1000",
        ),
        ("low = 0.001", f"low = {'1' * 5000}", r"is not valid TOML: .*digits"),
        ("low = 0.001", f"low = {10**400}", r"my.toml:19: \[parameters.rate\] low: must be a finite number, got 10"),
        ("timeout = 12.5", f"timeout = {10**400}", r"my.toml:6: timeout: must be a finite number"),
        ("timeout = 12.5", f"drift = {10**400}", r"my.toml:6: drift: must be 'auto' or a half-life"),
        ("timeout = 12.5", "a." * 20_000 + "a = 1", r"my.toml:6: a key must have at most 100 parts"),
        ("timeout = 12.5", "[" + '"a b" . ' * 20_000 + "a]", r"my.toml:6: a key must have at most 100 parts"),
        ("timeout = 12.5", "#" * 2**20, r"my.toml must have at most 1,048,576 characters"),
        ("low = 0.001", "lwo = 0.001", r"my.toml:19: \[parameters.rate\] lwo: unknown key: did you mean 'low'"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_key(tmp_path, capsys, old, new, message):
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(StudyError, match=message):
        load(path)
    assert main(["tune", str(path)]) == 2
    assert capsys.readouterr().err.startswith("noregret: ")
    assert [file.name for file in tmp_path.iterdir()] == ["my.toml"]


def test_all_problems_of_a_file_are_listed_with_their_lines(tmp_path):
    bad = """\
rsult = "wall-time"
command = "./measure {x} {sise} {mode}"
[budgets]
evaluations = 10
[stop]
wthin = "2%"
[parameters.x]
type = "int"
lwo = 1
hihg = 2
[parameters.unused]
type = "bool"
[parameters.mode]
type = "coice"
[flags]
tracer = ["", ""]
"""
    path = written(tmp_path, bad)
    with pytest.raises(StudyError) as caught:
        load(path)
    first, *rest = str(caught.value).replace(f"{path}", "my.toml").split("\n  ")
    assert first == "my.toml has 10 problems:"
    assert [line.partition(": must")[0].partition(": parameters are")[0] for line in rest] == [
        "my.toml:1: rsult: unknown key: did you mean 'result'?",
        "my.toml:2: command: it has no place for the flags (tracer): add the word {flags} where they belong",
        "my.toml:2: command: parameter 'unused' is not in it and can have no effect: add {unused}",
        "my.toml:2: command: {sise} is the placeholder of no parameter",
        "my.toml:3: budgets: unknown table: did you mean [budget]?",
        "my.toml:6: [stop] wthin: unknown key: did you mean 'within'?",
        "my.toml:9: [parameters.x] lwo: unknown key: did you mean 'low'?",
        "my.toml:10: [parameters.x] hihg: unknown key: did you mean 'high'?",
        "my.toml:14: [parameters.mode] type",
        "my.toml:16: [flags] tracer",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "flags = 3",
        "parameters = 3",
        "baseline = 3",
        "budget = []",
        "constraints = {a = 3}",
        "parameters.x = 3",
        "stop = [{within = 2}]",
        "env = 3",
    ],
)
def test_any_value_in_place_of_a_table_is_a_problem(tmp_path, content):
    good = ["budget.seconds = 3", "parameters.x.type = 'bool'"]
    lines = [line for line in good if content.split()[0].split(".")[0] not in line]
    with pytest.raises(StudyError, match=r"must be a table, got (3|\[)"):
        load(written(tmp_path, "\n".join(["command = 'a {x}'", *lines, content])))


FLAGS = """\
command = "cc {inline} {flags} 'a file.c' -DN={n}{n-1}"
budget.evaluations = 9
[parameters.n]
type = "int"
low = 1
high = 3
[parameters.inline]
type = "flag"
on = ["--param", "inline=9"]
off = "-fno-inline"
[parameters.debug]
type = "bool"
[parameters.vector]
type = "flag"
on = "-fvector --cost='a b'"
when = {debug = true}
[flags]
unroll-loops = ["", "-funroll-loops"]
if-conversion = ["-fno-if-conversion", ""]
"""
DEBUG = ("-DN={n}", "-DN={n} {debug}")


def test_flags_add_words_or_none(tmp_path):
    study = load(written(tmp_path, FLAGS.replace(*DEBUG)))
    assert study.budget == Budget(9)
    off = {"n": 2, "inline": False, "debug": False, "unroll-loops": False, "if-conversion": True}
    assert study.arguments(off) == ["cc", "-fno-inline", "a file.c", "-DN=2", "false{n-1}"]
    on = {"n": 2, "inline": True, "debug": True, "vector": True, "unroll-loops": True, "if-conversion": False}
    flags = ["-fvector", "--cost=a b", "-funroll-loops", "-fno-if-conversion"]
    assert study.arguments(on) == ["cc", "--param", "inline=9", *flags, "a file.c", "-DN=2", "true{n-1}"]
    assert study.defaults == {"unroll-loops": False, "if-conversion": True, "vector": False}
    assert study.space["debug"] == study.space["inline"] == Choice([False, True])


ELSEWHERE = """\
command = "./a.out"
prepare = ["sh", "-c", "cc -O2 {flags} a.c"]
env = {CFLAGS = "-O2 {flags}", N = "{n}", D = 3, V = "{depth}"}
[budget]
seconds = 5
[parameters.n]
type = "int"
low = 1
high = 3
[parameters.depth]
type = "int"
low = 1
high = 3
when = {n = 3}
[flags]
a = ["", "-x 'a b'"]
b = ["", "-y"]
"""


def test_parameters_may_be_in_the_environment_or_the_preparation(tmp_path):
    study = load(written(tmp_path, ELSEWHERE))
    params = {"n": 2, "a": True, "b": True}
    assert study.arguments(params) == ["./a.out"]
    assert study.preparation(params) == ["sh", "-c", "cc -O2 -x 'a b' -y a.c"]
    assert study.environment(params) == {"CFLAGS": "-O2 -x 'a b' -y", "N": "2", "D": "3"}
    assert study.environment({**params, "n": 3, "depth": 1})["V"] == "1"
    assert study.shell_line({**params, "a": False}) == (
        "CFLAGS='-O2 -y' N=2 D=3 sh -c 'cc -O2 -y a.c' && CFLAGS='-O2 -y' N=2 D=3 ./a.out"
    )


ONLY_FLAGS = """\
command = "cc {flags}"
[budget]
evaluations = 9
[flags]
a = ["", "-a"]
b = ["-no-b", ""]
"""


def test_flags_that_a_baseline_does_not_name_add_no_words(tmp_path):
    study = load(written(tmp_path, ONLY_FLAGS))
    assert study.baseline == {"a": False, "b": True}
    assert study.arguments(study.baseline) == ["cc"]
    assert load(written(tmp_path, ONLY_FLAGS + "[baseline]\na = true\n")).baseline == {"a": True, "b": True}
    assert load(written(tmp_path, ONLY_FLAGS.replace('""]', '"-b"]'))).baseline is None
    mixed = ONLY_FLAGS.replace("{flags}", "{flags} {x}") + "[parameters.x]\ntype = 'bool'\n"
    assert load(written(tmp_path, mixed)).baseline is None
    assert load(written(tmp_path, mixed + "[baseline]\nx = true\n")).baseline == {"x": True, "a": False, "b": True}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{flags}", "", r"my.toml:1: command: it has no place for the flags \(a, b\): add the word \{flags\}"),
        ('["", "-a"]', '"-a"', r"my.toml:5: \[flags\] a: must be \[off, on\], such as"),
        ("a =", "'a b' =", r"a flag's name must be a word such as unroll-loops, got 'a b'"),
        ("a =", "flags =", r"my.toml:5: \[flags\] flags: no parameter can have this name"),
        ("[flags]", "[parameters.a]\ntype = 'bool'\n[flags]", r"\[flags\] a: is a parameter too"),
        ("[flags]", "[parameters.c]\ntype = 'flag'\n[flags]", r"my.toml:4: \[parameters.c\] 'on' is missing"),
        ("[flags]", "[parameters.c]\ntype = 'flag'\non = ''\n[flags]", r"on: must differ from off"),
        ("[flags]", "[parameters.c]\ntype = 'flag'\non = 3\n[flags]", r"on: must be words such as '-funroll-loops'"),
        ("evaluations = 9", "evaluations = 9\nrounds = 9", r"my.toml:4: \[budget\] rounds: is the deprecated name of"),
        ("cc {flags}", "cc {flags} && ./a.out", r"my.toml:1: command: no shell runs it, so '&&' would be a word"),
        ("cc {flags}", "cc {flags} 'x", r"my.toml:1: command: must be words as in a shell, .*No closing quotation"),
        ("cc {flags}", "", r"my.toml:1: command: must start with the program"),
        ("[budget]", "env = {'a=b' = 'x'}\n[budget]", r"my.toml:2: env: must have names of variables"),
        ("[budget]", "env = {N = ['x']}\n[budget]", r"my.toml:2: env: N must be text"),
        ("[budget]", "env = {N = '{n}'}\n[budget]", r"my.toml:2: env: \{n\} is the placeholder of no parameter"),
        ("[budget]", "prepare = 'make {n}'\n[budget]", r"my.toml:2: prepare: \{n\} is the placeholder of no"),
        ("[budget]", "repeats = 0\n[budget]", r"my.toml:2: repeats: must be a whole number from 1 to 1000"),
        (
            "[budget]",
            "repeats = [3, 2]\n[budget]",
            r"my.toml:2: repeats: must be a number of runs, or the fewest and the",
        ),
        ("[budget]", "warmup = -1\n[budget]", r"my.toml:2: warmup: must be a whole number from 0 to 1000"),
    ],
)
def test_what_is_wrong_with_flags_and_runs(tmp_path, old, new, message):
    assert old in ONLY_FLAGS
    with pytest.raises(StudyError, match=message):
        load(written(tmp_path, ONLY_FLAGS.replace(old, new, 1)))


def test_the_study_file_of_the_docs_can_be_read(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "tune.md").read_text()
    study = load(written(tmp_path, re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]))
    words = ["./measure", "--size", "8", "safe", "--depth", "3", "--verify", "all"]
    assert study.arguments({**study.baseline, "verify": True}) == words


def test_quoted_operators_of_shells_are_words(tmp_path):
    study = load(written(tmp_path, ONLY_FLAGS.replace("cc {flags}", "sh -c 'cc {flags} && ./a.out > b' '|'")))
    assert study.arguments({"a": True, "b": False}) == ["sh", "-c", "cc -a -no-b && ./a.out > b", "|"]


def test_a_plain_study_is_the_one_it_was_before_these_keys(tmp_path):
    identity = load(written(tmp_path, GOOD)).identity()
    parameters = ["parameters.rate", "parameters.size", "parameters.mode"]
    assert list(identity) == ["goal", "command", "result", "seed", *parameters]


@pytest.mark.parametrize("quote", ['"""', "'''"])
def test_lines_inside_of_texts_are_not_taken_for_keys(quote):
    text = f"command = ['python', {quote}\nlow = 3\n[budget]\n{quote}]  # {quote}\n[budget]\nlow = 3\n"
    assert line_of(text, ["budget", "low"]) == 6
    assert line_of(text, ["budget"]) == 5


def test_keys_with_dots_have_a_line():
    assert line_of("goal = 'a'\nparameters.x.low = 3\n", ["parameters", "x", "low"]) == 2
    assert line_of("goal = 'a'\nparameters.x.low = 3\n", ["parameters", "x"]) == 2


def test_missing_files_and_bytes_that_are_not_text(tmp_path):
    with pytest.raises(StudyError, match=r"does not exist: 'noregret init .*none.toml'"):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="cannot be read"):
        load(tmp_path / "bad.toml")
    with pytest.raises(StudyError, match="cannot be read"):
        load(tmp_path)


TABLE = 'command = ["m", "{machine}", "{nodes}"]\ncandidates = "t.csv"\n[budget]\nevaluations = 3\n'


def test_numbers_that_no_float_holds_are_words_in_a_table(tmp_path):
    (tmp_path / "t.csv").write_text(f"machine,nodes\na,{10**400}\nb,2\n")
    assert load(written(tmp_path, TABLE)).space[1] == {"machine": "b", "nodes": "2"}


def test_a_table_of_candidates(tmp_path):
    (tmp_path / "t.csv").write_text("machine,nodes,price\nsmall,4,0.5\nlarge,2,2\n")
    study = load(written(tmp_path, TABLE))
    assert study.space == [
        {"machine": "small", "nodes": 4, "price": 0.5},
        {"machine": "large", "nodes": 2, "price": 2.0},
    ]
    assert study.arguments(study.space[1]) == ["m", "large", "2"]


def test_a_column_with_underscores_is_text_as_the_command_gets_it(tmp_path):
    (tmp_path / "t.csv").write_text("machine,nodes\na,1_000\nb,2\n")
    study = load(written(tmp_path, TABLE))
    assert study.arguments(study.space[0]) == ["m", "a", "1_000"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "my.toml:2: candidates: .*t.csv cannot be read"),
        ("", "must have a header and at least one row, got 0 lines"),
        ("machine,nodes\n", "at least one row, got 1 lines"),
        ("machine,nodes\na\n", "row 1 must have 2 fields, got 1"),
        ("machine,nodes\na,\n", "row 1 has an empty field"),
        ("machine,machine\na,b\n", "must be different words"),
        ("machine,no des\na,b\n", "must be different words such as cache_size, got 'no des'"),
        ("machine,node\na,1\n", r"my.toml:1: command: \{nodes\} is the placeholder of no parameter"),
    ],
)
def test_tables_that_are_wrong(tmp_path, content, message):
    if content is not None:
        (tmp_path / "t.csv").write_text(content)
    with pytest.raises(StudyError, match=message):
        load(written(tmp_path, TABLE))


class Printed:
    seconds = 1.5

    def __init__(self, stdout):
        self.stdout = stdout


@pytest.mark.parametrize(
    ("result", "stdout", "value"),
    [
        (LastNumber(), "took 12.7ms\n", 12.7),
        (LastNumber(), "1 2 3\nscore: -4.5e-3 at p99\n", -0.0045),
        (LastNumber(), "v2 done in .5", 0.5),
        (LastNumber(), "7.\n", 7.0),
        (LastNumber(), "12, done", 12.0),
        (LastNumber(), "1, 2,", 2.0),
        (LastNumber(), "loss=0.25", 0.25),
        (LastNumber(), "p99:12.5", 12.5),
        (LastNumber(), '{"time":12.5,"unit":"s"}', 12.5),
        (LastNumber(), "(0.5)", 0.5),
        (LastNumber(), "it is 12%.", 12.0),
        (LastNumber(), "3.5s, 20MB/s", 20.0),
        (LastNumber(), "took 3 of 250 s on x86_64", 250.0),
        (LastNumber(), "0 250", 250.0),
        (LastNumber(), "1.5 250", 250.0),
        (LastNumber(), "1  250", 250.0),
        (LastNumber(), "7\n250", 250.0),
        (LastNumber(), "12 1000", 1000.0),
        (LastNumber(), "a=1'b=2", 2.0),
        (LastNumber(), "['5','6']", 6.0),
        (LastNumber(), "5 − 3", 3.0),
        (WallTime(), "nothing", 1.5),
        (Pattern(r"(\d+)\."), "at 3.25", 3.0),
        (Pattern(r"score: (\S+) \w+"), "score: 2.5 0x1F", 2.5),
        (JsonField("a"), '{"a": 3}', 3.0),
        (JsonField("a.b"), 'log line\n{"a": {"b": 0.25}}\nbye', 0.25),
        (JsonField("a"), '{\n "a": 3\n}', 3.0),
        (Pattern(r"score: (\S+)"), "score: 1\nscore: 2 end", 2.0),
        (Pattern(r"(\w+): (?P<value>\S+)"), "score: 2.5", 2.5),
        (Pattern(r"\d+$"), "a 1\nb 22\n", 22.0),
    ],
)
def test_results_are_read(result, stdout, value):
    assert result.read(Printed(stdout)) == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "stdout", "message"),
    [
        (LastNumber(), "", "no number on standard output, which was empty"),
        (LastNumber(), "hello world", "no number on standard output, which was 'hello world'"),
        (LastNumber(), "loss 3.5\nloss nan", "must be a finite number .*, got nan"),
        (LastNumber(), "-inf", "must be a finite number .*, got -inf"),
        (LastNumber(), "1e300", r"between -1e100 and 1e100, got 1e300"),
        (LastNumber(), "total 1,234.5", "got '1,234.5': print it without commas"),
        *[
            (result, f"score: {written}", f"must be a number, got {re.escape(repr(written))}: print it as plainly as")
            for written in ("0x1F", "0b11", "−5", "–5", "1_000", "1'000", "1’000", "1\u202f000", "1'000.5", "1.5D+03")
            for result in (LastNumber(), Pattern(r"score: .*?([0-9.]+)"), Pattern(r"score: (.*)"))
        ],
        *[
            (
                LastNumber(),
                f"a\n{written}\nb",
                f"the last number is not clear in {re.escape(repr(written))}: print it as",
            )
            for written in ("1 000", "score: -12 345 678.5", "1.5.2", "1/2", "5:30", "12abc", "1-2", "done at 12:30")
        ],
        *[
            (LastNumber(), written, "is not clear in")
            for written in (
                "2024-01-05",
                "2024-01-05T12:30",
                "model-7.bin",
                "/tmp/7",
                "0m1.5s",
                "12k",
                "3..4",
                "<5",
                "5e",
            )
        ],
        (LastNumber(), "3,14", "got '3,14': print it without commas"),
        (LastNumber(), "1.234,5", "got '1.234,5': print it without commas"),
        (JsonField("a"), "3", "no JSON object on standard output"),
        (JsonField("a"), '{"b": 1}', "no field 'a' in the JSON on standard output, which was '{\"b\": 1}'"),
        (JsonField("a"), '{"a": "1"}', "field 'a' must be a number, got"),
        (JsonField("a"), '{"a": true}', "must be a number, got true"),
        (JsonField("a"), '{"a": NaN}', "finite number"),
        (JsonField("a"), '{"a": 1' + "0" * 400 + "}", "finite number"),
        (Pattern("x(.*)"), "y", "does not match"),
        (Pattern("x(.*)"), "xy", "must be a number, got 'y'"),
    ],
)
def test_results_that_are_none(result, stdout, message):
    with pytest.raises(NoResult, match=message):
        result.read(Printed(stdout))


def test_usable_takes_the_largest_there_may_be():
    assert usable("1e100") == 1e100


def test_init_writes_a_file_that_can_be_read_and_spares_what_is_there(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "new.toml"]) == 0
    study = load(Path("new.toml"))
    assert set(study.space) == {"rate", "size", "mode"}
    assert "noregret tune new.toml" in Path("new.toml").read_text()
    assert capsys.readouterr().out == "wrote new.toml; to try it:  noregret tune new.toml\n"
    assert main(["init", "my study.toml"]) == 0
    assert capsys.readouterr().out.endswith("noregret tune 'my study.toml'\n")
    Path("new.toml").write_text("mine")
    assert main(["init", "new.toml"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("new.toml").read_text() == "mine"
    assert main(["init", "no/folder.toml"]) == 2


SAFE = """
[baseline]
rate = 0.5
size = 8
mode = "fast"

[constraints.errors]
result = "wall-time"
max = 0.01
safe = 0.99

[constraints.memory]
result = "max-rss"
max = 512
"""


def test_safe_constraints_of_a_study_file_are_read(tmp_path):
    study = load(written(tmp_path, GOOD + SAFE))
    assert study.safe == {"errors": 0.99}
    assert study.confirm == 0, "what is recommended may be less safe than a trial"
    assert load(written(tmp_path, "confirm = 2\n" + GOOD + SAFE)).confirm == 2
    plain = load(written(tmp_path, GOOD + SAFE.replace("safe = 0.99", "")))
    assert (plain.safe, plain.confirm) == (None, 3)
    assert plain.identity() == study.identity(), "earlier observations say the same"
    assert replay_of(study)([]).ask().params == study.baseline


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "safe = 0.99",
            "safe = 2",
            r"\[constraints.errors\] safe: must be a probability from 0.5 to below 1, .* got 2",
        ),
        (SAFE[: SAFE.index("[constraints")], "", r"safe needs a \[baseline\] that meets the constraints"),
        ("goal =", "drift = 'auto'\ngoal =", r"my.toml:1: drift: constraints with safe must not change"),
    ],
)
def test_bad_safe_constraints_of_a_study_file_are_refused(tmp_path, old, new, message):
    with pytest.raises(StudyError, match=message):
        load(written(tmp_path, (GOOD + SAFE).replace(old, new, 1)))


TIED = (
    GOOD
    + """
[[require]]
expression = "rate * size <= 16"

[[require]]
expression = "mode != 'fast' or size > 2"
"""
)


def test_conditions_of_a_study_file_are_read(tmp_path):
    study = load(written(tmp_path, TIED))
    assert study.require == ("rate * size <= 16", "mode != 'fast' or size > 2")
    assert study.settings.violated({"rate": 1.0, "size": 64, "mode": 2}) == "rate * size <= 16"
    assert study.identity()["require"] == list(study.require)
    assert "require" not in load(written(tmp_path, GOOD)).identity(), "studies of earlier versions have no such key"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rate * size", "rate * sise", r"my.toml:32: require: 'rate \* sise <= 16' names 'sise', which is none of"),
        ("<= 16", "<=", "my.toml:32: require: 'rate .* is not an expression"),
        ("<= 16", "<= -1", r"my.toml:32: require: no setting meets require 'rate \* size <= -1'"),
        ("expression = ", "expresion = ", "my.toml:32: require: must be .* tables with expression = "),
        ('"rate * size <= 16"', "3", "my.toml:32: require: must be text, got 3"),
        (
            "[[require]]",
            '[baseline]\nrate = 1\nsize = 64\nmode = "fast"\n[[require]]',
            r"my.toml:32: \[baseline\] violates .*require.* 'rate \* size <= 16': change one of them, or leave",
        ),
    ],
)
def test_bad_conditions_of_a_study_file_are_refused(tmp_path, old, new, message):
    with pytest.raises(StudyError, match=message):
        load(written(tmp_path, TIED.replace(old, new, 1)))
