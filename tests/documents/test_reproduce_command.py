"""More of `tests.bandits.lab.test_reproduce_command`, nightly."""

import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.bandits.lab.test_reproduce_command import SMALL, command, trials_in

from noregret.bandits.lab.page import runs_in
from noregret.cli import main


@pytest.mark.parametrize(("end", "jobs"), [(signal.SIGINT, 2), (signal.SIGKILL, 1)])
def test_a_stopped_run_goes_on_where_it_was(tmp_path, end, jobs):
    args = command("kernelized/fig1", "--rounds", 1500, "--trials", 2, "--jobs", jobs, "--out", tmp_path)
    run = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    limit = time.monotonic() + 60
    while trials_in(tmp_path) < 4 and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(run.pid, end)
    _, errors = run.communicate(timeout=60)
    done = trials_in(tmp_path)
    assert 4 <= done < 20
    if end == signal.SIGINT:
        assert run.returncode == 130
        assert errors == f"\nnoregret: stopped; finished trials are kept in {tmp_path}\n"
    again = subprocess.run(args, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0, again.stderr
    (log,) = runs_in(tmp_path)
    assert log["run"] <= 20 - done
    assert log["run"] + log["kept"] == 20
    assert trials_in(tmp_path) == 20


def test_on_a_terminal_there_are_bars_for_the_whole_and_for_each_figure(tmp_path):
    screen, terminal = pty.openpty()
    args = command("bkb/fig1", "heavy-tails/fig1b", *SMALL, "--out", tmp_path)
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    run = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=terminal, env=environment)
    os.close(terminal)
    seen = b""
    try:
        while chunk := os.read(screen, 4096):
            seen += chunk
    except OSError:  # the terminal is gone: the command has ended
        pass
    os.close(screen)
    assert run.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())
    for name in ("everything", "bkb/fig1", "heavy-tails/fig1b"):
        assert re.search(rf"{name} .*100%.*left", text), text
    assert re.search(r"bkb/fig1: claims: [1-3] \w", text)


def test_quick_has_a_folder_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "bkb/fig1", "--quick", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.endswith(f"{Path('reproduction/quick/index.html')}\n")


def test_figures_without_their_data_are_left_out_with_a_word(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NOREGRET_DATA", str(tmp_path))
    assert main(["reproduce", "bkb/fig1", "heavy-tails/fig1d", *SMALL, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("bkb/fig1: claims")
    assert f"heavy-tails/fig1d is left out: stocks_dow29.csv not found in {tmp_path}" in err
