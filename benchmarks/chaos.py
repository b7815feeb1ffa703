"""Fault injection for ``noregret tune`` and ``noregret serve``, with a count of lost results.

``python -m benchmarks.chaos --kills 1000 --seconds 900`` kills workers, commands and keepers at random, on SQLite and
on PostgreSQL (if it is installed), restarts, kills and stops the database server, fills the disk and steps the clock.
It kills three servers on one storage while clients send each request several times at once, beside hundreds of idle
connections. It ends by itself, after these kills or seconds, uses loopback only, and prints a table: how often each
fault occurred, how many results were acknowledged, how many of these were lost or count twice. Damaged files and
requests from pages of another origin are in tests/studies.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from socket import create_connection
from threading import Event
from typing import Any

from tests.server import Server, program

from benchmarks.serve import SPACE, Client, Served
from noregret import cli
from noregret.studies.store.records import Record
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load

STUDY = """
command = ["sh", "-c", "sleep 0.03; echo 0.$(date +%N)", "{{x}}"]
storage = "{storage}"
lease = 5
timeout = 20
[budget]
evaluations = {rounds}
[failure]
stop_after = 1000000
[parameters.x]
type = "int"
low = 0
high = 7
"""
KILLS_PER_STUDY = 25
WORKERS = 2
SERVERS, KEYS, SENT, IDLE = 3, 2, 4, 200
"""Servers on one storage; client keys; simultaneous copies of each request; idle connections to each server."""


@dataclass
class Tally:
    """Counts of faults, and of results acknowledged, lost and duplicated."""

    tried: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    gave_up: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the counts as lines."""
        rows = [f"{what:<44}{count:>6}" for what, count in sorted(self.tried.items())]
        found = ("lost", self.lost), ("counted twice", self.twice), ("tracebacks and wrong answers", self.unsaid)
        rows += ["", *(f"{f'workers that gave up, {what}':<44}{count:>6}" for what, count in self.gave_up.items())]
        rows += [f"{'acknowledged results':<44}{self.acknowledged:>6}"]
        rows += [f"{what:<44}{len(cases):>6}" for what, cases in found]
        return "\n".join([*rows, *(f"  {what}: {case}" for what, cases in found for case in cases[:20])])


class Workers:
    """Processes that tune one study, each with its own output."""

    def __init__(self, folder: Path, storage: str) -> None:
        self.folder, self.storage = folder, storage
        self.path = folder / "s.toml"
        self.alive: dict[int, int] = {}
        self.started = self.gave_up = 0
        self.write(10**6)

    def write(self, rounds: int) -> None:
        """Write the study file."""
        self.path.write_text(STUDY.format(storage=self.storage, rounds=rounds))

    def start(self, room: int | None = None, clock: float = 0.0) -> int:
        """Start a worker, optionally with a small file size limit or another clock."""
        self.started += 1
        child = os.fork()
        if not child:
            os._exit(self._tune(room, clock))
        self.alive[child] = self.started
        return child

    def _tune(self, room: int | None, clock: float) -> int:
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(self.folder / f"{name}{self.started}", os.O_WRONLY | os.O_APPEND | os.O_CREAT), descriptor)
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        now = time.time
        time.time = lambda: now() + clock
        return cli.main(["tune", "--json", str(self.path)])

    def reap(self) -> None:
        """Remove ended workers from the list."""
        for child in list(self.alive):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                self.gave_up += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
                del self.alive[child]

    def fill(self) -> None:
        """Replace ended workers."""
        self.reap()
        while len(self.alive) < WORKERS:
            self.start()

    def await_end(self, child: int, seconds: float) -> None:
        """Wait for a worker, and kill it if that takes too long."""
        deadline = time.monotonic() + seconds
        while child in self.alive and time.monotonic() < deadline:
            time.sleep(0.05)
            self.reap()
        if child in self.alive:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            del self.alive[child]

    def kill_all(self) -> None:
        """Kill all workers."""
        for child in self.alive:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.alive.clear()

    def lines(self, name: str = "out") -> list[str]:
        """Return everything that was printed."""
        return [line for path in sorted(self.folder.glob(f"{name}*")) for line in path.read_text().splitlines()]

    def await_answers(self, count: int, seconds: float) -> None:
        """Wait until ``count`` more answers are acknowledged, or a time limit."""
        deadline, lines = time.monotonic() + seconds, len(self.lines()) + count
        while len(self.lines()) < lines and time.monotonic() < deadline:
            time.sleep(0.01)
            self.fill()

    def records(self) -> list[Record]:
        """Return the records of the store."""
        with Store(load(self.path), readonly=True) as store:
            return store.records()

    def finish(self) -> list[Record]:
        """Finish running trials without starting new ones."""
        self.kill_all()
        self.write(max(len(self.records()), 1))
        self.await_end(self.start(), 60.0)
        return self.records()


def children(parent: int) -> Iterator[tuple[int, bool]]:
    """Processes that a worker has started, and whether each is its keeper."""
    with suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for pid in (task / "children").read_text().split():
                with suppress(OSError):
                    yield int(pid), b"NOREGRET_MARK=" in Path(f"/proc/{pid}/cmdline").read_bytes()


def kill_something(workers: Workers, rng: random.Random) -> str:
    """Kill a worker, or its keeper or command; return which."""
    victim = rng.choice(list(workers.alive))
    what = rng.choices(["worker", "keeper", "command"], [6, 1, 2])[0]
    found: list[int] = []
    deadline = time.monotonic() + 1.0
    while what != "worker" and not found and time.monotonic() < deadline:
        found = [pid for pid, keeper in children(victim) if keeper == (what == "keeper")]
    if not found:
        what, found = "worker", [victim]
    with suppress(ProcessLookupError):
        os.kill(found[0], signal.SIGKILL)
    return f"kill -9 of a {what}"


def server_event(server: Server, rng: random.Random) -> str:
    """Inject a fault into the database server; return which."""
    what = rng.choice(["server restarted", "server stopped for a while (SIGSTOP)", "server killed (SIGKILL)"])
    if "SIGSTOP" in what:
        pids = [server.process.pid, *(pid for pid, _ in children(server.process.pid))]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(rng.uniform(0.2, 2.0) if number == signal.SIGSTOP else 0.0)
        return what
    server.stop() if what == "server restarted" else server.process.kill()
    server.process.wait()
    time.sleep(rng.uniform(0.0, 1.0))
    for _ in range(50):
        with suppress(AssertionError):  # processes of the old server are still running
            server.start()
            return what
        time.sleep(0.2)
    raise RuntimeError("the server does not start again")


def file_event(workers: Workers, rng: random.Random) -> str:
    """Start a worker with a full disk or a shifted clock; return which."""
    if rng.random() < 0.5:
        days = rng.choice([-400, -1, 1, 400])
        workers.start(clock=86400.0 * days)
        return "clock stepped by days"
    size = max((path.stat().st_size for path in workers.folder.glob("s.db*")), default=0)
    workers.await_end(workers.start(room=size + rng.randrange(1 << 16)), 10.0)
    return "disk full"


def acknowledged(line: str) -> dict[str, Any] | None:
    """Parse an acknowledged answer; None for other lines and for lines cut off by a kill."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "trial" in found else None


def judge(workers: Workers, records: list[Record], tally: Tally) -> None:
    """Compare the acknowledged results with the store."""
    kept = {record.number: record for record in records}
    told = [answer for line in workers.lines() if (answer := acknowledged(line))]
    place = workers.storage
    for answer in told:
        record = kept.get(answer["trial"])
        if record is None or not record.is_finished or record.value() != answer["value"]:
            tally.lost.append(f"{place}: {answer}: {record}")
    counts = Counter(answer["trial"] for answer in told)
    tally.twice += [f"{place}: trial {number} acknowledged {n} times" for number, n in counts.items() if n > 1]
    known = Counter(number for record in records for number in record.told)
    tally.twice += [f"{place}: trial {number} learned {n} times" for number, n in known.items() if n > 1]
    tally.unsaid += [f"{place}: {line}" for line in workers.lines("err") if "Traceback" in line]
    tally.acknowledged += len(told)
    tally.gave_up[place.partition(":")[0]] += workers.gave_up


class Servers:
    """Several servers on one storage, with clients that send every request to several of them simultaneously."""

    def __init__(self, folder: Path, storage: str, tally: Tally, ending: ExitStack) -> None:
        self.folder, self.storage, self.tally = folder, storage, tally
        self.errors = ending.enter_context(open(folder / "server-errors", "w"))  # noqa: SIM115
        self.pool = ending.enter_context(ThreadPoolExecutor(KEYS * SENT))
        self.running = [Served(folder, storage, self.errors) for _ in range(SERVERS)]
        for server in self.running:
            ending.callback(server.close)
        self.told: dict[int, float] = {}
        self.sent("POST", "/studies", {"name": "shared", "space": SPACE})

    def sent(self, method: str, path: str, body: Any = None) -> Any:
        """Content of the first answer of any server."""
        found = [content for status, content in self._answers([(method, path, body)] * SERVERS) if status < 300]
        return found[0] if found else None

    def _answers(self, requests: Sequence[tuple[str, str, Any]]) -> list[tuple[int, Any]]:
        """Status and content of each answer, without broken connections."""
        place = self.folder.name

        def call(number: int) -> tuple[int, Any] | None:
            client = Client(lambda: self.running[number % SERVERS].port)
            try:
                status, content = client.call(*requests[number])
            except (OSError, HTTPException):
                return None
            finally:
                client.close()
            if status not in (200, 201, 503):
                self.tally.unsaid.append(f"{place}: {requests[number]} was answered {status}: {content}")
            return status, content

        return [answer for answer in self.pool.map(call, range(len(requests))) if answer]

    def work(self, key: str, is_over: Event) -> None:
        """Ask with one key and tell until the end, with every request sent several times simultaneously."""
        while not is_over.is_set():
            asked = self._answers([("POST", "/studies/shared/ask", {"client": key})] * SENT)
            trials = {content["trials"][0]["id"] for status, content in asked if status == 200}
            if len(trials) > 1:
                self.tally.twice.append(f"{self.folder.name}: {key} got trials {sorted(trials)} at once")
            self.tally.tried["asks of one key at once"] += 1
            for number in trials:
                value = random.Random(number).random()  # a repeated tell returns the same value
                body = ("POST", f"/studies/shared/trials/{number}/tell", {"value": value})
                if any(status == 200 for status, _ in self._answers([body] * SENT)):
                    self.told[number] = value

    def idle(self, ending: ExitStack) -> None:
        """Open connections that send nothing."""
        for server in self.running:
            for _ in range(IDLE):
                with suppress(OSError):
                    ending.enter_context(create_connection(("127.0.0.1", server.port), 5))
                    self.tally.tried["idle connections"] += 1

    def judge(self) -> None:
        """Compare the acknowledged results with the stored ones."""
        place, trials = self.folder.name, self.sent("GET", "/studies/shared/trials")["trials"]
        kept = {trial["id"]: trial["value"] for trial in trials}
        if sorted(kept) != list(range(len(trials))):
            self.tally.twice.append(f"{place}: trials {[trial['id'] for trial in trials]}")
        self.tally.lost += [f"{place}: trial {number}" for number, value in self.told.items() if kept[number] != value]
        self.tally.acknowledged += len(self.told)
        said = (self.folder / "server-errors").read_text()
        self.tally.unsaid += [f"{place}: {line}" for line in said.splitlines() if "Traceback" in line]


def storm(folder: Path, storage: str, kills: int, rng: random.Random, tally: Tally) -> None:
    """Kill servers on one storage, together with all other faults."""
    is_over, name = Event(), "PostgreSQL" if storage.startswith("postgresql") else "SQLite"
    with ExitStack() as ending:
        servers = Servers(folder, storage, tally, ending)
        clients = ending.enter_context(ThreadPoolExecutor(KEYS))
        working = [clients.submit(servers.work, f"key{number}", is_over) for number in range(KEYS)]
        try:
            for turn in range(kills):
                with ExitStack() as idling:
                    if turn % 8 == 0:
                        servers.idle(idling)
                    enough, latest = len(servers.told) + rng.randrange(1, 4), time.monotonic() + 20
                    while len(servers.told) < enough and time.monotonic() < latest:
                        time.sleep(rng.uniform(0.0, 0.05))
                    if len(servers.told) < enough:
                        tally.unsaid.append(f"{folder.name}: no answer was acknowledged in 20 s")
                    victim = rng.choice(servers.running)
                    victim.kill()
                    victim.start()
                tally.tried[f"kill -9 of a server, {name}"] += 1
        finally:
            is_over.set()
        for each in working:
            each.result()
        servers.judge()


def campaign(kills: int, seconds: float, seed: int) -> Tally:
    """Inject faults until the number of kills or the time limit is reached."""
    rng, tally, deadline = random.Random(seed), Tally(), time.monotonic() + seconds
    server = Server() if program("initdb") else None
    folder = Path(tempfile.mkdtemp(prefix="noregret-chaos-"))
    try:
        while (left := kills - _kills(tally)) > 0 and time.monotonic() < deadline:
            for name in ("sqlite", "postgresql") if server else ("sqlite",):
                place = folder / f"{name}{_kills(tally)}"
                place.mkdir()
                url = server.new_database() if server and name == "postgresql" else "sqlite:///s.db"
                workers = Workers(place, url)
                _harm(workers, server if name == "postgresql" else None, min(left, KILLS_PER_STUDY), rng, tally)
                judge(workers, workers.finish(), tally)
                served = folder / f"{place.name}-served"
                served.mkdir()
                url = server.new_database() if server and name == "postgresql" else "sqlite:///studies.db"
                storm(served, url, min(left, KILLS_PER_STUDY) // 2, rng, tally)
    finally:
        if server:
            server.stop()
            shutil.rmtree(server.folder, ignore_errors=True)
    shutil.rmtree(folder) if not (tally.lost or tally.twice or tally.unsaid) else print(f"kept: {folder}")
    return tally


def _harm(workers: Workers, server: Server | None, kills: int, rng: random.Random, tally: Tally) -> None:
    workers.await_answers(1, 20.0)
    for i in range(kills):
        workers.fill()
        workers.await_answers(rng.choice([0, 1, 1, 2]), 5.0)
        time.sleep(rng.uniform(0.0, 0.1))
        workers.fill()
        tally.tried[f"{kill_something(workers, rng)}, {'PostgreSQL' if server else 'SQLite'}"] += 1
        if i % 8 == 7:
            tally.tried[server_event(server, rng) if server else file_event(workers, rng)] += 1


def _kills(tally: Tally) -> int:
    return sum(count for what, count in tally.tried.items() if what.startswith("kill -9"))


def main() -> None:
    """Read the command line, run the campaign, print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    begun = time.monotonic()
    tally = campaign(args.kills, args.seconds, args.seed)
    print(tally.table())
    print(f"{'seconds':<44}{time.monotonic() - begun:>6.0f}")
    sys.exit(bool(tally.lost or tally.twice or tally.unsaid or not tally.acknowledged))


if __name__ == "__main__":
    main()
