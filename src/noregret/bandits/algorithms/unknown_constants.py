"""Algorithms with a guarantee for unknown constants: the lengthscale, the norm, or which rewards are corrupted.

F. Berkenkamp, A. P. Schoellig, A. Krause. No-regret Bayesian optimization with unknown hyperparameters. JMLR 2019
(A-GP-UCB).
J. Ziomek, M. Adachi, M. A. Osborne. Bayesian optimisation with unknown hyperparameters: regret bounds logarithmically
closer to optimal. NeurIPS 2024 (LB-GP-UCB).
A. Ezzerg, I. Bogunovic, J. Knoblauch. Robust Bayesian optimisation with unbounded corruptions. 2025 (RCGP-UCB).

=================  =======================================================================================
the papers'        here
=================  =======================================================================================
l_0                the lengthscale of ``kernel``: the longest one that is tried
B_0, N             ``norm``: a bound on the norm of f under l_0, if it is finite, see `LengthscaleLadder`
R, delta, lambda   ``noise``, ``delta``, ``ridge``
g(t), b(t)         t^``lengthscale_power`` and t^``norm_power``, both at least 1
q(i)               l_0 e^(-i/d) for the squared exponential, l_0 e^(-i/(d + 2 nu)) for Matern kernels
xi, L              in `noregret.bandits.decision.balancing.Balanced`
=================  =======================================================================================

The ridge is R^2 unless given. ``constants="theory"`` gives the width of `IGPWidth` with R / sqrt(ridge) for R, which is
valid for a rung that explains f. ``constants="experiment"`` uses R itself, which is narrower, and half the allowance
before a rung is dropped, as the authors' code does: heuristics. ``scale`` multiplies the noise part of every width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from noregret.bandits.algorithms.constants import Constants, checks_constants, ridge_of
from noregret.bandits.algorithms.kernelized_bandits import IGPWidth
from noregret.bandits.algorithms.sketching import BKBWidth
from noregret.bandits.algorithms.tighter_widths import AYWidth
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.belief.features import Nystrom
from noregret.bandits.belief.robust import ConjugateGP
from noregret.bandits.belief.sparse import SparseGP
from noregret.bandits.decision.balancing import Balanced, Rung
from noregret.bandits.decision.loops import Sequential
from noregret.bandits.decision.rules import UCB, RealisedGain
from noregret.gp.kernels import KernelLike, Matern, SquaredExponential

STEP = 1.1
"""A-GP-UCB's g(t) is rounded down to a power of this number, so that the data are refitted about ln(g) / ln(1.1) times
in total. The rounded g also grows without bound, so the theorem holds for it."""

LARGEST = 500.0
"""Largest logarithm of numbers that grow with the power d, so that their products stay finite."""

Stationary = SquaredExponential | Matern


@dataclass(frozen=True)
class SuspectedRegret:
    """sqrt(n) (B sqrt(g_n) + g_n), g_n = l^-d times the kernel's gain rate: (ln n)^(d+1) for the squared exponential.

    Arms are assumed to fill the unit cube: l^-d is the number of cells of side l. With many columns g_n would overflow;
    it is capped at e^500.
    """

    kernel: Stationary
    norm: float

    def __call__(self, rounds: int, dimension: int) -> float:
        rate = self.kernel.gain_rate(rounds, dimension)
        if rate == 0:
            return 0.0
        log_cell = float(np.log(np.broadcast_to(self.kernel.lengthscale, dimension)).sum())
        gain = math.exp(min(math.log(rate) - log_cell, LARGEST))
        return math.sqrt(rounds) * (self.norm * math.sqrt(gain) + gain)


@dataclass(frozen=True)
class Rungs:
    """Common fields of all rungs; `at` makes one with a shorter lengthscale and a larger norm."""

    kernel: Stationary
    ridge: float
    norm: float
    noise: float
    delta: float
    scale: float = 1.0
    corrected: bool = True
    oversampling: float | None = None
    epsilon: float = 0.5

    def at(self, factor: float, growth: float) -> Rung:
        """Rung with lengthscale l_0 / factor and width growth norm + R sqrt(2 (gain + 1 + ln(1/delta))).

        With ``oversampling`` it is a rung of BKB: Nystrom features and `BKBWidth`.
        """
        lengthscale = np.asarray(self.kernel.lengthscale) / factor
        kernel = replace(self.kernel, lengthscale=tuple(lengthscale) if lengthscale.ndim else float(lengthscale))
        norm = growth * self.norm
        if self.oversampling is not None:
            features = Nystrom(kernel, self.oversampling, root="cholesky", coins="kept")
            sketched = BKBWidth(norm, self.noise, self.delta, self.epsilon, self.scale)
            return Rung(SparseGP(features, self.ridge), sketched, SuspectedRegret(kernel, norm))
        width = IGPWidth(norm, self.noise, self.delta, RealisedGain(), self.scale, self.corrected)
        return Rung(ExactGP(kernel, self.ridge), width, SuspectedRegret(kernel, norm))


@dataclass(frozen=True)
class ShrinkingLadder:
    """A-GP-UCB: one rung at a time, lengthscale l_0 / g(t) and norm B_0 b(t) g(t)^d, g and b rounded down (see `STEP`).

    The i-th lengthscale uses 6 delta / (pi i)^2, so that all bands hold together.
    """

    rungs: Rungs
    lengthscale_power: float
    norm_power: float

    def __call__(self, rounds: int, dimension: int) -> tuple[Rung, ...]:
        log = math.log(max(rounds, 1))
        shrunk, grown = _steps(self.lengthscale_power * log), _steps(self.norm_power * log)
        rungs = replace(self.rungs, delta=6 * self.rungs.delta / (math.pi * (shrunk + 1)) ** 2)
        log_growth = math.log(STEP) * (grown + shrunk * dimension)
        return (rungs.at(STEP**shrunk, math.exp(min(log_growth, LARGEST))),)


@dataclass(frozen=True)
class LengthscaleLadder:
    """LB-GP-UCB: rungs q(i) = l_0 e^(-i/d), all above l_0 / g(t), with norm B(l) = N (l_0 / l)^(d/2).

    g(t) = max(start, t^lengthscale_power). With ``norm_power`` above 0 the norm is a ladder too, N 2^j up to N max(2,
    t^norm_power), and the rungs are the pairs. The rung l explains f if its norm under l is at most B(l); then all
    shorter ones do too.
    """

    rungs: Rungs
    start: float
    lengthscale_power: float
    norm_power: float = 0.0

    def __call__(self, rounds: int, dimension: int) -> tuple[Rung, ...]:
        log, kernel = math.log(max(rounds, 1)), self.rungs.kernel
        steps = dimension + (2 * kernel.nu if isinstance(kernel, Matern) else 0)  # per factor e
        lengthscales = math.ceil(steps * max(math.log(self.start), self.lengthscale_power * log))
        norms = 1 + math.floor(max(1.0, self.norm_power * log / math.log(2))) if self.norm_power else 1
        return _product(self, max(lengthscales, 1), norms, steps, dimension)


@lru_cache(maxsize=256)
def _product(
    ladder: LengthscaleLadder, lengthscales: int, norms: int, steps: float, dimension: int
) -> tuple[Rung, ...]:
    """All rungs of a ladder; cached, since they are needed in every round and change in few."""
    factors = [math.exp(i / steps) for i in range(lengthscales)]
    return tuple(ladder.rungs.at(factor, factor ** (dimension / 2) * 2**j) for factor in factors for j in range(norms))


def _steps(log: float) -> int:
    """Exponent of the power of `STEP` that e^log is rounded down to."""
    return math.floor(log / math.log(STEP) + 1e-9)


@checks_constants
def a_gp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    lengthscale_power: float = 0.25,
    norm_power: float = 0.0,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Balanced:
    """Adaptive GP-UCB (Berkenkamp et al. 2019): the lengthscale shrinks as l_0 / g(t), g(t) = t^lengthscale_power.

    The norm is B_0 b(t) g(t)^d, b(t) = t^norm_power: 0 if the norm under l_0 is known.
    """
    rungs = _rungs(kernel, norm, noise, delta, ridge, constants, scale)
    return Balanced(ShrinkingLadder(rungs, lengthscale_power, norm_power), noise, delta)


@checks_constants
def lb_gp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    norms: bool = False,
    start: float = 20.0,
    lengthscale_power: float = 0.5,
    norm_power: float = 0.5,
    oversampling: float | None = None,
    epsilon: float = 0.5,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Balanced:
    """Lengthscale balancing (Ziomek et al. 2024): a ladder of lengthscales, each played as its regret bound allows.

    All lengthscales learn all rewards, and one that its own rewards refute is dropped (see `Balanced`).

    ``norms=True`` adds a ladder of norms, N 2^j up to N max(2, t^norm_power), and uses all pairs of both. Then
    ``start=1, lengthscale_power=0`` leaves the lengthscale as it is, and only guesses and doubles the norm.

    With ``oversampling`` every rung is a sketch, as in `bkb`: Nystrom features with this q, and the width of BKB for
    variances that are right up to (1 + epsilon) / (1 - epsilon), the accuracy that Thm 1 of its paper gives for
    q = `oversampling_for`. Rungs of one lengthscale share a sketch. This is the guess and double of the BKB paper
    (Sec. 4), which has no theorem of its own there: the band is valid if that of one remaining rung is.

    The paper's delta is ``delta`` / 2.1: all events together fail with probability at most 2.1 times that.
    """
    delta /= 2.1
    rungs = _rungs(kernel, norm, noise, delta / 2, ridge, constants, scale)
    if oversampling is not None:
        rungs = replace(rungs, ridge=ridge_of(noise, ridge), oversampling=oversampling, epsilon=epsilon)
    ladder = LengthscaleLadder(rungs, start, lengthscale_power, norm_power if norms else 0.0)
    return Balanced(ladder, noise, delta, 2.0 if constants == "theory" else 1.0)


@checks_constants
def rcgp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    threshold: float = 1.96,
    softness: float = 1.0,
    scale: float = 1.0,
) -> Sequential:
    """Robust conjugate GP-UCB (Ezzerg et al. 2025): exactly the GP while all residuals are within ``threshold``.

    The width is that of `ay_ucb`, B + (R / sqrt(ridge)) sqrt(2 (gain + ln(1/delta))), and does not grow with the number
    of corruptions, which is unknown; ridge R^2 unless given. The paper's bound is cited and was not checked here.
    """
    model = ConjugateGP(kernel, ridge_of(noise, ridge), threshold, softness)
    return Sequential(model, UCB(AYWidth(norm, noise, delta, scale)))


def _rungs(
    kernel: KernelLike,
    norm: float,
    noise: float,
    delta: float,
    ridge: float | None,
    constants: Constants,
    scale: float,
) -> Rungs:
    if not isinstance(kernel, SquaredExponential | Matern):
        raise ValueError(
            f"kernel must be SquaredExponential or Matern, to have a lengthscale to shorten, got {kernel!r}: for c * k "
            "pass k, and sqrt(c) times the norm"
        )
    return Rungs(kernel, noise**2 if ridge is None else ridge, norm, noise, delta, scale, constants == "theory")
