"""The examples of docs/neighbours.md: each prints what is shown below it."""

import re
import sys
from pathlib import Path

import pytest
from tests.conftest import needs

for name in ("optunahub", "kernel_tuner", "simopt.directory"):
    needs(name)

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "neighbours.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=["optunahub", "kernel_tuner", "simopt"])
def test_an_example_prints_what_is_shown(code, shown, tmp_path, monkeypatch, capsys):
    (tmp_path / "package").symlink_to(ROOT / "package")
    monkeypatch.chdir(tmp_path)
    if "simopt.experiment.single" in sys.modules:
        monkeypatch.setattr(sys.modules["simopt.experiment.single"], "EXPERIMENT_DIR", tmp_path)
    exec(compile(code, "docs/neighbours.md", "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out
    # the same words; numbers may differ a little between machines
    assert NUMBER.sub("#", printed).split("#")[0] == NUMBER.sub("#", shown).split("#")[0]
    close = [float(number) for number in NUMBER.findall(shown)]
    assert [float(number) for number in NUMBER.findall(printed)] == pytest.approx(close, rel=0.3)
