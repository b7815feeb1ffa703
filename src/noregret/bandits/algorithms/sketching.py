"""BKB, and its variants for a million rounds or a continuous domain: batches, repeated pulls, an adaptive partition.

D. Calandriello, L. Carratino, A. Lazaric, M. Valko, L. Rosasco:
Gaussian process optimization with adaptive sketching: scalable and no regret. COLT 2019 (BKB).
Near-linear time Gaussian process optimization with adaptive batching and resparsification. ICML 2020 (BBKB).
Scaling Gaussian process optimization by evaluating a few unique candidates multiple times. ICML 2022 (mini-GP-UCB).
M. Rando, L. Carratino, S. Villa, L. Rosasco. Ada-BKB: scalable Gaussian process optimization on continuous domains by
adaptive discretization. AISTATS 2022.

=================  =======================================================================================
the papers'        here
=================  =======================================================================================
F                  ``norm``: f has RKHS norm at most F
xi                 ``noise``: the noise is xi-sub-Gaussian
lambda             ``ridge``
sigma              std / sqrt(ridge): the papers divide the variance by the ridge, this library does not, so a width
                   on sigma is that width / sqrt(ridge) here
epsilon, alpha     ``epsilon`` of the sketch, and a = (1 + epsilon) / (1 - epsilon): variances are right up to a
q                  ``oversampling``
C                  ``growth``
E                  ``unexplained_sum`` of the posterior: what the dictionary leaves out (`CertifiedWidth`)
T                  ``horizon``; beyond it, q is raised at T, 2 T, 4 T, ... rounds and the dictionary is redrawn
d_eff              the posterior's ``effective_dimension``, the sum of std(x_s)^2 / ridge
delta              ``delta`` for the noise; with ``width="paper"`` ``delta`` / 2: the dictionary fails with probability
                   delta / 2 and the noise with delta / 2, so the bounds hold with probability 1 - delta (Thm 2 uses
                   delta for each) up to the horizon, and with probability 1 - 5/4 delta at all rounds
=================  =======================================================================================

``constants="theory"`` gives the theorem's q, and `CertifiedWidth`, which is valid for every dictionary; the theorem's
width is ``width="paper"``. That q keeps every pulled arm on problems of usual size, so the sketch is exact; pass
``oversampling`` for a smaller one. ``constants="experiment"`` gives the authors' width without its constants, and
q = 5: a heuristic. Kernels are assumed to have k(x, x) <= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from noregret.bandits.algorithms.constants import Checked, Constants, checks_constants, ridge_of
from noregret.bandits.algorithms.tighter_widths import AYWidth, SubGaussian
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.belief.features import Coins, Counting, Nystrom
from noregret.bandits.belief.sparse import SparseGP
from noregret.bandits.decision.loops import Batched, Repeated, Sequential
from noregret.bandits.decision.rules import UCB, Scaled
from noregret.bandits.decision.trees import AdaptivePartition
from noregret.gp.kernels import KernelLike, as_kernel
from noregret.gp.posterior import Posterior, Schedule

Widths = Literal["certified", "paper"]


@dataclass(frozen=True)
class CertifiedWidth(SubGaussian):
    """sqrt(kappa) F + (xi / sqrt(ridge)) sqrt(2 g + E / ridge + 2 ln(1/delta)), kappa = `distortion` of E / ridge.

    g is the information gain of the sketch, and E the prior variance that its dictionary leaves unexplained, summed
    over the pulls. The band holds with probability 1 - delta at all points, all rounds and for all dictionaries,
    however chosen (docs/guarantees_details.md). With every pulled arm in the dictionary it is that of `AYWidth`. The
    features must be `Nystrom` with the full variance. The noise part is multiplied by ``scale``.
    """

    def __call__(self, posterior: Any) -> float:
        return self._at(posterior, posterior.unexplained_sum / posterior.ridge)

    def excess(self, posterior: Any) -> float:
        """Factor by which the unexplained variance widens the band: large if the dictionary is too small."""
        return self(posterior) / (self._at(posterior, 0.0) or 1.0)

    def _at(self, posterior: Any, unexplained: float) -> float:
        confidence = 2 * posterior.information_gain + unexplained + 2 * math.log(1 / self.delta)
        noise = self.scale * self.noise * math.sqrt(confidence / posterior.ridge)
        return math.sqrt(distortion(unexplained)) * self.norm + noise


@dataclass(frozen=True)
class BKBWidth(Checked):
    """(1 + 1/sqrt(1 - eps)) F + (xi / sqrt(ridge)) sqrt(L + 2 ln(1/delta)), L >= ln det(I + K_t / ridge) (Thm 2).

    L is a times the smaller of d_eff (1 + ln(1 + t/ridge)) and the sum over pulls of ln(1 + s^2/ridge), s before each.
    The paper prints 2 ln(t) for 1 + ln(1 + t/ridge), which bounds the log-determinant only for t >= 4 and a ridge that
    is not small, and in Prop. 11 the determinant for its root, which makes the noise part sqrt(2) times larger. The
    noise part is multiplied by ``scale``. ``delta`` is the probability that the noise is too large; the dictionary has
    a separate one.
    """

    norm: float
    noise: float
    delta: float
    epsilon: float
    scale: float = 1.0

    def __call__(self, posterior: Any) -> float:
        log = 1 + math.log1p(posterior.rounds / posterior.ridge)
        log_det = accuracy(self.epsilon) * min(posterior.effective_dimension * log, 2 * posterior.claimed_gain)
        confidence = (log_det + 2 * math.log(1 / self.delta)) / posterior.ridge
        return (1 + 1 / math.sqrt(1 - self.epsilon)) * self.norm + self.scale * self.noise * math.sqrt(confidence)


@dataclass(frozen=True)
class PlainBKBWidth(SubGaussian):
    """F + (xi / sqrt(ridge)) sqrt(ln(t) d_eff + ln(1/delta)), of the authors' experiments: a heuristic."""

    constants: ClassVar = "experiment"

    def __call__(self, posterior: Posterior) -> float:
        confidence = math.log(max(posterior.rounds, 1)) * posterior.effective_dimension + math.log(1 / self.delta)
        return self.norm + self.scale * self.noise * math.sqrt(confidence / posterior.ridge)


@dataclass(frozen=True)
class BBKBWidth(Checked):
    """F + (xi / sqrt(ridge)) sqrt(C L + ln(1/delta)), L the sum over pulls of ln(1 + s^2/ridge), s before their batch.

    With ``epsilon`` it is instead sqrt(C) times the width that holds at the start of a batch,
    (1 + 1/sqrt(1 - eps)) F + (xi / sqrt(ridge)) sqrt(a L + 2 ln(1/delta)), since no std shrinks by more than sqrt(C)
    within a batch.
    """

    norm: float
    noise: float
    delta: float
    growth: float
    epsilon: float | None = None
    scale: float = 1.0

    def __call__(self, posterior: Any) -> float:
        total, noise = 2 * posterior.claimed_gain, self.scale * self.noise / math.sqrt(posterior.ridge)
        if self.epsilon is None:
            return self.norm + noise * math.sqrt(self.growth * total + math.log(1 / self.delta))
        confidence = accuracy(self.epsilon) * total + 2 * math.log(1 / self.delta)
        start = (1 + 1 / math.sqrt(1 - self.epsilon)) * self.norm + noise * math.sqrt(confidence)
        return math.sqrt(self.growth) * start


@checks_constants
def bkb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    epsilon: float = 0.5,
    oversampling: float | None = None,
    coins: Coins = "kept",
    constants: Constants = "theory",
    scale: float = 1.0,
    width: Widths = "certified",
) -> Sequential:
    """BKB (Alg. 1): argmax mean + beta_t std on Nystrom features, with a new dictionary after every round.

    The paper draws a new coin for every arm each time, ``coins="fresh"``. Kept coins change the dictionary by few arms
    per round, which takes a fraction of the time. ``coins="greedy"`` adds arms until E <= epsilon^2 ridge, E as in
    `CertifiedWidth`, which bounds the regret too. The certified width is valid with all of them, that of the paper,
    ``width="paper"``, with fresh coins only.

    On a `noregret.Box` the maximum of mean + beta_t std on the sketch is searched for (Sec. 5 and App. A: Thm 1 and 2
    hold for infinitely many arms, given a method that maximises). A score e_t below the maximum adds e_t to the regret.
    """
    model = _sketch(kernel, noise, delta, horizon, ridge, epsilon, oversampling, coins, constants)
    return Sequential(model, UCB(_width(norm, noise, delta, epsilon, constants, scale, width)))


@checks_constants
def bbkb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    epsilon: float = 0.5,
    oversampling: float | None = None,
    coins: Coins = "kept",
    growth: float = 2.0,
    size: int | None = None,
    constants: Constants = "theory",
    scale: float = 1.0,
    width: Widths = "certified",
) -> Batched:
    """BBKB: BKB in batches that last until 1 + sum s^2 / ridge exceeds ``growth``; ask() returns a batch.

    A batch has at most ``size`` arms, if that is given; the width, which depends on ``growth``, remains valid.
    """
    model = _sketch(kernel, noise, delta, horizon, ridge, epsilon, oversampling, coins, constants)
    chosen: Schedule = Scaled(CertifiedWidth(norm, noise, delta, scale), math.sqrt(growth))
    if constants == "experiment":
        chosen = BBKBWidth(norm, noise, delta, growth, scale=scale)
    elif width == "paper":
        chosen = BBKBWidth(norm, noise, delta / 2, growth, epsilon, scale)
    return Batched(model, UCB(chosen), growth, size)


@checks_constants
def mini_gp_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    growth: float = 1.5,
    scale: float = 1.0,
) -> Repeated:
    """mini-GP-UCB: the exact posterior; each chosen arm is pulled until a variance has shrunk by ``growth`` squared.

    The width is AY's. A million rounds need a few hundred choices.
    """
    model = ExactGP(kernel, noise**2 if ridge is None else ridge)
    return Repeated(model, UCB(AYWidth(norm, noise, delta, scale)), growth)


@checks_constants
def mini_bkb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    epsilon: float = 0.5,
    oversampling: float | None = None,
    coins: Coins = "kept",
    growth: float = 1.5,
    constants: Constants = "theory",
    scale: float = 1.0,
    width: Widths = "certified",
) -> Repeated:
    """mini-GP-UCB on BKB's Nystrom features, with a new dictionary after every choice; ``coins`` as in `bkb`."""
    model = _sketch(kernel, noise, delta, horizon, ridge, epsilon, oversampling, coins, constants)
    return Repeated(model, UCB(_width(norm, noise, delta, epsilon, constants, scale, width)), growth)


@checks_constants
def ada_bkb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    epsilon: float = 0.5,
    oversampling: float | None = None,
    coins: Coins = "kept",
    constants: Constants = "theory",
    scale: float = 1.0,
    width: Widths = "certified",
) -> AdaptivePartition:
    """Ada-BKB (Rando et al. 2022): BKB on the centres of a partition that is refined where f may be large.

    It is for a `noregret.Box` and long horizons: a round evaluates the sketch at a few centres, not at all arms. The
    keywords are those of `bkb`.

    With BKB's Thm 2, which holds at all points at once, the regret is at most 3/2 of the bound for exact maxima
    (`AdaptivePartition` has the proof). The loop is written from memory of the paper and differs from it: radii come
    from the kernel and B, not from the constants v_1 and rho of a tree; indices keep their smallest value; there is no
    largest depth. The paper's bound on the number of leaves is not claimed.
    """
    model = _sketch(kernel, noise, delta, horizon, ridge, epsilon, oversampling, coins, constants)
    rule = UCB(_width(norm, noise, delta, epsilon, constants, scale, width))
    return AdaptivePartition(model, rule, norm, as_kernel(kernel))


def distortion(unexplained: float) -> float:
    """Factor kappa = 1 + s^2/2 + s sqrt(1 + s^2/4) up to which the variances are right if s^2 = E / ridge is this.

    It is the largest eigenvalue of [[1, s], [s, 1 + s^2]].
    """
    return 1 + unexplained / 2 + math.sqrt(unexplained * (1 + unexplained / 4))


def accuracy(epsilon: float) -> float:
    """Factor a = (1 + epsilon) / (1 - epsilon) up to which the sketch's variances are right (Thm 1)."""
    return (1 + epsilon) / (1 - epsilon)


def oversampling_for(horizon: int, *, delta: float = 0.1, epsilon: float = 0.5) -> float:
    """Oversampling q = 6 a ln(4 T / delta) / epsilon^2, with which Thm 1 holds with probability 1 - delta."""
    return 6 * accuracy(epsilon) * math.log(4 * horizon / delta) / epsilon**2


def oversampling_rise(epsilon: float) -> float:
    """Rise of q, 6 a ln(4) / epsilon^2, at every doubling of the horizon (Sec. 3.2, Tuning q).

    From 2^(j-1) T to 2^j T redraws q is that of Thm 1 for horizon 2^j T and delta 2^-j. Each redraw then fails with
    probability delta / (4^j T) at most, and all redraws beyond T together with delta / 2.
    """
    return 6 * accuracy(epsilon) * math.log(4) / epsilon**2


def _sketch(
    kernel: KernelLike,
    noise: float,
    delta: float,
    horizon: int | None,
    ridge: float | None,
    epsilon: float,
    oversampling: float | None,
    coins: Coins,
    constants: Constants,
) -> SparseGP:
    """Nystrom features with the theorem's q and counting, or the authors' (Section 5), unless q is given."""
    if coins == "greedy":
        features = Nystrom(kernel, oversampling or epsilon**-2, root="cholesky", coins=coins)
    elif oversampling is None and constants == "theory":
        if horizon is None:
            raise ValueError("the theorem's oversampling depends on the horizon: pass horizon=, or oversampling=")
        q, rise = oversampling_for(horizon, delta=delta / 2, epsilon=epsilon), oversampling_rise(epsilon)
        features = Nystrom(kernel, q, root="cholesky", coins=coins, horizon=horizon, rise=rise)
    else:
        counting: Counting = "each" if constants == "theory" else "sum"
        q = 5.0 if oversampling is None else oversampling
        features = Nystrom(kernel, q, counting, root="cholesky", coins=coins)
    return SparseGP(features, ridge_of(noise, ridge))


def _width(
    norm: float, noise: float, delta: float, epsilon: float, constants: Constants, scale: float, width: Widths
) -> Schedule:
    if constants == "experiment":
        return PlainBKBWidth(norm, noise, delta, scale)
    if width == "paper":
        return BKBWidth(norm, noise, delta / 2, epsilon, scale)
    return CertifiedWidth(norm, noise, delta, scale)
