"""Ten million arms: ``python -m benchmarks.scale [--device cuda]``.

It needs numpy, scipy, torch and array-api-compat, and for ``--only blocks``, which is left out otherwise,
dask and distributed. On a GPU the times are milliseconds a round, as they stand; on a CPU they are ratios to something
plain in the same run, since machines differ and are noisy.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import torch

from noregret import Policy, RandomFourier, SparseGP, SquaredExponential, algorithms
from noregret.gp.arrays import numpy_of

KERNEL = SquaredExponential(0.2)
NOISE = 0.1
TARGETS = {1_000_000: "at most 1 ms on an H200", 10_000_000: "at most 4 ms on an H200"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments.add_argument("--only", choices=["exact", "same", "sparse", "blocks"])
    given = arguments.parse_args()
    on_gpu = given.device != "cpu"
    print(f"arms on {torch.cuda.get_device_name() if on_gpu else 'the CPU'}, torch {torch.__version__}", flush=True)
    counts = [1_000_000, 10_000_000, 100_000_000] if on_gpu else []
    parts = {
        "exact": lambda: [exact(count, given.device) for count in (100_000, 1_000_000, *counts[1:2])],
        "same": lambda: same_arms(given.device),
        "sparse": lambda: sparse(10_000_000 if on_gpu else 100_000, given.device),
        "blocks": lambda: [blocks(count, given.device) for count in (100_000, *counts)],
    }
    for name, part in parts.items():
        if name == given.only or (given.only is None and name != "blocks"):
            part()


def exact(count: int, device: str, rounds: int = 100) -> None:
    """Rounds 81 to 100 of IGP-UCB on uniform arms in 4-d, the median; on a CPU against NumPy arms."""
    milliseconds, _ = played(uniform(count, device), rounds)
    print(f"exact, {count:,} arms in 4-d: {milliseconds:.3f} ms a round ({TARGETS.get(count, 'no target')})", end="")
    if device == "cpu":
        plain, _ = played(uniform(count, device).numpy(), rounds)
        print(f", {milliseconds / plain:.2f} x NumPy arms", end="")
    print(flush=True)


def same_arms(device: str, count: int = 100_000, rounds: int = 100) -> None:
    """Compare the chosen arms with those that NumPy chooses."""
    arms = uniform(count, device)
    _, there = played(arms, rounds)
    _, here = played(numpy_of(arms), rounds)
    print(f"the same arms as NumPy, {count:,} arms: {sum(map(int.__eq__, there, here))} of {rounds}", flush=True)


def played(arms: Any, rounds: int, truth: Any = None) -> tuple[float, list[int]]:
    """Milliseconds a round of asking and telling, the median of the last 20, and the arms that were asked for.

    ``truth`` are the arms where rows can be looked up, if it is not ``arms``.
    """
    policy = Policy(algorithms.igp_ucb(KERNEL, noise=NOISE), arms, rng=0)
    world, asked, seconds = np.random.default_rng(1), list[int](), list[float]()
    for _ in range(rounds):
        start = perf_counter()
        pulls = policy.ask()
        answered = perf_counter()
        values = np.sin(5 * numpy_of((arms if truth is None else truth)[pulls])).sum(axis=1)
        values += NOISE * world.standard_normal(len(pulls))
        told = perf_counter()
        policy.tell(pulls, values)
        asked += pulls.tolist()
        seconds.append(perf_counter() - told + answered - start)  # the next arm is chosen: the device has nothing to do
    return 1000 * float(np.median(seconds[-20:])), asked


def sparse(count: int, device: str, features: int = 512) -> None:
    """One scoring of all arms, mean and std afresh from the features, against the one product that it must make."""
    belief = SparseGP(RandomFourier(KERNEL, features // 2), NOISE**2).prior(uniform(count, device))
    rng = np.random.default_rng(1)
    seconds = []
    for _ in range(4):
        pulls = rng.integers(count, size=features)
        start = perf_counter()
        belief.update(pulls, rng.standard_normal(features))
        best = int((belief.mean + 2 * belief.std).argmax())
        seconds.append(perf_counter() - start)
    print(
        f"SparseGP, {features} features, {count:,} arms: {min(seconds):.3f} s a scoring (at most 0.15 on an H200 for "
        f"10,000,000), top {best}",
        flush=True,
    )


def blocks(count: int, device: str, rounds: int = 60) -> None:
    """Two local workers, each with a block of tensors on the device; up to a million arms, whether they are NumPy's."""
    import dask
    from dask.array import concatenate, from_delayed

    size = count // 2
    parts = [dask.delayed(uniform)(size, device, seed) for seed in range(2)]
    truth = np.concatenate([uniform(size, "cpu", seed).numpy() for seed in range(2)])
    with workers(2):
        arms = concatenate([from_delayed(part, (size, 4), float) for part in parts])
        milliseconds, there = played(arms, rounds, truth)
    print(f"two workers with blocks on {device}, {count:,} arms: {milliseconds:.1f} ms a round", end="")
    if count <= 1_000_000:
        print(f", {sum(map(int.__eq__, there, played(truth, rounds)[1]))} of {rounds} arms NumPy's", end="")
    print(flush=True)


def uniform(count: int, device: str, seed: int = 0) -> torch.Tensor:
    """Uniform arms in 4-d, the same on every device."""
    return torch.from_numpy(np.random.default_rng(seed).random((count, 4))).to(device)


@contextmanager
def workers(count: int) -> Iterator[Any]:
    """Local processes of one thread each, with a client.

    A killed process has time to start again, and each keeps freed memory, as any process does: dask returns
    it to the system immediately, and a large part of a round is spent on allocating it again.
    """
    import dask
    from distributed import Client, LocalCluster

    memory = {f"distributed.nanny.pre-spawn-environ.MALLOC_{name}_THRESHOLD_": 2**30 for name in ("TRIM", "MMAP")}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes", **memory}),
        LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as started,
        Client(started),
    ):
        yield started


if __name__ == "__main__":
    main()
