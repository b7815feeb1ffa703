"""First pages: their code runs as it stands there, and the study files on them are valid."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import noregret
from noregret.studies.study.reading import load

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/index.md")
MOST_WORDS = 900


def blocks(page, language):
    """Code blocks of a page without prompts."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in found if ">>>" not in block]


@pytest.mark.parametrize("page", PAGES)
def test_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {}, io.StringIO()
    assert len(blocks(page, "python")) >= 1
    with contextlib.redirect_stdout(printed):
        for block in blocks(page, "python"):
            exec(compile(block, page, "exec"), names)
    assert printed.getvalue().count("\n") >= 1
    best = names["result"].best
    assert best.lower <= best.estimate <= best.upper
    if page == "README.md":
        assert 4 <= best.params["threads"] <= 16, "as the page says"
        assert abs(best.params["cache"] - 0.6) < 0.15
        assert (tmp_path / "latency.html").stat().st_size > 5000


@pytest.mark.parametrize("page", PAGES)
def test_study_files_are_valid(page, tmp_path):
    for text in blocks(page, "toml"):
        path = tmp_path / "study.toml"
        path.write_text(text)
        assert load(path).budget.rounds == 100


def test_the_readme_is_short_and_has_no_prompts():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= MOST_WORDS
    assert ">>>" not in text
    assert "make demo" in text
    assert "make test" in text
    table = text.partition("## Choose it or not")[2].partition("\n\n[")[0]
    assert len(re.findall(r"\d+(?:\.\d+)?", table)) <= 3


def test_the_paper_has_about_a_thousand_words_and_its_citations_resolve():
    _, front, body = (ROOT / "paper.md").read_text("utf-8").split("---\n", 2)
    for field in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert re.search(rf"^{field}:", front, re.MULTILINE), field
    parts = [
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
        "References",
    ]
    assert set(parts) <= set(re.findall(r"^# (.*)$", body, re.MULTILINE))
    assert 750 <= len(body.split()) <= 1250
    known = re.findall(r"^@\w+\{(\w+),$", (ROOT / "paper.bib").read_text("utf-8"), re.MULTILINE)
    assert len(known) == len(set(known))
    assert set(re.findall(r"@(\w+)", body)) == set(known)
