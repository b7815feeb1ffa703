"""Every test of `tests.tune.test_migrating`, on PostgreSQL."""

import pytest
from tests.tune.test_migrating import *


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()
