"""More of `tests.studies.test_measure`, nightly."""

import signal

import pytest
from tests.studies.test_measure import check_not_outlived, check_stopped_by


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_servers_in_a_session_of_their_own_survive_a_stop_and_nothing_else_does(tmp_path, number):
    check_stopped_by(number, tmp_path)


def test_commands_do_not_outlive_a_killed_process(tmp_path):
    check_not_outlived(tmp_path, announced=True)
