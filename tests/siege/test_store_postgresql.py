"""Every test of `tests.tune.test_store`, on PostgreSQL."""

import pytest
from tests.tune.test_store import *


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()
