"""Runs workers on a study and kills them at random: python killing.py STUDY ACKNOWLEDGED WORKERS KILLS SEED

Everything is imported before the first fork, so that a worker lives long enough to do something.
"""

import os
import random
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

from noregret import cli
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load


def start(study: str, acknowledged: str) -> int:
    """Start a worker whose output is added to a file."""
    child = os.fork()
    if not child:
        output = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os._exit(cli.main(["tune", "--json", study]))
    return child


def run(study: str, acknowledged: str, workers: int, kills: int, seed: int) -> None:
    """Kill workers and replace each, for a number of kills; at the end kill the last ones too.

    Between two kills up to two answers are acknowledged, so that the study continues on a machine of any speed.
    """
    rng = random.Random(seed)
    alive = [start(study, acknowledged) for _ in range(workers)]
    for _ in range(kills):
        _wait(acknowledged, answers=rng.choice([0, 1, 1, 2]), seconds=5)
        time.sleep(rng.uniform(0, 0.2))
        victim = rng.randrange(workers)
        os.kill(alive[victim], signal.SIGKILL)
        os.waitpid(alive[victim], 0)
        alive[victim] = start(study, acknowledged)
    for child in alive:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _wait(acknowledged: str, answers: int, seconds: float) -> None:
    """Wait until this number of further answers is acknowledged, or a time limit."""
    deadline, lines = time.monotonic() + seconds, _lines(acknowledged) + answers
    while _lines(acknowledged) < lines and time.monotonic() < deadline:
        time.sleep(0.005)


def _lines(path: str) -> int:
    return Path(path).read_bytes().count(b"\n")


if __name__ == "__main__":
    Path(sys.argv[2]).touch()
    Store(load(Path(sys.argv[1]))).close()  # so that everything is imported
    for module in ("noregret.studies.running", "scipy.stats"):
        import_module(module)
    run(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
