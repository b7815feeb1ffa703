"""Compilations and winners of `noregret.integrations.triton.autotune`, and of ``triton.autotune``, on a GPU.

``python -m benchmarks.triton_autotune`` tunes with recorded launches: benchmarks/results/triton.npz has a hundred of
every configuration, interleaved, of six kernels with five shapes each, on an H200. It needs the packages triton and
torch, and no GPU. ``--live 300`` records them again on a GPU, and then tunes on it for the rest of those 300 seconds.
The oracle of a shape is the least of the medians of all configurations. Each tuning begins without a cache.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import triton
import triton.language as tl

from benchmarks.provenance import RESULTS
from noregret.integrations import triton as door


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    wide, high = tl.cdiv(N, BN), tl.cdiv(M, BM)
    group = tl.program_id(0) // (8 * wide)
    rows = min(high - group * 8, 8)
    inside = tl.program_id(0) % (8 * wide)
    m = (group * 8 + inside % rows) * BM + tl.arange(0, BM)
    n = (inside // rows) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left, right = a + (m % M)[:, None] * K + k[None, :], b + k[:, None] * N + (n % N)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def batched(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of a batch, the left factors transposed."""
    wide, batch = tl.cdiv(N, BN), tl.program_id(1)
    m = (tl.program_id(0) // wide) * BM + tl.arange(0, BM)
    n = (tl.program_id(0) % wide) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = a + batch * M * K + k[:, None] * M + (m % M)[None, :]
    right = b + batch * K * N + k[:, None] * N + (n % N)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.trans(tl.load(left)), tl.load(right), total)
        left += BK * M
        right += BK * N
    to = c + batch * M * N + m[:, None] * N + n[None, :]
    tl.store(to, total.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    start, at = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    most, total = tl.full((BLOCK,), -float("inf"), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + at, mask=first + at < cols, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, tl.maximum(value, -1e30))
        total = total * tl.exp(most - larger) + tl.exp(value - larger)
        most = larger
    top = tl.max(most, 0)
    total_sum = tl.sum(total * tl.exp(most - top), 0)
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + at, mask=first + at < cols, other=0.0).to(tl.float32)
        tl.store(y + start + first + at, (tl.exp(value - top) / total_sum).to(tl.bfloat16), mask=first + at < cols)


@triton.jit
def layer_norm(x, y, w, b, cols, BLOCK: tl.constexpr):
    start, at = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    total, square = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        value = tl.load(x + start + first + at, mask=first + at < cols, other=0.0).to(tl.float32)
        total += value
        square += value * value
    mean = tl.sum(total, 0) / cols
    scale = 1 / tl.sqrt(tl.sum(square, 0) / cols - mean * mean + 1e-5)
    for first in range(0, cols, BLOCK):
        inside = first + at < cols
        value = tl.load(x + start + first + at, mask=inside, other=0.0).to(tl.float32)
        weight, bias = tl.load(w + first + at, mask=inside), tl.load(b + first + at, mask=inside)
        tl.store(y + start + first + at, ((value - mean) * scale * weight + bias).to(tl.bfloat16), mask=inside)


@triton.jit
def dropout(x, bias, y, size, cols, seed, BLOCK: tl.constexpr):
    """Dropout of the GELU of a sum."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size).to(tl.float32) + tl.load(bias + at % cols, mask=at < size).to(tl.float32)
    value = 0.5 * value * (1 + tl.erf(value * 0.70710678))
    tl.store(y + at, tl.where(tl.rand(seed, at) > 0.1, value / 0.9, 0.0).to(tl.bfloat16), mask=at < size)


@triton.jit
def attention(q, k, v, o, length, BM: tl.constexpr, BN: tl.constexpr):
    d, start = tl.arange(0, 64), tl.program_id(1).to(tl.int64) * length * 64
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    query = tl.load(q + start + m[:, None] * 64 + d[None, :])
    most, total = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    out = tl.zeros((BM, 64), tl.float32)
    for first in range(0, length, BN):
        key = tl.load(k + start + (first + n)[:, None] * 64 + d[None, :])
        score = tl.dot(query, tl.trans(key)) * 0.18033688
        larger = tl.maximum(most, tl.max(score, 1))
        part, rest = tl.exp2(score - larger[:, None]), tl.exp2(most - larger)
        value = tl.load(v + start + (first + n)[:, None] * 64 + d[None, :])
        out = tl.dot(part.to(tl.bfloat16), value, out * rest[:, None])
        total = total * rest + tl.sum(part, 1)
        most = larger
    tl.store(o + start + m[:, None] * 64 + d[None, :], (out / total[:, None]).to(tl.bfloat16))


def grid_of(names, blocks, warps, stages, keep=lambda *block: True):
    rows = [block for block in itertools.product(*blocks) if keep(*block)]
    every = itertools.product(rows, warps, stages)
    return [triton.Config(dict(zip(names, row, strict=True)), num_warps=w, num_stages=s) for row, w, s in every]


def bf16(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def of_matmul(M, N, K):
    return (bf16(M, K), bf16(K, N), bf16(M, N), M, N, K), lambda m: (-(-M // m["BM"]) * -(-N // m["BN"]),)


def of_batched(B, M, N, K):
    return (bf16(B, K, M), bf16(B, K, N), bf16(B, M, N), M, N, K), lambda m: (-(-M // m["BM"]) * -(-N // m["BN"]), B)


def of_softmax(rows, cols):
    return (bf16(rows, cols), bf16(rows, cols), cols), (rows,)


def of_layer_norm(rows, cols):
    return (bf16(rows, cols), bf16(rows, cols), bf16(cols), bf16(cols), cols), (rows,)


def of_dropout(rows, cols):
    return (bf16(rows, cols), bf16(cols), bf16(rows, cols), size := rows * cols, cols, 7), lambda m: (
        -(-size // m["BLOCK"]),
    )


def of_attention(heads, length):
    return (*(bf16(heads, length, 64) for _ in range(4)), length), lambda m: (length // m["BM"], heads)


SIDES = (64, 128, 256)
TILES = grid_of(("BM", "BN", "BK"), (SIDES, SIDES, (32, 64)), (4, 8), (3, 4), lambda m, n, k: m * n < 256**2)
ROWS = grid_of(("BLOCK",), ([2**i for i in range(8, 14)],), (1, 2, 4, 8, 16), (1, 3))
FLAT = grid_of(("BLOCK",), ([2**i for i in range(7, 14)],), (1, 2, 4, 8, 16), (3,))
HEADS = grid_of(("BM", "BN"), (SIDES[:2], (32, 64, 128)), (4, 8), (2, 3, 4))
CASES = {
    "matmul": (
        matmul,
        TILES,
        "M N K",
        of_matmul,
        "512 512 512, 1024 1024 4096, 4096 4096 4096, 128 8192 8192, 8192 1024 2048",
    ),
    "batched matmul": (
        batched,
        TILES,
        "M N K",
        of_batched,
        "16 512 512 512, 64 256 256 1024, 8 1024 1024 1024, 128 128 512 512, 4 2048 512 4096",
    ),
    "softmax": (softmax, ROWS, "cols", of_softmax, "4096 1024, 8192 4096, 1024 32768, 65536 512, 128 131072"),
    "layer norm": (layer_norm, ROWS, "cols", of_layer_norm, "4096 1024, 8192 4096, 2048 16384, 65536 512, 256 65536"),
    "dropout": (dropout, FLAT, "size cols", of_dropout, "1024 1024, 4096 4096, 512 16384, 16384 2048, 32768 8192"),
    "attention": (attention, HEADS, "length", of_attention, "64 1024, 16 4096, 8 8192, 256 512, 4 16384"),
}


def compiled(job):
    """Compile a configuration into Triton's own cache, for the tunings that follow."""
    kernel, configs, _, make, shapes = CASES[job[0]]
    args, grid = make(*(min(int(each), 32) for each in shapes.split(",")[0].split()))
    kernel.warmup(*args, grid=grid, **configs[job[1]].all_kwargs())


def recorded(kernel, configs, args, grid):
    """Nanoseconds of interleaved launches of all configurations, (rounds, configurations)."""
    hooks, options, timer = door._Hooks((), (), None, None), {"grid": grid, "warmup": False}, door._Timer(None, 0, 0)
    calls = [door._Call(kernel, hooks, config, {}, args, options) for config in configs]
    timer.times(calls, 300)
    return (1e6 * timer.times(calls, 1500)).astype(np.uint32)


def tuning(kernel, args, grid, configs):
    """Number of the chosen configuration, with the number of compilations and the seconds that it took."""
    start = time.time()
    kernel[grid](*args)
    torch.cuda.synchronize()
    return configs.index(kernel.best_config), getattr(kernel, "compiled", len(configs)), time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", type=float, metavar="SECONDS", help="on a GPU: record launches, then tune on it")
    parser.add_argument("--tunings", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS / "triton.npz")
    given = parser.parse_args()
    if given.live:
        live(given, time.time() + given.live)
    else:
        replay(given)


def live(given, end):
    """Launches of all configurations; then tunings of all shapes by turns until the time is over."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        list(pool.map(compiled, [(name, number) for name in CASES for number in range(len(CASES[name][1]))]))
    inputs = {
        f"{name}: {shape.strip()}": (name, make(*map(int, shape.split())))
        for name, (*_, make, shapes) in CASES.items()
        for shape in shapes.split(",")
    }
    found = {shape: recorded(*CASES[name][:2], *made) for shape, (name, made) in inputs.items()}
    ours, theirs = [], []

    def keep():
        names = list(found)
        rows = {
            who: [[names.index(shape), *rest] for shape, *rest in rows]
            for who, rows in (("ours", ours), ("theirs", theirs))
        }
        np.savez_compressed(given.out, **found, **rows)

    keep()
    for turn in range(given.tunings):
        for place, (shape, (name, made)) in enumerate(inputs.items()):
            kernel, configs, key, *_ = CASES[name]
            if time.time() > end:
                return keep()
            if place % 6 == 0:
                keep()
            ours.append(
                (shape, *tuning(door.autotune(configs, key.split(), cache_results=False)(kernel), *made, configs))
            )
            if turn == 0 and place % 5 == 1:
                theirs.append((shape, *tuning(triton.autotune(configs, key.split())(kernel), *made, configs)))
    keep()


class Recording:
    """Timer that reads recorded launches from a random round on, in the place of `_Timer`."""

    warmup, rep = 10.0, 20.0

    def __init__(self, rounds, rng):
        self.rounds, self.rng = rounds / 1e6, rng

    def times(self, calls, milliseconds):
        columns = self.rounds[:, [call.number for call in calls]]
        once = float(np.median(columns, axis=0).sum()) + door.OVERHEAD * len(calls)
        count = min(max(int(milliseconds / once), 1), door.MOST_ROUNDS)
        return columns.take(self.rng.integers(len(columns)) + np.arange(count), axis=0, mode="wrap")


class Replayed:
    """Call of a configuration whose launches were recorded."""

    def __init__(self, number, config):
        self.number, self.config, self.kernel = number, config, object()

    def __call__(self):
        return self.kernel


def replay(given):
    """Tunings with the recorded launches: each shape alone, and the shapes of a kernel one after the other."""
    with np.load(given.out) as stored:
        file = dict(stored)
    names = [name for name in file if name not in ("ours", "theirs")]
    print("| kernel | configurations | compiled | mean | worst | within 1% | same | compiled for five shapes | mean |")
    for kernel, (_, configs, *_) in CASES.items():
        shapes = [name for name in names if name.startswith(f"{kernel}:")]
        ratio = {shape: (found := np.median(file[shape], axis=0)) / found.min() for shape in shapes}
        alone, same, five = [], [], []
        for shape in shapes:
            won = []
            for seed in range(given.tunings):
                tuned = _tuned(configs, [(file[shape], seed)])
                won += [ratio[shape][tuned[0][0]]]
                alone.append((won[-1], tuned[0][1]))
            same += np.abs(np.array(won) / Counter(won).most_common(1)[0][0] - 1).__le__(0.01).tolist()
        for seed in range(given.tunings):
            order = np.random.default_rng(seed).permutation(shapes).tolist()
            found = _tuned(configs, [(file[shape], seed) for shape in order])
            five.append((np.mean([ratio[s][w] for s, (w, _) in zip(order, found, strict=True)]), found[-1][1]))
        times, compiled = np.array(alone).T
        print(
            f"| {kernel} | {len(configs)} | {compiled.mean():.1f} | {times.mean():.4f} | {times.max():.3f} "
            f"| {np.mean(times <= 1.01):.0%} | {np.mean(same):.0%} | {np.mean(five, axis=0)[1]:.0f} "
            f"| {np.mean(five, axis=0)[0]:.4f} |",
            flush=True,
        )
    for who in ("ours", "theirs"):
        if who in file and len(file[who]):
            rows = [(file[names[int(shape)]], int(won), count, took) for shape, won, count, took in file[who]]
            times = [(found := np.median(rounds, axis=0))[won] / found.min() for rounds, won, *_ in rows]
            part = np.mean([count / rounds.shape[1] for rounds, _, count, _ in rows])
            print(
                f"on the GPU, {who}: {len(rows)} tunings, {part:.0%} compiled, mean {np.mean(times):.4f}, "
                f"worst {np.max(times):.3f}, within 1% {np.mean(np.array(times) <= 1.01):.0%}, "
                f"{np.mean([took for *_, took in rows]):.1f} s"
            )


def _tuned(configs, keys):
    """Number of the chosen configuration, and of those compiled so far, for each recording with its seed."""
    kernel = door.TunedKernel(SimpleNamespace(arg_names=[]), configs, [], {}, None, None, None)
    calls, found = [Replayed(number, config) for number, config in enumerate(configs)], []
    for rounds, seed in keys:
        kernel._timer = Recording(rounds, np.random.default_rng(seed))
        _, won = kernel._choice(calls, 0, seed)
        found.append((won, kernel.compiled))
    return found


if __name__ == "__main__":
    main()
