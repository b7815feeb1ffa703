"""docs/tutorials.md: its scripts run, and print what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import needs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"<!-- tutorial: (\w+) -->\n```text\n(.*?)```", PAGE, re.DOTALL))
WARNINGS = ("-W", "error", "-W", "ignore::DeprecationWarning")  # of old versions of other packages


def _script(name):
    (path,) = (ROOT / "examples").rglob(f"{name}.py")
    return path


def _words(text):
    """A text without its numbers, which differ a little among versions and machines."""
    return re.sub(r"-?[\d.,]+", "#", text)


@pytest.mark.parametrize("name", SHOWN)
def test_tutorials_print_what_the_page_shows(name, tmp_path):
    if "torch" in name or "gpu" in name:
        needs("torch")
    command = [sys.executable, *WARNINGS, _script(name), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    assert _words(done.stdout) == _words(SHOWN[name])
    assert f'--8<-- "{_script(name).relative_to(ROOT)}"' in PAGE
    for picture in tmp_path.glob("*.svg"):
        assert f"](pictures/{picture.name})" in PAGE


def test_every_tutorial_is_on_the_page_and_short():
    scripts = sorted((ROOT / "examples" / "tutorials").glob("*.py"))
    assert {path.stem for path in scripts} < set(SHOWN)
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 50 for path in scripts)
