"""Problem: arms, their true means, and the rewards a pull returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noregret.belief.kernels import Kernel, as_kernel
from noregret.belief.posterior import Floats, Rng
from noregret.problems.payoff import Payoff

Seed = int | np.random.SeedSequence | np.random.Generator | None
"""What ``rng`` may be: anything that `numpy.random.default_rng` takes."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A world to learn in: N arms, the expected reward of each, and how rewards scatter around it.

    Parameters
    ----------
    name : str
    arms : (N, d) floats
    means : (N,) floats
        Expected reward of every arm; the largest is the best.
    kernel : Kernel
        The kernel an algorithm is meant to use.
    payoff : Payoff
        Draws the rewards.
    norm : float, optional
        B, the RKHS norm of the means (or a bound on it), where known.
    paper : mapping, optional
        What the paper's experiment passed to its algorithms where this differs from `facts`; such numbers need not be
        valid bounds.

    Examples
    --------
    >>> from noregret.belief.kernels import SquaredExponential
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
        """What is known of the problem, under the names that algorithms take it by.

        ``norm`` (B, where known); ``alpha`` and ``moment`` (v with E|y|^(1 + alpha) <= v on all arms); ``noise``, the
        standard deviation of the noisiest arm, left out where infinite. For Gaussian rewards it is also their
        sub-Gaussian constant R; for other rewards it is not.
        """
        return facts_of(self.payoff, self.means, self.norm)


def facts_of(payoff: Payoff, means: Floats, norm: float | None) -> dict[str, float]:
    """What is known of rewards with these means, (n,), and of a function of this norm, as `Problem.facts` has it."""
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

    Eigenvalues below N eps times the largest are taken for 0, with the part of f along them.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = eigenvalues > len(matrix) * np.finfo(float).eps * eigenvalues[-1]
    along = vectors[:, kept].T @ values
    return float(np.sqrt((along**2 / eigenvalues[kept]).sum()))


def frozen(name: str, values: Any, shape: str) -> Floats:
    """A read-only copy as floats; ``shape`` is what it must have, such as (N, d)."""
    array = np.array(values, dtype=float)
    if array.ndim != (1 if shape == "(N,)" else 2):
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: drop the arms with nan or inf")
    array.setflags(write=False)
    return array
