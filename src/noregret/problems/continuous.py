"""Continuous: a function on a whole box, for algorithms that need no grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from noregret.belief.box import Box
from noregret.belief.kernels import Kernel
from noregret.belief.posterior import Floats, Rng
from noregret.problems.payoff import Payoff


@dataclass(frozen=True, eq=False)
class Continuous:
    """A world whose arms are the points of a box.

    Parameters
    ----------
    name : str
    arms : Box
    function : callable (n, d) -> (n,)
        The expected reward of every point.
    maximum : float
        Its largest value on the box, against which regret is counted.
    kernel : Kernel
        The kernel an algorithm is meant to use.
    payoff : Payoff
        Draws the rewards.

    Examples
    --------
    >>> import noregret
    >>> from noregret.problems import MAXIMA, Gaussian, branin
    >>> kernel, box = noregret.SquaredExponential(0.2), noregret.Box([[0, 1], [0, 1]])
    >>> problem = Continuous("branin", box, branin, MAXIMA[branin], kernel, Gaussian(0.2))
    >>> reds = noregret.algorithms.reds(kernel, constants="experiment", horizon=300)
    >>> trace = noregret.run(reds, problem, 300, rng=0)
    >>> trace.arms.shape, bool(trace.regret[:50].mean() > 2 * trace.regret[-50:].mean())
    ((300, 2), True)
    """

    name: str
    arms: Box
    function: Callable[[Floats], Floats]
    maximum: float
    kernel: Kernel
    payoff: Payoff

    def rewards(self, points: Floats, rng: Rng) -> Floats:
        """One random reward at each of these (n, d) points, (n,)."""
        return self.payoff.draw(self.function(points), np.arange(len(points)), rng)

    def regret(self, points: Floats) -> Floats:
        """How far each of these (n, d) points falls short of the maximum, (n,)."""
        return np.asarray(self.maximum - self.function(points))
