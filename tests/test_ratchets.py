"""Counts of the source that may fall. Raise one only with the reason in the commit."""

import ast
from collections import Counter
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
FILES = sorted(SRC.rglob("*.py"))

MOST_LINES = 50_900
MOST_FILES = 238
MOST_NUMBERS_OF_THE_OPTIMIZER = 248
MOST_NAMES_OF_SEVERAL_CLASSES = 39


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


def test_the_optimizer_has_no_more_numbers():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in FILES if "optimizer" in path.parts]
    assert sum(1 for tree in trees for _ in numbers(tree)) <= MOST_NUMBERS_OF_THE_OPTIMIZER


def test_no_more_classes_share_a_name():
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in FILES)
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert sum(count > 1 for count in names.values()) <= MOST_NAMES_OF_SEVERAL_CLASSES
