"""Cost of imports, counted in modules and not in seconds, and names after `import noregret`."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import noregret
from noregret import moved, names

STUDY = """
command = ["echo", "{x}"]
budget.evaluations = 9
[parameters.x]
type = "float"
low = 0
high = 1
"""
SLOW = {"optimize", "sparse", "spatial", "special", "stats"}


def imported_by(program, *args):
    """The modules that a program has imported when it ends, beyond those that Python starts with."""
    show = "import atexit, sys; start = set(sys.modules); "
    show += "atexit.register(lambda: print(*sorted(set(sys.modules) - start), file=sys.stderr)); "
    done = subprocess.run([sys.executable, "-c", show + program, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_importing_noregret_imports_nothing_else():
    ours = {name for name in imported_by("import noregret") if name.startswith("noregret")}
    assert ours == {"noregret", "noregret.moved"}
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
@pytest.mark.parametrize("parts", ["noregret.Policy, noregret.run, noregret.plot.regret", "noregret.Optimizer"])
def test_the_public_names_come_without_scipy_stats(parts):
    modules = imported_by(f"import noregret; {parts}")
    assert ("noregret.names" in modules) == ("Policy" in parts), "who tunes waits for no laboratory"
    assert not {"scipy.stats", "matplotlib", "rich", "optuna"} & modules


def test_who_tunes_waits_for_no_laboratory_no_scipy_and_no_database_library(tmp_path):
    modules = imported_by("from noregret import Float, Optimizer")
    assert not [name for name in modules if name.startswith("noregret.bandits")]
    (tmp_path / "s.toml").write_text(STUDY)
    modules = imported_by("from noregret.cli import main; main()", "tune", "--dry-run", str(tmp_path / "s.toml"))
    assert "noregret.studies.running" in modules
    assert len([name for name in modules if name.startswith("noregret.bandits")]) <= 3, "the options of `reproduce`"
    assert not {"scipy", "optuna", "sqlalchemy", "alembic", "matplotlib"} & modules


def test_module_paths_of_1_0_lead_to_the_same_modules_with_a_warning():
    program = "import sys, warnings; warnings.simplefilter('ignore'); "
    for old, new in (
        ("belief.exact", "bandits.belief.exact"),
        ("belief.posterior", "gp.posterior"),
        ("algorithms.catoni", "bandits.algorithms.catoni"),
        ("experiments.figure", "bandits.lab.figure"),
        ("tune.service.live", "service.live"),
        ("tune.work.tracking", "studies.running"),
        ("tune.store.databases.copies", "studies.store.databases.sqlite"),
    ):
        program += f"import noregret.{old}, noregret.{new}; "
        program += f"assert sys.modules['noregret.{old}'] is sys.modules['noregret.{new}']; "
    imported_by(program)
    with pytest.warns(DeprecationWarning, match=r"noregret.decision is noregret.bandits.decision since noregret 1.1"):
        importlib.import_module("noregret.decision")


@pytest.mark.slow
def test_a_store_needs_no_package_of_others():
    study = 'Study(Path("s.toml"), ("m",), space={"x": Float(0, 1)}, storage="sqlite:///s.db")'
    program = f"""
from pathlib import Path
from tempfile import TemporaryDirectory
import os
from noregret.optimizer import Float
from noregret.studies.store.store import Store
from noregret.studies.study.study import Study
with TemporaryDirectory() as folder:
    os.chdir(folder)
    Store({study}).close()
"""
    modules = imported_by(program)
    assert "sqlite3" in modules
    assert not {"optuna", "sqlalchemy", "alembic", "psycopg"} & modules


def test_every_public_name_is_an_attribute_and_listed():

    assert {*names.__all__, "__version__"} <= set(dir(noregret))
    for name in names.__all__:
        assert getattr(noregret, name) is getattr(names, name)
    assert noregret.__version__[0].isdigit()


def test_names_of_1_0_lead_to_the_same_things_with_a_warning():
    for old, new in moved.RENAMED.items():
        with pytest.warns(DeprecationWarning, match=f"noregret.{old} is noregret.{new} since noregret 1.1") as caught:
            assert getattr(noregret, old) is getattr(names, new)
        assert caught[0].filename == __file__
        assert old not in dir(noregret)


def test_what_does_not_exist_is_said():
    with pytest.raises(AttributeError, match="module 'noregret' has no attribute 'Polizy'"):
        noregret.Polizy  # noqa: B018
    with pytest.raises(ImportError, match="Polizy"):
        from noregret import Polizy  # noqa: F401


def test_star_imports_the_public_names():
    known = {}
    exec("from noregret import *", known)
    assert set(names.__all__) <= set(known)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("old", "name", "new"),
    [
        ("belief.exact", "ExactGP", "belief.exact"),
        ("belief.features.fourier", "FourierMap", "belief.features"),
        ("belief.cluster.blocks", "Blocks", "belief.cluster"),
        ("belief.numerics.columns", "KernelColumns", "belief.factor"),
        ("decision.threshold_tree", "ThresholdTree", "decision.trees"),
        ("algorithms.sketching", "bkb", "algorithms.sketching"),
        ("problems.changing", "Changing", "problems.problem"),
        ("experiments.summary", "mean_interval", "lab.trace"),
    ],
)
def test_a_path_of_1_0_leads_to_the_same_object(old, name, new):
    found = getattr(importlib.import_module(f"noregret.{old}"), name)
    assert found is getattr(importlib.import_module(f"noregret.bandits.{new}"), name)


def test_no_contract_is_about_a_module_that_only_hands_names_on():
    root = Path(__file__).parents[1]
    linter = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    modules = {module for module in re.findall(r"noregret[.\w]*", str(linter["contracts"])) if "." in module}
    files = [root / "src" / module.replace(".", "/") for module in modules]
    assert len(files) > 10
    alone = [file.with_suffix(".py") for file in files if file.with_suffix(".py").exists()]
    assert [file.name for file in alone if re.search(r"^from .* import \*", file.read_text(), re.MULTILINE)] == []
