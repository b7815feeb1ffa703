"""Run PostgreSQL with the settings of a trial, in a temporary cluster of its own.

Usage: python3 cluster.py NAME=VALUE ...   start it, or restart it if settings differ
       python3 cluster.py bench            measure two seconds of pgbench
       python3 cluster.py stop             stop the server and remove the cluster

The first start creates the cluster (initdb) and fills it (pgbench -i), with data of
about 150 MB. The server listens on a socket in the cluster's folder only. PostgreSQL
refuses to run as root, so root runs it as the user postgres.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

HERE = Path(__file__).parent
STATE = HERE / "cluster.json"  # the cluster's folder and the settings it runs with
SCALE, CLIENTS, SECONDS = "10", "4", "2"


def program(name: str) -> str:
    """Path of a program of PostgreSQL; exit if it is not installed."""
    folders = sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)
    path = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *folders]))
    return path or sys.exit(
        f"{name} is missing: install PostgreSQL's server to run this"
    )


def run(name: str, *arguments: str, echo: bool = False, codes: tuple = (0,)) -> int:
    """Run a program of PostgreSQL; exit with its message if it fails."""
    as_root = {"user": "postgres", "group": "postgres", "extra_groups": []}
    done = subprocess.run(
        [program(name), *arguments],
        cwd="/",
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=None if echo else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **(as_root if os.geteuid() == 0 else {}),
    )
    if done.returncode not in codes:
        sys.exit(f"{name} failed: {done.stderr}")
    return done.returncode


def is_running(folder: str) -> bool:
    """Ask PostgreSQL: a server that was killed leaves its postmaster.pid behind."""
    return run("pg_ctl", "-D", f"{folder}/data", "status", codes=(0, 3, 4)) == 0


def control(folder: str, *words: str) -> None:
    """Start or stop the server, and wait until it has."""
    run("pg_ctl", "-D", f"{folder}/data", "-l", f"{folder}/log", "-w", *words)


def create() -> str:
    """Create a cluster that is filled and does not run, and return its folder."""
    program("pgbench")
    folder = tempfile.mkdtemp(prefix="noregret-pgbench-")
    shutil.copyfile(HERE / "report.sql", f"{folder}/report.sql")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    run("initdb", "-D", f"{folder}/data", "-U", "bench", "-A", "trust", "--no-sync")
    control(folder, "start", "-o", f"-k {folder} -c listen_addresses=")
    run("pgbench", "-i", "-s", SCALE, "-h", folder, "-U", "bench", "postgres")
    control(folder, "stop")
    return folder


def start(settings: list[str]) -> None:
    """Have the server run with these settings."""
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    folder = state.get("folder", "")
    if not os.path.isdir(folder):  # temporary files do not survive everything
        folder = create()
    was_running = is_running(folder)
    if was_running and state.get("settings") == settings:
        return  # its caches stay warm
    STATE.write_text(json.dumps({"folder": folder}))  # until the server is up
    if was_running:
        control(folder, "stop")
    options = [f"-k {folder}", "-c listen_addresses=", *(f"-c {s}" for s in settings)]
    control(folder, "start", "-o", " ".join(options))
    STATE.write_text(json.dumps({"folder": folder, "settings": settings}))


def bench() -> None:
    """Print what pgbench prints, for small updates and one report among twenty."""
    folder = json.loads(STATE.read_text())["folder"]
    mix = ("-b", "tpcb-like@19", "-f", f"{folder}/report.sql@1")
    load = ("-c", CLIENTS, "-T", SECONDS, "-h", folder, "-U", "bench")
    run("pgbench", "-n", *mix, *load, "postgres", echo=True)


def stop() -> None:
    """Stop the server and remove all of it."""
    folder = json.loads(STATE.read_text())["folder"]
    if is_running(folder):
        control(folder, "stop", "-m", "immediate")
    shutil.rmtree(folder, ignore_errors=True)
    STATE.unlink()


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["bench"]:
        bench()
    elif words == ["stop"]:
        stop()
    else:
        start(words)
