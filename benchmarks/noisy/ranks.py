"""Mean ranks with bootstrap intervals, and shares of targets reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.peers.ranks import RESAMPLES, MeanRank

Line = dict[str, Any]
PRECISION = 1e-8
"""Gaps below this are ties, as in COCO."""
TARGETS = np.logspace(2, -8, 51)
"""The gaps to be reached, as in COCO."""


def shared(lines: list[Line], optimisers: Sequence[str]) -> list[Line]:
    """The readings of these optimisers at which all of them have one: only these can be compared."""
    own = [line for line in lines if line["optimiser"] in optimisers]
    found: dict[tuple[int, ...], set[str]] = defaultdict(set)
    for line in own:
        found[_reading(line)].add(line["optimiser"])
    return [line for line in own if len(found[_reading(line)]) == len(optimisers)]


def to_one_end(lines: list[Line]) -> list[Line]:
    """The readings up to where the shortest run ends, in evaluations per dimension: the same runs at every moment."""
    ends: dict[tuple[Any, ...], float] = defaultdict(float)
    for line in lines:
        run = (line["optimiser"], *_reading(line)[:3])
        ends[run] = max(ends[run], line["evaluations"] / line["dimension"])
    return [line for line in lines if line["evaluations"] / line["dimension"] <= min(ends.values())]


def _reading(line: Line) -> tuple[int, ...]:
    return (line["number"], line["dimension"], line["instance"], line["evaluations"])


def mean_ranks(lines: list[Line], optimisers: Sequence[str], measure: str) -> tuple[list[MeanRank], int]:
    """Mean rank of every optimiser over the readings that all of them have, and how many these are.

    The interval is a bootstrap over functions: a function is drawn with all its dimensions and instances.
    """
    cells: dict[tuple[int, ...], dict[str, float]] = defaultdict(dict)
    for line in shared(lines, optimisers):
        cells[_reading(line)][line["optimiser"]] = max(line[measure], PRECISION)
    ranks: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
    for (number, *_), found in cells.items():
        ranks[number].append(rankdata([found[name] for name in optimisers]))
    if not ranks:
        return [], 0
    sums, counts = np.array([np.sum(r, axis=0) for r in ranks.values()]), np.array([len(r) for r in ranks.values()])
    drawn = np.random.default_rng(0).integers(len(counts), size=(RESAMPLES, len(counts)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)[:, None], [0.025, 0.975], axis=0)
    return [MeanRank(*each) for each in zip(sums.sum(axis=0) / counts.sum(), low, high, strict=True)], counts.sum()


def shares_reached(lines: list[Line], measure: str) -> tuple[list[float], list[float]]:
    """Evaluations per dimension, and the share of (run, target) pairs whose target is reached by then."""
    gaps: dict[float, list[float]] = defaultdict(list)
    for line in lines:
        gaps[line["evaluations"] / line["dimension"]].append(line[measure])
    moments = sorted(gaps)
    return moments, [float(np.mean(np.array(gaps[moment])[:, None] <= TARGETS)) for moment in moments]
