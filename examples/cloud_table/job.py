"""Substitute for a job on a cluster: prints the cost of one run.

Usage: python job.py NODES CORES MEMORY_GIB PRICE_PER_HOUR

Replace it by a script that starts your job and prints its runtime or cost. As in
reality, runs differ, and some take several times as long because a node was slow.
"""

import random
import sys

WORK, DATA_GIB = 40.0, 120.0


def hours(nodes: int, cores: int, memory_gib: float) -> float:
    """Time of computing, communication, and data that do not fit into memory."""
    spilled = max(DATA_GIB - nodes * memory_gib, 0.0)
    return WORK / (nodes * cores) + 0.04 * nodes + 0.02 * spilled


def cost(nodes: int, cores: int, memory_gib: float, price_per_hour: float) -> float:
    """Cost of one run."""
    noise = random.lognormvariate(0.0, 0.08)
    straggler = random.paretovariate(1.5) if random.random() < 0.1 else 1.0
    return price_per_hour * hours(nodes, cores, memory_gib) * noise * straggler


if __name__ == "__main__":
    nodes, cores = int(sys.argv[1]), int(sys.argv[2])
    print(f"cost: {cost(nodes, cores, float(sys.argv[3]), float(sys.argv[4])):.4f}")
