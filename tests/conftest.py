"""What several test files share: a throw-away PostgreSQL server, a browser, and functions in processes of their own."""

import json
import os
import shutil
import signal
import subprocess
import traceback
import warnings

import pytest
from tests.server import Server, program


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """Lets Ctrl-C reach the processes that tests start, also where the tests run in the background and ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgresql():
    """A running PostgreSQL server; skipped where it is not installed, unless CI is set."""
    if not program("initdb") and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed here")
    assert program("initdb"), "PostgreSQL must be installed (.ci/run does it)"
    pytest.importorskip("psycopg") if not os.environ.get("CI") else __import__("psycopg")
    server = Server()
    yield server
    server.stop()
    shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def in_child():
    """Runs a function in a forked process and returns what it returns, as JSON."""
    return _in_child


def _in_child(work):
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that other threads are not copied
        child = os.fork()
    if not child:
        try:
            answer = work()
        except BaseException:
            answer = {"crash": traceback.format_exc()}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


@pytest.fixture
def browser(tmp_path):
    """Opens an address in headless chromium; what it prints. Skipped where it is not installed, unless CI is set."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        assert not os.environ.get("CI"), "chromium must be installed (.ci/run does it)"
        pytest.skip("chromium is not installed here")
    quiet = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    quiet += "--disable-sync --no-first-run --hide-scrollbars --enable-logging=stderr --v=0"

    def browse(address, *flags, width=1200, height=2000):
        place = [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},{height}", *flags, address]
        return subprocess.run(
            [chromium, *quiet.split(), *place], capture_output=True, text=True, timeout=120, check=True
        )

    return browse
