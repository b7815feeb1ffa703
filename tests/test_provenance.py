"""Stored results: each has a date and the digest of its code, and pages quote no stale one without its date."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the benchmarks are not part of the package

from benchmarks import provenance, quotes  # noqa: E402

PAGES = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions")]
PAGES.remove(ROOT / "CHANGELOG.md")  # a record of the past
ENTRY = {"command": "python -m benchmarks.waves", "folders": ["belief"]}


def _tree(root, text):
    path = root / "src" / "noregret" / "belief" / "waves.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return provenance.digest(["belief"], root)


def undated(page, quoted, stale):
    """Sections of a page that quote a stale result without its date.

    A section quotes a result if it contains its command, its path or one of the texts in ``quoted``, by result.
    """
    for section in sections(page):
        text = " ".join(section.split())
        for name, entry in stale.items():
            signs = [f"results/{name}", *quoted.get(name, [])]
            names_it = _is_command(entry["command"], text) or any(sign in text for sign in signs)
            if names_it and provenance.measured_on(entry) not in text:
                yield f"{section.splitlines()[0][:60]!r} quotes {name} without {provenance.measured_on(entry)}"


def sections(page):
    """Parts of a page, each from a heading to the next; comments in blocks of code are no headings."""
    parts, is_code = [[""]], False
    for line in page.splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("#") and not is_code:
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def _is_command(command, text):
    """True if a text quotes the command: without options, so that one with other options is another command."""
    return any(f"{command}{end}" in text for end in "`).,")


def test_every_result_is_in_the_index_with_a_date_and_a_digest():
    files = {path.name for path in provenance.RESULTS.iterdir()} - {"claims.json", "measured.json", "provenance.json"}
    measured = json.loads(quotes.MEASURED.read_text(encoding="utf-8"))
    assert set(provenance.entries()) == files | {f"measured.json#{name}" for name in measured}
    for entry in provenance.entries().values():
        assert provenance.measured_on(entry)
        assert all((ROOT / "src" / "noregret" / folder).is_dir() for folder in entry["folders"])


def test_the_digest_is_that_of_the_code_without_its_comments(tmp_path):
    plain = _tree(tmp_path, "def f(x):\n    return x\n")
    assert plain == _tree(tmp_path, '"""Waves."""\n\n# a note\ndef f(x):\n    """Return x."""\n    return x\n')
    assert plain != _tree(tmp_path, "def f(x):\n    return -x\n")


@pytest.fixture(scope="module")
def stale():
    return {name: entry for name, entry in provenance.entries().items() if provenance.is_stale(entry)}


@pytest.fixture(scope="module")
def quoted():
    return quotes.quoted()


@pytest.mark.parametrize("path", sorted(PAGES), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_page_quotes_a_stale_result_without_its_date(path, stale, quoted):
    said = quoted.get(path.relative_to(ROOT).as_posix(), {})
    assert list(undated(path.read_text(encoding="utf-8"), said, stale)) == []


def test_a_quote_of_a_stale_result_needs_its_date_in_the_same_section():
    stale = {"waves.csv": ENTRY | {"runs": [{"on": "2026-11-16", "code": "old"}, {"on": "2026-11-18", "code": "new"}]}}
    said = {"waves.csv": ["a height of 5"]}
    for quote in ("It has a height\nof 5.", "Run `python -m benchmarks.waves`.", "See `benchmarks/results/waves.csv`."):
        assert list(undated(f"# Waves\n\n{quote}\n", said, stale)) == [
            "'# Waves' quotes waves.csv without 2026-11-16 to 2026-11-18"
        ]
        dated = f"# Waves\n\n{quote} Measured on 2026-11-16 to\n2026-11-18.\n"
        assert not list(undated(dated, said, stale))
    assert not list(undated("`python -m benchmarks.waves --high`", said, stale)), "another measurement"
    assert list(undated("# A\n\na height of 5\n# B\n2026-11-16 to 2026-11-18", said, stale))


def test_a_run_is_recorded_once_for_each_state_of_the_code(tmp_path):
    index = tmp_path / "provenance.json"
    index.write_text(json.dumps({"waves.csv": ENTRY | {"runs": [{"on": "2026-01-01", "code": "old"}]}}))
    assert provenance.is_stale(provenance.entries(index)["waves.csv"])
    for _ in range(2):
        provenance.record(tmp_path / "waves.csv", index)
    assert len(provenance.entries(index)["waves.csv"]["runs"]) == 2
    assert provenance.is_stale(provenance.entries(index)["waves.csv"]), "some lines are of the old code"
    provenance.forget("waves.csv", index)
    provenance.record("waves.csv", index)
    provenance.record(tmp_path / "elsewhere" / "waves.csv", index)
    (entry,) = provenance.entries(index).values()
    assert len(entry["runs"]) == 1
    assert not provenance.is_stale(entry)
