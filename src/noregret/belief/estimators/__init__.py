"""Estimators: how rewards become a mean.

The mean of a `noregret.SparseGP` is phi(x)'theta. With phi_a the features of pulled arm a, V = ridge I + the sum of
phi phi' over all pulls, and y the rewards, an estimator is a way to theta:

=========================  =========================================================================
`LeastSquares`             theta = V^-1 sum phi y: exact for light tails, at the mercy of one reward
`TruncatedRewards`         the same, each reward counted as 0 if beyond a level on arrival
`ClippedResiduals`         the same, each reward pulled in to near the mean on arrival, and weighted
`TruncatedDirections`      theta = V^-1/2 r, r_i = the sum of (V^-1/2 phi)_i y without the large ones
`MedianOfMeans`            theta of one group of rewards, the one most others agree with
=========================  =========================================================================

A new one is a frozen dataclass that inherits from `Estimator` and overrides what differs from least squares: ``arrive``
if it looks at each reward once, ``memory`` and ``theta`` if it needs more of them than their sums.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, Protocol

import numpy as np

from noregret.belief.estimators.memory import Sums
from noregret.belief.posterior import Floats, Posterior


class Regression(Posterior, Protocol):
    """The belief as its estimator sees it: a regression on the features of the u distinct arms pulled."""

    @property
    def seen(self) -> Floats:
        """Features of the distinct arms pulled, (r, u), in the order of their first pull."""
        ...

    @property
    def gram(self) -> Floats:
        """V = ridge I + seen diag(weights) seen', (r, r)."""
        ...

    @property
    def inverse(self) -> Floats:
        """V^-1, (r, r)."""
        ...

    @property
    def span(self) -> Floats | None:
        """The basis of the above in the m features, (m, r), orthonormal; None for the unit vectors."""
        ...

    def inverse_root_times(self, right: Floats) -> Floats:
        """V^-1/2 times (r, n) or (r,), with the symmetric root."""
        ...

    @property
    def norm_bounds(self) -> Floats:
        """No less than the norm of V^-1/2 phi, for each column phi of ``seen``, (u,)."""
        ...


class Estimator(ABC):  # noqa: B024  everything has a default: that of least squares
    """How rewards become a mean: least squares, but for what a subclass overrides."""

    robust: ClassVar[bool] = True
    """Whether one absurd reward does only bounded harm. If not, rewards beyond 1e100 in size are refused."""
    one_by_one: ClassVar[bool] = False
    """Whether each reward is to be shown to ``arrive``, with the belief as it was just before."""

    def arrive(self, belief: Posterior, arm: int, reward: float) -> tuple[float, float]:
        """What the reward is counted as, and a factor on its ridge; ``belief.rounds`` counts it already."""
        return reward, 1.0

    def memory(self) -> Any:
        """An empty memory, whose method ``take`` will be given every reward."""
        return Sums()

    def theta(self, belief: Regression, memory: Any) -> Floats:
        """Coefficients of the mean on the features, in the basis of their span, (r,)."""
        return np.asarray(belief.inverse @ (belief.seen @ memory.total))
