"""Packaging: the name, the line about missing programs, and bounds that `make versions` can read."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from noregret import extra
from noregret.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TOOLS = r"\b(?:pip3?|uvx?|easy_install|conda|mamba|micromamba|pixi|poetry|pdm|rye)\b"
OTHERS = r"(?:[\s=]+(?!(?:uninstall|remove|show|in|of|a|the|and|with|for)\b)[^\s;&|#`=]+)*?"
"""Options and packages before the name, in the same command."""
STRANGER = re.compile(
    rf"""
    {TOOLS}(?!\s+run\s+noregret){OTHERS}[\s=]+["'`]*noregret(?![\w./:-]) # pip install NAME, uvx --from NAME
    | pipx{OTHERS}[\s=]+["'`]*noregret(?![\w./:-])
    | (?<![\w./-])noregret\[\w                      # NAME[tune]
    | (?<![\w./-])noregret\s?(?:[<>=~!]=|[<>]\s?\d)\s?[\d{{] # NAME>=1.1
    | (?:dependencies|requires)\s?=\s?\[[^]]*["']noregret["']
    | (?:version|distribution|metadata|requires)\(["']noregret["']
    """,
    re.VERBOSE,
)
"""Instructions and code that are about the distribution noregret, which is another project's on the index."""


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


def _texts():
    """Every text of the project, of the changelog only what is not released."""
    kept = [
        ROOT / name
        for name in (*PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"], "pyproject.toml")
    ]
    for path in (path for place in kept for path in ([place] if place.is_file() else sorted(place.rglob("*")))):
        if path.is_file() and path.suffix not in {".pyc", ".png", ".gz", ".npz", ".db"}:
            text = path.read_text("utf-8", errors="replace")
            yield path.relative_to(ROOT), text.partition("\n## 1")[0] if path.name == "CHANGELOG.md" else text


def test_no_instruction_fetches_the_other_project_of_this_name():
    texts = dict(_texts())
    assert {Path("README.md"), Path("src/noregret/extra.py"), Path("pyproject.toml")} <= texts.keys()
    lines = ((path, line) for path, text in texts.items() for line in text.replace("\\\n", " ").splitlines())
    lines = ((path, f"pip install {line}" if path.name == "requirements.txt" else line) for path, line in lines)
    found = [f"{path}: {line.strip()}" for path, line in lines if "noregret" in line and STRANGER.search(line)]
    assert found == [], "write noregret-tuner, or an installation from a clone: pip install '.[tune]'"


@pytest.mark.parametrize(
    "line",
    [
        "pip install NAME",
        "pip3 install -U 'NAME[tune]'",
        "`uvx NAME versus`",
        "uv pip install numpy NAME",
        "uv add NAME",
        "pipx run NAME",
        "uvx --from NAME noregret-x",
        "uv run --with NAME x.py",
        "conda install -c conda-forge NAME",
        "'NAME[postgresql]'",
        "NAME[optuna]>=1.1",
        "NAME >=1.1",
        '# dependencies = ["numpy", "NAME"]',
        'version("NAME")',
    ],
)
def test_instructions_that_fetch_it_are_found(line):
    assert STRANGER.search(line.replace("NAME", "noregret"))
    assert not STRANGER.search(line.replace("NAME", "noregret-tuner"))


@pytest.mark.parametrize(
    "line",
    [
        "pip install '.[tune]' && noregret tune",
        "pip install . # noregret",
        "`pip install .` in a clone of noregret",
        "pip uninstall noregret noregret-tuner",
        "noregret list",
        "from noregret import Float",
        "uv run noregret tune",
        "pip install ./noregret",
    ],
)
def test_other_lines_with_the_name_are_kept(line):
    assert not STRANGER.search(line)


def test_the_name_of_the_distribution_is_one():
    names = {extra.DISTRIBUTION, PROJECT["project"]["name"]}
    names.add(yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text("utf-8"))["context"]["name"])
    assert names == {"noregret-tuner"}
    extras = PROJECT["project"]["optional-dependencies"]
    asked = {*re.findall(r"noregret-tuner\[([\w,-]+)\]", (ROOT / "pyproject.toml").read_text("utf-8"))}
    for _, text in _texts():
        asked |= {*re.findall(r"""pip install ["']\.\[([\w,-]+)\]""", text)}
    assert "tune,lab" in asked
    assert {name for names in asked for name in names.split(",")} <= extras.keys()


def test_the_version_of_another_distribution_is_not_taken_for_ours(monkeypatch, capsys):
    assert extra.version.__wrapped__() == PROJECT["project"]["version"]
    monkeypatch.setattr(extra, "DISTRIBUTION", "noregret-not-installed")
    with pytest.raises(extra.MissingExtra, match=r"not installed: run pip install \. in"):
        extra.version.__wrapped__()
    monkeypatch.setattr("noregret.cli.version", extra.version.__wrapped__)
    with pytest.raises(SystemExit, match="2"):
        main(["--version"])
    assert "noregret-not-installed is not installed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first_line", "info", "code"),
    [(None, "noregret_tuner-1.1.0", 0), (None, "noregret-0.0.0", 0), ("", "noregret-0.0.0", 2), ("", "", 2)],
)
def test_another_distribution_in_the_same_folder_is_named(tmp_path, first_line, info, code):
    shutil.copytree(ROOT / "src" / "noregret", tmp_path / "noregret", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / f"{info}.dist-info").mkdir()
    if first_line is not None:
        (tmp_path / "noregret" / "__init__.py").write_text(first_line)
    command = [sys.executable, "-m", "noregret", "--help"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code, done.stderr
    assert ("tune a command" in done.stdout) == (code == 0)
    if info == "noregret_tuner-1.1.0":
        assert done.stderr == ""
    else:
        assert done.stderr.count("\n") == 1
        assert (
            f"noregret: {info.replace('-', ' ') or 'another distribution'} has written to the folder of noregret-tuner"
        ) in done.stderr
