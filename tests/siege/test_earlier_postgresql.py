"""Every test of `tests.studies.test_earlier`, on PostgreSQL."""

import pytest
from tests.studies.test_earlier import *


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()


@pytest.fixture
def step():
    return 7
