"""``noregret init``: a study file from a command line, with and without a terminal."""

import os
import pty
import sys

import pytest

from noregret.cli import main
from noregret.optimizer import Choice, Float, Int
from noregret.studies.study.draft import draft
from noregret.studies.study.reading import load
from noregret.studies.study.results import JsonField, LastNumber
from noregret.studies.study.study import StudyError

COMMAND = ["./bench", "--threads", "{threads:1..64:log}", "-r{rate:1e-3..1:log}", "{cache:0..1}", "{mode:a|b c|d}"]


def test_a_command_becomes_a_study_file(tmp_path, capsys):
    path = tmp_path / "s.toml"
    assert main(["init", str(path), "--", *COMMAND, "{{x}}", "{threads}", "{size:8,16,32}", 'a"\\ü']) == 0
    said = capsys.readouterr().out
    assert 'with goal "minimize", result "last-number", 50 evaluations, no baseline' in said
    study = load(path)
    assert study.space == {
        "threads": Int(1, 64, log=True),
        "rate": Float(0.001, 1.0, log=True),
        "cache": Int(0, 1),
        "mode": Choice(["a", "b c", "d"]),
        "size": Choice([8, 16, 32]),
    }
    params = {"threads": 4, "rate": 0.5, "cache": 1, "mode": "b c", "size": 8}
    words = ["./bench", "--threads", "4", "-r0.5", "1", "b c", "{x}", "4", "8", 'a"\\ü']
    assert study.arguments(params) == words
    assert (study.goal, study.result, study.budget.rounds, study.baseline) == ("minimize", LastNumber(), 50, None)


def test_the_file_is_optional(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--", "./bench", "{x:0..1}"]) == 0
    assert load(tmp_path / "study.toml").space == {"x": Int(0, 1)}
    assert main(["init", "--", "./bench", "{x:0..1}"]) == 2  # it exists


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["./bench"], "no parameter: write {threads:1..64}"),
        (["./bench", "{x}"], "{x} has no values: write {x:1..64}"),
        (["./bench", "{x:1..a}"], "{x:1..a}: the ends of a range must be numbers"),
        (["./bench", "{x:1..inf}"], "the ends of a range must be numbers"),
        (["./bench", "{x:a}"], "{x:a}: x must have a range or at least two values"),
        (["./bench", "{x:1..2}", "{x:1..3}"], "x has values already: write {x} the second time"),
        (["./bench", "{x:5..2}"], "low"),
        (["./bench {x:1..2} | tail -1"], "no shell runs it"),
    ],
)
def test_what_cannot_be_a_study_is_refused_and_nothing_is_written(tmp_path, capsys, words, message):
    assert main(["init", str(tmp_path / "s.toml"), "--", *words]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_options_take_the_place_of_questions(tmp_path, capsys):
    path = tmp_path / "s.toml"
    options = ["--goal", "maximize", "--result", "json=tps", "--evaluations", "12", "--baseline", "n=4 mode=b"]
    options += ["--prepare", "./restore {n}"]
    assert main(["init", *options, str(path), "--", "./bench", "{n:1..64}", "{mode:a|b}"]) == 0
    assert 'goal "maximize", result {json = "tps"}, 12 evaluations, a baseline' in capsys.readouterr().out
    study = load(path)
    assert (study.goal, study.result, study.budget.rounds) == ("maximize", JsonField("tps"), 12)
    assert (study.baseline, study.prepare) == ({"n": 4, "mode": "b"}, ("./restore", "{n}"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--goal", "fastest", "--", "./bench", "{n:1..64}"], "--goal: must be one of 'minimize', 'maximize'"),
        (["--baseline", "n=99", "--", "./bench", "{n:1..64}"], "--baseline: n must be from 1 to 64, got 99"),
        (["--goal", "maximize"], "--goal is for the study of a command: write -- and the command after it"),
    ],
)
def test_options_that_cannot_be_used_are_refused_by_name(tmp_path, capsys, arguments, message):
    place = arguments.index("--") if "--" in arguments else len(arguments)
    assert main(["init", *arguments[:place], str(tmp_path / "s.toml"), *arguments[place:]]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_command_in_quotes_is_split_into_words(tmp_path):
    assert main(["init", str(tmp_path / "s.toml"), "--", "./bench --n {n:1..64} 'a b'"]) == 0
    assert load(tmp_path / "s.toml").arguments({"n": 3}) == ["./bench", "--n", "3", "a b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["init", "./bench", "{n:1..64}"], "write -- before the command"),
        (["init", "--gaol", "maximize"], "usage: noregret init"),
    ],
)
def test_wrong_arguments_end_with_what_to_write(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_words_that_are_there_or_not_are_a_flag(tmp_path):
    path = tmp_path / "s.toml"
    words = ["gcc", "{unroll:|-funroll-loops}", "{slp:-fno-tree-slp-vectorize|}"]
    assert main(["init", "--baseline", "unroll=false slp=true", str(path), "--", *words]) == 0
    study = load(path)
    assert study.baseline == {"unroll": False, "slp": True}
    assert study.arguments(study.baseline) == ["gcc"]
    assert study.arguments({"unroll": True, "slp": False}) == ["gcc", "-funroll-loops", "-fno-tree-slp-vectorize"]
    assert main(["init", "--baseline", "unroll=on slp=true", str(tmp_path / "t.toml"), "--", *words]) == 2
    assert main(["init", "--baseline", "unroll=false", "slp=true", str(tmp_path / "u.toml"), "--", *words]) == 0
    assert load(tmp_path / "u.toml").baseline == {"unroll": False, "slp": True}


def test_values_may_come_after_the_first_use():
    assert draft(["a", "{x}", "{x:1..2}"]).tables == {"x": {"type": "int", "low": 1, "high": 2}}
    with pytest.raises(StudyError, match="at least two values"):
        draft(["a", "{x:}"])


@pytest.mark.slow
def test_on_a_terminal_it_asks_until_the_answers_are_good(tmp_path):
    path = tmp_path / "s.toml"
    answers = ["0..1", "fastest", "maximize", '{json = "a"}', "x", "12", "threads=3", "threads=3 x=1"]
    process, terminal = pty.fork()
    if not process:
        command = [sys.executable, "-m", "noregret", "init", path, "--", "./bench", "{threads:1..64}", "{x}"]
        os.execv(sys.executable, list(map(str, command)))
    seen = b""
    while True:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
        if seen.endswith(b": ") and answers:
            os.write(terminal, f"{answers.pop(0)}\n".encode())
    assert os.waitpid(process, 0)[1] == 0, seen.decode()
    study = load(path)
    assert (study.goal, study.result, study.budget.rounds) == ("maximize", JsonField("a"), 12)
    assert study.baseline == {"threads": 3, "x": 1}
    for said in ("must be one of 'minimize', 'maximize'", "must be a finite number", "got none of x"):
        assert said in seen.decode()
