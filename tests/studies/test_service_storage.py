"""Failures of the storage of the service: concurrent commits, a cut connection, a missing file."""

import os
import shutil
from contextlib import closing, contextmanager

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("psycopg")

import psycopg
from tests.studies.made import outcome
from tests.studies.test_service import serving
from tests.studies.test_service_asking import FORM, SECONDS, asked, opened

from noregret.service.http.app import application
from noregret.service.live import AskRequest
from noregret.studies.study.study import StudyError


def once(live, moment, start, then):
    """Call a function once, before or after the next statement of a server that begins like this."""
    called, storage = [], live._storage

    def listening(transaction):
        @contextmanager
        def listened():
            with transaction() as connection:
                carry_out = connection.rows

                def rows(statement, **values):
                    is_it = statement.startswith(start) and not called
                    called.extend([statement] * is_it)
                    if is_it and moment == "before":
                        then(connection)
                    found = carry_out(statement, **values)
                    if is_it and moment == "after":
                        then(connection)
                    return found

                connection.rows = rows
                yield connection

        return listened

    storage.transaction, storage.snapshot = listening(storage.transaction), listening(storage.snapshot)
    return called


@pytest.mark.slow
def test_what_is_read_is_of_one_moment(tmp_path, postgresql):
    url = postgresql.new_database()
    with closing(opened(tmp_path, url)) as one, closing(opened(tmp_path, url)) as other:
        asked(one["s"], AskRequest(2))

        def commits(connection):
            asked(other["s"], AskRequest(2))
            other["s"].tell(outcome(0, 0.5)).result(SECONDS)

        called = once(one["s"], "after", "SELECT number, state", commits)
        assert [record.state for record in one["s"].records()] == ["running"] * 2
        assert called
        assert [record.state for record in one["s"].records()] == ["done", *["running"] * 3]
        assert asked(one["s"], AskRequest(1)) == [[4]], "the connection is one for writing again"


@pytest.mark.slow
def test_a_serialization_failure_is_tried_again(tmp_path, postgresql):
    def fails(connection):
        raise psycopg.errors.SerializationFailure("could not serialize access")

    with closing(opened(tmp_path, postgresql.new_database())) as studies:
        called = once(studies["s"], "after", "SELECT number, state", fails)
        assert studies["s"].records() == []
        assert called


@pytest.mark.slow
@pytest.mark.parametrize("is_busy", [False, True])
def test_a_cut_connection_is_replaced_and_said_in_one_line(tmp_path, postgresql, caplog, capfd, is_busy):
    url = postgresql.new_database()
    others = f"FROM pg_stat_activity WHERE datname = '{url.rpartition('/')[2]}' AND pid <> pg_backend_pid()"
    caplog.set_level("INFO", "noregret")
    with closing(opened(tmp_path, url)) as studies:
        live = studies["s"]

        def cut(connection):
            if is_busy:  # as if cut between two rows: what was begun cannot be rolled back either
                connection._raw.pgconn.enter_pipeline_mode()
                raise psycopg.OperationalError("cannot exit pipeline mode while busy")
            postgresql.execute(f"SELECT pg_terminate_backend(pid) {others}")

        called = once(live, "before", "INSERT INTO noregret_trials", cut)
        assert asked(live, AskRequest(2, "a")) == [[0, 1]]
        assert called
        assert [record.number for record in live.records()] == [0, 1]
    said = caplog.text + "".join(capfd.readouterr())
    assert "Traceback" not in said
    assert "INSERT" not in said
    assert said.count("trying again") == 1


def delete(path):
    path.unlink()


def replace(path):
    shutil.copyfile(path, path.with_name("other"))
    os.replace(path.with_name("other"), path)


def move(path):
    path.rename(path.with_name("moved.db"))


@pytest.mark.slow
@pytest.mark.parametrize("harm", [delete, replace, move])
def test_nothing_is_acknowledged_once_the_file_is_gone(tmp_path, harm):
    studies = opened(tmp_path)
    path = tmp_path / "s.db"
    with serving(application(studies)) as client:
        assert client.post("/studies/s/ask", json={"client": "a"}).status_code == 200
        harm(path)
        copies = sorted(file.name for file in tmp_path.glob("s.db.bak*"))
        for request in ("ask", "trials/0/tell", "trials/0/fail"):
            answer = client.post(f"/studies/s/{request}", json={"value": 1.0} if "tell" in request else {})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), request
        assert client.get("/studies/s/trials").status_code == 503
        assert client.post("/studies", json=FORM.model_copy(update={"name": "t"}).model_dump()).status_code == 503
        if harm is not replace:
            assert not path.exists(), "no empty file is made in its place"
        with pytest.raises(StudyError, match=r"s\.db: the file was deleted, moved or replaced .* put the file back"):
            asked(studies["s"], AskRequest(1))
    assert sorted(file.name for file in tmp_path.glob("s.db.bak*")) == copies, "no copy of another file"


def test_a_file_that_was_put_back_is_used_again(tmp_path):
    path = tmp_path / "s.db"
    with closing(opened(tmp_path)) as studies:
        asked(studies["s"], AskRequest(1, "a"))
        move(path)
        with pytest.raises(StudyError):
            studies["s"].tell(outcome(0, 1.0)).result(SECONDS)
        path.with_name("moved.db").rename(path)
        assert studies["s"].tell(outcome(0, 2.0)).result(SECONDS).value() == 2.0
    with closing(opened(tmp_path)) as studies:
        assert [record.value() for record in studies["s"].records()] == [2.0]
