"""``noregret tune`` and ``report`` as a user runs them."""

import io
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from noregret.cli import main
from noregret.tune.store.store import Store
from noregret.tune.study.reading import load

STUDY = """
command = {command}
timeout = 20
lease = 2
{more}
[budget]
{budget}
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[parameters.n]
type = "int"
low = 1
high = 9
"""
PLAIN = ["awk", "BEGIN {{ print ({x} - 0.3)^2 + {n} }}"]


def written(folder, command=PLAIN, budget="rounds = 8", more="", name="s.toml"):
    path = folder / name
    path.write_text(STUDY.format(command=command, budget=budget, more=more))
    return path


def noregret(*args, **options):
    command = [sys.executable, "-m", "noregret", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def records_of(study):
    with Store(load(study), readonly=True) as store:
        return store.records()


def running_with(word):
    """Processes whose command line has this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [path.parent.name] if word.encode() in path.read_bytes() else []
    return found


def wait_for(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_study_from_start_to_report(tmp_path, capsys):
    study = written(tmp_path, budget="rounds = 12")
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in out[:12]] == [f"trial {i}" for i in range(12)]
    assert re.fullmatch(r"best: \S+, probably between \S+ and \S+", out[12])
    assert out[14].split() == ["n", "1"]
    assert main(["report", str(study)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 's.html'}\n"
    assert "probably between" in (tmp_path / "s.html").read_text()


@pytest.mark.slow
def test_a_finished_study_says_what_it_knows_and_a_larger_budget_goes_on(tmp_path, capsys):
    study = written(tmp_path, budget="rounds = 3")
    assert main(["tune", str(study)]) == 0
    capsys.readouterr()
    assert main(["tune", str(study)]) == 0
    assert capsys.readouterr().out.startswith("best: ")
    written(tmp_path, budget="rounds = 5")
    assert main(["tune", str(study)]) == 0
    assert re.findall(r"trial \d+", capsys.readouterr().out) == ["trial 3", "trial 4"]


def test_a_budget_of_seconds_is_kept(tmp_path):
    study = written(tmp_path, command=["sh", "-c", "sleep 0.3; echo {x} {n}"], budget="seconds = 1.5")
    began = time.monotonic()
    assert main(["tune", str(study)]) == 0
    assert time.monotonic() - began < 10
    assert 1 <= len(records_of(study)) <= 6


def test_dry_run_shows_a_command_and_does_nothing(tmp_path, capsys):
    study = written(tmp_path, command=["touch", "made", "{x}", "{n}", "a b"])
    assert main(["tune", str(study), "--dry-run"]) == 0
    assert re.fullmatch(r"touch made [\d.e-]+ \d 'a b'\n", capsys.readouterr().out)
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


@pytest.mark.parametrize("command", ["no-such-program", "./missing.sh"])
def test_a_command_that_does_not_exist_is_refused_before_anything_is_written(tmp_path, capsys, command):
    study = written(tmp_path, command=[command, "{x}", "{n}"])
    assert main(["tune", str(study)]) == 2
    assert re.search(rf"s.toml: command: '.*{command.lstrip('./')}' does not exist", capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


@pytest.mark.slow
def test_a_command_that_always_fails_is_given_up_and_the_failures_are_kept(tmp_path, capsys):
    command = ["sh", "-c", "echo no such table >&2; exit 3", "{x}", "{n}"]
    study = written(tmp_path, command, more="[failure]\nstop_after = 4", budget="rounds = 100")
    assert main(["tune", str(study)]) == 2
    error = capsys.readouterr().err
    assert "command: has failed 4 times in a row, the last time: exit code 3 (no such table)" in error
    records = records_of(study)
    assert [record.failure for record in records] == ["exit code 3"] * 4
    assert main(["report", str(study)]) == 0
    assert "Every run so far has failed" in (tmp_path / "s.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("true", "no number on standard output"),
        ("echo nan", "got nan"),
        ("echo 1e300", "got 1e300"),
        ("kill -9 $$", "killed by SIGKILL"),
        ("yes", "printed more than 64 MiB"),
        ("sleep 60", "still running after 0.2 s (timeout)"),
        ("exit 1", "exit code 1"),
    ],
)
def test_whatever_a_command_does_now_and_then_the_study_goes_on(tmp_path, script, failure):
    once = f"if mkdir once 2>/dev/null; then {script}; else echo $0; fi"
    study = written(tmp_path, ["sh", "-c", once, "{x}", "{n}"], budget="rounds = 3", name="t.toml")
    study.write_text(study.read_text().replace("timeout = 20", "timeout = " + ("0.2" if "60" in script else "20")))
    assert main(["tune", str(study)]) == 0
    first, *others = records_of(study)
    assert failure in first.failure
    assert [record.state for record in others] == ["done", "done"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_study_gives_its_trials_back_and_leaves_nothing_running(tmp_path, number):
    study = written(tmp_path, ["sh", "-c", "sleep 61.5; echo {x} {n}"], more="workers = 2")
    process = subprocess.Popen(
        [sys.executable, "-m", "noregret", "tune", study], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    wait_for(lambda: len(running_with("sleep\x0061.5")) == 2)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert re.search(r"stopped; 0 results are kept in .*s.db. Run the same command to go on", error)
    assert [record.state for record in records_of(study)] == ["waiting", "waiting"]
    wait_for(lambda: not running_with("sleep\x0061.5"))


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path):
    study = written(tmp_path, budget="rounds = 10")
    command = [sys.executable, "-m", "noregret", "tune", study]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    lines = [line for process in both for line in process.communicate(timeout=120)[0].splitlines()]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(int(line.split()[1][:-1]) for line in lines if line.startswith("trial")) == list(range(10))


@pytest.mark.slow
def test_on_a_terminal_there_is_a_picture_of_it_all(tmp_path):
    study = written(tmp_path, ["sh", "-c", "test {n} -gt 1 && echo 0.25 && sleep 0.2", "{x}"], budget="rounds = 6")
    main_end, their_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    process = subprocess.Popen(
        [sys.executable, "-m", "noregret", "tune", study], stdout=their_end, stderr=their_end, env=environment
    )
    os.close(their_end)
    seen = b""
    while process.poll() is None or select.select([main_end], [], [], 0)[0]:
        try:
            seen += os.read(main_end, 65536)
        except OSError:
            break
    os.close(main_end)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())
    assert process.wait() == 0
    assert re.search(r"about \d+ s left", text)
    for words in ("6 of 6 done", "best so far", "probably between", "trial", "0.25"):
        assert words in text


@pytest.fixture
def open_folder():
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="noregret-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def as_nobody(*args):
    """Run a command as a user for whom permissions mean something; its exit code and what it says."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(said):
        code = main([str(arg) for arg in args])
    return code, said.getvalue()


def test_what_cannot_be_written_is_refused_and_can_still_be_read(open_folder, in_child):
    study = written(open_folder, budget="rounds = 4")
    open_folder.chmod(0o555)
    code, said = in_child(lambda: as_nobody("tune", study))
    assert code == 2
    assert re.search(r"storage .*s.db: cannot be (written|opened)", said)
    open_folder.chmod(0o755)
    assert main(["tune", str(study)]) == 0
    assert main(["report", str(study)]) == 0  # everything is imported now, which nobody may be unable to do
    written(open_folder, budget="rounds = 5")
    open_folder.chmod(0o555)
    code, said = in_child(lambda: as_nobody("tune", study))
    assert code == 2
    assert re.search(r"storage .*s.db: cannot be (written|opened)", said)
    with tempfile.TemporaryDirectory(prefix="noregret-test-") as elsewhere:
        os.chmod(elsewhere, 0o777)
        page = Path(elsewhere, "r.html")
        assert in_child(lambda: as_nobody("report", study, "--out", page)) == [0, f"{page}\n"]
        assert "4 measurements of 5 planned" in page.read_text()
    assert len(records_of(study)) == 4


def test_reports_that_cannot_be(tmp_path, capsys):
    study = written(tmp_path)
    assert main(["report", str(study)]) == 2
    assert "s.db does not exist yet: 'noregret tune' makes it" in capsys.readouterr().err
    assert main(["tune", str(written(tmp_path, budget="rounds = 1"))]) == 0
    assert main(["report", str(study), "--out", str(tmp_path / "no" / "r.html")]) == 2
    assert "r.html cannot be written" in capsys.readouterr().err


def test_without_the_extra_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    study = written(tmp_path)
    for command in ("tune", "report", "watch"):
        assert main([command, str(study)]) == 2
        assert "pip install 'noregret[tune]'" in capsys.readouterr().err


def test_the_core_does_not_import_what_only_tuning_needs():
    program = "import sys, noregret.cli; print({'optuna', 'sqlalchemy', 'rich', 'psycopg'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
