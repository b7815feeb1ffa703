"""Compress some files; print CPU milliseconds per megabyte and the compressed size.

Usage: python3 compress.py LEVEL BLOCK_KIB

The files are random files of Python's standard library, others in every run. This and
the load of the machine make the measurements noisy.
"""

import json
import lzma
import random
import sys
import sysconfig
import time
from pathlib import Path

FILES = 60


def some_files() -> bytes:
    """The contents of some files, chosen at random."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*/*.py"))
    return b"".join(file.read_bytes() for file in random.sample(files, FILES))


def measure(data: bytes, level: int, block: int) -> dict[str, float]:
    """Compress the data block by block, so that each can be read without the others."""
    began = time.process_time()
    compressed = [
        lzma.compress(data[i : i + block], preset=level)
        for i in range(0, len(data), block)
    ]
    seconds = time.process_time() - began
    return {
        "ms_per_mb": 1e9 * seconds / len(data),
        "size_percent": 100 * sum(map(len, compressed)) / len(data),
    }


if __name__ == "__main__":
    level, block_kib = map(int, sys.argv[1:])
    print(json.dumps(measure(some_files(), level, 1024 * block_kib)))
