"""Spaces with whole numbers and choices, and tables of names: a dict of params -> value, to be maximised."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from noregret import Choice, Float, Int

Params = dict[str, Any]
Value = Callable[[Params], float]
OPTIMIZERS = {"adam": (0.0, -3.0), "sgd": (0.12, -1.0), "lion": (0.05, -4.0), "rprop": (0.4, -2.0)}
"""The loss that remains with each, and the logarithm of its best learning rate."""


def training(params: Params) -> float:
    """The loss of a network: every optimizer has its own best learning rate, deep ones need less dropout."""
    remaining, best_rate = OPTIMIZERS[params["optimizer"]]
    rate = (math.log10(params["rate"]) - best_rate) ** 2 / 4
    depth = 0.3 * abs(math.log2(params["layers"] / 4))
    dropout = 4 * (params["dropout"] - 0.4 + 0.03 * params["layers"]) ** 2
    batch = 0.05 * (math.log2(params["batch"]) - 6) ** 2
    return -(remaining + rate + depth + dropout + batch)


def service(params: Params) -> float:
    """The latency of a service: threads trade off against the buffer, which one policy does not use."""
    threads = (math.log2(params["threads"]) - 4) ** 2 / 8
    needed = {"lru": 7, "fifo": 9, "random": 8, "none": 3}[params["policy"]]
    buffer = (math.log2(params["buffer"]) - needed) ** 2 / 20
    wait = abs(math.log10(params["wait"] / 0.02)) * (0.3 if params["retry"] else 0.6)
    return -(threads + buffer + wait + {"lru": 0.0, "fifo": 0.1, "random": 0.25, "none": 0.5}[params["policy"]])


def flags(params: Params) -> float:
    """Ten switches, some of which help only together, and two numbers that matter only with the first switch on."""
    on = [bool(params[f"flag{i}"]) for i in range(10)]
    alone = sum(size * (state != wanted) for size, state, wanted in zip(FLAG_SIZES, on, FLAG_WANTED, strict=True))
    together = 0.6 * (not (on[1] and on[4])) + 0.4 * (on[2] != on[7])
    numbers = (params["a"] - 0.3) ** 2 + (params["b"] - 0.8) ** 2 if on[0] else 0.5
    return -(alone + together + numbers)


FLAG_SIZES = np.linspace(0.5, 0.05, 10)
FLAG_WANTED = [True, True, False, False, True, False, True, False, True, False]


def whole_numbers(params: Params) -> float:
    """Five whole numbers on a bowl with a ripple."""
    u = np.array([params[f"n{i}"] for i in range(5)]) - np.array([3, 8, 5, 1, 6])
    return -float((u**2 / 25 + 0.15 * (u % 2)).sum())


def choices(seed: int, names: int, options: int, numbers: int) -> tuple[dict[str, Any], Value, float]:
    """Choices whose effects add up, each tied to the next one, and numbers whose best depends on the first choice."""
    rng = np.random.default_rng(seed)
    effects, ties = rng.random((names, options)), 0.5 * rng.random((names - 1, options, options))
    centres = rng.random((options, numbers))
    option_names = [chr(ord("a") + i) for i in range(options)]
    space: dict[str, Any] = {f"c{i}": Choice(option_names) for i in range(names)}
    space |= {f"x{i}": Float(0, 1) for i in range(numbers)}

    def value(params: Params) -> float:
        chosen = [ord(params[f"c{i}"]) - ord("a") for i in range(names)]
        own = sum(effects[i, option] for i, option in enumerate(chosen))
        tied = sum(ties[i, chosen[i], chosen[i + 1]] for i in range(names - 1))
        away = sum((params[f"x{i}"] - centres[chosen[0], i]) ** 2 for i in range(numbers))
        return float(own + tied - 2 * away)

    return space, value, _best_chain(effects, ties)


def _best_chain(effects: Any, ties: Any) -> float:
    """The largest sum of effects and ties of neighbours, by dynamic programming."""
    best = effects[0]
    for own, tie in zip(effects[1:], ties, strict=True):
        best = (best[:, None] + tie).max(axis=0) + own
    return float(best.max())


def names(seed: int, count: int) -> tuple[dict[str, Any], Value, float]:
    """Names with Gaussian values and no features."""
    values = np.random.default_rng(seed).standard_normal(count)
    space = {"name": Choice([f"n{i}" for i in range(count)])}
    return space, lambda params: float(values[int(params["name"][1:])]), float(values.max())


def _with(value: Value, top: float, **space: Any) -> tuple[dict[str, Any], Value, float]:
    return space, value, top


MIXED: dict[str, Callable[[], tuple[dict[str, Any], Value, float]]] = {
    "training": lambda: _with(
        training,
        0.0,
        rate=Float(1e-5, 1, log=True),
        layers=Int(1, 12),
        dropout=Float(0, 0.8),
        batch=Int(8, 1024, log=True),
        optimizer=Choice(list(OPTIMIZERS)),
    ),
    "service": lambda: _with(
        service,
        0.0,
        threads=Int(1, 64, log=True),
        buffer=Int(1, 4096, log=True),
        wait=Float(1e-3, 10, log=True),
        policy=Choice(["none", "fifo", "random", "lru"]),
        retry=Choice([False, True]),
    ),
    "flags": lambda: _with(
        flags, 0.0, **{f"flag{i}": Choice([False, True]) for i in range(10)}, a=Float(0, 1), b=Float(0, 1)
    ),
    "whole-numbers": lambda: _with(whole_numbers, 0.0, **{f"n{i}": Int(0, 10) for i in range(5)}),
    "choices6": lambda: choices(31, 6, 5, 4),
    "choices3": lambda: choices(32, 3, 4, 2),
}
NAMED: dict[str, Callable[[], tuple[dict[str, Any], Value, float]]] = {
    "names20": lambda: names(41, 20),
    "names100": lambda: names(42, 100),
    "pairs": lambda: choices(43, 2, 12, 0),
    "triples": lambda: choices(44, 3, 8, 0),
}
