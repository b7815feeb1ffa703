"""``noregret versus``: verdicts and exit codes, what is shown and saved, failures, interruption."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.studies.test_cli import on_a_terminal
from tests.test_imports import imported_by

from noregret.cli import main

NUMBERS = ["--result", "last-number"]


def versus(capsys, *args):
    """Exit code, object and errors of a comparison of printed numbers."""
    code = main(["versus", *NUMBERS, "--json", *map(str, args)])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out.strip() else None, err


@pytest.mark.parametrize(
    ("one", "other", "options", "verdict", "code"),
    [
        (2, 1, [], "better", 0),
        (1, 2, [], "worse", 1),
        (1, 2, ["--goal", "maximize"], "better", 0),
        (1000, 1001, ["--within", "1%"], "equal", 3),
        (5, 5, ["--budget", "8", "--within", "1%"], "undecided", 4),  # ties say nothing about what is below a tick
        (0, 1, ["--goal", "maximize"], "better", 0),
        (0, 1, ["--bounds", "0", "1"], "worse", 1),
        (0, 0.5, ["--within", "1"], "equal", 3),  # not relative, as a value is 0
    ],
)
def test_each_verdict_has_its_exit_code(capsys, one, other, options, verdict, code):
    found = versus(capsys, f"echo {one}", f"echo {other}", *options)
    assert (found[0], found[1]["verdict"]) == (code, verdict)


def test_the_object_has_all_numbers(capsys):
    code, found, _ = versus(capsys, "echo 4", "echo 5", "--within", "1%", "--seed", "3")
    assert code == 1
    assert found["pairs"] == 7
    assert [found[name] for name in ("estimate", "lower", "upper")] == pytest.approx([0.25] * 3)
    assert found["intervals"][1] == pytest.approx({"estimate": 0.25, "lower": 0.25, "upper": 0.25})
    expected = {
        "verdict": "worse",
        "relative": True,
        "level": 0.95,
        "within": "1%",
        "quantity": "median change",
        "bounds": None,
        "warnings": [],
        "commands": ["echo 4", "echo 5"],
        "medians": [4.0, 5.0],
        "runs": [7, 7],
        "failures": [0, 0],
        "best": "echo 4",
        "goal": "minimize",
        "result": "last-number",
        "baseline": None,
        "stopped": "decided",
    }
    assert {name: found[name] for name in expected} == expected
    assert found["summary"].startswith("B is worse than A: 25% higher (25% to 25%)\n  A  4  echo 4\n")


def test_before_there_is_an_interval_it_is_null(capsys):
    code, found, err = versus(capsys, "echo 4", "echo 5", "--budget", "2")
    assert (code, found["stopped"], found["lower"], found["upper"]) == (4, "pairs", None, None)
    assert "--budget 2: a verdict takes 7 pairs at least. Raise it" in err
    assert "25% higher (no interval before 7 pairs)" in found["summary"]
    assert "The budget of 2 pairs is spent. Raise --budget to decide" in found["summary"]


@pytest.mark.slow
def test_of_three_commands_the_best_wins_and_all_are_compared_with_the_first(capsys):
    code, found, _ = versus(capsys, "echo 4", "echo 5", "echo 3")
    assert (code, found["verdict"], found["best"]) == (0, "better", "echo 3")
    assert [each["estimate"] for each in found["intervals"]] == pytest.approx([0, 0.25, -0.25])
    assert found["summary"].startswith("C is the best of 3 commands\n")
    code, found, _ = versus(capsys, "echo 3", "echo 5", "echo 4")
    assert (code, found["best"]) == (1, "echo 3")
    code, found, _ = versus(capsys, "echo 3", "echo 5", "echo 3", "--budget", 12)  # B is beaten, and not run any more
    assert (code, found["stopped"], found["runs"]) == (4, "pairs", [12, 9, 12])


@pytest.mark.slow
def test_lines_come_at_doubling_numbers_of_pairs(capsys):
    assert main(["versus", "echo 4", "echo 4", *NUMBERS, "--budget", "10"]) == 4
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said[:4]] == ["1 pair", "2 pairs", "4 pairs", "8 pairs"]
    assert said[3] == "8 pairs: 0% lower (no interval yet)"  # ticks of an unknown size
    assert said[4].startswith("Undecided: ")


@pytest.mark.slow
def test_times_are_in_words(capsys):
    assert main(["versus", "sleep 0.2", "sleep 0.01", "--gate"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^Passed: B is not worse than A: [\d.]+% less time \([\d.]+% to [\d.]+%\)$", said, re.MULTILINE)
    assert re.search(r"^  A  2\d\d(\.\d)? ms +sleep 0.2$", said, re.MULTILINE)


def test_warm_up_and_prepare_are_run_and_not_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count = "echo {0} >> {0}; wc -l < {0}"
    code, found, _ = versus(
        capsys, count.format("a"), count.format("b"), "--shell", "--warmup", 2, "--prepare", "echo >> p", "--budget", 3
    )
    assert (code, found["runs"], found["medians"]) == (4, [3, 3], [4.0, 4.0])  # of 3, 4 and 5
    assert (tmp_path / "p").read_text().count("\n") == 10


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--result", "json=t.p"], 3),
        (["--result", '{json = "t.p"}'], 3),
        pytest.param(["--result", r"regex=n=(\d+)"], 7, marks=pytest.mark.slow),
    ],
)
def test_results_are_read_as_in_studies(capsys, words, shown):
    line = """echo '{"n=7": 1, "t": {"p": 3}}'"""
    code = main(["versus", line, line, *words, "--within", "1%", "--json", "--budget", "2"])
    assert (code, json.loads(capsys.readouterr().out)["medians"]) == (4, [shown, shown])


def test_measurements_are_saved_and_become_a_baseline(tmp_path, capsys):
    file = tmp_path / "old.csv"
    assert versus(capsys, "echo 4", "echo 5", "--save", file)[0] == 1
    assert file.read_text().splitlines() == ["echo 4,echo 5", *["4.0,5.0"] * 7]
    again = tmp_path / "new.csv"
    code, found, _ = versus(capsys, "echo 5", "echo 3", "--baseline", file, "--save", again)
    assert (code, found["runs"], found["medians"]) == (0, [0, 7], [5.0, 3.0])
    assert "A was measured before" in found["summary"]
    assert "drift of the machine since then is not cancelled" in found["summary"]
    code, found, _ = versus(capsys, "echo 3", "--baseline", again)  # the only column
    assert (code, found["stopped"], found["runs"]) == (4, "baseline", [0, 7])
    assert "All old measurements are used. Measure A again to decide." in found["summary"]
    code, _, err = versus(capsys, "echo 3", "--baseline", file)
    assert code == 2
    assert "has several columns: give A and B, where A is one of 'echo 4', 'echo 5'" in err


def test_a_baseline_without_a_header_is_read_and_a_short_one_is_remarked(tmp_path, capsys):
    (tmp_path / "old.csv").write_text("1.5\n2.5\n")
    code, found, err = versus(capsys, "echo 1", "--baseline", tmp_path / "old.csv")
    assert (code, found["runs"], found["medians"]) == (4, [0, 2], [2.0, 1.0])
    assert "has 2 measurements, and a verdict takes 7 at least" in err


@pytest.mark.parametrize(
    ("words", "numbers", "code", "passed"),
    [
        (["--within", "10%"], (100, 120), 1, False),
        (["--within", "10%"], (100, 105), 0, True),
        ([], (100, 105), 1, False),
        ([], (100, 100), 0, True),
        (["--within", "10%", "--goal", "maximize"], (100, 120), 0, True),
        (["--within", "10%", "--goal", "maximize"], (120, 100), 1, False),
        (["--within", "8"], (0, 10), 1, False),
    ],
)
def test_a_gate_fails_only_beyond_the_margin(capsys, words, numbers, code, passed):
    one, other = numbers
    found = versus(capsys, f"echo {one}", f"echo {other}", "--gate", "--budget", 20, *words)
    assert (found[0], found[1]["passed"]) == (code, passed)
    assert found[1]["summary"].startswith("Passed" if passed else "Failed")


def test_runs_that_are_mostly_the_start_of_a_process_are_named(capsys):
    said = "most of such a short time is the start of a process"
    for words, is_short in ((("true", "true"), True), (("true", "sleep 0.1"), False)):
        summary = versus(capsys, *words, "--result", "wall-time", "--budget", 2)[1]["summary"]
        assert (said in summary) == is_short
    assert said not in versus(capsys, "echo 1", "echo 1", "--budget", 2)[1]["summary"]


@pytest.mark.parametrize(
    ("words", "numbers", "line"),
    [
        (["--within", "10%"], (100, 105), "changes for the worse above 5% would have been seen"),
        (["--within", "10%", "--goal", "maximize"], (100, 95), "changes for the worse above 5% would have been seen"),
        (["--within", "10%"], (100, 90), None),
        (
            ["--within", "2%", "--budget", 3],
            (100, 100),
            "changes for the worse of any size may have been missed: there",
        ),
        (["--within", "10%"], (100, 120), None),
    ],
)
def test_a_pass_says_what_it_would_have_seen(capsys, words, numbers, line):
    one, other = numbers
    _, found, _ = versus(capsys, f"echo {one}", f"echo {other}", "--gate", "--budget", 20, *words)
    assert (line is None) == ("worse above" not in found["summary"] and "missed" not in found["summary"])
    assert f"\n{line or ''}" in found["summary"]
    assert "four times" not in found["summary"]


@pytest.mark.slow
def test_a_gate_continues_until_the_margin_is_decided(tmp_path, capsys, monkeypatch):
    """B is 5% to 15% worse: that is soon known, and that the median is beyond 8% takes longer."""
    monkeypatch.chdir(tmp_path)
    noisy = "echo >> n; n=$(wc -l < n); echo $((105 + (n * 7) % 11))"
    code, found, _ = versus(capsys, "echo 100", noisy, "--shell")
    assert (code, found["pairs"]) == (1, 7)
    code, found, _ = versus(capsys, "echo 100", noisy, "--shell", "--gate", "--within", "8%")
    assert (code, found["passed"]) == (1, False)
    assert found["pairs"] > 10
    assert found["lower"] > 0.08


def test_a_command_that_fails_ends_it_with_its_last_lines(capsys):
    code, found, err = versus(capsys, "echo 1", "sh -c 'echo no table >&2; exit 3'")
    assert (code, found) == (2, None)
    assert "has failed 3 times in a row, the last time: exit code 3\n    | no table\n" in err


@pytest.mark.slow
def test_a_run_that_fails_now_and_then_loses_its_pair(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flaky = "if mkdir once 2> /dev/null; then echo first >&2; exit 1; else echo 3; fi"
    code, found, err = versus(capsys, "echo 4", flaky, "--shell", "--budget", 14)
    assert (code, found["failures"], found["runs"], found["pairs"]) == (4, [0, 1], [14, 14], 14)
    assert (found["lower"], found["upper"]) == pytest.approx((-0.25, -0.25))
    assert found["summary"].startswith("Undecided, as B has failed more often than A: 25% lower")
    assert "1 of 14 failed" in found["summary"]
    assert "has failed, which loses its pair if the other run ends: exit code 1\n    | first\n" in err


@pytest.mark.slow
def test_a_command_that_keeps_failing_after_a_success_ends_with_a_verdict(tmp_path, capsys, monkeypatch):
    """Three failures in a row ended it with exit code 2 and no result before."""
    monkeypatch.chdir(tmp_path)
    flaky = "echo >> n; test $(wc -l < n) -lt 3 && echo 3"
    code, found, _ = versus(capsys, "echo 4", flaky, "--shell", "--gate")
    assert (code, found["verdict"], found["passed"]) == (1, "worse", False)
    assert found["summary"].startswith("Failed: B fails more often than A: ")
    assert (found["estimate"], found["upper"]) == (None, None)


@pytest.mark.slow
def test_when_all_runs_fail_it_ends(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flaky = "echo >> {0}; test $(wc -l < {0}) -lt 3 && echo 3"
    code, found, _ = versus(capsys, flaky.format("a"), flaky.format("b"), "--shell")
    assert (code, found["stopped"], found["failures"]) == (4, "failures", [10, 10])
    assert "Fix the commands to decide." in found["summary"]
    assert "nan" not in found["summary"]
    assert "inf" not in found["summary"]


@pytest.mark.slow
def test_a_hung_run_ends_with_the_budget_and_has_not_failed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hangs = "echo >> n; if test $(wc -l < n) -gt 9; then sleep 61.7; else echo 3; fi"
    start = time.monotonic()
    code, found, _ = versus(capsys, "echo 3", hangs, "--shell", "--budget", "2s")
    assert time.monotonic() - start < 30
    assert (code, found["stopped"], found["pairs"], found["failures"]) == (4, "time", 9, [0, 0])
    code, found, err = versus(capsys, "echo 3", "sleep 61.7", "--budget", "1s")
    assert (code, found) == (2, None)
    assert "no pair of runs has ended within the budget of 1 s (B was running): raise --budget, or fix B" in err


@pytest.mark.slow
def test_pass_or_fail_is_compared_by_means(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    half = "echo >> n; echo $(( $(wc -l < n) % 2 ))"
    code, found, _ = versus(capsys, half, "echo 1", "--shell", "--goal", "maximize")
    assert (code, found["quantity"], found["bounds"], found["relative"]) == (0, "difference of means", None, False)
    assert "points more runs pass (" in found["summary"]
    assert "  A  0.5" in found["summary"]
    assert "\nmeans of " in found["summary"]
    code, found, _ = versus(capsys, "echo 0.25", "echo 0.5", "--bounds", "0", "1")
    assert (code, found["bounds"]) == (1, [0.0, 1.0])
    assert "mean 0.250 higher (" in found["summary"]
    code, _, err = versus(capsys, "echo 0.25", "echo 2", "--bounds", "0", "1")
    assert code == 2
    assert "must be within the bounds, 0 to 1, got 2: change --bounds" in err


def test_a_run_that_takes_too_long_has_failed(capsys):
    code, _, err = versus(capsys, "echo 1", "sleep 61.3", "--timeout", "0.1s")
    assert code == 2
    assert "the last time: still running after 0.1 s (timeout)" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["true"], "versus compares commands: give two or more, each in quotes, or one and --baseline FILE.csv"),
        (["true", "cat x | wc"], "B: no shell runs it, so '|' would be a word: add --shell to run it by a shell"),
        (["true", "no-such-program"], "versus: command: 'no-such-program' does not exist, or may not be run"),
        (["true", "'"], "B: must be words as in a shell"),
        (["true", "true", "--within", "x"], "--within: must be a number above 0, or a part of A such as 1%, got 'x'"),
        (["true", "true", "--within=-1%"], "--within: must be a number above 0"),
        (["true", "true", "--confidence", "95"], "--confidence: must be a probability between 0 and 1"),
        (["true", "true", "--budget", "5x"], "--budget: must be a time such as 60s or 5m, or a number of pairs"),
        (["true", "true", "--budget", "0"], "--budget: must be a whole number from 1"),
        (["true", "true", "--timeout", "0"], "--timeout: must be a time such as 90s, 5m or 1h, got '0'"),
        (["true", "true", "--result", "wall"], "--result: must be 'last-number', 'wall-time'"),
        (["true", "true", "--result", "{json"], "--result: cannot be read"),
        (["true", "true", "--bounds", "1", "0"], "--bounds: must be the smallest and the largest possible result"),
        (["true", "true", "--within", "1"], "--within: 1 is 100% of A here: write 1%"),
        (["--baseline", "absent.csv", "true"], "--baseline absent.csv: cannot be read: No such file"),
        (["true", "true", "true", "--gate"], "--gate is about two commands, got 3"),
        (["true", "true", "true", "--baseline", "x.csv"], "--baseline has the measurements of A"),
        (["true", "true", "--save", "/no/such/folder/x.csv"], "--save /no/such/folder/x.csv: its folder does not"),
    ],
)
def test_wrong_arguments_are_refused_with_what_to_do(tmp_path, capsys, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    assert main(["versus", *args]) == 2
    out, err = capsys.readouterr()
    assert (out, message in err, err.count("\n")) == ("", True, 1), err


def test_braces_reach_the_command_as_they_are(capsys):
    assert versus(capsys, "echo {a} {{b}} 2", "echo {a} {{b}} 1", "--within", "1%")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_prints_what_is_known(tmp_path, number):
    command = [sys.executable, "-m", "noregret", "versus", "echo 4", "echo 4", *NUMBERS, "--save", "r.csv"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for line in process.stdout:
        if line.startswith("8 pairs"):
            break
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Undecided: 0% lower (no interval yet)" in out
    assert out.endswith("Stopped before the end.\n")
    assert len((tmp_path / "r.csv").read_text().splitlines()) > 8


@pytest.mark.slow
def test_on_a_terminal_the_interval_is_drawn():
    code, seen = on_a_terminal("versus", "sleep 0.15", "sleep 0.01", "--within", "5%", "--warmup", "0")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert code == 0
    assert re.search(r"\d pairs, \S+ m?s of 5 min 0 s", text)
    assert "B against A: " in text
    assert "B is better than A: " in text.splitlines()[-4]


@pytest.mark.slow
def test_the_core_dependencies_are_enough():
    program = "import sys; sys.modules['rich'] = None; sys.stdout.isatty = lambda: True; "
    program += "from noregret.cli import main; assert main() == 0"
    modules = imported_by(program, "versus", "echo 2", "echo 1", *NUMBERS)
    assert "noregret.studies.versus" in modules
    assert not {"optuna", "sqlalchemy", "rich.live", "matplotlib", "scipy.stats"} & modules
