"""A database of 1.0 is taken over, with kills at every statement."""

import pytest
from tests.studies.test_earlier import (
    expected,
    saved,
    test_nothing_is_lost_if_it_is_killed_at_any_statement,
    url,
)


@pytest.fixture
def step():
    return 1
