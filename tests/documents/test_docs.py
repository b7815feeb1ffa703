"""The documentation: it builds without a warning and without the network, and its examples were run."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import noregret.names

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WARNINGS = ("-W", "error", "-W", "ignore::DeprecationWarning")  # of old versions of other packages
EXAMPLES = {
    "optimizer_drift": ["optimizer_drift.svg"],
    "first_steps": ["first_steps.svg"],
    "heavy_tails": ["heavy_tails.svg"],
    "many_arms": ["many_arms.svg", "shrinking.svg"],
    "own_kernel": ["own_kernel.svg"],
    "compare_on_a_table": ["compare_on_a_table.svg"],
    "contexts_and_drift": ["contexts.svg", "drift.svg"],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built strictly; invalid proxies make sure that nothing is fetched."""
    folder = tmp_path_factory.mktemp("site")
    nowhere = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https", "all")}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


def test_the_site_has_every_page_that_was_asked_for(site):
    for page in (
        *(
            "index",
            "concepts",
            "guarantees",
            "lab",
            "gallery",
            "beyond",
            "examples",
            "architecture",
            "contributing",
            "data",
            "api/belief",
            "api/algorithms",
        ),
        *(f"papers/{paper}" for paper in ("kernelized", "heavy-tails", "bkb", "reds")),
    ):
        assert (site / f"{page}.html").stat().st_size > 5000, page
    concepts = (site / "concepts.html").read_text()
    for algorithm in ("GP-UCB, IGP-UCB", "ATA-GP-UCB", "BBKB", "GP-ThreDS"):
        assert f"<td>{algorithm}</td>" in concepts


def test_the_architecture_names_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = [path.name for path in (ROOT / "src" / "noregret").iterdir() if (path / "__init__.py").is_file()]
    assert len(rooms) == 7
    assert all(f"| `{room}` |" in page for room in rooms)
    assert "](pictures/architecture.svg)" in page


def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text), page
        assert not re.search(r'<link[^>]+rel="(?:stylesheet|preconnect|preload)"[^>]+href="(?:https?:)?//', text), page


def test_signatures_and_tables_come_from_the_docstrings(site):
    text = (site / "api" / "algorithms.html").read_text()
    for builder in ("igp_ucb", "ata_gp_ucb", "bkb", "reds"):
        assert re.search(rf'id="noregret\.bandits\.algorithms\.\w+\.{builder}"', text)
    assert "====" not in re.sub(r"<[^>]+>", "", text)


def test_every_public_name_is_in_the_reference(site):
    reference = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    modules = {"algorithms", "problems", "plot"}  # each has a page of its own
    homes = {"kernels", "models", "rules", "loops", "schedules"}
    builders = [*noregret.algorithms.NAMES.values(), *noregret.problems.NAMES.values()]
    names = {*noregret.names.__all__} - modules - homes | {getattr(b, "func", b).__name__ for b in builders}
    names |= {
        "Observation",
        "Estimate",
        "Gain",
        "Measurement",
        "NoRegretSampler",
        "Posterior",
        "Share",
    }  # types of results and arguments
    assert {name for name in names if not re.search(rf'id="noregret\.[\w.]*\b{name}"', reference)} == set()
    assert all((site / "api" / f"{module}.html").exists() for module in modules)
    front = (site / "api" / "index.html").read_text()
    assert {home for home in homes if f"noregret.{home}" not in front} == set()


def test_search_works_from_disk(site, browser):
    assert "truncation" in (site / "search" / "search_index.js").read_text()
    page = f"file://{site}/index.html?q=truncation"
    found = browser(page, "--virtual-time-budget=20000", "--dump-dom").stdout
    results = re.findall(r'href="file://[^"]*/([\w/-]+)\.html[^"]*" class="md-search-result__link"', found)
    assert "0010-how-rewards-become-a-mean" in results


def test_tables_of_docstrings_become_markdown():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table = "Before.\n\n===  ======\na    b\n===  ======\nx    |y|\n     more\nz    1\n===  ======\n\nAfter."
    assert module.converted(table) == "Before.\n\n| a | b |\n| --- | --- |\n| x | \\|y\\| more |\n| z | 1 |\n\nAfter."


def test_the_table_of_doors_is_that_of_the_code():
    spec = importlib.util.spec_from_file_location("doors", ROOT / "docs" / "doors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "doors.md").read_text() == module.page()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_and_their_pictures_are_in_the_docs(name, tmp_path):
    script = ROOT / "examples" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, *WARNINGS, script, tmp_path], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(EXAMPLES[name])
    page = (ROOT / "docs" / "examples.md").read_text()
    for picture in EXAMPLES[name]:
        assert f"](pictures/{picture})" in page
        assert (ROOT / "docs" / "pictures" / picture).stat().st_size > 5000
    assert len(script.read_text().splitlines()) < 70


def test_tables_are_whole_and_nothing_is_left_to_fill_in():
    """A row after an empty line is no row, and a word in capitals on a line of its own is a place for text."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text()
        alone = re.findall(
            r"\n\n\|.*\n(?!\|[ :|-]+\|\n)", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        )
        assert alone == [], page
        assert re.findall(r"^(?:TABLE|TODO|TBD|FIXME|XXX)$", text, re.MULTILINE) == [], page


def test_code_fits_the_width_of_the_page():
    """Lines have at most 88 characters, except for output."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    fence = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
    found = [(page.name, *block) for page in pages for block in fence.findall(page.read_text())]
    blocks = [(name, block) for name, language, block in found if language not in ("text", "console")]
    assert len(blocks) > 50
    assert [(name, line) for name, block in blocks for line in block.splitlines() if len(line) > 88] == []
