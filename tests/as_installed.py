"""Tests of noregret as installed, with its three dependencies only. ``make wheel`` runs it, pytest does not."""

import re
import subprocess
import sys
from contextlib import chdir
from importlib.metadata import distributions, metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import noregret

EXTRAS = {
    "init study.toml": "tune",
    "schema": "tune",
    "tune study.toml": "tune",
    "report study.toml": "tune",
    "watch study.toml": "tune",
    "reproduce bkb/fig1 --quick": "lab",
    "run random --problem rkhs-se --plot regret.png": "lab",
    "run random --problem rkhs-se": "lab",
}


def command(arguments):
    """Run a command as a user would."""
    words = [str(Path(sys.executable).with_name("noregret")), *arguments.split()]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def check_the_environment():
    """Check that only the package, its dependencies and pip are installed."""
    found = {distribution.name.lower() for distribution in distributions()}
    assert found - {"pip", "setuptools", "wheel"} == {"noregret-tuner", "numpy", "scipy", "threadpoolctl"}, found
    assert not any(map(find_spec, ("matplotlib", "rich", "optuna", "pydantic")))


def check_the_readme():
    """Check that the code of the README, from the metadata of the wheel, runs."""
    text = str(metadata("noregret-tuner").get_payload())
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    names = {}
    with TemporaryDirectory() as folder, chdir(folder):
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
    assert abs(names["result"].params["cache"] - 0.6) < 0.15


def check_the_commands():
    """``list``, ``--version`` and ``versus`` work; a command that needs an extra says which."""
    names = command("list")
    assert names.returncode == 0, names.stderr
    assert "igp-ucb" in names.stdout
    assert command("--version").stdout == f"noregret {noregret.__version__}\n"
    compared = command("versus true true --budget 1")
    assert compared.returncode == 4, compared.stderr
    for arguments, extra in EXTRAS.items():
        refused = command(arguments)
        assert refused.returncode == 2, (arguments, refused.stderr)
        assert refused.stderr.count("\n") == 1, (arguments, refused.stderr)
        said = f"of the extra noregret-tuner[{extra}]: pip install '.[{extra}]'"
        assert said in refused.stderr, (arguments, refused.stderr)


def check_the_data():
    """Check that the measured data are installed."""
    assert len(noregret.problems.stocks().means) == 29
    assert len(noregret.problems.latency().means) == 98


if __name__ == "__main__":
    check_the_environment()
    check_the_readme()
    check_the_commands()
    check_the_data()
    print(f"noregret {noregret.__version__} works as installed: {Path(noregret.__file__).parent}")
