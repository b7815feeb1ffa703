"""Regret bounds of the theorems, with their constants, before a single reward.

Each function is named like its algorithm and gives the bound on the regret of a whole run, R_T = sum over rounds of
max f - f(x_t), that its theorem proves for the width which the algorithm uses. All are for finitely many arms and hold
with probability 1 - delta. They are worst cases: a run is usually far below (``noregret bound --run`` shows both).

Optimism bounds the regret of a round by 2 beta_t s(x_t), s the posterior standard deviation. The sum of s^2 is at most
2 gamma_T k / ln(1 + k / ridge), k the largest k(x, x) and gamma_T the maximum information gain, so by the inequality of
Cauchy and Schwarz

    R_T <= 2 beta_T sqrt(2 T gamma_T k / ln(1 + k / ridge)).

gamma_T is bounded by `max_gain`. Since |f| <= B sqrt(k), no bound exceeds 2 B sqrt(k) T, and one that does not improve
on it is marked ``is_trivial``.

Keywords are those of the algorithm; values that no theorem covers, such as ``constants="experiment"``, are refused.
REDS has no function: its theorem has constants of f that cannot be computed. `random_exploration` has the other one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import lambertw

from noregret.bandits.algorithms import (
    catoni,
    domain_shrinking,
    heavy_tails,
    kernelized_bandits,
    sketching,
    tighter_widths,
)
from noregret.bandits.algorithms.constants import check_constant
from noregret.bandits.belief.arms import as_arms
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.decision.loops import Batched, Repeated
from noregret.gp.kernels import Kernel, as_kernel
from noregret.gp.posterior import Floats

__all__ = [
    "NAMES",
    "Bound",
    "Exploration",
    "amm_ucb",
    "ata_gp_ucb",
    "ay_ucb",
    "bbkb",
    "bkb",
    "bpe",
    "catoni_bpe",
    "dmm_ucb",
    "evaluations",
    "gp_ts",
    "gp_ucb",
    "igp_ucb",
    "max_gain",
    "mini_gp_ucb",
    "random_exploration",
    "rounds_until",
    "tgp_ucb",
]

LONGEST = 10**12
"""Rounds beyond which `rounds_until` gives up."""

COVERED: dict[str, Callable[[Any], bool]] = {
    "constants": lambda value: bool(value == "theory"),
    "scale": lambda value: bool(value >= 1),
    "gain": lambda value: value is None or value == "realised",
    "oversampling": lambda value: value is None,
    "features": lambda value: isinstance(value, str) and value == "nystrom",
    "truncation": lambda value: value is None,
}
"""Values of keywords with which the algorithm has the bound computed here."""


@dataclass(frozen=True)
class Bound:
    """Bound on the regret of a run.

    Parameters
    ----------
    rounds : int
        T.
    regret : float
        Bound on the sum of the regrets of all rounds, with probability 1 - delta.
    gain : float
        Upper bound on gamma_T that it is made with.
    width : float
        beta_T, the largest confidence width of the run.
    is_trivial : bool
        True if it says no more than |f| <= B.
    is_proved : bool
        False if the proof of the theorem has a gap, as for ATA-GP-UCB (docs/guarantees_details.md).
    """

    rounds: int
    regret: float
    gain: float
    width: float
    is_trivial: bool
    is_proved: bool = True

    @property
    def per_round(self) -> float:
        """Regret per round; the expected regret of an arm drawn from those of the run."""
        return self.regret / self.rounds


def max_gain(kernel: Any, arms: Any, rounds: int, ridge: float, *, tolerance: float = 0.01, steps: int = 500) -> float:
    """Upper bound on gamma_T, the largest 1/2 ln det(I + K / ridge) of T pulls of these arms.

    Shares w of the pulls may be any numbers that add up to 1, not only multiples of 1/T. Then
    g(w) = 1/2 ln det(I + (T / ridge) W^(1/2) K W^(1/2)) is concave with the slopes d_i = T s_i^2 / (2 ridge), s_i the
    standard deviations after these pulls, and no w has more than g(w) + max d - w'd. The shares are multiplied by d,
    again and again, until this is within ``tolerance`` of g(w); it is a bound wherever that ends. Each of at most
    ``steps`` steps costs O(N^3).
    """
    points = _points(arms)
    K = as_kernel(kernel)(points, points)
    shares, least = np.full(len(points), 1 / len(points)), math.inf
    for _ in range(steps):
        roots = np.sqrt(rounds * shares / ridge)
        factor = np.linalg.cholesky(np.eye(len(points)) + roots[:, None] * K * roots)
        gain = float(np.log(np.diag(factor)).sum())
        lifted = np.linalg.solve(factor, roots[:, None] * K)
        slopes = rounds / (2 * ridge) * np.maximum(np.diag(K) - (lifted**2).sum(axis=0), 0.0)
        least = min(least, gain + float(slopes.max() - shares @ slopes))
        if least <= (1 + tolerance) * gain or not shares @ slopes > 0:
            break
        shares = shares * slopes / (shares @ slopes)
    return least


def igp_ucb(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Thm 3 of the kernelized-bandits paper; keywords as those of the algorithm."""
    return _by_optimism(kernelized_bandits.igp_ucb, kernel, rounds, arms, constants, horizon=rounds)


def gp_ucb(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Thm 3 of Srinivas et al. (2012), for noise that is bounded by sqrt(ridge)."""
    return _by_optimism(kernelized_bandits.gp_ucb, kernel, rounds, arms, constants, horizon=rounds)


def ay_ucb(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Whitehouse, Ramdas and Wu (2023)."""
    return _by_optimism(tighter_widths.ay_ucb, kernel, rounds, arms, constants)


def amm_ucb(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Flynn and Reeb (2025), AMM."""
    return _by_optimism(tighter_widths.amm_ucb, kernel, rounds, arms, constants)


def dmm_ucb(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Flynn and Reeb (2025), DMM: one of its ridges has AMM's band, so the bound is AMM's."""
    return amm_ucb(kernel, rounds, arms=arms, **constants)


def tgp_ucb(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Thm 1 of the heavy-tails paper, with the width in use."""
    return _by_optimism(heavy_tails.tgp_ucb, kernel, rounds, arms, constants)


def ata_gp_ucb(kernel: Any, rounds: int, *, arms: Any, epsilon: float = 0.1, **constants: Any) -> Bound:
    """Thm 4 of the heavy-tails paper, for Nystrom features: as many as arms, since its q keeps every arm.

    The proof of the theorem has a gap, so ``is_proved`` is False.
    """
    check_constant("epsilon", epsilon)
    sketch, further = (sketching.accuracy(epsilon), 0.0), {"horizon": rounds, "epsilon": epsilon}
    result = _by_optimism(heavy_tails.ata_gp_ucb, kernel, rounds, arms, constants, sketch, **further)
    return replace(result, is_proved=False)


def bkb(
    kernel: Any,
    rounds: int,
    *,
    arms: Any,
    epsilon: float = 0.5,
    width: sketching.Widths = "certified",
    **constants: Any,
) -> Bound:
    """Regret with ``coins="greedy"``, for which E <= epsilon^2 ridge (docs/guarantees_details.md).

    Variances are then right up to kappa = `distortion` of epsilon^2. With ``width="paper"`` it is Thm 2 of the BKB
    paper, for ``coins="fresh"``: variances are right up to a = (1 + epsilon) / (1 - epsilon).
    """
    return _by_sketch(sketching.bkb, kernel, rounds, arms, epsilon, width, constants)


def bbkb(
    kernel: Any,
    rounds: int,
    *,
    arms: Any,
    epsilon: float = 0.5,
    width: sketching.Widths = "certified",
    **constants: Any,
) -> Bound:
    """`bkb` with batches; with ``width="paper"`` the bound of Calandriello et al. (2020) for the width in use.

    Variances are right up to the same factor within a batch: the posterior covariance of the batch's start, with the
    part that the features leave out, is conditioned on its arms, and A <= kappa A~ implies A + W <= kappa (A~ + W).
    """
    return _by_sketch(sketching.bbkb, kernel, rounds, arms, epsilon, width, constants)


def mini_gp_ucb(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Calandriello et al. (2022): while an arm is repeated no std shrinks by more than the factor ``growth``."""
    return _by_optimism(sketching.mini_gp_ucb, kernel, rounds, arms, constants)


def gp_ts(kernel: Any, rounds: int, *, arms: Any, delta: float = 0.1, **constants: Any) -> Bound:
    """Thm 4 of the kernelized-bandits paper, for N arms.

    R_T <= (11 c / p) sum of s + (2 B + 1) pi^2 / 6 + ((4 B + 11) c / p) sqrt(2 T ln(2 / delta)) with p = 1 / (4 e
    sqrt(pi)) and c = v_T (1 + sqrt(2 ln(N T^2))): the draws at all arms are within c - v_T standard deviations.
    """
    built: Any = _built(kernelized_bandits.gp_ts, kernel, rounds, constants, horizon=rounds, delta=delta)
    worst = _Worst(built.model.kernel, arms, rounds, built.model.ridge)
    width, norm = built.rule.width(worst.belief()), built.rule.width.norm
    spread = width * (1 + math.sqrt(2 * math.log(len(worst.arms) * rounds**2)))
    p = 1 / (4 * math.e * math.sqrt(math.pi))
    regret = 11 * spread / p * worst.sum_of_stds() + (2 * norm + 1) * math.pi**2 / 6
    regret += (4 * norm + 11) * spread / p * math.sqrt(2 * rounds * math.log(2 / delta))
    return worst.bound(regret, width, norm)


def bpe(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """Li and Scarlett (2022): an arm that is kept after n pulls has a regret of at most 4 (w s + c).

    The arms are those of the largest variance, so max s^2 is at most the average of s^2 over the pulls.
    """
    return _by_epochs(_built(domain_shrinking.bpe, kernel, rounds, constants, horizon=rounds), rounds, arms)


def catoni_bpe(kernel: Any, rounds: int, *, arms: Any, **constants: Any) -> Bound:
    """`bpe` for heavy-tailed rewards (docs/guarantees_details.md)."""
    return _by_epochs(_built(catoni.catoni_bpe, kernel, rounds, constants, horizon=rounds), rounds, arms)


NAMES: dict[str, Callable[..., Bound]] = {
    bound.__name__.replace("_", "-"): bound
    for bound in (
        igp_ucb,
        gp_ucb,
        gp_ts,
        ay_ucb,
        amm_ucb,
        dmm_ucb,
        tgp_ucb,
        ata_gp_ucb,
        bkb,
        bbkb,
        mini_gp_ucb,
        bpe,
        catoni_bpe,
    )
}
"""Command-line names of the algorithms that have a bound."""


def rounds_until(bound: Callable[[int], Bound], per_round: float) -> int | None:
    """Fewest rounds after which a bound on the regret per round is at most this; None if there are none up to 10^12.

    Parameters
    ----------
    bound : callable int -> Bound
        Such as ``lambda rounds: bounds.igp_ucb(kernel, rounds, arms=arms, norm=2.0)``.
    per_round : float
        Positive.
    """
    if not per_round > 0:
        raise ValueError(f"per_round must be positive, got {per_round!r}")
    high = 1
    while bound(high).per_round > per_round:
        high *= 2
        if high > LONGEST:
            return None
    low = high // 2
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle).per_round <= per_round else (middle, high)
    return high


def evaluations(
    kernel: Any,
    precision: float,
    *,
    arms: Any,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    most: int = 100_000,
) -> int | None:
    """Number of evaluations that make every arm known to +- ``precision`` with probability 1 - delta.

    Arms are pulled in the order of the largest variance, which needs no rewards, and the width is that of designs
    planned in advance (`EpochWidth`). None if ``most`` are not enough. The best of the means is then within twice the
    precision of the best arm.
    """
    if not precision > 0:
        raise ValueError(f"precision must be positive, got {precision!r}")
    points = _points(arms)
    belief = ExactGP(kernel, noise**2 if ridge is None else ridge).prior(points)
    width = domain_shrinking.EpochWidth(norm, noise, delta, share=2.0)(belief)
    for count in range(most + 1):
        arm = int(belief.std.argmax())
        if width * float(belief.std[arm]) <= precision:
            return count
        belief.update(arm, None)
    return None


class Exploration(NamedTuple):
    """Nbar of `random_exploration` and its parts, in its notation.

    ``pulls`` is Nbar, the larger of ``concentrated``, the least n of the two conditions, which R = ``chosen`` has, and
    ``flat``, that for F. ``heads`` and ``tails`` are N(R) and T(R) for R = 1, ..., r; ``largest`` is F^2.
    """

    pulls: int
    concentrated: int
    flat: int
    chosen: int
    heads: Floats
    tails: Floats
    largest: float


def random_exploration(kernel: Any, arms: Any, ridge: float, *, delta: float = 0.1) -> Exploration:
    """Nbar of Theorem 3.1 of the REDS paper (App. A) for uniform draws from these (N, d) arms.

    K / N has the eigenvalues lambda_1 >= ... >= lambda_r, those above rounding, and the unit eigenvectors u_j. With
    phi_j = sqrt(N) u_j, F = max_(j, x) |phi_j(x)| and L = ln(12 / delta),

        N(R) = max_x sum_(j <= R) phi_j(x)^2,    T(R) = max_x sum_(j > R) lambda_j phi_j(x)^2,

    Nbar is the larger of 729 F^4 L and the least n for which some R from 1 to r has both

        1944 N(R) ln(6 n / delta) <= n,    27 L max(42 T(R), n lambda_(R+1)) <= ridge.

    R = r meets the second for all n. Where eigenvalues coincide, F depends on the choice of their eigenvectors.
    """
    check_constant("ridge", ridge)
    check_constant("delta", delta)
    points = _points(arms)
    values, vectors = np.linalg.eigh(as_kernel(kernel)(points, points) / len(points))
    kept = values > len(points) * np.finfo(float).eps * values[-1]
    values, squares = values[kept][::-1], len(points) * vectors[:, kept][:, ::-1] ** 2
    heads = squares.cumsum(axis=1).max(axis=0)
    tails = np.append((squares * values)[:, :0:-1].cumsum(axis=1).max(axis=0)[::-1], 0.0)
    scale, level = 1944 * heads, math.log(12 / delta)
    least = np.ceil(-scale * lambertw(-delta / (6 * scale), -1).real)
    meets = 27 * level * np.maximum(42 * tails, least * np.append(values[1:], 0.0)) <= ridge
    chosen, largest = int(np.where(meets, least, np.inf).argmin()), float(squares.max())
    concentrated, flat = int(least[chosen]), math.ceil(729 * largest**2 * level)
    return Exploration(max(concentrated, flat), concentrated, flat, chosen + 1, heads, tails, largest)


@dataclass(frozen=True)
class _Worst:
    """Largest gain of a run, and what follows from it."""

    kernel: Kernel
    given: Any
    rounds: int
    ridge: float
    sketch: tuple[float, float] = (1.0, 0.0)
    """Factor up to which the variances of a sketch are right, and the largest E / ridge."""
    growth: float = 1.0
    """Factor by which a std may be out of date."""

    def __post_init__(self) -> None:
        if not self.ridge > 0:
            raise ValueError("the bounds are for noisy rewards: noise and ridge must be positive")

    @cached_property
    def gain(self) -> float:
        """Bound on gamma_T."""
        return max_gain(self.kernel, self.arms, self.rounds, self.ridge)

    @property
    def arms(self) -> Floats:
        return _points(self.given)

    @property
    def largest(self) -> float:
        """k: the largest prior variance of an arm."""
        return float(self.kernel.diag(self.arms).max())

    def sum_of_squares(self, rounds: int | None = None, gain: float | None = None) -> float:
        """Bound on the sum of s^2 over the pulls."""
        gain = self.gain if gain is None else gain
        total = 2 * gain * self.largest / math.log1p(self.largest / self.ridge)
        return min(total, self.largest * (rounds or self.rounds))

    def sum_of_stds(self) -> float:
        return math.sqrt(self.rounds * self.sum_of_squares() * self.sketch[0])

    def belief(self, rounds: int | None = None) -> Any:
        """Belief with the largest gain, as a width sees it."""
        accuracy, unexplained = self.sketch
        return SimpleNamespace(
            rounds=rounds or self.rounds,
            ridge=self.ridge,
            arms=self.arms,
            rank=len(self.arms),
            information_gain=self.gain,
            claimed_gain=accuracy * self.growth**2 * self.gain,  # ln(1 + c x) <= c ln(1 + x) for c >= 1
            effective_dimension=accuracy * self.sum_of_squares() / self.ridge,
            unexplained_sum=unexplained * self.ridge,
        )

    def bound(self, regret: float, width: float, norm: float) -> Bound:
        trivial = 2 * norm * math.sqrt(self.largest) * self.rounds
        return Bound(self.rounds, min(regret, trivial), self.gain, width, regret >= trivial)


def _points(arms: Any) -> Floats:
    """Finitely many arms, as an (N, d) array of floats."""
    points: Floats = as_arms(np.asarray(arms, dtype=float))
    return points


def _built(builder: Callable[..., Any], kernel: Any, rounds: int, constants: Mapping[str, Any], **further: Any) -> Any:
    """Algorithm of these constants; ValueError if its theorem does not cover them."""
    whole: Any = rounds
    if not (isinstance(whole, int | np.integer) and whole >= 1):
        raise ValueError(f"rounds must be a whole number from 1, got {rounds!r}")
    if "horizon" in constants:
        raise ValueError(f"the horizon of a bound is its rounds, {rounds}: leave horizon out")
    built = builder(kernel, **constants, **further)
    for name, is_covered in COVERED.items():
        if name in constants and not is_covered(constants[name]):
            raise ValueError(f"there is no bound for {name}={constants[name]!r}: leave {name} out")
    return built


def _by_sketch(
    builder: Callable[..., Any], kernel: Any, rounds: int, arms: Any, epsilon: float, width: str, constants: Any
) -> Bound:
    """`_by_optimism` for the coins that have a bound with this width."""
    check_constant("epsilon", epsilon)
    coins = "fresh" if width == "paper" else "greedy"
    if constants.get("coins", coins) != coins:
        raise ValueError(f"there is no bound for coins={constants['coins']!r} with width={width!r}: leave coins out")
    sketch = (sketching.accuracy(epsilon), 0.0) if width == "paper" else (sketching.distortion(epsilon**2), epsilon**2)
    further = {"horizon": rounds, "epsilon": epsilon, "width": width}
    return _by_optimism(builder, kernel, rounds, arms, {**constants, "coins": coins}, sketch, **further)


def _by_optimism(
    builder: Callable[..., Any],
    kernel: Any,
    rounds: int,
    arms: Any,
    constants: Mapping[str, Any],
    sketch: tuple[float, float] = (1.0, 0.0),
    **further: Any,
) -> Bound:
    """2 beta_T times the sum of the stds that arms were chosen by."""
    algorithm = _built(builder, kernel, rounds, constants, **further)
    model, width = algorithm.model, algorithm.rule.width
    kernel = model.features.kernel if hasattr(model, "features") else model.kernel
    growth = math.sqrt(algorithm.growth or 1.0) if isinstance(algorithm, Batched) else 1.0
    worst = _Worst(as_kernel(kernel), arms, rounds, model.ridge, sketch, growth)
    stale = algorithm.growth if isinstance(algorithm, Repeated) else 1.0
    beta = width(worst.belief())
    return worst.bound(2 * beta * stale * worst.sum_of_stds(), beta, constants.get("norm", 1.0))


def _by_epochs(algorithm: Any, rounds: int, arms: Any) -> Bound:
    """Regret of the epochs: 2 B in the first, 4 (w s + c) with the largest s of the last one in each of the others."""
    model, width = algorithm.model, algorithm.width
    worst = _Worst(as_kernel(model.kernel), arms, rounds, model.ridge)
    norm, length = width.norm, min(algorithm.first_epoch, rounds)
    most = 2 * norm * math.sqrt(worst.largest)
    regret, spent, beta = most * length, length, 0.0
    while spent < rounds:
        gain = max_gain(worst.kernel, worst.arms, length, worst.ridge)
        beta = max(beta, width(worst.belief(length)))
        std = math.sqrt(worst.sum_of_squares(length, gain) / length)
        following = min(algorithm.lengths(length), rounds - spent)
        regret += following * min(4 * (width(worst.belief(length)) * std + algorithm.slack), most)
        spent, length = spent + following, algorithm.lengths(length)
    return worst.bound(regret, beta, norm)
