"""Ten million arms: ``python -m benchmarks.scale [--device cuda]``.

It needs numpy, scipy, threadpoolctl, torch and array-api-compat, and for the parts on a cluster dask and distributed:
``cluster`` and ``killed``, which are left out on a GPU, and ``--only blocks``. On a GPU the times are milliseconds a
round, as they stand; on a CPU they are ratios to something plain in the same run, since machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from noregret import Policy, RandomFourier, SparseGP, SquaredExponential, algorithms
from noregret.belief.arrays import numpy_of

KERNEL = SquaredExponential(0.2)
NOISE = 0.1
TARGETS = {1_000_000: "at most 1 ms on an H200", 10_000_000: "at most 4 ms on an H200"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments.add_argument(
        "--only", choices=["exact", "same", "sparse", "memory", "contexts", "cluster", "killed", "blocks"]
    )
    given = arguments.parse_args()
    on_gpu = given.device != "cpu"
    print(f"arms on {torch.cuda.get_device_name() if on_gpu else 'the CPU'}, torch {torch.__version__}", flush=True)
    parts = {
        "exact": lambda: [
            exact(count, given.device) for count in (100_000, 1_000_000, *([10_000_000] if on_gpu else []))
        ],
        "same": lambda: same_arms(given.device),
        "sparse": lambda: sparse(10_000_000 if on_gpu else 100_000, given.device),
        "memory": memory,
        "contexts": contexts,
        "cluster": cluster,
        "killed": killed,
        "blocks": lambda: [
            blocks(count, given.device)
            for count in (100_000, *((1_000_000, 10_000_000, 100_000_000) if on_gpu else ()))
        ],
    }
    left_out = ("cluster", "killed", "blocks") if on_gpu else ("blocks",)
    for name, part in parts.items():
        if name == given.only or (given.only is None and name not in left_out):
            part()


def exact(count: int, device: str, rounds: int = 100) -> None:
    """Rounds 81 to 100 of IGP-UCB on uniform arms in 4-d, the median; on a CPU against NumPy arms."""
    milliseconds, _ = played(tensor(count, device), rounds)
    print(f"exact, {count:,} arms in 4-d: {milliseconds:.3f} ms a round ({TARGETS.get(count, 'no target')})", end="")
    if device == "cpu":
        plain, _ = played(tensor(count, device).numpy(), rounds)
        print(f", {milliseconds / plain:.2f} x NumPy arms", end="")
    print(flush=True)


def same_arms(device: str, count: int = 100_000, rounds: int = 100) -> None:
    """Compare the chosen arms with those that NumPy chooses."""
    arms = tensor(count, device)
    _, there = played(arms, rounds)
    _, here = played(numpy_of(arms), rounds)
    print(f"the same arms as NumPy, {count:,} arms: {sum(map(int.__eq__, there, here))} of {rounds}", flush=True)


def played(
    arms: Any, rounds: int, truth: Any = None, between: Callable[[int], None] = lambda done: None
) -> tuple[float, list[int]]:
    """Milliseconds a round of asking and telling, the median of the last 20, and the arms that were asked for.

    ``truth`` are the arms where rows can be looked up, if it is not ``arms``; ``between`` is called before every round.
    """
    policy = Policy(algorithms.igp_ucb(KERNEL, noise=NOISE), arms, rng=0)
    world, asked, seconds = np.random.default_rng(1), list[int](), list[float]()
    for done in range(rounds):
        between(done)
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
    belief = SparseGP(RandomFourier(KERNEL, features // 2), NOISE**2).prior(tensor(count, device))
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


def memory(arms: int = 1_000_000, rounds: int = 40) -> None:
    """Peak memory of a process of its own: IGP-UCB on NumPy arms in 4-d, every round another arm."""
    script = f"""
        import resource
        import numpy as np
        from noregret import Policy, SquaredExponential, algorithms
        rng = np.random.default_rng(0)
        policy = Policy(algorithms.igp_ucb(SquaredExponential(0.2), noise={NOISE}), rng.random(({arms}, 4)), rng=0)
        for _ in range({rounds}):
            policy.tell(policy.ask(), {NOISE} * rng.standard_normal(1))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2, policy.belief.rank)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    peak, rank = done.stdout.split()
    print(
        f"{arms:,} arms, {rounds} rounds, {rank} distinct: {float(peak):.2f} GB at the most (at most 0.6)", flush=True
    )


def contexts(rounds: int = 400, arms: int = 50) -> None:
    """Arms that change every round: against a factor made afresh each time, with NumPy alone."""
    with threadpool_limits(1):
        seconds, plain = min(changing(rounds, arms) for _ in range(3)), min(afresh(rounds, arms) for _ in range(3))
    print(
        f"{rounds} rounds of {arms} fresh arms: {seconds:.2f} s (at most 0.5 alone on a core), {seconds / plain:.2f} x "
        "a plain loop that factors again",
        flush=True,
    )


def changing(rounds: int, arms: int) -> float:
    """Seconds of a core for rounds in which all arms are fresh."""
    rng = np.random.default_rng(0)
    policy, start = Policy(algorithms.igp_ucb(KERNEL, noise=NOISE), rng.random((arms, 4)), rng=0), process_time()
    for _ in range(rounds):
        fresh = rng.random((arms, 4))
        policy.change_arms(fresh)
        asked = policy.ask()
        policy.tell(asked, np.sin(5 * fresh[asked]).sum(axis=1))
    return process_time() - start


def afresh(rounds: int, arms: int) -> float:
    """The same in a dozen lines: a Cholesky factor of all points so far in every round."""
    rng, points, values, start = np.random.default_rng(0), np.empty((0, 4)), np.empty(0), process_time()
    for _ in range(rounds):
        fresh = rng.random((arms, 4))
        root = np.linalg.cholesky(KERNEL(points, points) + NOISE**2 * np.eye(len(points)))
        lifted = np.linalg.solve(root, KERNEL(points, fresh))
        mean = np.linalg.solve(root, values) @ lifted
        std = np.sqrt(np.maximum(1 - (lifted**2).sum(axis=0), 0))
        best = fresh[np.argmax(mean + 2 * std)]
        points, values = np.vstack([points, best]), np.append(values, np.sin(5 * best).sum())
    return process_time() - start


def cluster(count: int = 2_000_000, rounds: int = 40) -> None:
    """Two local workers of one thread each against one such process, and the overhead of a round."""
    from dask.array import from_array  # here and below, so that the others run without it

    arms, few = (np.random.default_rng(0).random((size, 4)) for size in (count, 1000))
    with threadpool_limits(1):
        alone, here = played(arms, rounds)
        least, _ = played(few, rounds)
    with workers(2):
        together, there = played(from_array(arms, chunks=(count // 2, 4)), rounds, arms)
        overhead, _ = played(from_array(few, chunks=(500, 4)), rounds, few)
    print(
        f"two workers, {count:,} arms: {alone / together:.2f} x as fast as one process (at least 1.6), {alone:.0f} ms "
        f"a round against {together:.0f}; overhead {overhead - least:.1f} ms a round (at most 15); "
        f"{sum(map(int.__eq__, there, here))} of {rounds} arms the same; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def killed(count: int = 100_000, rounds: int = 100, kills: int = 20) -> None:
    """Four local workers, killed at random in a run: compare the chosen arms."""
    from dask.array import from_array

    arms, rng = np.random.default_rng(0).random((count, 4)), np.random.default_rng(2)
    due = set(rng.choice(rounds, kills, replace=False).tolist())
    with workers(4) as started:

        def kill_one(done: int) -> None:
            nannies = [nanny for nanny in started.workers.values() if nanny.pid]
            if done in due and nannies:
                os.kill(nannies[rng.integers(len(nannies))].pid, signal.SIGKILL)
                due.discard(done)

        _, there = played(from_array(arms, chunks=(count // 4, 4)), rounds, arms, kill_one)
    _, here = played(arms, rounds)
    same = sum(map(int.__eq__, there, here))
    print(f"four workers, {kills - len(due)} killed in {rounds} rounds: {same} of {rounds} arms the same", flush=True)


def blocks(count: int, device: str, rounds: int = 60) -> None:
    """Two local workers, each with a block of tensors on the device; up to a million arms, whether they are NumPy's."""
    import dask
    from dask.array import concatenate, from_delayed

    size = count // 2
    parts = [dask.delayed(uniform)(size, seed, device) for seed in range(2)]
    truth = np.concatenate([uniform(size, seed, "cpu").numpy() for seed in range(2)])
    with workers(2):
        arms = concatenate([from_delayed(part, (size, 4), float) for part in parts])
        milliseconds, there = played(arms, rounds, truth)
    print(f"two workers with blocks on {device}, {count:,} arms: {milliseconds:.1f} ms a round", end="")
    if count <= 1_000_000:
        print(f", {sum(map(int.__eq__, there, played(truth, rounds)[1]))} of {rounds} arms NumPy's", end="")
    print(flush=True)


def uniform(count: int, seed: int, device: str) -> torch.Tensor:
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


def tensor(count: int, device: str) -> torch.Tensor:
    """Uniform arms in 4-d."""
    return torch.rand(count, 4, dtype=torch.float64, generator=torch.Generator(device).manual_seed(0), device=device)


if __name__ == "__main__":
    main()
