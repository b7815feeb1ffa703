"""Round trips of ask and tell per second of ``noregret serve``, and its memory after many studies.

``python -m benchmarks.serve load`` runs 50 clients on 10 studies up to 200 trials each: round trips a second, and the
time of one, half of them and 99 of 100 below it; with ``--pause 0.3``, each client measures for that long between ask
and tell. ``soak --seconds 600`` lets clients work on studies of bounded length and prints memory and open files of the
server at the start and the end. `benchmarks.chaos` kills servers.
Everything is on loopback, in a folder that is deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from noregret import cli
from noregret.service.live import AskRequest
from noregret.service.models import StudyForm
from noregret.service.studies import Studies
from noregret.studies.store.storage import Storage

SPACE = {
    "x": {"type": "float", "low": 0, "high": 1},
    "y": {"type": "float", "low": 0, "high": 1},
    "k": {"type": "choice", "choices": ["a", "b"]},
}


class Served:
    """A server in its own process, which can be killed and started again on the same port.

    It is forked from a process that has imported everything already, so that a start is fast.

    Parameters
    ----------
    place : Path
        The folder that it runs in.
    storage : str
        Where its studies are.
    errors : file, optional
        Where its standard error goes.
    """

    def __init__(self, place: Path, storage: str = "sqlite:///studies.db", errors: Any = None) -> None:
        command = [sys.executable, "-m", "benchmarks.serve", "launch"]
        folders = os.pathsep.join(map(os.path.abspath, ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]))
        self._launcher = subprocess.Popen(
            command,
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"PYTHONPATH": folders},
        )
        self.port, self.pid, self._storage = 0, 0, storage
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        assert self._launcher.stdin
        assert self._launcher.stdout
        self._launcher.stdin.write(f"{self.port} {self._storage}\n")
        self._launcher.stdin.flush()
        pid = port = None
        while pid is None or port is None:
            said = self._launcher.stdout.readline()
            pid = int(said) if said.strip().isdecimal() else pid
            port = int(said.split()[0].rpartition(":")[2]) if said.startswith("http") else port
        self.pid, self.port = pid, port

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it."""
        os.kill(self.pid, number)
        while Path(f"/proc/{self.pid}").exists():
            time.sleep(0.002)

    def close(self) -> None:
        """End it regularly, together with the process that starts it."""
        self.kill(signal.SIGTERM)
        self._launcher.communicate()

    def processes(self) -> list[int]:
        """Its own process and those that it has started."""
        return [self.pid, *map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())]

    def memory(self) -> float:
        """Memory in MiB of all its processes, with shared memory counted once."""
        rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.processes()]
        return sum(int(re.search(r"^Pss: +(\d+)", text, re.MULTILINE)[1]) for text in rollups) / 1024

    def cpu(self) -> float:
        """CPU seconds that it has used, independent of the load of the machine."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.processes()]
        return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        """Number of its open files and connections."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class Client:
    """A client on one connection, which is made again when it breaks."""

    def __init__(self, port: Callable[[], int]) -> None:
        self._port, self._line = port, None

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and content of an answer."""
        line = self._line = self._line or HTTPConnection("127.0.0.1", self._port(), timeout=120)
        try:
            sent = None if body is None else json.dumps(body)
            line.request(method, path, sent, {"Content-Type": "application/json"})
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, HTTPException):
            line.close()
            self._line = None
            raise

    def close(self) -> None:
        """End the connection."""
        if self._line:
            self._line.close()


@contextmanager
def served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="noregret-serve-") as folder:
        server = Served(Path(folder))
        try:
            yield server
        finally:
            server.close()


def measured(params: dict[str, Any], rng: random.Random) -> float:
    shift = 0.1 * (params["k"] == "b")
    return float((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2 + shift + 0.05 * rng.gauss(0, 1))


class Trip(NamedTuple):
    """Seconds that a client waited for the answer to an ask, and to a tell."""

    ask: float
    tell: float

    @property
    def both(self) -> float:
        return self.ask + self.tell


def round_trip(client: Client, study: str, rng: random.Random, pause: float = 0.0) -> Trip:
    """Ask, measure for ``pause`` seconds, and tell."""
    begun = time.perf_counter()
    status, asked = client.call("POST", f"/studies/{study}/ask", {})
    asking = time.perf_counter() - begun
    assert status == 200, asked
    (trial,) = asked["trials"]
    value = measured(trial["params"], rng)
    time.sleep(pause)
    begun = time.perf_counter()
    status, told = client.call("POST", f"/studies/{study}/trials/{trial['id']}/tell", {"value": value})
    assert status == 200, told
    return Trip(asking, time.perf_counter() - begun)


def together(work: Callable[[int], None], count: int) -> float:
    """Run some threads; return the seconds."""
    threads = [Thread(target=work, args=(number,)) for number in range(count)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


def figures(trips: list[Trip], seconds: float, cpu: float) -> str:
    half, most = np.percentile([trip.both for trip in trips], [50, 99]) * 1000
    asking = np.percentile([trip.ask for trip in trips], 99) * 1000
    rate, cost = len(trips) / seconds, 1000 * cpu / len(trips)
    shown = f"{len(trips):>6} round trips  {rate:>6.1f} a second  p50 {half:>6.1f} ms  p99 {most:>7.1f} ms"
    return f"{shown}  p99 of ask {asking:>7.1f} ms  processor {cost:>5.1f} ms each  load {os.getloadavg()[0]:.1f}"


def worked(
    server: Served, studies: list[str], clients: int, trials: int, pause: float = 0.0
) -> tuple[list[Trip], float, float]:
    """Each round trip, the seconds of all, and CPU seconds of the server, for some trials in each study."""
    trips: list[Trip] = []
    before = server.cpu()

    def work(number: int) -> None:
        client, rng = Client(lambda: server.port), random.Random(number)
        for _ in range(trials * len(studies) // clients):
            trips.append(round_trip(client, studies[number % len(studies)], rng, pause))
        client.close()

    seconds = together(work, clients)
    return trips, seconds, server.cpu() - before


def made(server: Served, names: list[str]) -> list[str]:
    client = Client(lambda: server.port)
    for name in names:
        status, answer = client.call("POST", "/studies", {"name": name, "space": SPACE})
        assert status == 201, answer
    client.close()
    return names


def load(args: argparse.Namespace) -> None:
    with served() as server:
        studies = made(server, [f"study{number}" for number in range(args.studies)])
        for before in range(0, args.trials, args.trials // 4):
            found = worked(server, studies, args.clients, args.trials // 4, args.pause)
            print(f"trials {before:>4} to {before + args.trials // 4:>4} of each study:", figures(*found), flush=True)
        found = worked(server, studies, args.clients, max(args.trials // 4, 1), args.pause)
        print(f"at {args.trials} trials a study:    ", figures(*found))


def soak(args: argparse.Namespace) -> None:
    with served() as server:
        deadline, generation = time.monotonic() + args.seconds, 0
        while time.monotonic() < deadline:
            studies = made(server, [f"study{generation}-{number}" for number in range(args.studies)])
            found = worked(server, studies, args.clients, args.trials)
            generation += 1
            print(
                f"{generation:>4}: {figures(*found)}  {server.memory():>7.1f} MiB  "
                f"{server.descriptors():>4} descriptors",
                flush=True,
            )


def launch(args: argparse.Namespace) -> None:
    """Fork a server for each line with a port and a storage, and print the number of its process."""
    import_module("noregret.service.http.app")
    with tempfile.TemporaryDirectory() as folder:  # using a study imports everything
        studies = Studies(Storage("sqlite:///studies.db", Path(folder)), 3600.0)
        studies.create(StudyForm.model_validate({"name": "any", "space": SPACE})).result()
        studies["any"].ask(AskRequest(30)).result()
        studies.close()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # remove ended processes
    for line in sys.stdin:
        child = os.fork()
        if not child:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            port, storage = line.split()
            os._exit(cli.main(["serve", "--port", port, "--storage", storage]))
        print(child, flush=True)


def main() -> None:
    """Read the command line and run a benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run in (("load", load), ("soak", soak), ("launch", launch)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--clients", type=int, default=50)
        command.add_argument("--studies", type=int, default=10)
        command.add_argument("--trials", type=int, default=50 if name == "soak" else 200)
        command.add_argument("--pause", type=float, default=0.0, help="seconds that a client measures for")
        command.add_argument("--seconds", type=float, default=600.0)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
