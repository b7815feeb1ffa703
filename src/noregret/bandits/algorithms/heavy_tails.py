"""TGP-UCB and ATA-GP-UCB, for rewards with a known bound on the moment of order 1 + alpha.

S. R. Chowdhury, A. Gopalan. Bayesian optimization under heavy-tailed payoffs. NeurIPS 2019.

=================  =======================================================================================
the paper's        here
=================  =======================================================================================
B                  ``norm``: f has RKHS norm at most B (max|f|, as in the paper's experiments, is not such a bound)
alpha, v           ``alpha`` in (0, 1] and ``moment``: E|y|^(1 + alpha) <= v for the reward y itself, not its noise. For
                   R-sub-Gaussian noise alpha = 1 and v = B^2 + R^2 (Remark 1 prints R^2)
lambda             ``ridge``, 1
T, delta           ``horizon``, ``delta``; without a horizon, round t uses 6 delta / (pi t)^2
m                  the posterior's ``rank``: the features in use, cosines and sines both (Lemma 1 counts one of each)
mbar               ``order``: quadrature nodes per axis
q, epsilon         ``oversampling`` of the Nystrom dictionary, and the accuracy that it gives
b_t, beta_t        the levels `TGPLevel`, `ATALevel` and the widths `TGPWidth`, `ATAWidth`
=================  =======================================================================================

``constants="theory"`` gives the theorems' widths, with which almost nothing is learnt in 20 000 rounds. The band of
TGP-UCB then holds. That of ATA-GP-UCB is not proved: Lemma 13 conditions on arms that are chosen after the reward
(docs/guarantees.md). It held in all measured runs. ``constants="experiment"`` gives the values of the paper's
experiments: a heuristic. ``scale`` multiplies the noise part of the width, not the part with B. The levels b_t grow
with t, so truncation becomes milder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from noregret.bandits.algorithms.constants import Checked, Constants, checks_constants
from noregret.bandits.algorithms.sketching import oversampling_for
from noregret.bandits.belief.estimators import TruncatedDirections
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.belief.features import Features, Nystrom, QuadratureFourier, sufficient_order
from noregret.bandits.belief.sparse import SparseGP
from noregret.bandits.decision.loops import Sequential
from noregret.bandits.decision.rules import UCB
from noregret.gp.kernels import KernelLike, SquaredExponential
from noregret.gp.posterior import Posterior

FeatureChoice = Literal["nystrom", "qff"] | Features


@dataclass(frozen=True)
class Tail(Checked):
    """Moment bound E|y|^(1 + alpha) <= moment, and the powers of it in the widths and levels."""

    moment: float
    alpha: float = 1.0

    @property
    def size(self) -> float:
        """v^(1/(1 + alpha)), the typical size of a reward."""
        return self.root(self.moment)

    def root(self, number: float) -> float:
        """number^(1/(1 + alpha))."""
        return float(number ** (1 / (1 + self.alpha)))

    def growth(self, rounds: float) -> float:
        """t^((1 - alpha)/(2 (1 + alpha))), the factor for alpha below 1 after t rounds."""
        return float(rounds ** ((1 - self.alpha) / (2 * (1 + self.alpha))))


@dataclass(frozen=True)
class TGPLevel:
    """b_t = v^(1/(1 + alpha)) t^(1/(2 (1 + alpha))) (Thm 1)."""

    tail: Tail

    def __call__(self, posterior: Posterior) -> float:
        return self.tail.size * math.sqrt(self.tail.root(posterior.rounds))


@dataclass(frozen=True)
class TGPWidth(Checked):
    """B + sqrt(2/ridge) b_t (1 + 2^(1/(2 (1 + alpha))) sqrt(gain + ln(1/delta) + 2 ln(1.29 (1 + log2 t)))).

    It holds at all rounds together and for every delta (docs/guarantees_details.md). ``form="paper"`` is the printed
    width, B + (3 / sqrt(ridge)) b_t sqrt(ln det(I + K_t/ridge) + 2 ln(1/delta)) (Thm 1), which is 1.2 to 1.8 times as
    large and holds for delta up to 0.1. ``constants="experiment"``: B sqrt(ridge) + b_t sqrt(ln t). ``scale`` is on the
    part with b_t.
    """

    norm: float
    tail: Tail
    delta: float
    constants: Constants = "theory"
    scale: float = 1.0
    form: Literal["tight", "paper"] = "tight"

    def __call__(self, posterior: Posterior) -> float:
        level = TGPLevel(self.tail)(posterior)
        if self.constants == "experiment":
            spread = level * math.sqrt(math.log(max(posterior.rounds, 1)))
            return self.norm * math.sqrt(posterior.ridge) + self.scale * spread
        confidence, unit = posterior.information_gain + math.log(1 / self.delta), level * math.sqrt(2 / posterior.ridge)
        if self.form == "paper":
            return self.norm + self.scale * 3 * unit * math.sqrt(confidence)
        if not posterior.rounds:
            return self.norm
        confidence += 2 * math.log(1.29 * (1 + math.log2(posterior.rounds)))
        return self.norm + self.scale * unit * (1 + math.sqrt(self.tail.root(2.0) * confidence))


@dataclass(frozen=True)
class LogEvents:
    """ln(c (m + extra) T / delta), for a bound on all m directions in all T rounds; at least ln 2.

    c is 2 for fixed features (Lemma 1) and 4 for Nystrom ones (Thm 4).
    """

    events: float
    delta: float
    horizon: int | None = None
    extra: int = 0

    def __call__(self, posterior: Posterior) -> float:
        rounds = self.horizon or math.pi**2 / 6 * max(posterior.rounds, 1) ** 2
        return math.log(max(2.0, self.events * (posterior.rank + self.extra) * rounds / self.delta))


@dataclass(frozen=True)
class ATALevel:
    """b_t = (v / ln(2mT/delta))^(1/(1 + alpha)) t^e, e = (1 - alpha)/(2 (1 + alpha)) (full version, Lemma 1, Thm 4).

    The camera-ready's Lemma 1 has t^(1/(2 (1 + alpha))), the full version's Lemma 13 a factor 1/2: both are misprints.
    """

    tail: Tail
    log: LogEvents

    def __call__(self, posterior: Posterior) -> float:
        return self.tail.size / self.tail.root(self.log(posterior)) * self.tail.growth(posterior.rounds)


@dataclass(frozen=True)
class ATAWidth(Checked):
    """bias + factor sqrt(m / ridge) v^(1/(1 + alpha)) ln(2mT/delta)^(alpha/(1 + alpha)) t^e, e as in `ATALevel`.

    Lemma 1: the bias is B and the factor 4; Thm 4: the bias is B (1 + 1/sqrt(1 - eps)). Before the first reward the
    width is the bias alone. ``scale`` multiplies the rest.
    """

    bias: float
    tail: Tail
    log: LogEvents
    factor: float = 4.0
    scale: float = 1.0

    def __call__(self, posterior: Posterior) -> float:
        if not posterior.rounds:
            return self.bias
        share = math.pow(self.tail.root(self.log(posterior)), self.tail.alpha)
        spread = self.tail.size * share * self.tail.growth(posterior.rounds)
        return self.bias + self.scale * self.factor * math.sqrt(posterior.rank / posterior.ridge) * spread


@checks_constants
def tgp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    moment: float = 1.0,
    alpha: float = 1.0,
    delta: float = 0.1,
    ridge: float = 1.0,
    constants: Constants = "theory",
    scale: float = 1.0,
    width: Literal["tight", "paper"] = "tight",
) -> Sequential:
    """Truncated GP-UCB (Alg. 1): each reward beyond b_t counts as 0; argmax mean + beta_t std of an exact GP.

    ``width="paper"`` is the width as printed, for comparisons; see `TGPWidth`.
    """
    tail = Tail(moment, alpha)
    model = ExactGP(kernel, ridge, truncation=TGPLevel(tail))
    return Sequential(model, UCB(TGPWidth(norm, tail, delta, constants, scale, width)))


@checks_constants
def ata_gp_ucb(
    kernel: KernelLike,
    *,
    features: FeatureChoice = "nystrom",
    order: int | None = None,
    oversampling: float | None = None,
    epsilon: float = 0.1,
    root: Literal["symmetric", "cholesky"] = "symmetric",
    norm: float = 1.0,
    moment: float = 1.0,
    alpha: float = 1.0,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float = 1.0,
    constants: Constants = "theory",
    scale: float = 1.0,
) -> Sequential:
    """Adaptively truncated approximate GP-UCB (Alg. 2): whole-history truncation in each direction of feature space.

    Parameters
    ----------
    features : {"nystrom", "qff"} or features
        Nystrom for any kernel; quadrature Fourier for SE on the unit cube, of the given ``order`` or one with an error
        below 1e-10. "theory" folds them; "experiment" does not, like the paper.
    oversampling, epsilon : float
        q = 6 rho ln(4T/delta) / eps^2, rho = (1 + eps)/(1 - eps) in theory, which keeps every arm; ln(T) / eps^2 and
        one draw per distinct arm in the experiments. 5 to 10 gives a sketch.
    root : {"symmetric", "cholesky"}
        Root of V whose directions are truncated: the paper's, or another one for which Lemma 12 holds too.
    """
    tail = Tail(moment, alpha)
    chosen = choose_features(kernel, features, order, oversampling, epsilon, delta, horizon, constants)
    redrawn = isinstance(chosen, Nystrom)
    if constants == "theory":
        log, factor = LogEvents(4.0 if redrawn else 2.0, delta, horizon), 4.0
        bias = norm * (1 + 1 / math.sqrt(1 - epsilon)) if redrawn else norm
    else:
        log, factor, bias = LogEvents(1.0, 1.0, horizon, extra=int(redrawn)), 1.0, norm * math.sqrt(ridge)
    model = SparseGP(chosen, ridge, TruncatedDirections(ATALevel(tail, log), root))
    return Sequential(model, UCB(ATAWidth(bias, tail, log, factor, scale)))


def choose_features(
    kernel: KernelLike,
    features: FeatureChoice,
    order: int | None,
    oversampling: float | None,
    epsilon: float,
    delta: float,
    horizon: int | None,
    constants: Constants,
    root: Literal["symmetric", "cholesky"] = "symmetric",
) -> Features:
    """Features for the keywords of a builder (Alg. 2, line 4)."""
    if order is not None and features != "qff":
        raise ValueError(f"order is for features='qff', got order={order} with features={features!r}")
    if oversampling is not None and features != "nystrom":
        raise ValueError(f"oversampling is for features='nystrom', got it with features={features!r}")
    if features == "qff":
        if order is None and isinstance(kernel, SquaredExponential):
            order = sufficient_order(float(np.min(kernel.lengthscale)), 1e-10)
        squared: Any = kernel  # any other kernel is refused below
        return QuadratureFourier(squared, order or 1, folded=constants == "theory")
    if features == "nystrom":
        q = oversampling or _oversampling(epsilon, delta, horizon, constants)
        return Nystrom(kernel, q, "each" if constants == "theory" else "once", root)
    return features


def _oversampling(epsilon: float, delta: float, horizon: int | None, constants: Constants) -> float:
    """Oversampling q of Thm 4, or of the experiments; without a horizon every arm is kept."""
    if horizon is None:
        return math.inf
    if constants == "experiment":
        return max(math.log(horizon), 1.0) / epsilon**2
    return oversampling_for(horizon, delta=delta, epsilon=epsilon)
