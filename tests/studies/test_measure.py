"""One measurement: for any command, its output is read, it ends, and no process is left."""

import math
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread, Timer
from types import SimpleNamespace

import numpy as np
import pytest

from noregret.optimizer import Float
from noregret.studies.measuring import KEPT_BYTES, Keeper, Stopped, Waiter, disturbances, measure, run_command
from noregret.studies.session import error_of_median
from noregret.studies.store.records import Record
from noregret.studies.study import results
from noregret.studies.study.results import MaxRss, Pattern, UserTime, WallTime
from noregret.studies.study.study import FailureRules, Study, StudyError

PYTHON = sys.executable


@pytest.fixture(scope="module")
def keeper():
    with Keeper() as found:
        yield found


def study(folder, *command, **options):
    return Study(folder / "s.toml", command, space={"x": Float(0, 1)}, **options)


def outcome(keeper, folder, *command, **options):
    return measure(study(folder, *command, **options), Record(0, {"x": 0.5}), keeper, Event())


def alive(pid):
    """Test whether a process runs; zombies do not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_result_is_read(keeper, tmp_path):
    found = outcome(keeper, tmp_path, "echo", "{x}")
    assert (found.value(), found.failure) == (0.5, "")
    assert 0 < found.seconds < 5


def test_it_runs_in_the_folder_of_the_study_without_input(keeper, tmp_path):
    (tmp_path / "found").write_text("3")
    assert outcome(keeper, tmp_path, "cat", "found", "-").value() == 3.0


def test_wall_time_is_that_of_the_command(keeper, tmp_path):
    assert 0.2 <= outcome(keeper, tmp_path, "sleep", "0.2", result=WallTime()).value() < 2


def test_processor_time_includes_that_of_children(keeper, tmp_path):
    work = "while [ $i -lt 20000 ]; do i=$((i+1)); done"
    found = outcome(keeper, tmp_path, "sh", "-c", f"i=0; (i=0; {work}); sleep 0.1", result=UserTime())
    assert 0 < found.value() < found.seconds - 0.05


@pytest.mark.slow
def test_peak_memory_is_that_of_the_command_and_not_of_this_process(keeper, tmp_path):
    grown = bytearray(b"1") * (50 << 20)
    limits = {"seconds": ("<=", 9.0), "user": ("<=", 9.0)}
    readers = {"seconds": WallTime(), "user": UserTime()}
    small = outcome(keeper, tmp_path, "sleep", "0.05", result=MaxRss(), constraints=limits, results=readers)
    assert small.value() < 15 << 20 < len(grown)
    assert 0.05 <= small.value("seconds") < 5
    assert small.value("user") < 0.05
    large = outcome(keeper, tmp_path, PYTHON, "-S", "-c", "b'1' * (60 << 20)", result=MaxRss())
    assert 60 << 20 < large.value() < 100 << 20


@pytest.mark.slow
def test_failures_are_the_same_when_memory_is_measured(keeper, tmp_path):
    assert outcome(keeper, tmp_path, "sh", "-c", "exit 7", result=MaxRss()).failure == "exit code 7"
    assert outcome(keeper, tmp_path, "sh", "-c", "kill -9 $$", result=MaxRss()).failure == "killed by SIGKILL"
    slow = outcome(keeper, tmp_path, "sleep", "60", result=MaxRss(), timeout=0.2)
    assert slow.failure == "still running after 0.2 s (timeout)"
    with pytest.raises(StudyError, match=r"command: './missing' cannot be started in .*: No such file"):
        outcome(keeper, tmp_path, "./missing", result=MaxRss())


def test_preparation_and_warm_up_come_before_the_measured_runs(keeper, tmp_path):
    found = outcome(
        keeper,
        tmp_path,
        *("sh", "-c", "echo run >> log; grep -c run log"),
        prepare=("sh", "-c", "echo {x} $N >> log; echo 99"),
        env={"N": "n{x}"},
        warmup=1,
        repeats=3,
    )
    assert found.value() == 3.0  # the median of 2, 3 and 4
    assert (tmp_path / "log").read_text().split() == ["0.5", "n0.5", "run"] * 4


def test_a_failed_preparation_or_warm_up_is_a_failed_trial(keeper, tmp_path):
    failed = outcome(keeper, tmp_path, "echo", "1", prepare=("sh", "-c", "echo reason >&2; exit 3"))
    assert (failed.value(), failed.failure, failed.stderr) == (None, "prepare: exit code 3", "reason\n")
    assert outcome(keeper, tmp_path, "false", warmup=1).failure == "exit code 1"
    with pytest.raises(StudyError, match=r"prepare: './missing' cannot be started"):
        outcome(keeper, tmp_path, "true", prepare=("./missing",))


COUNTED = ("sh", "-c", "echo >> runs; set -- 5 1 2 9 1000; shift $(($(wc -l < runs) - 1)); echo $1")


@pytest.mark.parametrize(("repeats", "value"), [(1, 5.0), (2, 3.0), (3, 2.0), (5, 5.0)])
def test_the_value_of_repeats_is_their_median_with_its_error(keeper, tmp_path, repeats, value):
    found = outcome(keeper, tmp_path, *COUNTED, repeats=repeats, constraints={"c": ("<=", 1)})
    assert (found.value(), found.value("c")) == (value, value)
    assert (found.reading().noise is None) == (repeats < 5)
    assert found.failure == ""


def test_a_range_of_repeats_ends_when_the_results_are_enough(keeper, tmp_path):
    def found(is_enough):
        (tmp_path / "runs").unlink(missing_ok=True)
        judge = is_enough and SimpleNamespace(limit=math.inf, is_enough=is_enough)
        trial = measure(study(tmp_path, *COUNTED, repeats=(2, 5)), Record(0, {"x": 0.5}), keeper, Event(), judge)
        return [run.value for run in trial.runs()], trial.value()

    assert found(lambda values: True)[0] == [5.0, 1.0]
    assert found(lambda values: values[-1] == 9)[0] == [5.0, 1.0, 2.0, 9.0]
    assert found(None) == ([5.0, 1.0, 2.0, 9.0, 1000.0], 5.0)


def test_the_error_of_a_median_covers_it_and_grows_with_outliers():
    rng = np.random.default_rng(0)
    for size in (5, 9):
        runs = rng.standard_normal((800, size))
        errors = [error_of_median(list(row)) for row in runs]
        assert 0.94 < np.mean(np.abs(np.median(runs, axis=1)) < 1.96 * np.array(errors)) < 0.99
    assert error_of_median([1.0, 2.0, 3.0, 4.0, 30.0]) > 4 * error_of_median([1.0, 2.0, 3.0, 4.0, 5.0])
    assert error_of_median([2.0] * 5) is None


def test_a_busy_machine_and_a_changing_clock_are_reported_for_times_only(tmp_path, monkeypatch):
    timed = study(tmp_path, "true", result=UserTime())
    monkeypatch.setattr(os, "getloadavg", lambda: (0.3, 0.0, 0.0))
    assert disturbances(timed, tmp_path) == []
    for number, governor in enumerate(["performance", "powersave"]):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
    assert [line.partition(" (")[2].partition(")")[0] for line in disturbances(timed, tmp_path)] == [
        "governor powersave"
    ]
    monkeypatch.setattr(os, "getloadavg", lambda: (500.0, 0.0, 0.0))
    assert "other programs are busy (load 500.0 on" in disturbances(timed, tmp_path)[1]
    assert "user-time" not in disturbances(timed, tmp_path)[1]
    assert "--result user-time" in disturbances(study(tmp_path, "true", result=WallTime()), tmp_path)[1]
    assert disturbances(study(tmp_path, "true"), tmp_path) == []


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        (["true"], "no number on standard output, which was empty"),
        (["echo", "nan"], "the result must be a finite number between -1e100 and 1e100, got nan"),
        (["echo", "1e300"], "the result must be a finite number between -1e100 and 1e100, got 1e300"),
        (["false"], "exit code 1"),
        (["sh", "-c", "echo 1; kill -9 $$"], "killed by SIGKILL"),
        (["sh", "-c", "echo 1; kill -SEGV $$"], "killed by SIGSEGV"),
        (["sh", "-c", "echo 1; exit 7"], "exit code 7"),
        (["sh", "-c", "echo 1; echo ERROR 12 >&2"], "its output has 'ERROR 12', which counts as a failure"),
    ],
)
def test_failures_in_words(keeper, tmp_path, command, failure):
    found = outcome(keeper, tmp_path, *command, failure=FailureRules(output=r"ERROR \d+"))
    assert (found.value(), found.failure) == (None, failure)


def test_other_exit_codes_can_be_fine(keeper, tmp_path):
    assert outcome(keeper, tmp_path, "sh", "-c", "echo 1; exit 7", failure=FailureRules((0, 7))).value() == 1.0


FLAKY = "echo >> runs; [ $(wc -l < runs) -ge 3 ] && echo 7"


@pytest.mark.parametrize(("retries", "runs", "value"), [(0, 1, None), (1, 2, None), (2, 3, 7.0), (9, 3, 7.0)])
def test_a_failed_run_is_repeated_as_often_as_the_study_says(keeper, tmp_path, retries, runs, value):
    found = outcome(keeper, tmp_path, "sh", "-c", FLAKY, failure=FailureRules(retries=retries))
    assert found.value() == value
    assert found.failure == ("" if value else "exit code 1")
    assert len((tmp_path / "runs").read_text().splitlines()) == runs


@pytest.mark.slow
def test_stopping_ends_the_retries(keeper, tmp_path):
    stop = Event()
    Timer(0.5, stop.set).start()
    with pytest.raises(Stopped):
        measure(
            study(tmp_path, "sh", "-c", "sleep 0.05; exit 1", failure=FailureRules(retries=1000)),
            Record(0, {}),
            keeper,
            stop,
        )


def test_the_end_of_the_error_output_is_kept(keeper, tmp_path):
    found = outcome(keeper, tmp_path, "sh", "-c", "echo reason >&2; exit 1")
    assert found.stderr == "reason\n"


@pytest.mark.parametrize("name", ["no-such-program", "./missing", "./not-executable"])
def test_a_command_that_cannot_be_started(keeper, tmp_path, name):
    (tmp_path / "not-executable").write_text("echo 1")
    with pytest.raises(StudyError, match=f"command: '{name}' cannot be started"):
        outcome(keeper, tmp_path, name)


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_with_all_its_children(keeper, tmp_path):
    began = time.monotonic()
    found = outcome(
        keeper, tmp_path, "sh", "-c", "trap '' TERM; sleep 60 & echo $! > child; wait; sleep 60", timeout=0.3
    )
    assert found.failure == "still running after 0.3 s (timeout)"
    assert time.monotonic() - began < 10
    wait_for(lambda: not alive(int((tmp_path / "child").read_text())))


def test_what_a_command_leaves_behind_is_ended_and_not_waited_for(keeper, tmp_path):
    began = time.monotonic()
    found = outcome(keeper, tmp_path, "sh", "-c", "sleep 60 & echo $! > child; echo 4")
    assert found.value() == 4.0
    assert time.monotonic() - began < 10
    wait_for(lambda: not alive(int((tmp_path / "child").read_text())))


@pytest.mark.slow
def test_a_process_that_has_left_the_group_is_not_waited_for(keeper, tmp_path):
    began = time.monotonic()
    leave = "import os, time; os.setsid(); open('child', 'w').write(str(os.getpid())); time.sleep(20)"
    found = outcome(
        keeper, tmp_path, "sh", "-c", f'{PYTHON} -S -c "{leave}" & while [ ! -s child ]; do :; done; echo 4'
    )
    assert found.value() == 4.0
    assert time.monotonic() - began < 10
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def test_a_flood_is_ended(keeper, tmp_path):
    found = outcome(keeper, tmp_path, "yes", "1")
    assert found.failure == "printed more than 64 MiB"


def test_of_much_output_the_end_is_kept(keeper, tmp_path):
    run = run_command(["sh", "-c", "yes 1 | head -c 3000000; echo; echo 42"], tmp_path, 60, keeper, Event())
    assert len(run.stdout) == KEPT_BYTES
    assert run.stdout.endswith("\n42\n")
    assert outcome(keeper, tmp_path, "sh", "-c", "yes 1 | head -c 3000000; echo; echo 42").value() == 42.0


def test_bytes_that_are_not_text_do_no_harm(keeper, tmp_path):
    assert outcome(keeper, tmp_path, "printf", r"\377\376 \0 5").value() == 5.0


def test_colours_are_not_read_as_numbers(keeper, tmp_path):
    assert outcome(keeper, tmp_path, "printf", r"\033[1;32m12.5\033[0m\n").value() == 12.5


def test_titles_of_windows_are_not_read_as_numbers(keeper, tmp_path):
    assert outcome(keeper, tmp_path, "printf", r"12.5\n\033]0;99 %% done\007\033]0;100 %%\033\\").value() == 12.5


SLOW = r"(a+)+$"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"result": Pattern(SLOW)}, {"failure": FailureRules(output=SLOW)}])
def test_reading_a_result_has_a_time_limit(keeper, tmp_path, monkeypatch, options):
    monkeypatch.setattr(results.search, "__kwdefaults__", {"last": False, "seconds": 1})
    ticks, over = [], Event()
    Thread(target=lambda: [ticks.append(1) for _ in iter(lambda: over.wait(0.05), True)]).start()
    found = outcome(keeper, tmp_path, "echo", "5 " + "a" * 60 + "!", **options)
    over.set()
    assert found.value() is None
    assert found.failure == f"the regular expression '{SLOW}' takes longer than 1 s on this output: simplify it"
    assert len(ticks) > 5  # no other process was stopped


@pytest.mark.slow
def test_a_match_ends_itself_when_its_caller_is_gone(tmp_path):
    program = f"""
from noregret.studies.study.results import search
search({SLOW!r}, "a" * 60 + "!", seconds=2)
"""
    process = subprocess.Popen([PYTHON, "-c", program])
    wait_for(lambda: children(process.pid), 60)
    (child,) = children(process.pid)
    process.kill()
    process.wait()
    wait_for(lambda: not alive(child))


def children(parent):
    """The processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            found += [int(path.parent.name)] if int(path.read_text().rpartition(")")[2].split()[1]) == parent else []
    return found


def test_stopping_ends_the_command(keeper, tmp_path):
    stop = Event()
    Timer(0.2, stop.set).start()
    with pytest.raises(Stopped):
        measure(study(tmp_path, "sh", "-c", "echo $$ > child; sleep 60"), Record(0, {}), keeper, stop)
    wait_for(lambda: not alive(int((tmp_path / "child").read_text())))


def test_no_value_becomes_a_shell_word(keeper, tmp_path):
    value = f"$(touch {tmp_path}/hit); touch {tmp_path}/hit `touch {tmp_path}/hit` & | > {tmp_path}/hit"
    found = measure(
        Study(tmp_path / "s.toml", ("printf", "%s\n7", "{x}"), space={}), Record(0, {"x": value}), keeper, Event()
    )
    assert found.value() == 7.0
    assert not (tmp_path / "hit").exists()


@pytest.mark.slow
def test_commands_do_not_outlive_a_killed_process(tmp_path):
    check_not_outlived(tmp_path, announced=False)


def check_not_outlived(tmp_path, announced):
    """Raise AssertionError unless a command ends with its caller, which may be killed before it knows its number."""
    program = f"""
from pathlib import Path
from threading import Event
from noregret.studies.measuring import Keeper
from noregret.studies.measuring import run_command
with Keeper() as keeper:
    if not {announced}:
        note = keeper._note
        keeper._note = lambda number, group: note(number, 0)
    run_command(["sh", "-c", "sleep 60 & echo $! > child; wait"], Path({str(tmp_path)!r}), 60, keeper, Event())
"""
    process = subprocess.Popen([PYTHON, "-c", program])
    wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), 60)
    process.kill()
    process.wait()
    wait_for(lambda: not alive(int((tmp_path / "child").read_text())))


STOPPED = """
import sys, time
from pathlib import Path
from threading import Event, Timer
from noregret.studies.measuring import Keeper, interruptible, run_command
folder, command = Path(sys.argv[1]), sys.argv[2:]

class Telling(Keeper):
    def _note(self, number, process):
        super()._note(number, process)
        if process:
            with open(folder / "noted", "a") as file:
                file.write(".")

with interruptible(), Telling() as keeper:
    run_command(["sh", "-c", "setsid sleep 60 & echo $! > earlier; sleep 0.3"], folder, 60, keeper, Event())
    run_command(["sh", "-c", "setsid sleep 60 & echo $! > own; timeout 60 sleep 60 & echo $! > other; "
                 "sleep 60 & echo $! > child; echo > ready; wait"], folder, 60, keeper, Event())
"""


@pytest.mark.slow
def test_servers_in_a_session_of_their_own_survive_a_stop_and_nothing_else_does(tmp_path):
    check_stopped_by(signal.SIGKILL, tmp_path)


def check_stopped_by(number, tmp_path):
    """Raise AssertionError unless a signal ends the commands, but not servers in a session of their own."""
    process = subprocess.Popen([PYTHON, "-c", STOPPED, str(tmp_path)], stderr=subprocess.DEVNULL)
    # until its number is known, a command is found by a mark that servers of its own have too
    wait_for(lambda: (tmp_path / "ready").exists() and (tmp_path / "noted").read_text() == "..", 60)
    pids = {name: int((tmp_path / name).read_text()) for name in ("earlier", "own", "other", "child")}
    try:
        wait_for(lambda: os.getpgid(pids["other"]) == pids["other"])  # timeout has begun a group of its own
        wait_for(lambda: os.getsid(pids["own"]) == pids["own"])  # and setsid a session
        process.send_signal(number)
        process.wait(30)
        wait_for(lambda: not alive(pids["other"]) and not alive(pids["child"]))
        time.sleep(0.5)  # the keeper has ended
        assert alive(pids["earlier"])
        assert alive(pids["own"])
    finally:
        for name in ("earlier", "own"):
            with suppress(ProcessLookupError):
                os.kill(pids[name], signal.SIGKILL)


@pytest.mark.slow
def test_a_command_whose_time_is_up_is_ended_with_all_groups_of_its_session(keeper, tmp_path):
    found = outcome(keeper, tmp_path, "sh", "-c", "timeout 60 sleep 60 & echo $! > other; wait", timeout=0.5)
    assert found.failure == "still running after 0.5 s (timeout)"
    wait_for(lambda: not alive(int((tmp_path / "other").read_text())))


def test_an_interrupted_command_is_killed_without_an_error():
    with suppress(KeyboardInterrupt), Keeper() as keeper:
        process = keeper.start(["sleep", "60"], {})
        waiter = Waiter(process, keeper)
        raise KeyboardInterrupt
    assert waiter.over.wait(10.0)  # its thread is not ended by an exception
    assert process.returncode == -signal.SIGKILL


def test_no_process_is_left_unreaped(keeper, tmp_path):
    for command in (["true"], ["sh", "-c", "kill -9 $$"], ["sleep", "60"]):
        outcome(keeper, tmp_path, *command, timeout=0.2)
    assert not unreaped(os.getpid())


def unreaped(parent):
    """Children of a process that have ended and that it has not asked about."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, its_parent = path.read_text().rpartition(")")[2].split()[:2]
            found += [path] if state == "Z" and int(its_parent) == parent else []
    return found
