"""Chances: whether something is rare, tested on more and more draws until it is decided."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import betaincinv

SIZES = tuple(int(32 * 1.5**step) for step in range(15))
"""Numbers of draws after which a test may be decided: 32, 48, 72, ... 9341."""


def is_rare(count: Callable[[int], int], share: float, risk: float) -> bool:
    """Whether something happens in at most this share of all cases; yes is wrong with probability at most ``risk``.

    ``count(n)`` is how often it happened in n new cases. The bounds are Clopper and Pearson's, exact for a binomial,
    and the risk is divided evenly among the `SIZES` at which they are looked at. No, if it is undecided after the last.
    """
    each, seen, happened = risk / len(SIZES), 0, 0
    for size in SIZES:
        happened, seen = happened + count(size - seen), size
        if happened < seen and betaincinv(happened + 1, seen - happened, 1 - each) <= share:
            return True
        if happened and betaincinv(happened, seen - happened + 1, each) > share:
            return False
    return False


def spent(risk: float, answers: int) -> float:
    """What of a risk may be spent on the test after so many answers: (0.1 / 1.1) risk answers^-1.1.

    The sum over all numbers of answers is less than the risk, so a test may follow every answer.
    """
    return 0.1 / 1.1 * risk / math.pow(answers, 1.1)
