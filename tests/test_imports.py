"""Cost of imports, counted in modules and not in seconds, and names after `import noregret`."""

import subprocess
import sys

import pytest

import noregret
from noregret import names

SLOW = {"optimize", "sparse", "spatial", "special", "stats"}


def imported_by(program, *args):
    """The modules that a program has imported when it ends, beyond those that Python starts with."""
    show = "import atexit, sys; start = set(sys.modules); "
    show += "atexit.register(lambda: print(*sorted(set(sys.modules) - start), file=sys.stderr)); "
    done = subprocess.run([sys.executable, "-c", show + program, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_importing_noregret_imports_nothing_else():
    assert len([name for name in imported_by("import noregret") if name.startswith("noregret")]) == 1
    assert not {"numpy", "scipy"} & imported_by("import noregret")


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_line_answers_without_the_slow_parts_of_scipy(option):
    modules = imported_by("from noregret.cli import main; main()", option)
    assert "noregret.cli" in modules
    assert not {f"scipy.{part}" for part in SLOW} & modules
    assert not {"noregret.algorithms", "noregret.problems", "matplotlib", "rich", "optuna"} & modules
    assert len([name for name in modules if name.startswith("noregret")]) < 25


@pytest.mark.slow
@pytest.mark.parametrize("part", ["Policy", "Optimizer", "run"])
def test_the_public_names_come_without_scipy_stats(part):
    modules = imported_by(f"import noregret; noregret.{part}")
    assert ("noregret.names" in modules) == (part != "Optimizer"), "who tunes waits for no laboratory"
    assert not {"scipy.stats", "matplotlib", "rich", "optuna"} & modules


def test_every_public_name_is_an_attribute_and_listed():
    assert {*names.__all__, "__version__"} <= set(dir(noregret))
    for name in names.__all__:
        assert getattr(noregret, name) is getattr(names, name)
    assert noregret.__version__[0].isdigit()


def test_what_does_not_exist_is_said():
    with pytest.raises(AttributeError, match="module 'noregret' has no attribute 'Polizy'"):
        noregret.Polizy  # noqa: B018
    with pytest.raises(ImportError, match="Polizy"):
        from noregret import Polizy  # noqa: F401


def test_star_imports_the_public_names():
    known = {}
    exec("from noregret import *", known)
    assert set(names.__all__) <= set(known)
