"""Every test of `tests.studies.test_migrating`, on PostgreSQL."""

import pytest
from tests.studies.test_migrating import *


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()
