"""Saved optimizers that are damaged in many ways."""

import pytest
from tests.optimizer.test_saving import FUZZED, SPACES, check_loaded, refused_of


@pytest.mark.parametrize("kind", FUZZED)
def test_damaged_files_are_refused_by_name_or_work(kind, tmp_path):
    assert 40 < refused_of(kind, 80, tmp_path) < 80


@pytest.mark.parametrize("kind", SPACES)
def test_a_loaded_optimizer_asks_the_same_questions(kind, tmp_path):
    check_loaded(kind, 20, tmp_path)
