"""More of `tests.studies.test_cli`, nightly."""

import signal
import subprocess
import sys

import pytest
from tests.studies.test_cli import (
    NASTY,
    ORDERS,
    check_stopped_by,
    harmless,
    noregret,
    on_a_terminal,
    records_of,
    written,
)

from noregret.cli import main
from noregret.studies.study.reading import load


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("true", "no number on standard output"),
        ("echo nan", "got nan"),
        ("echo 1e300", "got 1e300"),
        ("kill -9 $$", "killed by SIGKILL"),
        ("yes", "printed more than 64 MiB"),
        ("sleep 60", "still running after 2 s (timeout)"),
        ("exit 1", "exit code 1"),
    ],
)
def test_whatever_a_command_does_now_and_then_the_study_goes_on(tmp_path, script, failure):
    once = f"if mkdir once 2>/dev/null; then {script}; else echo $0; fi"
    study = written(tmp_path, ["sh", "-c", once, "{x}", "{n}"], budget="evaluations = 3", name="t.toml")
    study.write_text(study.read_text().replace("timeout = 20", "timeout = " + ("2" if "60" in script else "20")))
    assert main(["tune", str(study)]) == 0
    first, *others = records_of(study)
    assert failure in first.failure
    assert [record.state for record in others] == ["done", "done"]


@pytest.mark.slow
def test_a_full_output_is_an_error_and_loses_nothing(tmp_path):
    study = written(tmp_path, budget="evaluations = 3")
    run = ["run", "random", "--problem", "branin", "--rounds", "5", "--trials", "1", "--jobs", "1"]
    reading = (["report", study], ["report", study, "--json"], ["export", study, "--csv"], ["restore", study])
    for args in (
        ["tune", study],
        *reading,
        ["tune", study, "--dry-run"],
        ["init", tmp_path / "new.toml"],
        ["list"],
        run,
    ):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-m", "noregret", *map(str, args)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
        assert done.stderr == "noregret: standard output cannot be written: No space left on device\n"
        assert done.returncode == 2
    assert [record.state for record in records_of(study)] == ["done"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a b", "a#b", "a%20b", "a{b}", "a:b", "ünï", "a\nb", "a&b=c", "'\"$x", "x?y/a", "x#%y/a"]
)
def test_odd_file_names_work(tmp_path, capsys, name):
    path = tmp_path / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    assert main(["init", str(path)]) == 0
    load(path)
    written(path.parent, name=path.name, budget="evaluations = 2")
    assert main(["tune", str(path)]) == 0
    assert main(["report", str(path)]) == 0
    assert path.with_suffix(".html").exists()
    assert len(list(path.parent.glob(".noregret/*.db"))) == 1
    assert len(records_of(path)) == 2


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path):
    study = written(tmp_path, budget="evaluations = 10")
    command = [sys.executable, "-m", "noregret", "tune", study]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    lines = [line for process in both for line in process.communicate(timeout=600)[0].splitlines()]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(int(line.split()[1][:-1]) for line in lines if line.startswith("trial")) == list(range(10))


@pytest.mark.slow
@pytest.mark.parametrize("failing", [False, True])
def test_text_of_others_is_shown_as_text(tmp_path, failing):
    study = tmp_path / "\x1b]0;owned\x07.toml"
    study.write_text(NASTY)
    (tmp_path / "m.sh").write_text(ORDERS + (r"printf 'a \033]0;owned\007 [/y]'" if failing else "echo a 1"))
    code, seen = on_a_terminal("tune", study)
    assert code == (2 if failing else 0), seen
    assert "[bold]n[/bold] [/x]" in seen
    assert harmless(seen), repr(seen)
    again = noregret("tune", study)
    shown = noregret("report", study)
    assert harmless(again.stdout + again.stderr + shown.stdout + shown.stderr)
    page = study.with_suffix(".html").read_text()
    assert harmless(page)
    assert r"\x9b31m :smile: \u202e" in page


def test_ctrl_c_while_packages_are_imported(tmp_path):
    (tmp_path / "rich.py").write_text("raise KeyboardInterrupt")
    (tmp_path / "argparse.py").write_text("raise KeyboardInterrupt")
    start = "sys.path.insert(0, sys.argv.pop()); sys.exit(start.main())"
    for before in ("", "import noregret.cli; "):  # what is imported then still lacks rich
        program = f"import sys, noregret.__main__ as start; {before}{start}"
        command = [sys.executable, "-c", program, "tune", str(written(tmp_path)), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stderr) == (130, "\nnoregret: stopped\n")


def test_a_terminated_study_gives_its_trials_back_and_leaves_nothing_running(tmp_path):
    check_stopped_by(signal.SIGTERM, tmp_path)
