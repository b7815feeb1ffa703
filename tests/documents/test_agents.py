"""docs/agents.md: the session on it is what the example prints, and its tools are the server's."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from noregret.service.mcp import TOOLS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def _words(text):
    """A text without its numbers, line ends, and the option that is to be measured first, which is drawn at random."""
    words = re.sub(r'"next": "[AB]"|-?[\d.,]*\d[\d.,]*', "#", text).split()
    return re.sub(r"#( #)+", "#", " ".join(words))


def test_the_session_is_what_the_example_prints(tmp_path):
    (shown,) = re.findall(r"<!-- session -->\n```text\n(.*?)```", PAGE, re.DOTALL)
    command = [sys.executable, "-W", "error::UserWarning", ROOT / "examples" / "agent.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    assert _words(done.stdout) == _words(shown)
    assert list(tmp_path.iterdir()) == []


def test_the_page_has_all_tools_and_a_configuration_that_starts_the_server():
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == TOOLS.keys()
    (snippet,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    server = json.loads(snippet)["mcpServers"]["noregret"]
    assert [server["command"], *server["args"][:2]] == ["noregret", "mcp", "--storage"]
    help = subprocess.run(
        [sys.executable, "-m", "noregret", "mcp", "--help"], capture_output=True, text=True, check=True
    )
    assert "--storage" in help.stdout
