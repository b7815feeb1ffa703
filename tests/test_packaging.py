"""Packaging: the line about missing programs, and bounds that `make versions` can read."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def no_browser(tmp_path):
    """Runs two tests of which one needs a browser, on a machine without one."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text("def test_page(browser):\n    pass\n\ndef test_other():\n    pass\n")

    def run(**environment):
        known = {key: value for key, value in os.environ.items() if key not in ("CI", "PYTEST_ADDOPTS")}
        args = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path]
        known |= {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment
        return subprocess.run(args, env=known, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return run


def test_what_the_machine_lacks_is_said_in_one_line(no_browser):
    done = no_browser()
    assert done.returncode == 0, done.stdout
    said = "1 skipped, as this machine lacks chromium: sudo apt-get install chromium"
    assert [line for line in done.stdout.splitlines() if "lacks" in line] == [said]


def test_nothing_is_skipped_in_ci(no_browser):
    done = no_browser(CI="1")
    assert done.returncode == 1
    assert "needs chromium: .ci/run installs it" in done.stdout
    assert "lacks" not in done.stdout


def test_every_requirement_has_a_lowest_version():
    done = subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in lines)
    assert {"numpy", "optuna", "matplotlib", "psycopg", "pytest"} <= {line.partition("=")[0] for line in lines}
    assert len({line.partition("=")[0] for line in lines}) == len(lines)


def test_the_version_is_the_same_wherever_it_stands():
    places = {
        "pyproject.toml": r'^version = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## (\d.+)$",
        "recipe/recipe.yaml": r'^  version: "(.+)"$',
    }
    first = [re.search(line, (ROOT / name).read_text("utf-8"), re.MULTILINE)[1] for name, line in places.items()]
    assert first == [first[0]] * 4


def test_the_recipe_for_conda_says_what_the_project_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text("utf-8"))
    assert recipe.keys() == {
        *("schema_version", "context", "package", "source", "build", "requirements", "tests", "about", "extra")
    }
    assert recipe["build"]["noarch"] == "python"
    described, needed = project["project"], recipe["requirements"]
    assert [word.replace(" ", "") for word in needed["run"][1:]] == described["dependencies"]
    assert f">={recipe['context']['python_min']}" == described["requires-python"]
    assert needed["host"][2].replace(" ", "") == project["build-system"]["requires"][0]
    assert recipe["build"]["python"]["entry_points"] == [f"noregret = {described['scripts']['noregret']}"]
    assert recipe["about"]["summary"] == described["description"]
    extras = {word for words in described["optional-dependencies"].values() for word in words}
    for word in needed["run_constraints"]:
        assert word.replace(" ", "").replace("-base", "") in extras
    assert recipe["tests"][0]["python"]["pip_check"] is True


def test_the_wheel_has_the_plugin_of_hydra_in_a_namespace():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == ["src/noregret", "src/hydra_plugins"]
    plugins = ROOT / "src" / "hydra_plugins"
    assert not (plugins / "__init__.py").exists()  # others have plugins in it, too
    assert (plugins / "hydra_noregret_sweeper" / "noregret_sweeper.py").exists()
