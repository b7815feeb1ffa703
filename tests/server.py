"""A temporary PostgreSQL server on loopback, for tests and for benchmarks."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from glob import glob
from itertools import count
from pathlib import Path
from typing import Any


def program(name: str) -> str:
    """Path of a program of PostgreSQL, empty if it is not installed."""
    return shutil.which(name) or max(glob(f"/usr/lib/postgresql/*/bin/{name}"), default="")


class Server:
    """A PostgreSQL server in its own folder, on loopback. It cannot run as root, which starts it as postgres."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="noregret-postgresql-"))
        self.user: dict[str, Any] = (
            {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        )
        if self.user:
            shutil.chown(self.folder, "postgres", "postgres")
        self.data, self.names = self.folder / "data", count()
        settings = ["-U", "noregret", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [program("initdb"), "-D", self.data, *settings], check=True, capture_output=True, cwd="/", **self.user
        )
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.start()

    def start(self) -> None:
        options = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder), "-F"]  # no fsync: power never fails
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [program("postgres"), "-D", self.data, *options], stdout=log, stderr=log, cwd="/", **self.user
            )
        for _ in range(600):
            try:
                return self.execute("SELECT 1")
            except OSError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        self.process.send_signal(2)  # a fast shutdown
        self.process.wait(30)

    def execute(self, statement: str, database: str = "postgres") -> None:
        import psycopg

        try:
            address = f"host=127.0.0.1 port={self.port} user=noregret dbname={database}"
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(statement.encode())
        except psycopg.OperationalError as error:
            raise OSError(error) from error

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"study{next(self.names)}"
        self.execute(f"CREATE DATABASE {name}")
        return f"postgresql://noregret@127.0.0.1:{self.port}/{name}"
