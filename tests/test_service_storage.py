"""The service's storage in trouble: another server commits while it is read, its connection is cut, its file is gone."""

from contextlib import closing

import pytest

pytest.importorskip("fastapi")

import sqlalchemy
from tests.test_service_asking import SECONDS, asked, opened

from noregret.tune.service.choosing.live import Wish
from noregret.tune.service.storing import rows


def after(live, start, then):
    """Call a function once, after the next statement of a server that begins like this."""
    engine, called = live._storage._rdb.engine, []

    def listen(connection, cursor, statement, *rest):
        if statement.startswith(start) and not called:
            called.append(statement)
            then()

    sqlalchemy.event.listen(engine, "after_cursor_execute", listen)
    return called


def test_what_is_read_is_of_one_moment(tmp_path, postgresql):
    url = postgresql.new_database()
    with closing(opened(tmp_path, url)) as one, closing(opened(tmp_path, url)) as other:
        asked(one["s"], Wish(2))

        def commits():
            asked(other["s"], Wish(2))
            other["s"].tell(0, rows.Answer(0.5)).result(SECONDS)

        called = after(one["s"], "SELECT trial_id, number", commits)
        assert [entry.record.state for entry in one["s"].entries()] == ["running"] * 2
        assert called
        assert [entry.record.state for entry in one["s"].entries()] == ["done", *["running"] * 3]
        assert asked(one["s"], Wish(1)) == [[4]], "the connection is one for writing again"


def test_a_serialization_failure_is_tried_again(tmp_path, postgresql):
    from psycopg.errors import SerializationFailure

    def fails():
        raise sqlalchemy.exc.OperationalError("SELECT", {}, SerializationFailure("could not serialize access"))

    with closing(opened(tmp_path, postgresql.new_database())) as studies:
        called = after(studies["s"], "SELECT trial_id, number", fails)
        assert studies["s"].entries() == []
        assert called
