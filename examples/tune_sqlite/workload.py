"""A small query mix on an SQLite database: prints how many milliseconds it took.

Usage: python workload.py PAGE_SIZE CACHE_KIB MMAP_MIB JOURNAL_MODE SYNCHRONOUS
"""

import json
import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

ROWS = 20_000


def build(path: Path, page_size: int, journal_mode: str) -> None:
    """A table with an index, as large as a small application's."""
    rng = random.Random(0)
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA page_size={page_size}; PRAGMA synchronous=OFF; CREATE TABLE item (key, body);")
    rows = ((rng.randrange(10**9), "x" * rng.randrange(20, 300)) for _ in range(ROWS))
    with connection:
        connection.executemany("INSERT INTO item VALUES (?, ?)", rows)
    connection.execute("CREATE INDEX by_key ON item (key)")
    connection.execute(f"PRAGMA journal_mode={journal_mode}")
    connection.close()


def mix(connection: sqlite3.Connection, rng: random.Random) -> None:
    """Look things up, scan a little, and commit small changes."""
    for i in range(600):
        low = rng.randrange(10**9)
        connection.execute("SELECT body FROM item WHERE key >= ? ORDER BY key LIMIT 5", (low,)).fetchall()
        if i % 50 == 0:
            connection.execute("SELECT count(*) FROM item WHERE body LIKE '%y%'").fetchall()
        if i % 40 == 0:
            with connection:
                connection.execute("UPDATE item SET body = body || 'y' WHERE key BETWEEN ? AND ?", (low, low + 10**5))


def measure(page_size: int, cache_kib: int, mmap_mib: int, journal_mode: str, synchronous: str) -> float:
    """Milliseconds for the mix."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test.db")
        build(path, page_size, journal_mode)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA cache_size=-{cache_kib}")
        connection.execute(f"PRAGMA mmap_size={mmap_mib * 2**20}")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        began = time.perf_counter()
        mix(connection, random.Random(1))
        taken = time.perf_counter() - began
        connection.close()
    return 1000 * taken


if __name__ == "__main__":
    page_size, cache_kib, mmap_mib = map(int, sys.argv[1:4])
    print(json.dumps({"milliseconds": measure(page_size, cache_kib, mmap_mib, *sys.argv[4:6])}))
