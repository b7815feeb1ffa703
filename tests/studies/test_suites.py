"""``noregret versus`` of runs with many named numbers: table, exit codes, filters, readers, and what is refused."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from noregret.cli import main

BENCH = """
import json, random, sys
speeds, only = json.loads(sys.argv[1]), [name for name in " ".join(sys.argv[2:]).split(",") if name]
with open("ran", "a") as file:
    file.write(f"{','.join(only)}\\n")
print("benchmarks:")
print(json.dumps({name: speed and speed * random.lognormvariate(0, 0.005) for name, speed in speeds.items()
                  if not only or name in only}))
"""


@pytest.fixture
def suite(tmp_path, capsys, monkeypatch):
    """Exit code, output and errors of a comparison of two suites with these numbers."""
    (tmp_path / "bench.py").write_text(BENCH)
    monkeypatch.chdir(tmp_path)

    def run(a, b, *options, names="", result=("--result", "json")):
        commands = (f"{sys.executable} -S bench.py {shlex.quote(json.dumps(each))} {names}" for each in (a, b))
        code = main(["versus", *commands, *result, "--seed", "1", *map(str, options)])
        return code, *capsys.readouterr()

    return run


SAME = {"read": 1.0, "sort": 2.0, "write": 3.0}


@pytest.mark.parametrize(
    ("sort", "read", "options", "code"),
    [
        (3.0, 1.01, ["--within", "20%"], 1),
        (3.0, 0.5, ["--within", "20%"], 1),
        (1.0, 1.01, ["--within", "20%"], 0),
        (3.0, 1.01, ["--within", "20%", "--goal", "maximize"], 0),
        (2.01, 1.01, ["--within", "20%"], 3),
        (2.01, 1.01, ["--within", "1%", "--budget", 6], 4),
        (3.0, 0.5, ["--within", "20%", "--gate"], 1),
        (1.0, 1.01, ["--within", "20%", "--gate"], 0),
        (2.01, 1.01, ["--within", "20%", "--gate"], 0),
        (2.01, 1.01, ["--within", "1%", "--budget", 6, "--gate"], 0),
    ],
)
def test_exit_codes(capsys, sort, read, options, code):
    lines = [f"echo '{json.dumps(each)}'" for each in ({"sort": 2.0, "read": 1.0}, {"sort": sort, "read": read})]
    assert main(["versus", *lines, "--result", "json", *map(str, options)]) == code


@pytest.mark.slow
def test_the_table_has_the_worst_first_and_says_what_holds(suite):
    code, out, _ = suite(SAME, {"read": 1.0, "sort": 2.2, "write": 2.4}, "--within", "2%")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "1 pair: none of 3 names is worse, none is better, 3 undecided"
    assert lines[-7] == "1 of 3 names is worse, 1 is better, 1 equal within 2%"
    assert [line.split()[0] for line in lines[-6:-3]] == ["worse", "equal", "better"]
    assert [line.split()[-1] for line in lines[-6:-3]] == ["sort", "read", "write"]
    assert "higher (" in lines[-6]
    assert lines[-3] == (
        "Of the names called worse or better at most 5% are wrong in expectation, at any stopping time and however the "
        "names depend on each other."
    )
    assert lines[-2].startswith("Their intervals hold at 96.6667% each")
    assert " pairs in random order, " in lines[-1]


@pytest.mark.slow
def test_the_object_has_a_row_for_each_name(suite):
    code, out, _ = suite(SAME | {"old": 1.0}, SAME | {"sort": 3.0, "new": 5.0, "old": None}, "--budget", 12, "--json")
    found = json.loads(out)
    assert (code, found["verdict"], found["stopped"], found["pairs"]) == (1, "worse", "pairs", 12)
    assert found["left_out"] == {"A": ["new"], "B": ["old"]}
    assert found["warnings"] == ["no result in A, not compared: new", "no result in B, not compared: old"]
    assert found["names"][0]["name"] == "sort"
    row = found["names"][0]
    assert (row["verdict"], row["relative"], row["failures"]) == ("worse", True, [0, 0])
    assert 0.45 < row["lower"] <= row["estimate"] <= row["upper"] < 0.55
    assert (row["evalue"] >= 60, row["level"], row["pairs"] < 12) == (True, pytest.approx(1 - 0.05 / 3), True)
    assert row["medians"] == pytest.approx([2.0, 3.0], rel=0.02)
    assert {row["verdict"] for row in found["names"][1:]} == {"undecided"}
    assert found["summary"].startswith("1 of 3 names is worse, none is better, 2 undecided\n  worse ")
    assert "The budget of 12 pairs is spent." in found["summary"]
    assert (found["result"], found["runs"], found["within"]) == ("json", [12, 12], None)


@pytest.mark.slow
def test_names_that_are_decided_are_not_run_again(suite, tmp_path):
    code, _, _ = suite(SAME, SAME | {"sort": 3.0}, "--budget", 14, names="{names}")
    ran = (tmp_path / "ran").read_text().splitlines()
    assert (code, ran[0], ran[1], ran[2]) == (1, "", "", "read,sort,write")
    assert ran[-1] == ran[-2] == "read,write"
    assert len(ran) == 28


@pytest.mark.slow
def test_with_a_shell_names_are_quoted(suite, tmp_path):
    names = {"a b": 1.0, "$(touch x)": 1.0, "it's": 1.0}
    code, out, _ = suite(names, names, "--budget", 3, "--shell", "--json", names="{names}")
    assert (code, json.loads(out)["failures"]) == (4, [0, 0])
    assert (tmp_path / "ran").read_text().splitlines()[-1] == "a b,$(touch x),it's"
    assert not (tmp_path / "x").exists()
    code, _, err = suite(names, names, "--shell", names="'{names}'")
    assert (code, "with --shell {names} and {out} are quoted already: write no quotes around them" in err) == (2, True)


@pytest.mark.slow
def test_a_tool_writes_its_results_to_a_file(tmp_path, capsys, monkeypatch):
    """The file is another one in each run: what an earlier run has written does not count."""
    monkeypatch.chdir(tmp_path)
    tool = """
import json, os, sys
assert not os.path.exists(sys.argv[1])
if not os.path.exists("broken"):
    row = {"name": "BM", "real_time": float(sys.argv[2]), "time_unit": "ms"}
    json.dump({"benchmarks": [row]}, open(sys.argv[1], "w"))
"""
    (tmp_path / "tool.py").write_text(tool)
    commands = [f"{sys.executable} -S tool.py {{out}} {each}" for each in (1, 2)]
    assert main(["versus", *commands, "--reader", "google-benchmark"]) == 1
    assert "worse  100% more time (100% to 100%)  1 ms -> 2 ms  BM" in capsys.readouterr().out
    printed = json.dumps({"benchmarks": [{"name": "BM", "real_time": 2, "time_unit": "ms"}]})
    lines = [commands[0], f"echo {shlex.quote(printed)}"]
    assert main(["versus", *lines, "--reader", "google-benchmark"]) == 1  # a file of A, standard output of B
    capsys.readouterr()
    (tmp_path / "broken").touch()
    assert main(["versus", *commands, "--reader", "google-benchmark"]) == 2
    assert "the command has not written its results to {out}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "--save", "x.csv"], "--save is about one number of each run, and a suite has many: drop it"),
        (["a", "b", "--baseline", "x.csv"], "--baseline is about one number of each run"),
        (["a", "b", "--items", "x.txt"], "--items is about one number of each run"),
        (["a", "b", "--goal", "p99"], "--goal: 'p99' is a quantile of samples: give a JSON field"),
        (["a", "b", "c"], "a suite compares two commands, A and B, each in quotes, got 3"),
        (["a", "b", "--within", "x"], "--within: must be a number above 0"),
        (["a {names}", "b", "--reader", "hyperfine"], "hyperfine runs all of its commands: drop {names}"),
        (["a", "b", "--reader", "go", "--result", "max-rss"], "--reader go reads many numbers of a run: drop --result"),
    ],
)
def test_what_a_suite_does_not_do_is_refused(capsys, words, message):
    result = [] if "--reader" in words else ["--result", "json"]
    assert main(["versus", *words, *result]) == 2
    assert message in capsys.readouterr().err


def test_output_without_numbers_is_an_error(capsys):
    assert main(["versus", "echo 1", "echo 1", "--result", "json"]) == 2
    assert "has failed 3 times in a row, the last time: no output of json that can be read" in capsys.readouterr().err


@pytest.mark.slow
def test_suites_without_a_common_name_are_an_error(suite):
    code, _, err = suite({"a": 1.0}, {"b": 1.0})
    assert code == 2
    assert err.endswith("A and B must have names in common, got 'a' against 'b': let both run the same\n")


@pytest.mark.slow
def test_a_run_that_fails_loses_all_of_its_pairs(suite, tmp_path):
    (tmp_path / "fails").write_text("import sys\nsys.exit(1)")
    code, out, _ = suite(
        SAME, SAME, "--budget", 3, "--json", "--prepare", "sh -c 'test $(wc -l < ran || echo 0) -lt 5'"
    )
    found = json.loads(out)
    assert (code, sum(found["failures"])) == (4, 1)
    assert {sum(row["failures"]) for row in found["names"]} == {1}


@pytest.mark.slow
def test_ctrl_c_prints_what_is_known(tmp_path):
    (tmp_path / "bench.py").write_text(BENCH)
    command = f"{sys.executable} -S bench.py '{json.dumps(SAME)}'"
    words = [sys.executable, "-m", "noregret", "versus", command, command, "--result", "json", "--json"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        while not (tmp_path / "ran").exists() or len((tmp_path / "ran").read_text().splitlines()) < 6:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["stopped"] == "interrupted"
