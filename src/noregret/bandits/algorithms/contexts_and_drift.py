"""Algorithms for functions that depend on a context, and for functions that change.

A. Krause, C. S. Ong. Contextual Gaussian process bandit optimization. NIPS 2011 (CGP-UCB).
I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization. AISTATS 2016 (TV-GP-UCB).
X. Zhou, N. Shroff. No-regret algorithms for time-varying Bayesian optimization. CISS 2021 (R-GP-UCB, SW-GP-UCB).
Y. Deng, X. Zhou, B. Kim, A. Tewari, A. Gupta, N. Shroff. Weighted Gaussian process bandits for non-stationary
environments. AISTATS 2022 (WGP-UCB).

=================  =======================================================================================
symbol             here
=================  =======================================================================================
B, R, delta        ``norm``, ``noise``, ``delta``
gain               1/2 ln det(I + K / ridge) of the remembered rewards, realised
epsilon            ``rate``: the share of f's variance that is new in every round
W                  ``window``: the last W rewards count
H                  ``period``: everything is forgotten every H rounds
gamma              ``discount``: a reward of age a has weight gamma^a
V                  ``variation``: over the remembered rounds, f differs from the present f by at most V at any arm
=================  =======================================================================================

The width of SW, R and WGP is that of `ay_ucb`, with the gain of the remembered rewards. Regret is dynamic: relative to
the best arm of every round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from noregret.bandits.algorithms.constants import Checked, checks_constants, ridge_of
from noregret.bandits.algorithms.tighter_widths import AYWidth, ay_ucb
from noregret.bandits.belief.drift import Discounted, Recent, Restarts, VaryingGP, Window
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.decision.loops import Sequential
from noregret.bandits.decision.rules import UCB
from noregret.gp.kernels import KernelLike
from noregret.gp.posterior import Posterior


@dataclass(frozen=True)
class BayesianWidth(Checked):
    """sqrt(2 ln(N pi^2 t^2 / (3 delta))) for N arms in round t, times ``scale``: f is a draw from the prior."""

    delta: float
    scale: float = 1.0

    def __call__(self, posterior: Posterior) -> float:
        coming = posterior.rounds + 1
        return self.scale * math.sqrt(2 * math.log(len(posterior.arms) * (math.pi * coming) ** 2 / (3 * self.delta)))


@dataclass(frozen=True)
class DriftWidth(AYWidth):
    """Width of `AYWidth` plus V sqrt(n / ridge), for n remembered rewards of functions within V of the present one.

    The drift adds at most |(K + ridge I)^-1 k(x)| |f_s(x_s) - f(x_s)| to the error of the mean. The first factor is at
    most std / sqrt(ridge), the second, the norm of n numbers, at most V sqrt(n).
    """

    variation: float = 0.0

    def __call__(self, posterior: Any) -> float:
        return super().__call__(posterior) + self.variation * math.sqrt(posterior.remembered / posterior.ridge)


@checks_constants
def cgp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """Contextual UCB on rows (context columns, arm columns): `ay_ucb` with one kernel on both, and changing rows.

    The kernel is a product or a sum of one on the context's columns and one on the arm's:
    ``Columns(k_context, (0,)) * Columns(k_arm, (1, 2))``. In every round, pass the rows of the present context to
    `Policy.change_arms`; the knowledge is kept. Thompson sampling, sketches and robust beliefs work the same way:
    `gp_ts`, `bkb`, `tgp_ucb` and `rcgp_ucb` with such a kernel. The exact belief costs O(u^2 N) per round, with u the
    distinct rows pulled so far.
    """
    return ay_ucb(kernel, norm=norm, noise=noise, delta=delta, ridge=ridge, scale=scale)


@checks_constants
def tv_gp_ucb(
    kernel: KernelLike,
    *,
    rate: float = 0.01,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """UCB on a function that drifts: the kernel times (1 - rate)^(|t - t'| / 2), and the Bayesian width.

    The width is sqrt(2 ln(N pi^2 t^2 / (3 delta))), times ``scale``. f is a draw from the kernel, so the kernel sets
    its size (``4.0 * kernel`` for values about 2), and there is no norm. Rewards older than about 10 / rate rounds are
    forgotten: see `VaryingGP` for the cost.
    """
    return Sequential(VaryingGP(kernel, _positive_ridge(noise, ridge), rate), UCB(BayesianWidth(delta, scale)))


@checks_constants
def sw_gp_ucb(
    kernel: KernelLike,
    *,
    window: int = 200,
    variation: float = 0.0,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """UCB on a sliding window: only the last ``window`` rewards count.

    A round costs O(W + u^2 N), u the distinct arms among the last W rewards.
    """
    model = Recent(ExactGP(kernel, _positive_ridge(noise, ridge)), Window(window))
    return Sequential(model, UCB(DriftWidth(norm, noise, delta, scale, variation)))


@checks_constants
def r_gp_ucb(
    kernel: KernelLike,
    *,
    period: int = 200,
    variation: float = 0.0,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """UCB with restarts: everything is forgotten every ``period`` rounds.

    A round costs O(u N), as `ay_ucb`'s does, u the distinct arms pulled since the last restart.
    """
    model = Recent(ExactGP(kernel, _positive_ridge(noise, ridge)), Restarts(period))
    return Sequential(model, UCB(DriftWidth(norm, noise, delta, scale, variation)))


@checks_constants
def wgp_ucb(
    kernel: KernelLike,
    *,
    discount: float = 0.99,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """UCB with weights: a reward of age a has weight discount^a for the mean, and its square for the std.

    The mean has ridge / discount^a for such a reward, the std ridge / discount^(2 a). Weights below 1e-8 are forgotten.
    A round costs O(W + u^2 N), u the distinct arms among the W = 18 / (1 - discount) remembered rewards.
    """
    model = Discounted(ExactGP(kernel, _positive_ridge(noise, ridge)), discount)
    return Sequential(model, UCB(AYWidth(norm, noise, delta, scale)))


def _positive_ridge(noise: float, ridge: float | None) -> float:
    """Ridge, R^2 unless given. It must be positive: without noise only the first reward of an arm would count."""
    if ridge == 0:
        raise ValueError("ridge must be positive where f changes, got 0: pass a small one such as 1e-4")
    return ridge_of(noise, ridge)
