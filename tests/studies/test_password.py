"""The database's password is never shown, for any error and any form of the URL."""

import http.client
import re
from threading import Thread

import pytest

from noregret.cli import main
from noregret.studies.page.watch import server
from noregret.studies.store import storage as opened
from noregret.studies.store.databases.database import database
from noregret.studies.store.databases.postgresql import DriverError
from noregret.studies.store.faults import explained
from noregret.studies.store.identity import FORM
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load
from noregret.studies.study.study import StudyError, without_password

SECRET = "Se5am"
STUDY = """
name = {name!r}
command = ["echo", "{{x}}"]
storage = "{storage}"
budget.evaluations = {rounds}
[parameters.x]
type = "float"
low = 0
high = {high}
"""


def written(folder, storage, name="s", high=1, rounds=2):
    path = folder / "s.toml"
    path.write_text(STUDY.format(storage=storage, name=name, high=high, rounds=rounds))
    return path


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:Se5am@host/db", "postgresql://me:***@host/db"),
        ("postgresql+psycopg://me:Se5am@host:1/db", "postgresql+psycopg://me:***@host:1/db"),
        ("postgresql://me:x@Se5am@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:x:/?#Se5am@host/db", "postgresql://me:***@host/db"),
        ("postgresql:/me:Se5am@host/db", "postgresql:/me:***@host/db"),
        ("postgresql//me:Se5am@host/db", "postgresql//me:***@host/db"),
        ("postgresql://:Se5am@host/db", "postgresql://:***@host/db"),
        ("postgresql://me@host/db?password=Se5am&a=1", "postgresql://me@host/db?password=***&a=1"),
        ("postgresql://me@host/db?a=1&sslpassword=Se5am", "postgresql://me@host/db?a=1&sslpassword=***"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("sqlite:///study.db", "sqlite:///study.db"),
    ],
)
def test_urls_are_shown_without_their_password(url, shown):
    assert without_password(url) == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "storage",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db",  # no server
        f"postgresql://me:x@{SECRET}@127.0.0.1:1/db",  # an @ that should be %40
        f"postgresql://me:{SECRET}/db",
        f"postgresql:/me:{SECRET}@127.0.0.1:1/db",
        f"postgresql//me:{SECRET}@127.0.0.1:1/db",
        f"mysql://me:{SECRET}@127.0.0.1:1/db",
        f"postgresql://me@127.0.0.1:1/db?password={SECRET}",
        f"postgresql://me@127.0.0.1:1/db?password={SECRET}&nonsense=1",
        f"mysql://me@127.0.0.1:1/db?password={SECRET}",
        f"postgresql://me:{SECRET}\\u0000@127.0.0.1:1/db",
        f"postgresql://me:x%40{SECRET}@127.0.0.1:1/db",
    ],
)
@pytest.mark.parametrize("command", ["tune", "report", "watch"])
def test_no_message_has_the_password(tmp_path, capsys, monkeypatch, command, storage):
    monkeypatch.setattr(opened, "OPENING_SECONDS", 0.2)
    path = written(tmp_path, storage)
    assert main([command, str(path)]) == 2
    said = "".join(capsys.readouterr())
    assert "storage" in said
    assert SECRET not in said


def test_an_at_sign_in_a_password_is_explained(tmp_path, capsys):
    assert main(["tune", str(written(tmp_path, "postgresql://me:x@y@127.0.0.1:1/db"))]) == 2
    assert "storage: an @ in a password must be written as %40" in capsys.readouterr().err


def test_reprs_and_what_a_driver_says_have_no_password(tmp_path):
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/db?sslpassword={SECRET}2"
    study = load(written(tmp_path, url))
    where = database(study)
    for shown in (repr(study), str(study), repr(where), str(where)):
        assert SECRET not in shown
    error = DriverError(f"connection to 'me:{SECRET}@127.0.0.1' {SECRET}2 failed")
    said = str(explained(error, where))
    assert SECRET not in said
    assert "failed" in said


@pytest.mark.slow
def test_a_server_with_another_study_and_its_live_page(postgresql, tmp_path, capsys):
    storage = postgresql.new_database().replace("noregret@", f"noregret:{SECRET}@")
    path = written(tmp_path, storage)
    assert main(["tune", str(path)]) == 0
    assert main(["report", str(path)]) == 0
    assert "noregret:***@" in (tmp_path / "s.html").read_text()
    assert SECRET not in (tmp_path / "s.html").read_text()
    with server(load(path), 0) as found:
        thread = Thread(target=found.serve_forever, args=(0.05,))
        thread.start()
        with Store(load(path)) as store:
            store._storage.set_attributes(store._found.id, {FORM: 99})
        connection = http.client.HTTPConnection(*found.server_address, timeout=30)
        connection.request("GET", "/content")
        answer = connection.getresponse()
        text = answer.read().decode()
        found.shutdown()
        thread.join()
    assert (answer.status, SECRET in text) == (503, False)
    assert "newer noregret" in text
    for name, high in (("other", 1), ("s", 2)):
        assert main(["report", str(written(tmp_path, storage, name, high))]) == 2
    with pytest.raises(StudyError) as caught:
        Store(load(written(tmp_path, storage, high=2)))
    said = "".join(capsys.readouterr()) + str(caught.value)
    assert re.search(r"storage postgresql://noregret:\*\*\*@127.0.0.1", said)
    assert SECRET not in said
