"""Compress some text; print CPU milliseconds per megabyte and the compressed size.

Usage: python3 compress.py LEVEL BLOCK_KIB

The text is a quarter of a megabyte of Python's standard library, other pieces in every
run. This and the load of the machine make the measurements noisy.
"""

import json
import lzma
import random
import sys
import sysconfig
import time
from pathlib import Path

PIECES = 64
BYTES = 4096


def some_text() -> bytes:
    """A piece of each of some files, chosen at random."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*/*.py"))
    texts = [file.read_bytes() for file in random.sample(files, PIECES)]
    begins = [random.randrange(max(len(text) - BYTES, 0) + 1) for text in texts]
    return b"".join(text[i : i + BYTES] for text, i in zip(texts, begins, strict=True))


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
    print(json.dumps(measure(some_text(), level, 1024 * block_kib)))
