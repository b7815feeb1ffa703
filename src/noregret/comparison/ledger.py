"""`Ledger`: which of a chain of changes to keep, so that few of all kept ones are false, however long the chain is.

e-LOND: proposal t, with one final e-value e_t, is kept if e_t >= 1 / alpha_t,

    alpha_t = alpha g_t (K_(t-1) + 1),    g_t > 0,  g_1 + g_2 + ... = 1,

where K_(t-1) is the number of changes kept before. A false one that is kept has 1 <= alpha_t e_t, and at any later time
at least K_(t-1) + 1 changes are kept, so that at all times together

    false keeps / keeps <= sum of alpha_t e_t / (K_(t-1) + 1) over false t = alpha sum of g_t e_t over false t.

Given the past, E e_t <= 1 if t is false, so the expected value of the right side is at most alpha. It bounds the
largest share over all times, and thus that of a chain that is stopped for any reason.

Here g_t = sqrt(c / (c + t - 1)) - sqrt(c / (c + t)), which telescopes to 1 and falls as t^(-3/2). `SHIFT` is c.

Z. Xu, A. Ramdas. Online multiple testing with e-values. AISTATS 2024 (arXiv 2311.06412).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

SHIFT = 10.0
"""The c of g_t, by simulation, see docs/ledger.md: a small one favours the first proposals, a large one later ones."""


class Ledger:
    """Decisions on a chain of changes: of all kept ones, at most ``level`` are false in expectation, at all times.

    A change is judged once, by its final e-value, such as `Comparison.evalue` of fresh runs against the baseline of
    that time; a retest is a new proposal. Runs may stop as soon as the e-value reaches `threshold`.

    Parameters
    ----------
    level : float
        Bound on the expected share of false ones among the kept changes.
    proposals, kept : int
        Numbers of those judged and kept before, to continue a ledger that was stored. A change that was allowed and
        not kept after all is none of the kept ones.

    Examples
    --------
    >>> ledger = Ledger()
    >>> [ledger.judge(evalue) for evalue in (3.0, 900.0, 1e6)], ledger
    ([False, True, True], 2 of 3 proposals kept; the next is kept from an e-value of 209 on)
    """

    def __init__(self, level: float = 0.05, *, proposals: int = 0, kept: int = 0) -> None:
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.05, got {level!r}")
        if not 0 <= kept <= proposals:
            raise ValueError(f"kept must be from 0 to the number of proposals, got {kept} of {proposals}")
        self.level, self.proposals, self.kept = level, proposals, kept

    @property
    def threshold(self) -> float:
        """The e-value that the next proposal must reach to be kept."""
        before = SHIFT + self.proposals
        share = math.sqrt(SHIFT / before) - math.sqrt(SHIFT / (before + 1))
        return 1 / (self.level * share * (self.kept + 1))

    @property
    def confidence(self) -> float:
        """The ``confidence`` of a `Comparison` whose "better" reaches `threshold`."""
        return 1 - 2 / self.threshold

    def judge(self, evalue: float) -> bool:
        """Return True if the next proposal is kept, by its final e-value."""
        is_kept = checked_evalue(evalue) >= self.threshold
        self.proposals += 1
        self.kept += is_kept
        return is_kept

    def __repr__(self) -> str:
        now = f"{self.kept} of {self.proposals} proposals kept"
        return f"{now}; the next is kept from an e-value of {math.ceil(self.threshold)} on"


def checked_evalue(given: Any) -> float:
    """An e-value as a float; ValueError unless it is a number of at least 0, which may be infinite."""
    if isinstance(given, bool) or not isinstance(given, Real) or not float(given) >= 0:
        raise ValueError(f"an e-value must be a number of at least 0, got {given!r}: give that of the finished runs")
    return float(given)
