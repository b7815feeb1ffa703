"""Round trips of ask and tell per second of ``noregret serve``, and results lost when it is killed.

``python -m benchmarks.serve load`` runs 50 clients on 10 studies up to 200 trials each: round trips a second, and the
time of one, half of them and 99 of 100 below it; with ``--pace 100``, at that many a second; with ``--pause 0.3``, each
client measures for that long between ask and tell. ``growth`` compares a
study with 10,000 trials with one that has 200, in the same run. ``soak --seconds 600`` lets clients work on studies of
bounded length and prints memory and open files of the server at the start and the end. ``kills --kills 1000`` kills
three servers at random, for ``--seconds`` at most, and counts what was acknowledged and is lost or counted twice.
Everything is on loopback, in a folder that is deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

import numpy as np

from noregret import Reading, cli
from noregret.tune.service.live import AskRequest
from noregret.tune.service.models import StudyForm
from noregret.tune.service.studies import Studies
from noregret.tune.store import trials as table
from noregret.tune.store.records import Record
from noregret.tune.store.storage import Storage

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

    def call(self, method: str, path: str, body: Any = None, headers: Any = None) -> tuple[int, Any]:
        """Status and content of an answer."""
        line = self._line = self._line or HTTPConnection("127.0.0.1", self._port(), timeout=120)
        try:
            sent = None if body is None else json.dumps(body)
            line.request(method, path, sent, {"Content-Type": "application/json", **(headers or {})})
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
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="noregret-serve-") as name:
        yield Path(name)


@contextmanager
def served(place: Path) -> Iterator[Served]:
    server = Served(place)
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


def figures(trips: list[Trip], seconds: float, cpu: float = 0.0) -> str:
    half, most = np.percentile([trip.both for trip in trips], [50, 99]) * 1000
    asking = np.percentile([trip.ask for trip in trips], 99) * 1000
    rate, cost = len(trips) / seconds, 1000 * cpu / len(trips)
    shown = f"{len(trips):>6} round trips  {rate:>6.1f} a second  p50 {half:>6.1f} ms  p99 {most:>7.1f} ms"
    shown += f"  p99 of ask {asking:>7.1f} ms"
    return f"{shown}  processor {cost:>5.1f} ms each  load {os.getloadavg()[0]:.1f}" if cpu else shown


def worked(
    server: Served, studies: list[str], clients: int, trials: int, pace: float = math.inf, pause: float = 0.0
) -> tuple[list[Trip], float, float]:
    """Each round trip, the seconds of all, and CPU seconds of the server, for some trials in each study.

    All clients together begin at most ``pace`` round trips a second; without a pace, each begins one after the other.
    """
    trips: list[Trip] = []
    before, begun = server.cpu(), time.monotonic()

    def work(number: int) -> None:
        client, rng = Client(lambda: server.port), random.Random(number)
        for turn in range(trials * len(studies) // clients):
            time.sleep(max(begun + (number + turn * clients) / pace - time.monotonic(), 0.0))
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
    with folder() as place, served(place) as server:
        studies = made(server, [f"study{number}" for number in range(args.studies)])
        for before in range(0, args.trials, args.trials // 4):
            found = worked(server, studies, args.clients, args.trials // 4, args.pace, args.pause)
            print(f"trials {before:>4} to {before + args.trials // 4:>4} of each study:", figures(*found), flush=True)
        found = worked(server, studies, args.clients, max(args.trials // 4, 1), args.pace, args.pause)
        print(f"at {args.trials} trials a study:    ", figures(*found))


def growth(args: argparse.Namespace) -> None:
    with folder() as place:
        fill(place, {"short": 200, "long": args.trials})
        with served(place) as server:
            client, rng = Client(lambda: server.port), random.Random(0)
            times: dict[str, list[Trip]] = {"short": [], "long": []}
            for study in times:
                print(
                    f"{study:>6}: the first round trip after a start took {round_trip(client, study, rng).both:.2f} s"
                )
            for _ in range(args.rounds):  # in turn, so that both have the same machine
                for study, its in times.items():
                    its.append(round_trip(client, study, rng))
            client.close()
    for study, its in times.items():
        print(f"{study:>6}:", figures(its, sum(trip.both for trip in its)))
    long, short = ([trip.both for trip in times[study]] for study in ("long", "short"))
    ratios = [np.mean(long) / np.mean(short), np.median(long) / np.median(short)]
    print("ratio of the means {:.2f}, of the medians {:.2f}".format(*ratios))


def fill(place: Path, studies: dict[str, int]) -> None:
    """Create studies with results, without a server: random trials, each with its result before the next."""
    rng, all_studies = random.Random(1), Studies(Storage("sqlite:///studies.db", place), 3600.0)
    for name, trials in studies.items():
        all_studies.create(StudyForm.model_validate({"name": name, "space": SPACE})).result()
        live = all_studies[name]
        for first in range(0, trials, 500):
            with live._storage.transaction() as connection:
                for number in range(first, min(first + 500, trials)):
                    params = {"x": rng.random(), "y": rng.random(), "k": rng.choice("ab")}
                    told = tuple(range(max(number - 1, 0), number))
                    suggestion = Record(number, params, told=told)
                    study = live._ledger
                    trial = table.add(connection, study.study, number, suggestion, {}, study.distributions)
                    readings = {"value": (Reading(measured(params, rng)),)}
                    done = replace(suggestion, state="done", readings=readings)
                    table.finish(connection, trial, done, live.measures)
    all_studies.close()


def soak(args: argparse.Namespace) -> None:
    with folder() as place, served(place) as server:
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


@dataclass
class Tally:
    """Acknowledged results by study and trial, and errors."""

    acknowledged: dict[tuple[str, int], float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    studies: set[str] = field(default_factory=set)
    answers: Counter[int] = field(default_factory=Counter)
    """Number of acknowledged trials of each group of clients."""
    lock: Lock = field(default_factory=Lock)
    broken: int = 0
    kills: int = 0

    def killed(self) -> None:
        with self.lock:
            self.kills += 1
            if self.kills % 50 == 0:
                print(f"{self.kills} kills, {len(self.acknowledged)} acknowledged", flush=True)

    def told(self, study: str, trial: int, value: float) -> None:
        with self.lock:
            self.answers[int(study.partition("-")[0].removeprefix("study"))] += (study, trial) not in self.acknowledged
            before = self.acknowledged.setdefault((study, trial), value)
            if before != value:
                self.faults.append(f"{study} {trial}: {before} and {value} were both acknowledged")


def kills(args: argparse.Namespace) -> None:
    tally, is_over = Tally(), Event()
    with folder() as place, ExitStack() as ending:
        servers = [Served(place) for _ in range(args.servers)]
        for server in servers:
            ending.callback(server.close)

        def work(number: int) -> None:
            own, known = random.Random(f"{args.seed} {number}"), set[str]()
            while not is_over.is_set():
                client = Client(lambda: own.choice(servers).port)
                try:
                    study = _current_study(client, tally, number % 4, known)
                    _one_trial(client, study, f"client{number}", own, tally)
                except (OSError, HTTPException):
                    tally.broken += 1
                    time.sleep(0.02)
                finally:
                    client.close()

        workers = [Thread(target=work, args=(number,)) for number in range(8)]
        for worker in workers:
            worker.start()
        seconds = together(lambda number: _kill(servers[number], number, args, tally), len(servers))
        is_over.set()
        for worker in workers:
            worker.join()
        _judge(servers[0], tally)
    print(
        f"kills {tally.kills} in {seconds:.0f} s, studies {len(tally.studies)}, requests broken {tally.broken}, "
        f"acknowledged {len(tally.acknowledged)}, lost or counted twice {len(tally.faults)}"
    )
    print(*tally.faults[:20], sep="\n")
    sys.exit(bool(tally.faults or not tally.acknowledged))


def _kill(server: Served, number: int, args: argparse.Namespace, tally: Tally) -> None:
    """Kill a server at random times and start it again, until all have been killed often enough.

    It lives until some trials are acknowledged, so the load of the machine does not matter.
    """
    rng, deadline = random.Random(f"{args.seed} {number}"), time.monotonic() + args.seconds
    while tally.kills < args.kills and time.monotonic() < deadline:
        enough, latest = len(tally.acknowledged) + rng.randrange(args.life), time.monotonic() + 10
        while len(tally.acknowledged) < enough and time.monotonic() < min(latest, deadline):
            time.sleep(rng.uniform(0.0, 0.05))
        server.kill()
        server.start()
        tally.killed()


def _current_study(client: Client, tally: Tally, group: int, known: set[str]) -> str:
    """The study that a group of clients works on: another one after 8 trials, so that nothing is fitted."""
    name = f"study{group}-{tally.answers[group] // 8}"
    if name not in known:
        status, answer = client.call("POST", "/studies", {"name": name, "space": SPACE})
        assert status in (200, 201), answer
        known.add(name)
        tally.studies.add(name)
    return name


def _one_trial(client: Client, study: str, key: str, rng: random.Random, tally: Tally) -> None:
    status, asked = client.call("POST", f"/studies/{study}/ask", {"client": key})
    if status != 200:
        tally.faults.append(f"{study}: asking gave {status}: {asked}")
        return
    (trial,) = asked["trials"]
    value = random.Random(f"{study} {trial['id']}").random()  # a repeated tell returns the same value
    for _ in range(rng.choice([1, 1, 2])):
        status, told = client.call("POST", f"/studies/{study}/trials/{trial['id']}/tell", {"value": value})
        if status != 200:
            tally.faults.append(f"{study} {trial['id']}: telling gave {status}: {told}")
            return
        tally.told(study, trial["id"], value)


def _judge(server: Served, tally: Tally) -> None:
    client = Client(lambda: server.port)
    for study in sorted(tally.studies):
        trials = client.call("GET", f"/studies/{study}/trials")[1]["trials"]
        if [trial["id"] for trial in trials] != list(range(len(trials))):
            tally.faults.append(f"{study}: a trial is missing or there twice")
        kept = {trial["id"]: trial["value"] for trial in trials}
        told = {trial: value for (its, trial), value in tally.acknowledged.items() if its == study}
        tally.faults += [f"{study} {trial}: lost" for trial, value in told.items() if kept.get(trial) != value]
    client.close()


def launch(args: argparse.Namespace) -> None:
    """Fork a server for each line with a port and a storage, and print the number of its process."""
    import_module("noregret.tune.service.http.app")
    with folder() as place:  # using a study imports everything
        studies = Studies(Storage("sqlite:///studies.db", place), 3600.0)
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
    for name, run in (("load", load), ("growth", growth), ("soak", soak), ("kills", kills), ("launch", launch)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--clients", type=int, default=50)
        command.add_argument("--studies", type=int, default=10)
        command.add_argument("--trials", type=int, default={"growth": 10_000, "soak": 50}.get(name, 200))
        command.add_argument("--pace", type=float, default=math.inf, help="round trips a second that clients begin")
        command.add_argument("--pause", type=float, default=0.0, help="seconds that a client measures for")
        command.add_argument("--rounds", type=int, default=100)
        command.add_argument("--seconds", type=float, default=600.0)
        command.add_argument("--kills", type=int, default=1000)
        command.add_argument("--servers", type=int, default=3)
        command.add_argument("--life", type=int, default=20, help="the most trials that a server lives for")
        command.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
