"""Every test of `tests.studies.test_store`, on PostgreSQL."""

import pytest
from tests.studies.test_store import *


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()
