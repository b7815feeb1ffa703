"""One call: the fastest settings of a compressor whose output is small enough.

Times are noisy, with outliers when the machine is busy. The settings in use are the
baseline, and the size of the output has a limit.

Run: python examples/minimize.py
"""

import json
import time
import zlib

from noregret import Int, minimize

ROWS = [{"user": i * 7919 % 10_007, "score": i * i % 977} for i in range(20_000)]
DATA = json.dumps(ROWS).encode()


def compress(level, window, memory):
    """Milliseconds to compress the data, and the size of the output."""
    began = time.perf_counter()
    packer = zlib.compressobj(level, zlib.DEFLATED, window, memory)
    size = len(packer.compress(DATA) + packer.flush())
    milliseconds = 1000 * (time.perf_counter() - began)
    return milliseconds, {"percent": 100 * size / len(DATA)}


def main() -> None:
    """Run forty evaluations, and print the best setting."""
    result = minimize(
        compress,
        {"level": Int(1, 9), "window": Int(9, 15), "memory": Int(1, 9)},
        evaluations=40,
        baseline={"level": 6, "window": 15, "memory": 8},
        constraints={"percent": ("<=", 19)},
        rng=0,
    )
    print(result)


if __name__ == "__main__":
    main()
