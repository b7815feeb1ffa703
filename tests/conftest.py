"""What several test files share: a throw-away PostgreSQL server, a browser, and functions in processes of their own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import traceback
import warnings
from glob import glob
from itertools import count
from pathlib import Path

import pytest

PACKAGES = ("chromium", "postgresql")
"""What apt installs for tests that need more than Python."""

os.environ.pop("NOREGRET_DATA", None)  # the data of the package, also where someone uses other data


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """Lets Ctrl-C reach the processes that tests start, also where the tests run in the background and ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Examples on pages of the documentation are slow, as whole stories are; those in docstrings are not."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker("slow")


def pytest_terminal_summary(terminalreporter):
    """Say in one line which tests were skipped because this machine lacks something, and how to install it."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    lacking = [package for package in PACKAGES if any(f"needs {package}" in reason for reason in reasons)]
    if lacking:
        count = sum(any(f"needs {package}" in reason for package in lacking) for reason in reasons)
        install = f"sudo apt-get install {' '.join(lacking)}"
        terminalreporter.write_line(f"{count} skipped, as this machine lacks {' and '.join(lacking)}: {install}")


def installed(program, package):
    """The path of a program. Where it is not installed, the test is skipped, or fails if CI is set."""
    found = shutil.which(program) or max(glob(f"/usr/lib/postgresql/*/bin/{program}"), default=None)
    if found is None and not os.environ.get("CI"):
        pytest.skip(f"needs {package}")
    assert found, f"needs {package}: .ci/run installs it"
    return found


class Server:
    """A PostgreSQL server in a folder of its own, on loopback. It refuses to run as root, who runs it as postgres."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="noregret-postgresql-"))
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.user:
            shutil.chown(self.folder, "postgres", "postgres")
        self.data, self.names = self.folder / "data", count()
        settings = ["-U", "noregret", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [installed("initdb", "postgresql"), "-D", self.data, *settings],
            check=True,
            capture_output=True,
            cwd="/",
            **self.user,
        )
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.start()

    def start(self):
        options = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder), "-F"]  # no fsync: power never fails
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [installed("postgres", "postgresql"), "-D", self.data, *options],
                stdout=log,
                stderr=log,
                cwd="/",
                **self.user,
            )
        for _ in range(600):
            try:
                return self.execute("SELECT 1")
            except OSError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self):
        self.process.send_signal(2)  # a fast shutdown
        self.process.wait(30)

    def execute(self, statement, database="postgres"):
        import psycopg

        try:
            address = f"host=127.0.0.1 port={self.port} user=noregret dbname={database}"
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(statement)
        except psycopg.OperationalError as error:
            raise OSError(error) from error

    def new_database(self):
        """The URL of a new, empty database."""
        name = f"study{next(self.names)}"
        self.execute(f"CREATE DATABASE {name}")
        return f"postgresql://noregret@127.0.0.1:{self.port}/{name}"


@pytest.fixture(scope="session")
def postgresql():
    """A running PostgreSQL server; skipped where it is not installed, unless CI is set."""
    installed("initdb", "postgresql")
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
    chromium = shutil.which("chromium-browser") or installed("chromium", "chromium")
    quiet = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    quiet += "--disable-sync --no-first-run --hide-scrollbars --enable-logging=stderr --v=0"

    def browse(address, *flags, width=1200, height=2000):
        place = [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},{height}", *flags, address]
        return subprocess.run(
            [chromium, *quiet.split(), *place], capture_output=True, text=True, timeout=120, check=True
        )

    return browse
