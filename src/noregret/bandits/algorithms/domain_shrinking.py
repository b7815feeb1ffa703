"""REDS, and the two algorithms that its paper compares it with: BPE and GP-ThreDS.

S. Salgia, S. Vakili, Q. Zhao. Random exploration in Bayesian optimization: order-optimal regret and computational
efficiency. ICML 2024 (REDS).
Z. Li, J. Scarlett. Gaussian process bandit optimization with few batches. AISTATS 2022 (BPE).
S. Salgia, S. Vakili, Q. Zhao. A domain-shrinking based Bayesian optimization algorithm with order-optimal regret
performance. NeurIPS 2021 (GP-ThreDS).

=================  =======================================================================================
the paper's        here
=================  =======================================================================================
B                  ``norm``: f has RKHS norm at most B
R                  ``noise``: the noise is R-sub-Gaussian; 0 for noise-free rewards
tau                ``ridge``
T                  ``horizon``
N_1                ``first_epoch``
alpha_tau          the width w: `EpochWidth` in theory, 1 in the experiments, B without noise
c_T                ``slack``
D_T                a grid of `Box.log_discretization` points on a box, otherwise the arms themselves
delta'             delta / (6 log2 T)
X_r                ``Policy.active``
(a, b)             ``bounds`` on the largest mean, of GP-ThreDS
=================  =======================================================================================

``constants="theory"`` gives bounds that hold in all epochs with probability 1 - delta, and then the best arm is never
eliminated. ``constants="experiment"`` gives the values of the paper's experiments, width 1 and ridge 0.2. This is not a
confidence width: it often eliminates the best arm, and usually does on functions that the kernel fits badly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from noregret.bandits.algorithms.constants import Checked, Constants, checks_constants
from noregret.bandits.algorithms.tighter_widths import AYWidth
from noregret.bandits.belief.arms import Box
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.decision.designs import Doubling, Lengths, MaxVarianceDesign, RandomDesign, SquareRootLengths
from noregret.bandits.decision.elimination import Elimination
from noregret.bandits.decision.trees import ThresholdTree
from noregret.gp.kernels import Kernel, KernelLike
from noregret.gp.posterior import Constant, Floats, Posterior, Schedule

FIRST_EPOCH = 50
"""Default N_1, the paper's value on Branin."""


@dataclass(frozen=True)
class EpochWidth(Checked):
    """sqrt(B^2 + (2 R^2 / ridge) ln(|D| / delta')): for points chosen independently of their rewards.

    Eq. 5 has B + (R / sqrt(ridge)) sqrt(2 ln(|D| / delta')), up to sqrt(2) times as much. With weights
    a = (K + ridge I)^-1 k(x), the error of the mean at x is at most B sqrt(std^2 - ridge |a|^2) + R |a| sqrt(2 ln(|D| /
    delta')). Eq. 5 takes the largest value of each term; the inequality of Cauchy and Schwarz bounds their sum.

    The noise part is multiplied by ``scale``. ln |D| is ``log_points``, by default that of the number of arms.

    delta' is delta / ``share``, by default delta / (6 log2 T) (Thm 4.5). Without a horizon it is
    3 delta / (pi log2(2 n))^2 after n rewards: over epochs of doubling length and both bounds this sums to at most
    delta.

    If the first epoch is tested again after every ``retest`` rewards (App. D.2), its j-th test has 6 / (pi j)^2 of
    delta': over all tests this sums to delta'.
    """

    norm: float
    noise: float
    delta: float
    horizon: int | None = None
    share: float | None = None
    log_points: float | None = None
    scale: float = 1.0
    retest: int | None = None

    def __call__(self, posterior: Posterior) -> float:
        noise = self.scale * self.noise * math.sqrt(2 / posterior.ridge * self.log_events(posterior))
        return math.hypot(self.norm, noise)

    def log_events(self, posterior: Posterior) -> float:
        """ln(|D| / delta'): each bound of one point fails with probability delta' / |D|."""
        points = math.log(len(posterior.arms)) if self.log_points is None else self.log_points
        return points - math.log(self.epoch_delta(posterior.rounds))

    def epoch_delta(self, rounds: int = 1) -> float:
        """delta', the share of delta for one epoch, or for a test after ``rounds`` rewards."""
        delta = self.delta
        if self.retest:
            delta *= 6 / (math.pi * max(math.ceil(rounds / self.retest), 1)) ** 2
        if self.share:
            return delta / self.share
        if self.horizon:
            return delta / (6 * math.log2(max(self.horizon, 2)))
        return 3 * delta / (math.pi * math.log2(2 * max(rounds, 1))) ** 2

    def slack(self, ridge: float) -> float:
        """C = 2 B / T + R sqrt(2 / (T ridge) ln(4 T / delta')) (Eq. 5), for the grid; 0 without a horizon."""
        if not self.horizon:
            return 0.0
        confidence = 2 / (self.horizon * ridge) * math.log(4 * self.horizon / self.epoch_delta(self.horizon))
        return 2 * self.norm / self.horizon + self.scale * self.noise * math.sqrt(confidence)

    def on(self, box: Box, kernel: Kernel) -> EpochWidth:
        """Same width with |D_T| points, D_T as in Assumption 4.1."""
        if not self.horizon:
            raise ValueError("on a Box the theory's width needs the horizon: pass horizon=... to the builder")
        return replace(self, log_points=box.log_discretization(kernel, self.horizon))


@checks_constants
def reds(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    first_epoch: int = FIRST_EPOCH,
    slack: float | None = None,
    constants: Constants = "theory",
    scale: float = 1.0,
    keep: Literal["upper", "mean"] = "upper",
    first_level: float | None = None,
    separate: bool = True,
    truncation: Schedule | float | None = None,
    weights: Callable[[Floats], Floats] | None = None,
) -> Elimination:
    """REDS (Alg. 1): epochs of N_1, 2 N_1, 4 N_1, ... uniform draws from the arms that may still be the best.

    After each, keep x with mean + w std + c >= max (mean - w std - c), from the epoch's own rewards.

    Parameters
    ----------
    kernel : Kernel
    norm, noise, delta : float
        B, R and delta. ``noise=0`` or ``ridge=0`` means noise-free rewards: w = B, c = 0, ridge 0.
    horizon : int, optional
        T, in w and c; the last epoch is cut there. Without it, delta is divided over all epochs to come, and c = 0.
    ridge : float, optional
        By default R^2 in theory (any is valid), 0.2 in the experiments (with noise of sd 0.2).
    first_epoch : int
        N_1.
    slack : float, optional
        c. By default `EpochWidth.slack` in theory, 0 in the experiments. On finitely many arms 0 suffices.
    constants : 'theory' or 'experiment'
        w = sqrt(B^2 + (2 R^2 / ridge) ln(|D_T| / delta')), or w = 1.
    scale : float
        Factor on the noise part of w and c, in the experiments on w.
    keep : 'upper' or 'mean'
        The rule of line 10, or that of App. D.1: mean >= max mean - 2 (w max std + c).
    first_level : float, optional
        c0 of App. D.2: lengthen the first epoch until all kept arms lie above c0 max f + (1 - c0) min f. The tests
        share the epoch's part of delta.
    separate : bool
        On a `Box`, draw N_r points from each connected piece of the region, as Lemma 4.6 requires, or from all pieces
        together, as in the paper's experiments.
    truncation : schedule or float, optional
        For heavy tails: rewards larger than this level count as 0. The level depends on the rewards of its epoch only.
    weights : callable (n, d) -> (n,), optional
        Density to draw arms from, instead of the uniform one (Remark 3.5): see `RandomDesign`. The bounds hold for any.

    Examples
    --------
    >>> import numpy as np
    >>> from noregret import Policy, SquaredExponential
    >>> arms = np.linspace(0, 1, 200)[:, None]
    >>> policy = Policy(reds(SquaredExponential(0.2), norm=2, noise=0.1, horizon=400), arms, rng=0)
    >>> world = np.random.default_rng(1)
    >>> for _ in range(3):
    ...     asked = policy.ask()  # a whole epoch, to be measured in parallel
    ...     policy.tell(asked, np.sin(4 * arms[asked, 0]) + 0.1 * world.standard_normal(len(asked)))
    >>> len(asked), len(policy.active), bool(abs(arms[policy.best().arm, 0] - np.pi / 8) < 0.1)
    (200, 135, True)
    """
    retest = None if first_level is None else first_epoch
    width, tau, offset = _setting(norm, noise, delta, horizon, ridge, constants, scale, retest=retest)
    c = offset if slack is None else slack
    model = ExactGP(kernel, tau, truncation)
    design = RandomDesign(weights)
    return Elimination(model, design, width, first_epoch, c, Doubling(), keep, first_level, separate, horizon)


@checks_constants
def bpe(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    first_epoch: int | None = None,
    slack: float = 0.0,
    constants: Constants = "theory",
    scale: float = 1.0,
    truncation: Schedule | float | None = None,
) -> Elimination:
    """BPE: the loop of REDS with the arms of the largest posterior variance, planned before the epoch's rewards.

    Its own epochs have lengths N_i = ceil(sqrt(T N_{i-1})), N_0 = 1. With ``first_epoch`` they double from there, as in
    the REDS paper, and from 50 if neither that nor a horizon is given. On a `Box` the points are chosen among 2000
    uniform points of the region, which covers all pieces. The other keywords are as in `reds`.
    """
    _check_norm(norm)
    first, lengths, share = epoch_plan(first_epoch, horizon)
    width, tau, _ = _setting(norm, noise, delta, horizon, ridge, constants, scale, share)
    model = ExactGP(kernel, tau, truncation)
    return Elimination(model, MaxVarianceDesign(), width, first, slack, lengths, separate=False, horizon=horizon)


@checks_constants
def gp_threds(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    bounds: tuple[float, float] | None = None,
    points_per_cell: int = 200,
    patience: int | None = None,
    slack: float = 0.2,
    constants: Constants = "theory",
    scale: float = 1.0,
    truncation: Schedule | float | None = None,
) -> ThresholdTree:
    """GP-ThreDS: a tree of cells; cells that contain a value above a rising threshold are kept and halved.

    Parameters
    ----------
    kernel : Kernel
    norm, noise, delta : float
        B, R and delta.
    horizon : int, optional
        T. The theory's width uses delta / T, for at most T cells; without T the bounds hold for each cell alone.
    ridge : float, optional
        By default R^2 in theory, 0.2 in the experiments.
    bounds : (float, float), optional
        a <= max f <= b; by default -B and B. If the prior's mean 0 plus the width does not reach (a + b) / 2, the first
        search ends immediately and both fall: for a function with values far above 1, scale the width or the kernel.
    points_per_cell, patience, slack
        As in `ThresholdTree`.
    constants : 'theory' or 'experiment'
        The AY width B + (R / sqrt(ridge)) sqrt(2 (gain + ln(T / delta))), or 1. Cells are dropped on a sample of their
        arms, so even the theory's width does not guarantee that the best arm is kept.
    scale : float
        Factor on the noise part of the width, in the experiments on the width.
    truncation : schedule or float, optional
        As in `reds`; the level depends on the rewards of its cell only.
    """
    _check_norm(norm)
    experiment = constants == "experiment"
    tau = (0.2 if experiment else noise**2) if ridge is None else ridge
    deviation = noise if tau else 0.0
    width = Constant(scale) if experiment else AYWidth(norm, deviation, delta / (horizon or 1), scale)
    interval = (-norm, norm) if bounds is None else (float(bounds[0]), float(bounds[1]))
    model = ExactGP(kernel, tau, truncation)
    return ThresholdTree(model, width, interval, points_per_cell, patience, slack, horizon)


def _setting(
    norm: float,
    noise: float,
    delta: float,
    horizon: int | None,
    ridge: float | None,
    constants: Constants,
    scale: float,
    share: float | None = None,
    retest: int | None = None,
) -> tuple[Schedule, float, float]:
    """Width, ridge and slack."""
    _check_norm(norm)
    if noise == 0 or ridge == 0:
        return Constant(norm), ridge or 0.0, 0.0
    if constants == "experiment":
        return Constant(scale), 0.2 if ridge is None else ridge, 0.0
    width, tau = EpochWidth(norm, noise, delta, horizon, share, None, scale, retest), ridge or noise**2
    return width, tau, width.slack(tau)


def _check_norm(norm: float) -> None:
    if norm == 0:
        raise ValueError(f"norm must be positive, got {norm}")


def epoch_plan(first_epoch: int | None, horizon: int | None) -> tuple[int, Lengths, float | None]:
    """First epoch of BPE, lengths of the others, and by how much delta is divided: 2 for each epoch of its own plan."""
    if first_epoch is not None or not horizon:
        return first_epoch or FIRST_EPOCH, Doubling(), None
    lengths = SquareRootLengths(horizon)
    length, done, count = lengths(1), 0, 0
    while done < horizon:
        length, done, count = lengths(length), done + length, count + 1
    return lengths(1), lengths, 2.0 * count
