"""The command line: in its own process if that matters, by ``main`` otherwise."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from noregret import Trace, algorithms, problems
from noregret.cli import main
from noregret.extra import missing

SMALL = ["--problem", "rkhs-se", "--rounds", "30", "--trials", "2", "--jobs", "1"]


def noregret(*args, **options):
    command = [sys.executable, "-m", "noregret", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def table(text):
    header, *rows = (line.split() for line in text.splitlines())
    assert header == ["algorithm", "regret", "sd", "µs/round"]
    return {name: (float(regret), float(sd), float(time)) for name, regret, sd, time in rows}


@pytest.mark.slow
def test_run_compares_algorithms_and_draws_the_picture(tmp_path):
    picture = tmp_path / "new" / "x.png"
    done = noregret(
        "run",
        "igp-ucb",
        "random",
        "--problem",
        "rkhs-se",
        "--rounds",
        200,
        "--trials",
        3,
        "--jobs",
        1,
        "--plot",
        picture,
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = table(done.stdout)
    assert list(rows) == ["igp-ucb", "random"]  # sorted by regret
    assert rows["igp-ucb"][0] < 0.5 * rows["random"][0]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_list_shows_every_name_with_what_it_is(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for name in (*algorithms.NAMES, *problems.NAMES):
        assert re.search(rf"^  {name}( |$)", text, re.MULTILINE), name
    assert re.search(r"^  random  +Uniformly random arms", text, re.MULTILINE)


def test_a_builder_with_settled_arguments_is_listed_with_them(capsys, monkeypatch):
    def made(kernel, rng=None, *, points=3):
        """A toy.

        More about it.
        """

    monkeypatch.setitem(problems.NAMES, "toy", partial(made, len, points=5))
    main(["list"])
    assert re.search(r"^  toy +A toy \[len, points=5\]$", capsys.readouterr().out, re.MULTILINE)


def test_without_a_command_the_help_is_shown_with_the_first_steps_first(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    commands = re.findall(r"^  ([a-z][a-z-]*) ", said, re.MULTILINE)
    assert commands[:3] == ["init", "tune", "report"]
    with pytest.raises(SystemExit):
        main(["no-such-command"])
    every = capsys.readouterr().err.partition("choose from ")[2]
    assert set(commands) == set(re.findall(r"[a-z-]+", every))


def test_version():
    done = noregret("--version")
    assert re.fullmatch(r"noregret \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["igp-usb", *SMALL], r"unknown algorithm 'igp-usb' \(did you mean igp-ucb.*\?\): 'noregret list' shows all"),
        (["zzz", *SMALL], r"unknown algorithm 'zzz': 'noregret list' shows all"),
        (["random", "--problem", "rkhs-sé"], r"unknown problem 'rkhs-sé' \(did you mean rkhs-se.*\?\)"),
        (["igp-ucb", *SMALL, "--set", "detla=0.1"], r"none of igp-ucb takes 'detla' \(did you mean delta\?\)"),
        (["igp-ucb", *SMALL, "--set", "kernel=1"], r"none of igp-ucb takes 'kernel'"),
        (["random", *SMALL, "--scale", "2"], r"none of random takes 'scale'"),
        (["igp-ucb", *SMALL, "--set", "ridge=-1"], r"igp-ucb: ridge must be .*, got -1"),
        (["bkb", *SMALL, "--set", "delta=abc"], r"bkb: delta must be in \(0, 1\), got 'abc'"),
        (["reds", *SMALL, "--scale", "-1"], r"reds: scale must be finite and at least 0, got -1.0"),
        (["bpe", *SMALL, "--set", "horizon=1e4"], r"bpe: horizon must be a whole number from 1, or None, got 10000.0"),
        (["random", *SMALL, "--plot", "x.docx"], r"--plot must end in one of .*\.png.*, got x.docx"),
        (["random", *SMALL, "--out", __file__], r"cannot write there: .*File exists"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(capsys, args, message):
    assert main(["run", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"noregret: {message}.*\n", err), err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["random", "--problem", "rkhs-se", "--rounds", "0"], "argument --rounds: must be a whole number, at least 1"),
        (["random", "--problem", "rkhs-se", "--trials", "2.5"], "argument --trials: must be a whole number"),
        (["random", "--problem", "rkhs-se", "--seed", "-1"], "argument --seed"),
        (["random", "--problem", "rkhs-se", "--set", "delta"], "argument --set: must have the form KEY=VALUE"),
        (["random"], "the following arguments are required: --problem"),
        (["random", "--problem", "rkhs-se", "--constants", "mine"], "invalid choice: 'mine'"),
    ],
)
def test_bad_usage(capsys, args, message):
    with pytest.raises(SystemExit) as stop:
        main(["run", *args])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_a_problem_that_cannot_be_set_up_is_refused(capsys, monkeypatch):
    def absent(rng=None):
        raise FileNotFoundError("no data folder")

    monkeypatch.setitem(problems.NAMES, "absent", absent)
    assert main(["run", "random", "--problem", "absent"]) == 2
    assert capsys.readouterr().err == "noregret: the problem cannot be set up: no data folder\n"


def test_settings_reach_the_algorithms_that_take_them(capsys, tmp_path):
    options = ["--constants", "experiment", "--scale", "0.25", "--set", "delta=0.05", "--set", "gain=realised"]
    assert main(["run", "igp-ucb", "random", *SMALL, *options, "--out", str(tmp_path)]) == 0
    algorithm = next(Trace.load(path).algorithm for path in tmp_path.glob("*igp-ucb*.json"))
    for part in ("scale=0.25", "delta=0.05", "RealisedGain"):
        assert part in algorithm


def test_algorithms_are_paired_trial_by_trial(tmp_path):
    assert main(["run", "random", "gp-ei", *SMALL, "--out", str(tmp_path)]) == 0
    seeds = {
        name: [Trace.load(path).seed for path in sorted(tmp_path.glob(f"*_{name}_*.json"))]
        for name in ("random", "gp-ei")
    }
    assert seeds["random"] == seeds["gp-ei"]
    assert len(seeds["random"]) == 2
    assert seeds["random"][0] != seeds["random"][1]


@pytest.mark.slow
def test_finished_trials_are_kept_and_not_run_again(capsys, tmp_path, monkeypatch):
    args = ["run", "random", *SMALL, "--out", str(tmp_path / "new")]
    assert main(args) == 0
    first = capsys.readouterr().out
    assert len(list((tmp_path / "new").iterdir())) == 4
    real, runs = algorithms.NAMES["random"], []

    def counted(kernel):
        runs.append(1)
        return real(kernel)

    monkeypatch.setitem(algorithms.NAMES, "random", counted)
    assert main(args) == 0
    assert capsys.readouterr().out == first  # even the times are those of the first call
    assert len(runs) == 1  # checked before the work
    assert main([*args, "--trials", "3"]) == 0
    assert len(runs) == 3
    assert main([*args, "--seed", "1"]) == 0
    assert len(runs) == 6


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends a Ctrl-C to a process group")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_stops_cleanly_and_keeps_what_is_finished(tmp_path, jobs):
    """The Ctrl-C reaches every process, as from a keyboard."""
    command = [sys.executable, "-m", "noregret", "run", "igp-ucb", "--problem", "rkhs-se", "--rounds", "1000"]
    command += ["--trials", "500", "--jobs", str(jobs), "--out", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert err == f"\nnoregret: stopped; finished trials are kept in {tmp_path}\n"
    kept = [Trace.load(path) for path in tmp_path.glob("*.json")]
    assert kept
    assert all(len(trace.arms) == 1000 for trace in kept)


@pytest.mark.parametrize(
    ("module", "package"),
    [("joblib", "joblib"), ("rich.progress", "rich"), ("matplotlib.backend_bases", "matplotlib")],
)
def test_without_the_lab_the_extra_is_named(capsys, monkeypatch, tmp_path, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["run", "random", *SMALL, "--plot", str(tmp_path / "x.png")]) == 2
    assert capsys.readouterr().err == f"noregret: {missing(package, 'lab')}\n"
    assert main(["list"]) == 0


@pytest.mark.slow
def test_on_a_terminal_there_is_a_bar_and_a_framed_table():
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "noregret", "run", "random", *SMALL]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    shown = b""
    while process.poll() is None or not shown.endswith(b"\n"):
        try:
            shown += os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
    os.close(leader)
    assert process.wait(timeout=20) == 0
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown.decode())
    assert "60 of 60 rounds" in text
    assert re.search(r"│ random +│ +\d", text)


def test_bound_shows_what_a_theorem_promises_beside_runs(capsys, tmp_path):
    picture = tmp_path / "bound.svg"
    assert main(["bound", "igp-ucb", "--arms", "20", "--rounds", "200", "--run", "--plot", str(picture)]) == 0
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines() if re.match(r" +\d", line)]
    assert [int(row[0]) for row in rows][-1] == 200
    assert all(float(row[1]) > float(row[2]) for row in rows)  # a run keeps its bound
    assert "at most 0.1 per round after" in said
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["reds"], "'reds' has no bound that can be computed"),
        (["igp-ucb", "--kernel", "cubic"], "--kernel must be se or matern-NU"),
        (["igp-ucb", "--set", "colour=red"], "colour"),
        (["igp-ucb", "--plot", "bound.xyz"], "--plot must end in one of"),
        (["igp-ucb", "--set", "constants=experiment"], "there is no bound for constants='experiment'"),
        (["tgp-ucb", "--run", "--arms", "20", "--rounds", "10", "--set", "moment=0.01"], "a moment above max f^2"),
    ],
)
def test_what_has_no_bound_is_refused(args, message, capsys):
    assert main(["bound", *args]) == 2
    assert message in capsys.readouterr().err
