"""docs/migrating.md: every block runs, those of other packages if these are installed."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
OTHERS = {"optuna", "botorch", "ax", "skopt", "bayes_opt"}


def _blocks(section):
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def _imported(code):
    found = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom))
    return {name.split(".")[0] for node in found for name in [getattr(node, "module", None) or node.names[0].name]}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split("\n")[0])
def test_blocks_run_where_their_packages_are_installed(section, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in [*_blocks(SECTIONS[0]), *(_blocks(section) if section is not SECTIONS[0] else [])]:
        code = compile(block, "docs/migrating.md", "exec")
        if all(importlib.util.find_spec(name) for name in _imported(block)):
            exec(code, names)
    assert "best" in names
    assert capsys.readouterr().out.count("threads") >= 1


def test_all_of_them_have_a_section():
    assert {name for section in SECTIONS for block in _blocks(section) for name in _imported(block)} >= OTHERS
    assert all("| noregret |" in section for section in SECTIONS[1:])


def test_what_is_called_ours_exists():
    import noregret

    columns = re.findall(r"^\|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE)
    methods = {name for ours in columns for name in re.findall(r"\bopt\.(\w+)", ours)}
    assert len(methods) >= 8
    assert all(hasattr(noregret.Optimizer, name) for name in methods)
