"""Algorithms for heavy tails without truncation: a median of means, and one-pass Huber regression.

H. Shao, X. Yu, I. King, M. R. Lyu. Almost optimal algorithms for linear stochastic bandits with heavy-tailed payoffs.
NeurIPS 2018 (MENU, the median of means). J. Wang, Y.-J. Zhang, P. Zhao, Z.-H. Zhou. Heavy-tailed linear bandits: Huber
regression with one-pass update. ICML 2025 (Hvt-UCB).

Both are for linear bandits, here on features of a kernel; notation as in `heavy_tails`. The theory
constants are recalled from the papers and were not checked against them; the experiment constants were chosen here.
Both are heuristics. The papers' moments are those of the noise; ``moment`` bounds them at alpha = 1, and up to a factor
of 2 otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from noregret.bandits.algorithms.constants import Checked, Constants, checks_constants
from noregret.bandits.algorithms.heavy_tails import FeatureChoice, Tail, choose_features
from noregret.bandits.belief.estimators import ClippedResiduals, MedianOfMeans
from noregret.bandits.belief.sparse import SparseGP
from noregret.bandits.decision.loops import Sequential
from noregret.bandits.decision.rules import UCB
from noregret.gp.kernels import KernelLike
from noregret.gp.posterior import Posterior


@dataclass(frozen=True)
class MoMWidth(Checked):
    """bias + factor sqrt(k / ridge) (inner m v)^(1/(1 + alpha)) n^((1 - alpha)/(2 (1 + alpha))), n = t / k.

    MENU: the bias is 3 sqrt(k) B, the factor 3 and the inner one 9. Its bound is on the std of one of the k groups,
    which is at most sqrt(k) times that of all rewards. ``scale`` multiplies all but the bias.
    """

    bias: float
    tail: Tail
    groups: int
    factor: float = 3.0
    inner: float = 9.0
    scale: float = 1.0

    def __call__(self, posterior: Posterior) -> float:
        spread = self.tail.root(self.inner * posterior.rank) * self.tail.size
        spread *= self.tail.growth(posterior.rounds / self.groups) * math.sqrt(self.groups / posterior.ridge)
        return self.bias + self.scale * self.factor * spread


@dataclass(frozen=True)
class HvtLevel(Checked):
    """tau_0 t^e, tau_0 = sqrt(2 kappa) ln(3T)^e / ln(2 T^2/delta)^(1/(1 + alpha)), e = (1 - alpha)/(2 (1 + alpha)).

    kappa = m ln(1 + T/m), for rewards in units of their own size. Without a horizon T is t.
    """

    tail: Tail
    delta: float
    horizon: int | None = None

    def __call__(self, posterior: Posterior) -> float:
        rounds, features = self.horizon or max(posterior.rounds, 1), max(posterior.rank, 1)
        kappa = features * math.log1p(rounds / features)
        share = self.tail.root(math.log(2 * rounds**2 / self.delta))
        first = math.sqrt(2 * kappa) * self.tail.growth(math.log(3 * rounds)) / share
        return first * self.tail.growth(max(posterior.rounds, 1))


@dataclass(frozen=True)
class HvtWidth(Checked):
    """sqrt(2 + 4 B^2) + (107 / sqrt(ridge)) ln(2 T^2/delta) b_t, b_t the `HvtLevel`; ``scale`` multiplies the second.

    ``constants="experiment"``: B + sqrt(2 (gain + ln(1/delta)) / ridge) t^((1 - alpha)/(2 (1 + alpha))), the
    sub-Gaussian width for noise of size 1, in units of the rewards' spread.
    """

    norm: float
    level: HvtLevel
    constants: Constants = "theory"
    scale: float = 1.0

    def __call__(self, posterior: Posterior) -> float:
        level, rounds = self.level, max(posterior.rounds, 1)
        if self.constants == "experiment":
            confidence = 2 * (posterior.information_gain + math.log(1 / level.delta))
            return self.norm + self.scale * math.sqrt(confidence / posterior.ridge) * level.tail.growth(rounds)
        log = math.log(2 * (level.horizon or rounds) ** 2 / level.delta)
        return math.sqrt(2 + 4 * self.norm**2) + self.scale * 107 * log * level(posterior) / math.sqrt(posterior.ridge)


@checks_constants
def mom_gp_ucb(
    kernel: KernelLike,
    *,
    groups: int | None = None,
    features: FeatureChoice = "nystrom",
    order: int | None = None,
    oversampling: float | None = None,
    norm: float = 1.0,
    moment: float = 1.0,
    alpha: float = 1.0,
    delta: float = 0.1,
    horizon: int = 10_000,
    ridge: float = 1.0,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Sequential:
    """Median of means: pull the chosen arm k times, one reward for each of k ridge regressions, and use the median.

    The number of ``groups`` k is ceil(24 ln(eT/delta)) in theory and ceil(ln(T/delta)) in the experiments unless given.
    """
    tail = Tail(moment, alpha)
    chosen = choose_features(kernel, features, order, oversampling, 0.1, delta, horizon, constants, "cholesky")
    if constants == "theory":
        k = groups or math.ceil(24 * math.log(math.e * horizon / delta))
        width = MoMWidth(3 * math.sqrt(k) * norm, tail, k, scale=scale)
    else:
        k = groups or math.ceil(math.log(horizon / delta))
        width = MoMWidth(norm, tail, k, factor=1.0, inner=1.0, scale=scale)
    return Sequential(SparseGP(chosen, ridge, MedianOfMeans(k)), UCB(width), times=k)


@checks_constants
def hvt_ucb(
    kernel: KernelLike,
    *,
    features: FeatureChoice = "nystrom",
    order: int | None = None,
    oversampling: float | None = None,
    norm: float = 1.0,
    moment: float = 1.0,
    alpha: float = 1.0,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float = 1.0,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Sequential:
    """Hvt-UCB: one-pass Huber regression; each reward is clipped to near its prediction on arrival."""
    tail = Tail(moment, alpha)
    chosen = choose_features(kernel, features, order, oversampling, 0.1, delta, horizon, constants, "cholesky")
    level = HvtLevel(tail, delta, horizon)
    model = SparseGP(chosen, ridge, ClippedResiduals(level, spread=tail.size))
    return Sequential(model, UCB(HvtWidth(norm, level, constants, scale)))
