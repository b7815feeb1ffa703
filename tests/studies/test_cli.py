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
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load

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


def written(folder, command=PLAIN, budget="evaluations = 8", more="", name="s.toml"):
    path = folder / name
    path.write_text(STUDY.format(command=command, budget=budget, more=more))
    return path


def noregret(*args, **options):
    command = [sys.executable, "-m", "noregret", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


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
    study = written(tmp_path, budget="evaluations = 12")
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in out[:12]] == [f"trial {i}" for i in range(12)]
    assert re.fullmatch(r"best: \S+, probably between \S+ and \S+ \(95%\)", out[12])
    assert out[14].split() == ["n", "1"]
    assert main(["report", str(study)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 's.html'}\n"
    assert "probably between" in (tmp_path / "s.html").read_text()


@pytest.mark.slow
def test_a_finished_study_says_what_it_knows_and_a_larger_budget_goes_on(tmp_path, capsys):
    study = written(tmp_path, budget="evaluations = 3")
    assert main(["tune", str(study)]) == 0
    capsys.readouterr()
    assert main(["tune", str(study)]) == 0
    assert capsys.readouterr().out.startswith("best: ")
    written(tmp_path, budget="evaluations = 5")
    assert main(["tune", str(study)]) == 0
    assert re.findall(r"trial \d+", capsys.readouterr().out) == ["trial 3", "trial 4"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("tune missing.toml", "tune"),
        ("confirm missing.toml", "confirm"),
        ("versus true false", "versus"),
        ("versus true false --result json", "versus"),
        ("calibrate true", "versus"),
        ("serve", "serve"),
        ("drop-old missing.toml", "drop-old"),
    ],
)
def test_what_does_not_run_on_windows_says_so_first(tmp_path, capsys, monkeypatch, words, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("noregret.studies.errors.IS_POSIX", False)
    assert main(words.split()) == 2
    said = (
        f"noregret: 'noregret {name}' does not run on Windows: it needs Linux or macOS. Use the Windows Subsystem for"
    )
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.slow
def test_a_finished_study_is_printed_again_without_a_fit(tmp_path, capsys, monkeypatch):
    study = written(tmp_path, budget="evaluations = 6")
    main(["tune", str(study)])
    first = capsys.readouterr().out.splitlines()[6:]
    with monkeypatch.context() as patch:
        patch.setattr("noregret.studies.running.believed", lambda *a: pytest.fail("a fit"))
        assert main(["tune", str(study)]) == 0
    assert capsys.readouterr().out.splitlines() == first
    main(["withdraw", str(study), "2"])
    capsys.readouterr()
    main(["tune", str(study)])
    assert capsys.readouterr().out.splitlines() != first
    main(["tune", str(study), "--json"])
    assert capsys.readouterr().out.startswith('{"best"')


@pytest.mark.slow
def test_the_same_command_goes_on_after_the_time_was_over(tmp_path, capsys):
    study = written(tmp_path, budget="seconds = 0.01")
    measured = 0
    for _ in range(3):
        assert main(["tune", str(study)]) == 0
        assert "Run the same command to continue" in capsys.readouterr().out
        assert measured < len(records_of(study)) <= measured + 3  # most commands take longer than the time
        measured = len(records_of(study))


KEEP = '[cleanup]\ncommand = ["sh", "-c", "echo {x} {n} >> kept"]\n'
USUAL = "[baseline]\nx = 0.5\nn = 3\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shown", "more", "kept"), [("-{n}", USUAL, "best"), ("5", USUAL, "0.5 3"), ("{n}", "", "best")]
)
def test_the_cleanup_gets_the_best_setting_or_the_baseline(tmp_path, capsys, shown, more, kept):
    """A baseline that nothing is shown to be better than stays."""
    command = ["awk", f"BEGIN {{{{ srand(); print 100 + 10 * ({shown}) + rand() + 0 * {{x}} * {{n}} }}}}"]
    study = written(tmp_path, command, "evaluations = 16", "confirm = 0")
    study.write_text(study.read_text() + more + KEEP)
    assert main(["tune", str(study)]) == 0
    out, error = capsys.readouterr()
    lines = (tmp_path / "kept").read_text().splitlines()
    best = dict(re.findall(r"^  ([xn])  (\S+)", out, re.MULTILINE))
    assert len(lines) == 1
    assert lines[0] == kept if kept != "best" else lines[0].split()[1] == best["n"]
    assert f"[cleanup] with the {'baseline' if kept != 'best' else 'best setting'} (x=" in error
    assert main(["tune", str(study)]) == 0
    assert len((tmp_path / "kept").read_text().splitlines()) == 1, "nothing has run since"


@pytest.mark.slow
def test_a_cleanup_that_fails_is_said_with_the_command(tmp_path, capsys):
    study = written(tmp_path, budget="evaluations = 2")
    study.write_text(study.read_text() + USUAL + "[cleanup]\ncommand = 'sh -c \"echo locked >&2; exit 7\" {n}'\n")
    assert main(["tune", str(study)]) == 2
    out, error = capsys.readouterr()
    assert "best: " in out
    assert "[cleanup] with the baseline (x=0.5, n=3) has failed: exit code 7: locked. Run it yourself: sh -c" in error
    study.write_text(study.read_text().replace("exit 7", "exit 7 {k}"))
    assert main(["tune", str(study)]) == 2
    assert re.search(r"s.toml:\d+: \[cleanup\] command: \{k\} is the placeholder of no", capsys.readouterr().err)
    study.write_text(study.read_text().replace("command = 'sh ", "command = './missing '\n#"))
    assert main(["tune", str(study)]) == 2
    assert "cleanup: " in capsys.readouterr().err


@pytest.mark.slow
def test_the_cleanup_comes_after_ctrl_c_too(tmp_path):
    study = written(tmp_path, ["sh", "-c", "echo >> runs; sleep 0.5; echo {x} {n}"], "evaluations = 50", "workers = 2")
    study.write_text(study.read_text() + USUAL + KEEP)
    command = [sys.executable, "-m", "noregret", "tune", study.name]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as process:
        wait_for(lambda: (tmp_path / "runs").exists() and len((tmp_path / "runs").read_text()) > 2)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert (tmp_path / "kept").read_text() == "0.5 3\n"
    assert "[cleanup] with the baseline" in error


@pytest.mark.slow
def test_warmup_after_a_prepare_is_explained(tmp_path, capsys):
    study = written(tmp_path, budget="evaluations = 1", more="prepare = 'true'\nwarmup = 1")
    main(["tune", str(study)])
    assert "prepare runs before each run, also before those of the warmup" in capsys.readouterr().err


@pytest.mark.slow
def test_a_folder_holds_the_study_file_and_one_hidden_folder(tmp_path):
    study = written(tmp_path, budget="evaluations = 2")
    assert main(["tune", str(study)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".noregret", "s.toml"]
    assert (tmp_path / ".noregret" / ".gitignore").read_text() == "*\n"


def test_a_hidden_folder_without_its_file_for_git_gets_it(tmp_path):
    folder = tmp_path / ".noregret"
    folder.mkdir()
    assert main(["init", str(tmp_path / "new.toml")]) == 0
    assert (folder / ".gitignore").read_text() == "*\n"
    (folder / ".gitignore").unlink()
    assert main(["tune", str(written(tmp_path, budget="evaluations = 1"))]) == 0
    assert (folder / ".gitignore").read_text() == "*\n"
    (folder / ".gitignore").write_text("*.db\n")
    assert main(["init", str(tmp_path / "other.toml")]) == 0
    assert (folder / ".gitignore").read_text() == "*.db\n"


@pytest.mark.slow
def test_a_study_whose_database_is_beside_its_file_goes_on_there(tmp_path, capsys):
    study = written(tmp_path, budget="evaluations = 2", more="storage = 'sqlite:///s.db'")
    assert main(["tune", str(study)]) == 0
    written(tmp_path, budget="evaluations = 3")
    assert main(["tune", str(study)]) == 0
    assert "trial 2" in capsys.readouterr().out
    assert not (tmp_path / ".noregret").exists()
    (tmp_path / "s.db").unlink()
    assert main(["tune", str(study)]) == 2
    assert "is missing, but has copies" in capsys.readouterr().err


MANY = [f"parameter_{i}" for i in range(21)]


@pytest.mark.slow
def test_lines_are_no_longer_than_the_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    words = ", ".join(f'"--{name}={{{name}}}"' for name in MANY)
    tables = "\n".join(f"[parameters.{name}]\ntype = 'int'\nlow = 0\nhigh = 1000" for name in MANY)
    usual = "\n".join(f"{name} = 7" for name in MANY)
    for baseline in ("", f"[baseline]\n{usual}\n"):
        path = tmp_path / f"{bool(baseline)}.toml"
        path.write_text(f'command = ["sh", "-c", "echo 1", {words}]\n[budget]\nevaluations = 4\n{baseline}{tables}')
        assert main(["tune", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert re.fullmatch(r"trial 1: 1 \(parameter_0=\d+, parameter_1=\d+, .*, \.\.\. \d+ more\)", lines[1])
        assert lines[-1].startswith("sh -c 'echo 1' --parameter_0=")
        assert max(map(len, lines[:-3])) <= 90  # before the path of the study and the command
    assert lines[0] == "trial 0: 1 (baseline)"


@pytest.mark.slow
def test_a_budget_of_seconds_is_kept(tmp_path, capsys):
    study = written(tmp_path, command=["sh", "-c", "sleep 0.3; echo {x} {n}"], budget="seconds = 1.5")
    began = time.monotonic()
    assert main(["tune", str(study)]) == 0
    assert time.monotonic() - began < 10
    assert 1 <= len(records_of(study)) <= 6
    assert "Time limit reached. Run the same command to continue." in capsys.readouterr().out


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
    study = written(tmp_path, command, more="[failure]\nstop_after = 4", budget="evaluations = 100")
    assert main(["tune", str(study)]) == 2
    error = capsys.readouterr().err
    assert "command: has failed 4 times in a row, the last time: exit code 3 (no such table)" in error
    records = records_of(study)
    assert [record.failure for record in records] == ["exit code 3"] * 4
    assert main(["report", str(study)]) == 0
    assert "Every run so far has failed" in (tmp_path / "s.html").read_text()


@pytest.mark.slow
def test_a_budget_that_ends_without_a_result_exits_with_3(tmp_path, capsys):
    study = written(tmp_path, ["false", "{x}", "{n}"], budget="evaluations = 2")
    assert main(["tune", str(study)]) == 3
    assert capsys.readouterr().out.endswith(
        "Every run so far has failed.\n"
        "Budget of 2 evaluations used. Fix the command in the study file and run it again, or give it another name.\n"
    )
    assert main(["tune", str(study)]) == 3


@pytest.mark.slow
def test_retries_turn_flaky_runs_into_results(tmp_path):
    flaky = ["sh", "-c", "if mkdir once 2>/dev/null; then exit 1; else rmdir once; echo {x} {n}; fi"]
    study = written(tmp_path, flaky, budget="evaluations = 4")
    study.write_text(study.read_text() + "[failure]\nretries = 1\n")
    assert main(["tune", str(study)]) == 0
    assert [record.state for record in records_of(study)] == ["done"] * 4


@pytest.mark.slow
def test_an_interrupted_study_gives_its_trials_back_and_leaves_nothing_running(tmp_path):
    check_stopped_by(signal.SIGINT, tmp_path)


def check_stopped_by(number, tmp_path):
    """Raise AssertionError unless a signal ends a study and its commands, and its trials wait for the next call."""
    study = written(tmp_path, ["sh", "-c", "sleep 61.5; echo {x} {n}"], more="workers = 2")
    process = subprocess.Popen(
        [sys.executable, "-m", "noregret", "tune", study], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    wait_for(lambda: len(running_with("sleep\x0061.5")) == 2)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert re.search(r"stopped; 0 results are kept in .*s.db. Run the same command to continue", error)
    assert [record.state for record in records_of(study)] == ["waiting", "waiting"]
    wait_for(lambda: not running_with("sleep\x0061.5"))


def on_a_terminal(*args):
    """Run a command whose output goes to a terminal; return its exit code and output."""
    main_end, their_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    command = [sys.executable, "-m", "noregret", *args]
    process = subprocess.Popen(command, stdout=their_end, stderr=their_end, env=environment)
    os.close(their_end)
    seen = b""
    while process.poll() is None or select.select([main_end], [], [], 0)[0]:
        try:
            seen += os.read(main_end, 65536)
        except OSError:
            break
    os.close(main_end)
    return process.wait(), seen.decode()


@pytest.mark.slow
def test_on_a_terminal_there_is_a_picture_of_it_all(tmp_path):
    study = written(tmp_path, ["sh", "-c", "test {n} -gt 1 && echo 0.25 && sleep 0.2", "{x}"], budget="evaluations = 6")
    code, seen = on_a_terminal("tune", study)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert code == 0
    assert re.search(r"about \d+ s left", text)
    for words in ("6 of 6 done", "best so far", "probably between", "trial", "0.25"):
        assert words in text


NASTY = r"""
name = "[bold]n[/bold] [/x]"
command = ["sh", "m.sh", "{mode}"]
result = {regex = "a (.*)"}
budget.evaluations = 4
failure.stop_after = 4
[parameters.mode]
type = "choice"
choices = ["[/nonsense]", "[red]x[/]", "\u001b]0;owned\u0007", "\u009b31m :smile: \u202e"]
"""
ORDERS = r"printf '\033]52;c;b3duZWQ=\007\033[31m\r\b[/y]' >&2; "


def harmless(text):
    """No escape codes except for the colours and cursor moves of the display itself."""
    return not re.search(r"\x1b[^\[]|[\x00-\x08\x0e-\x1a\x80-\x9f\u202e]", text)


def test_a_dry_run_and_errors_show_orders_to_a_terminal_as_text(tmp_path, capsys):
    assert main(["tune", str(written(tmp_path, ["echo", "\x1b]0;t\x07", "{x}", "{n}"])), "--dry-run"]) == 0
    assert main(["tune", str(tmp_path / "\x1b[31m.toml")]) == 2
    with pytest.raises(SystemExit):
        main(["tune", "a", "\x1b[31m"])
    said = "".join(capsys.readouterr())
    assert said.count(r"\x1b") >= 3
    assert "\x1b" not in said


@pytest.mark.slow
def test_a_reader_that_has_gone_ends_the_study_without_a_word(tmp_path):
    study = written(tmp_path, budget="evaluations = 20")
    command = [sys.executable, "-m", "noregret", "tune", study]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("trial 0")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 141
    states = [record.state for record in records_of(study)]
    assert "done" in states
    assert "running" not in states
    assert len(states) < 20


@pytest.fixture
def open_folder():
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="noregret-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def as_nobody(*args):
    """Run a command as a user without root permissions; return its exit code and output."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(said):
        code = main([str(arg) for arg in args])
    return code, said.getvalue()


@pytest.mark.slow
def test_what_cannot_be_written_is_refused_and_can_still_be_read(open_folder, in_child, tmp_path):
    other = written(tmp_path, budget="evaluations = 1")  # everything is imported now, without permission errors
    assert main(["tune", str(other)]) == main(["report", str(other)]) == 0
    study = written(open_folder, budget="evaluations = 4")
    open_folder.chmod(0o555)
    code, said = in_child(lambda: as_nobody("tune", study))
    assert code == 2
    assert re.search(r"storage .*s.db: cannot be (written|opened)", said)
    open_folder.chmod(0o755)
    assert main(["tune", str(study)]) == 0
    assert main(["report", str(study)]) == 0
    written(open_folder, budget="evaluations = 5")
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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a?b.toml", "a?b.toml: no database can be named after 'a?b.toml': rename the file, or say"),
        (os.fsdecode(b"caf\xe9.toml"), r"caf\udce9.toml: the names of a study file and its folders must be UTF-8"),
        (os.fsdecode(b"caf\xe9/a.toml"), r"caf\udce9/a.toml: the names of a study file and its folders must be UTF-8"),
    ],
)
def test_file_names_that_cannot_be_are_refused_by_name(tmp_path, capsys, name, message):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for command in ("init", "tune", "report", "watch"):
        if command == "tune":
            written(path.parent, name=path.name)
        assert main([command, str(path)]) == 2
        assert message in capsys.readouterr().err
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@pytest.mark.slow
def test_the_ways_out_of_a_name_that_no_database_can_have(tmp_path):
    study = written(tmp_path, name="a?b.toml", more="storage = 'sqlite:///study.db'", budget="evaluations = 1")
    assert main(["tune", str(study)]) == 0
    assert main(["tune", str(written(tmp_path, name="ab.toml", budget="evaluations = 1"))]) == 0


def test_reports_that_cannot_be(tmp_path, capsys):
    study = written(tmp_path)
    assert main(["report", str(study)]) == 2
    assert "s.db does not exist yet: 'noregret tune' makes it" in capsys.readouterr().err
    assert main(["tune", str(written(tmp_path, budget="evaluations = 1"))]) == 0
    assert main(["report", str(study), "--out", str(tmp_path / "no" / "r.html")]) == 2
    assert "r.html cannot be written" in capsys.readouterr().err


def test_without_the_extra_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    for package in ("optuna", "sqlalchemy", "psycopg"):  # what is not needed
        monkeypatch.setitem(sys.modules, package, None)
    study = written(tmp_path, budget="evaluations = 1")
    assert main(["tune", str(study)]) == 0
    monkeypatch.setitem(sys.modules, "rich", None)
    for command in ("tune", "report", "watch"):
        assert main([command, str(study)]) == 2
        assert "pip install '.[tune]'" in capsys.readouterr().err


def test_the_core_does_not_import_what_only_tuning_needs():
    program = "import sys, noregret.cli; print({'optuna', 'rich', 'psycopg', 'fastapi'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
