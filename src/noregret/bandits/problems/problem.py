"""Problems with known truth: `Problem` on N arms, `Changing` from round to round, and `Continuous` on a box."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noregret.bandits.belief.arms import Box
from noregret.bandits.problems.rewards import Payoff
from noregret.gp.kernels import Kernel, as_kernel
from noregret.gp.posterior import Floats, Rng

Seed = int | np.random.SeedSequence | np.random.Generator | None
"""Type of ``rng``: anything that `numpy.random.default_rng` takes."""


@dataclass(frozen=True, eq=False)
class Problem:
    """N arms, the expected reward of each, and the distribution of rewards around it.

    Parameters
    ----------
    name : str
    arms : (N, d) floats
    means : (N,) floats
        Expected reward of every arm; the largest is the best.
    kernel : Kernel
        The kernel for algorithms to use.
    payoff : Payoff
        Draws the rewards.
    norm : float, optional
        B, the RKHS norm of the means or a bound on it, if known.
    paper : mapping, optional
        Values that the paper's experiment passed to its algorithms, if they differ from `facts`; they need not be valid
        bounds.

    Examples
    --------
    >>> from noregret.gp.kernels import SquaredExponential
    >>> from noregret.problems import Gaussian
    >>> problem = Problem("two arms", [[0.0], [1.0]], [0.2, 0.7], SquaredExponential(0.5), Gaussian(0.0))
    >>> problem.rewards(np.array([1, 0, 1]), np.random.default_rng(0))
    array([0.7, 0.2, 0.7])
    """

    name: str
    arms: Floats = field(repr=False)
    means: Floats = field(repr=False)
    kernel: Kernel
    payoff: Payoff
    norm: float | None = None
    paper: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", frozen("arms", self.arms, "(N, d)"))
        object.__setattr__(self, "means", frozen("means", self.means, "(N,)"))
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        if len(self.arms) != len(self.means) or len(self.means) == 0:
            raise ValueError(f"one mean per arm is needed, got {len(self.arms)} arms and {len(self.means)} means")
        if not isinstance(self.payoff, Payoff):
            raise ValueError(f"payoff must be a reward model such as Gaussian(0.1), got {self.payoff!r}")
        if self.norm is not None and not (math.isfinite(self.norm) and self.norm > 0):
            raise ValueError(f"norm must be positive, or None if not known, got {self.norm}")
        self.payoff.check(self.means)

    def rewards(self, arms: Any, rng: Rng) -> Floats:
        """One random reward per index in ``arms``, (n,) -> (n,)."""
        return self.payoff.draw(self.means, arms, rng)

    @property
    def facts(self) -> dict[str, float]:
        """Known constants of the problem, by the keywords of the algorithms.

        ``norm`` (B, if known); ``alpha`` and ``moment`` (v with E|y|^(1 + alpha) <= v on all arms); ``noise``, the
        standard deviation of the noisiest arm, left out if infinite. For Gaussian rewards ``noise`` is also the
        sub-Gaussian constant R; for other rewards it is not.
        """
        return facts_of(self.payoff, self.means, self.norm)


@dataclass(frozen=True, eq=False)
class Changing:
    """N arms whose means change from round to round; after T rounds they repeat.

    Parameters
    ----------
    name : str
    arms : (N, d) floats
    means : (T, N) floats
        Expected reward of every arm in every round.
    kernel : Kernel
        The kernel for algorithms to use; with contexts, a kernel on rows (context, arm).
    payoff : Payoff
        Draws the rewards.
    norm : float, optional
        B, a bound on the RKHS norm of the function of every round, if known.
    contexts : (T, c) floats, optional
        The context shown before every round: the arms of a round are then rows (context, arm), (N, c + d).

    Examples
    --------
    >>> from noregret.gp.kernels import SquaredExponential
    >>> from noregret.problems import Gaussian
    >>> kernel = SquaredExponential(0.2)
    >>> problem = Changing("a swap", [[0.0], [1.0]], [[0.2, 0.7], [0.7, 0.2]], kernel, Gaussian(0.0))
    >>> problem.at(0).means, problem.at(3).means
    (array([0.2, 0.7]), array([0.7, 0.2]))
    """

    name: str
    arms: Floats = field(repr=False)
    means: Floats = field(repr=False)
    kernel: Kernel
    payoff: Payoff
    norm: float | None = None
    contexts: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", frozen("arms", self.arms, "(N, d)"))
        object.__setattr__(self, "means", frozen("means", self.means, "(T, N)"))
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        if self.means.shape[1] != len(self.arms) or not self.means.size:
            raise ValueError(f"one mean per arm is needed, got {len(self.arms)} arms and {self.means.shape[1]} means")
        if self.contexts is not None:
            object.__setattr__(self, "contexts", frozen("contexts", self.contexts, "(T, c)"))
            if len(self.contexts) != len(self.means):
                raise ValueError(f"one context per round is needed, got {len(self.contexts)} for {len(self.means)}")
        self.at(0)  # the checks of Problem

    def at(self, round: int) -> Problem:
        """The problem in a round, counted from 0."""
        place, arms = round % len(self.means), self.arms
        if self.contexts is not None:
            arms = np.hstack([np.tile(self.contexts[place], (len(arms), 1)), arms])
        return Problem(self.name, arms, self.means[place], self.kernel, self.payoff, self.norm)

    @property
    def facts(self) -> dict[str, float]:
        """Known constants that hold in all rounds, by the keywords of the algorithms (see `Problem`)."""
        return facts_of(self.payoff, self.means.ravel(), self.norm)


@dataclass(frozen=True, eq=False)
class Continuous:
    """A function on a whole box, for algorithms that need no grid; the arms are the points of the box.

    Parameters
    ----------
    name : str
    arms : Box
    function : callable (n, d) -> (n,)
        Expected reward of every point.
    maximum : float
        Largest value on the box, which defines the regret.
    kernel : Kernel
        The kernel for algorithms to use.
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
        """Maximum minus the expected reward of each of these (n, d) points, (n,)."""
        return np.asarray(self.maximum - self.function(points))


def facts_of(payoff: Payoff, means: Floats, norm: float | None) -> dict[str, float]:
    """Known constants, as in `Problem.facts`, of rewards with these (n,) means and of a function of this norm."""
    alpha = payoff.usual_alpha
    known = {
        "norm": norm,
        "noise": payoff.deviation(means),
        "alpha": alpha,
        "moment": payoff.moment(means, alpha),
    }
    return {name: value for name, value in known.items() if value is not None and math.isfinite(value)}


def rkhs_norm(matrix: Floats, values: Floats) -> float:
    """Norm of the smallest RKHS function with these values: sqrt(f' K^+ f), K the (N, N) kernel matrix.

    Eigenvalues below N eps times the largest count as 0, and the part of f along them is ignored.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = eigenvalues > len(matrix) * np.finfo(float).eps * eigenvalues[-1]
    along = vectors[:, kept].T @ values
    return float(np.sqrt((along**2 / eigenvalues[kept]).sum()))


def frozen(name: str, values: Any, shape: str) -> Floats:
    """Read-only copy as floats; ``shape`` is the required shape, such as (N, d)."""
    array = np.array(values, dtype=float)
    if array.ndim != (1 if shape == "(N,)" else 2):
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: drop the arms with nan or inf")
    array.setflags(write=False)
    return array
