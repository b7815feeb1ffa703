"""Plain words in code and pages: words that are not used, and the words to use instead."""

import ast
import io
import re
import token
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {".py", ".md", ".toml", ".js", ".css", ".sh", ".pl", ".mjs"}
FOLDERS = ("src", "docs", "benchmarks", "examples")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "paper.md")
LEFT_OUT = (
    "docs/decisions",  # a record of the past
)
INSTEAD = {
    r"\bnobody\b": "no one, or the passive voice",
    r"\bsomebody\b": "someone, or a user, a process, a caller",
    r"\bwhoever\b": "anyone who, or the process that",
    r"\bso\s+many\b": "this number of",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\banew\b": "again, or new",
    r"\bto\s+be\s+had\b": "available",
    r"\bby\s+chance\b": "at random, or randomly",
    r"\bthey\s+are\s+no\b": "they are not",
    r"\bgo(?:es)?\s+on(?=[.,;:]|\s+(?:with|where|as|from|for|to|until)\b)": "continue",
    r"\b(?:is|are|was|were|be|been|not|has|have|had)\s+told\b": "observed, reported, given or known",
    r"\btold\s+(?:a|an|the|that|to|as|in|about|by|nothing|apart)\b": "observed, reported, given or separated",
    r"(?:(?<=[\d}])|^) %(?=[\s.,;:)\]\"'|]|$)": "no space before %, as in 95%",
}
"""Patterns, and what to write in their place."""

QUESTIONS = ("What", "How", "Whether", "Where", "Which")
"""Docstrings begin with a noun phrase or an imperative, not with one of these."""


def _files():
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
    found += [ROOT / page for page in PAGES]
    kept = [path for path in found if not path.relative_to(ROOT).as_posix().startswith(LEFT_OUT)]
    return sorted(path for path in kept if "__pycache__" not in path.parts)


def _prose(path):
    """Yield the texts of a file with the line that each begins on: strings and comments of Python, else all of it."""
    text = path.read_text(encoding="utf-8")
    if path.name == "CHANGELOG.md":  # the entries of released versions are history
        before, _, after = text.partition("\n## Unreleased\n")
        yield before.count("\n") + 3, after.partition("\n## ")[0]
    elif path.suffix == ".py":
        if not any(re.search(pattern, text, re.IGNORECASE | re.MULTILINE) for pattern in INSTEAD):
            return  # tokens take longer than all patterns, and have no word that the file has not
        kinds = {token.STRING, token.COMMENT, getattr(token, "FSTRING_MIDDLE", token.STRING)}
        for found in tokenize.generate_tokens(io.StringIO(text).readline):
            if found.type in kinds:
                yield found.start[0], found.string
    else:
        yield 1, text


def _docstrings(source):
    """Yield each docstring of a module, class, function or constant with its line."""
    for node in ast.walk(ast.parse(source)):
        for each in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                yield each.lineno, each.value.value.strip()


def _complaints(path, prose):
    for line, text in prose:
        for pattern, instead in INSTEAD.items():
            for found in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE):
                at = line + text.count("\n", 0, found.start())
                yield f"{path}:{at}: {' '.join(found.group().split())!r}: write {instead}"


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*FOLDERS, "pages"])
def test_words_are_plain(folder):
    paths = [
        path for path in _files() if path.relative_to(ROOT).parts[0] in ((folder,) if folder != "pages" else PAGES)
    ]
    assert paths
    assert [line for path in paths for line in _complaints(path.relative_to(ROOT), _prose(path))] == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["src", "benchmarks", "examples"])
def test_docstrings_do_not_begin_with_a_question_word(folder):
    paths = [path for path in _files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] == folder]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]!r}: begin with a noun phrase or an imperative"
        for path in paths
        for line, text in _docstrings(path.read_text(encoding="utf-8"))
        if text.split(" ", 1)[0] in QUESTIONS
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Nobody knows, and\nso\nmany ask anew.", 3),
        ("95 % of them, {level} %, and 5 %.", 3),
        ("95% of %d, n % 3, f'{x} %s', 7 %%", 0),
        ("To go on, run it again; it goes on until it ends.", 2),
        ("The values go on the page. Amended, commended.", 0),
        ("What it was told, `told`, {told:.1f}", 1),
    ],
)
def test_patterns_find_words_and_nothing_else(text, count):
    assert len(list(_complaints("page.md", [(1, text)]))) == count


def test_lines_are_those_of_the_file():
    (complaint,) = _complaints("page.md", [(3, "One.\nSo\nmany.")])
    assert complaint == "page.md:4: 'So many': write this number of"
