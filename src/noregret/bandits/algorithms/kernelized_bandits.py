"""IGP-UCB and GP-TS, and the algorithms that their paper compares them with.

S. R. Chowdhury, A. Gopalan. On kernelized multi-armed bandits. ICML 2017.

=================  =======================================================================================
the paper's        here
=================  =======================================================================================
B                  ``norm``: f has RKHS norm at most B
R                  ``noise``: the noise is R-sub-Gaussian
lambda             ``ridge``
gamma_t            ``gain``: 'realised' (1/2 ln det(I + K_t / ridge)), 'greedy' (an upper bound), 'rate' (the known
                   growth rate with constant 1), or a number
delta              ``delta``: the bounds hold at all rounds with probability 1 - delta
beta_t, v_t        the widths `IGPWidth`, `SrinivasWidth`
=================  =======================================================================================

``constants="theory"`` gives ridge 1 + 2/T (1 without a horizon) and the realised gain: the bounds then hold.
``constants="experiment"`` gives the values of the paper's experiments, ridge R^2 and the gain's rate. This is a
heuristic: no theorem covers it, and its band does fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from noregret.bandits.algorithms.constants import Checked, Constants, checks_constants
from noregret.bandits.algorithms.tighter_widths import AYWidth
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.decision.loops import Sequential
from noregret.bandits.decision.rules import (
    UCB,
    ExpectedImprovement,
    GreedyGain,
    ProbabilityOfImprovement,
    RateGain,
    RealisedGain,
    Thompson,
    Uniform,
)
from noregret.gp.kernels import KernelLike, as_kernel
from noregret.gp.posterior import Posterior, Schedule, as_schedule, convert_numbers

Gain = Literal["realised", "greedy", "rate"] | float | Schedule


@dataclass(frozen=True)
class IGPWidth(Checked):
    """B + R sqrt(2 (gamma_t + 1 + ln(1/delta))) (Thm 2 and Alg. 1); the noise part is multiplied by ``scale``.

    Thm 2 has ridge 1 + 2/T. For a ridge below 1 its proof needs R / sqrt(ridge) instead of R; ``corrected`` does this,
    and changes nothing for a ridge of at least 1.
    """

    norm: float
    noise: float
    delta: float
    gain: Schedule
    scale: float = 1.0
    corrected: bool = True

    def __post_init__(self) -> None:
        convert_numbers(self, "gain")
        super().__post_init__()

    def __call__(self, posterior: Posterior) -> float:
        noise = self.noise / math.sqrt(min(posterior.ridge, 1.0)) if self.corrected else self.noise
        return self.norm + self.scale * noise * math.sqrt(2 * (self.gain(posterior) + 1 + math.log(1 / self.delta)))


@dataclass(frozen=True)
class SrinivasWidth(Checked):
    """sqrt(2 B^2 + 300 gamma_t ln^3((t + 1) / delta)) after t rewards; ``scale``^2 multiplies the second term."""

    norm: float
    delta: float
    gain: Schedule
    scale: float = 1.0

    def __post_init__(self) -> None:
        convert_numbers(self, "gain")
        super().__post_init__()

    def __call__(self, posterior: Posterior) -> float:
        noise = 300 * self.gain(posterior) * math.log((posterior.rounds + 1) / self.delta) ** 3
        return math.sqrt(2 * self.norm**2 + self.scale**2 * noise)


@checks_constants
def igp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    gain: Gain | None = None,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Sequential:
    """Improved GP-UCB (Alg. 1): argmax mean + beta_t std, beta_t = B + R sqrt(2 (gamma_t + 1 + ln(1/delta))).

    On a `noregret.Box` the maximum is searched for (`UCB.point`). The band of Thm 2 holds at all points of a compact
    domain at once, so Thm 3 covers it. If the score of x_t is e_t below the maximum, the regret of round t is at most
    2 beta_t std(x_t) + e_t: inexact maxima add the sum of e_t to the bound, and the bounds at any point remain valid.
    """
    model = _model(kernel, noise, horizon, ridge, constants)
    gamma = _gain(model, gain, constants)
    return Sequential(model, UCB(IGPWidth(norm, noise, delta, gamma, scale, constants == "theory")))


@checks_constants
def gp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    gain: Gain | None = None,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Sequential:
    """GP-UCB (Srinivas et al. 2012): argmax mean + beta_t std, beta_t^2 = 2 B^2 + 300 gamma_t ln^3(t / delta).

    The noise is not in the width: the theorem assumes noise bounded by sqrt(ridge). With the realised gain the band is
    at least as wide as that of `ay_ucb` whenever 300 gain ln^3((t + 1) / delta) >= 4 gain + 4 ln(1 / delta).
    """
    model = _model(kernel, noise, horizon, ridge, constants)
    return Sequential(model, UCB(SrinivasWidth(norm, delta, _gain(model, gain, constants), scale)))


@checks_constants
def gp_ts(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    gain: Gain | None = None,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Sequential:
    """GP Thompson sampling (Alg. 2): argmax of a draw from GP(mean, v_t^2 cov), v_t = beta_t at delta / 2.

    On a `noregret.Box` round t plays on the decision set D_t of Thm 4, a grid so fine that |f(x) - f([x]_t)| <= 1/t^2
    (line 5). The grid is too large to draw on: a draw is a function (a sum of waves, with the posterior's mean and
    covariance), its maximum is searched for, and rounded to D_t. Thm 4 is for Gaussian draws and their exact maximum on
    D_t, so it does not cover the waves and the search; the band, which is that of Thm 2, is valid in any case.
    """
    model = _model(kernel, noise, horizon, ridge, constants)
    gamma = _gain(model, gain, constants)
    return Sequential(model, Thompson(IGPWidth(norm, noise, delta / 2, gamma, scale, constants == "theory")))


@checks_constants
def gp_ei(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    margin: float = 0.0,
    constants: Constants = "theory",
) -> Sequential:
    """Expected improvement over the best posterior mean among the pulled arms, not over the best reward.

    ``norm``, ``noise`` and ``delta`` affect the band that `Policy.best` reports, not the choice of arms.
    """
    model = _model(kernel, noise, horizon, ridge, constants)
    return Sequential(model, ExpectedImprovement(margin), UCB(AYWidth(norm, noise, delta)))


@checks_constants
def gp_pi(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    margin: float = 0.01,
    constants: Constants = "theory",
) -> Sequential:
    """Probability of improvement by ``margin`` over the best posterior mean among the pulled arms.

    ``norm``, ``noise`` and ``delta`` affect the band that `Policy.best` reports, not the choice of arms.
    """
    model = _model(kernel, noise, horizon, ridge, constants)
    return Sequential(model, ProbabilityOfImprovement(margin), UCB(AYWidth(norm, noise, delta)))


@checks_constants
def random(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    constants: Constants = "theory",
) -> Sequential:
    """Uniformly random arms, as a baseline.

    The keywords affect the belief and the band that `Policy.best` reports.
    """
    model = _model(kernel, noise, horizon, ridge, constants)
    return Sequential(model, Uniform(), UCB(AYWidth(norm, noise, delta)))


def _model(kernel: KernelLike, noise: float, horizon: int | None, ridge: float | None, constants: Constants) -> ExactGP:
    """Exact GP with ridge 1 + 2/T (Thm 2, 3) or R^2 (Section 6), unless one is given."""
    if ridge is None:
        ridge = noise**2 if constants == "experiment" else 1 + 2 / horizon if horizon else 1.0
    return ExactGP(kernel, ridge)


def _gain(model: ExactGP, gain: Gain | None, constants: Constants) -> Schedule:
    if gain is None:
        gain = "realised" if constants == "theory" else "rate"
    match gain:
        case "realised":
            return RealisedGain()
        case "greedy":
            return GreedyGain(model)
        case "rate":
            return RateGain(as_kernel(model.kernel))
    return as_schedule("gain", gain)
