"""Mean ranks of optimisers over problems, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.peers.results import Row
from benchmarks.peers.worlds import NOISES

RESAMPLES = 2000
ALL = "all"
KINDS = (*NOISES, ALL)
"""The noises by which ranks are shown, and all of them together."""


class MeanRank(NamedTuple):
    """A mean rank and its 95% interval."""

    mean: float
    low: float
    high: float


class Ranks(NamedTuple):
    """Mean ranks of optimisers at one budget: by optimiser, then by kind of noise."""

    budget: int
    of: dict[str, dict[str, MeanRank]]

    def first(self, kind: str) -> str:
        """The optimiser with the lowest mean rank."""
        return min(self.of, key=lambda peer: self.of[peer][kind].mean)


def mean_ranks(rows: Iterable[Row], measure: str, budget: int) -> Ranks:
    """Rank optimisers by their mean over seeds on each problem and noise, and average over problems.

    Only optimisers that were run on every problem with one of `NOISES` and every noise count. The interval is a
    bootstrap over problems: a problem is drawn with all its noises. Optimisers are sorted by their rank over all.
    """
    found = {(r["peer"], r["problem"], r["noise"]): r[measure] for r in rows if r["budget"] == budget}
    problems = sorted({problem for _, problem, noise in found if noise in NOISES})
    peers = [peer for peer in sorted({peer for peer, _, _ in found}) if _is_complete(found, peer, problems)]
    values = [[[found[peer, problem, noise] for peer in peers] for noise in NOISES] for problem in problems]
    ranks = rankdata(values, axis=2)  # problems x noises x peers
    drawn = np.random.default_rng(0).integers(len(problems), size=(RESAMPLES, len(problems)))
    each = {peer: _by_kind(ranks[:, :, i], drawn) for i, peer in enumerate(peers)}
    return Ranks(budget, dict(sorted(each.items(), key=lambda item: item[1][ALL].mean)))


def _is_complete(found: dict[tuple[str, str, str], float], peer: str, problems: Sequence[str]) -> bool:
    return all((peer, problem, noise) in found for problem in problems for noise in NOISES)


def _by_kind(ranks: Any, drawn: Any) -> dict[str, MeanRank]:
    """Of one optimiser, from its ranks by problem and noise and the problems drawn in each resample."""
    columns = {noise: ranks[:, i] for i, noise in enumerate(NOISES)} | {ALL: ranks.mean(axis=1)}
    return {kind: mean_rank(column, drawn) for kind, column in columns.items()}


def mean_rank(column: Any, drawn: Any) -> MeanRank:
    """Mean over problems, with the interval of the problems drawn in each resample."""
    low, high = np.quantile(column[drawn].mean(axis=1), [0.025, 0.975])
    return MeanRank(float(column.mean()), float(low), float(high))
