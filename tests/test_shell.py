"""Completion scripts and logs of the command line."""

import logging
import subprocess
import sys

import pytest

from noregret import Float, Optimizer
from noregret.cli import main


@pytest.fixture
def quiet():
    """The library's logger, restored afterwards."""
    log = logging.getLogger("noregret")
    handlers, level = list(log.handlers), log.level
    yield log
    log.handlers[:], log.level = handlers, level
    log.setLevel(level)


COMPLETE = """
source completion.sh
COMP_WORDS=(noregret {words}) COMP_CWORD={last}
_shtab_noregret
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [("tu", "tune"), ("tune --mi", "--migrate"), ("export s.toml --pa", "--parquet"), ("tune st", "study.toml")],
)
def test_bash_completes_commands_options_and_files(tmp_path, capsys, words, expected):
    assert main(["completion", "bash"]) == 0
    (tmp_path / "completion.sh").write_text(capsys.readouterr().out)
    (tmp_path / "study.toml").touch()
    script = COMPLETE.format(words=words, last=len(words.split()))
    found = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [expected]


def test_without_the_extra_completion_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "zsh"]) == 2
    assert "pip install '.[completion]'" in capsys.readouterr().err


def test_the_library_logs_to_one_logger_that_is_quiet_by_default():
    script = "import logging, noregret; logging.getLogger('noregret').warning('heard?')"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("", "")


def test_the_optimizer_says_what_it_has_fitted(caplog):
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    for i in range(6):
        opt.tell({"x": i / 5}, (i - 2.5) ** 2)
    with caplog.at_level(logging.DEBUG, logger="noregret"):
        opt.best()
    assert any("fitted after 6 answers: noise" in record.getMessage() for record in caplog.records)


STUDY = """
command = ["echo", "{x}"]
[budget]
evaluations = 1
[parameters.x]
type = "int"
low = 1
high = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", [0, 1])
def test_v_shows_the_log_wherever_it_stands(tmp_path, capsys, quiet, where):
    path = tmp_path / "s.toml"
    path.write_text(STUDY)
    command = ["tune", str(path)]
    assert main([*command[:where], "-v", *command[where:]]) == 0
    assert "noregret: trial 0: echo 1\n" in capsys.readouterr().err


def test_without_v_nothing_is_logged(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(STUDY)
    assert main(["tune", str(path)]) == 0
    assert capsys.readouterr().err == ""
