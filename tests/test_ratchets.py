"""Counts of the source that may fall. Raise one only with the reason in the commit."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
FILES = sorted(SRC.rglob("*.py"))
BENCHMARKS = sorted((SRC.parent / "benchmarks").rglob("*.py"))

MOST_LINES = 56_595
MOST_FILES = 232
MOST_NUMBERS_OF_THE_OPTIMIZER = 150
MOST_NAMES_OF_SEVERAL_CLASSES = 3
MOST_DECISIONS = 70
MOST_LINES_OF_BENCHMARKS = 8_350
MOST_FOUND = 62
MOST_ITS = 26


MOST_TYPES_LIKE_A_TRIAL = 8
MOST_PLACES_THAT_MAKE_A_TRIAL = 24
FIELDS = {"params", "value", "values", "noise", "constraints", "context", "cost", "fidelity", "bound", "failure"}
FIELDS |= {"state", "readings", "reports", "runs", "seconds"}


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def numbers(tree):
    """Upper-case constants, and annotated names with a default, that have a number in their value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            names = node.targets if isinstance(node, ast.Assign) else [node.target]
            is_named = any(isinstance(name, ast.Name) and name.id.isupper() for name in names)
            values = (each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant))
            if (is_named or isinstance(node, ast.AnnAssign)) and any(type(value) in (int, float) for value in values):
                yield node


def test_the_source_does_not_grow():
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in FILES) <= MOST_LINES
    assert len(FILES) <= MOST_FILES


def test_the_benchmarks_do_not_grow():
    """A script that has answered its question is deleted; the decision page names the commit."""
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in BENCHMARKS) <= MOST_LINES_OF_BENCHMARKS


def test_the_optimizer_has_no_more_numbers():
    trees = (tree_of(path) for path in FILES if "optimizer" in path.parts)
    assert sum(1 for tree in trees for _ in numbers(tree)) <= MOST_NUMBERS_OF_THE_OPTIMIZER


def test_no_more_classes_share_a_name():
    names = Counter(node.name for path in FILES for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef))
    assert sum(count > 1 for count in names.values()) <= MOST_NAMES_OF_SEVERAL_CLASSES


def test_names_say_what_they_hold():
    """Variables and parameters called `found` or `its`, which could hold anything."""
    nodes = [node for path in FILES for node in ast.walk(tree_of(path))]
    names = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    names += Counter(node.arg for node in nodes if isinstance(node, ast.arg))
    assert names["found"] <= MOST_FOUND
    assert names["its"] <= MOST_ITS


def test_there_is_one_trial():
    """Types with fields of a trial, and places outside of its file where one is made of other things.

    A new tracked number touches no file: `test_every_field` tracks one in every output.
    """
    like, made = [], []
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                own = {its.target.id for its in node.body if isinstance(its, ast.AnnAssign)}
                if len(own & FIELDS) >= 3 and own & {"value", "values", "readings", "state"}:
                    like.append(f"{path.name}: {node.name}")
            is_made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and "lab" not in path.parts
            if is_made and node.func.id in ("Trial", "Record") and path.name != "trial.py":
                made.append(f"{path.name}: {node.lineno}")
    assert len(like) <= MOST_TYPES_LIKE_A_TRIAL, like
    assert len(made) <= MOST_PLACES_THAT_MAKE_A_TRIAL, made


def test_decisions_are_few_and_each_is_in_the_index_once():
    """Links of the index and of the history lead somewhere too."""
    folder = SRC.parent / "docs" / "decisions"
    pages = sorted(path.name for path in folder.glob("[0-9]*.md"))
    index, history = ((folder / name).read_text(encoding="utf-8") for name in ("README.md", "history.md"))
    assert len(pages) <= MOST_DECISIONS
    assert sorted(re.findall(r"\]\((\d[^)#]*)\)", index)) == pages
    links = re.findall(r"\]\((?!https?:)([^)#]+)", index + history)
    assert [link for link in links if not (folder / link).exists()] == []
