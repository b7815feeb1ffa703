"""Elimination under heavy tails with Catoni's mean: `catoni_reds` and `catoni_bpe`. They are ours, not a paper's.

In an epoch of REDS or BPE the arms do not depend on the epoch's rewards. So the mean of the Gaussian process is a sum
of rewards with fixed weights a. If E|y|^p <= v, p = 1 + alpha, Catoni's mean of them (`noregret.bandits.belief.robust`)
is within

    B |k(x, .) - sum_t a_t k(x_t, .)| + v^(1/p) (p l / alpha)^(alpha/p) |a|_p,    l = ln(|D| / delta'),

of f(x) at all arms x of all epochs, with probability 1 - delta. Both norms are computed, and each arm has the weights
of the best of ten ridges. With the weights of one ridge and alpha = 1 this is at most
sqrt(B^2 + (2 v / ridge) l) std(x), the band of REDS with sqrt(v) in place of the sub-Gaussian constant. The regret of
catoni_bpe is of order sqrt(gamma_T) T^(1/p) up to logarithms. docs/guarantees_details.md has the proofs.

A. Tajdini, J. Scarlett, K. Jamieson (Improved regret bounds for linear bandits with heavy-tailed rewards, NeurIPS 2025)
eliminate in phases with robust estimates too, under a design for the p-norm, with regret bounds for Matern kernels.

=================  =======================================================================================
symbol             here
=================  =======================================================================================
B                  ``norm``: f has RKHS norm at most B
alpha, v           ``alpha`` in (0, 1] and ``moment``: E|y|^(1 + alpha) <= v for the reward y itself, f included
u                  ``noise_moment``: E|y - f(x)|^(1 + alpha) <= u
T, delta           ``horizon``, ``delta``; delta' as in `EpochWidth`
=================  =======================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.bandits.algorithms.constants import Checked, checks_constants
from noregret.bandits.algorithms.domain_shrinking import FIRST_EPOCH, EpochWidth, epoch_plan
from noregret.bandits.algorithms.heavy_tails import Tail
from noregret.bandits.belief.robust import ACCURACY, CatoniGP
from noregret.bandits.decision.designs import Doubling, MaxVarianceDesign, RandomDesign
from noregret.bandits.decision.elimination import Elimination
from noregret.gp.kernels import KernelLike
from noregret.gp.posterior import Floats, Posterior


@dataclass(frozen=True)
class EpochEvents:
    """ln(|D| / delta') of an `EpochWidth`."""

    width: EpochWidth

    def __call__(self, posterior: Posterior) -> float:
        return self.width.log_events(posterior)


@dataclass(frozen=True)
class CatoniWidth(Checked):
    """sqrt(B^2 + c^2 / ridge), c = (v n^((1 - alpha) / 2))^(1/p) (p l / alpha)^(alpha / p), p = 1 + alpha, n rewards.

    l = ln(|D| / delta') is ``log_events``. For alpha = 1, c^2 = 2 v l. ``scale`` is on c. A factor 1.001 accounts for
    the sketch of K. Times the std this bounds the half-widths in use, those of the posterior, of up to 2,000 arms.
    """

    norm: float
    tail: Tail
    log_events: EpochEvents
    scale: float = 1.0

    def __call__(self, posterior: Posterior) -> float:
        tail, p = self.tail, 1 + self.tail.alpha
        rounds = max(posterior.rounds, 1)
        size = tail.root(tail.moment * rounds ** ((1 - tail.alpha) / 2))
        noise = size * (p * self.log_events(posterior) / tail.alpha) ** (tail.alpha / p)
        return (1 + math.sqrt(ACCURACY)) * math.hypot(self.norm, self.scale * noise / math.sqrt(posterior.ridge))

    def half_widths(self, posterior: Any) -> Floats:
        """Half-width of the bounds of each arm, (N,)."""
        return np.asarray(posterior.half_widths)

    def on(self, box: Any, kernel: Any) -> Any:
        """Raise ValueError: the bounds are for finitely many arms."""
        raise ValueError("catoni_reds and catoni_bpe need finitely many arms: pass the points of a grid, not a Box")

    def slack(self, ridge: float) -> float:
        """0."""
        return 0.0


@checks_constants
def catoni_reds(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    moment: float = 1.0,
    alpha: float = 1.0,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    first_epoch: int = FIRST_EPOCH,
    scale: float = 1.0,
    recentre: bool = False,
    noise_moment: float | None = None,
) -> Elimination:
    """REDS for heavy-tailed rewards, on finitely many arms.

    Parameters
    ----------
    kernel : Kernel
    norm, moment, alpha, delta : float
        B, v, alpha and delta.
    horizon : int, optional
        T; the last epoch is cut there. Without it, delta is divided over all epochs to come.
    ridge : float, optional
        Of the std, which the design of `catoni_bpe` uses, and one of those for the weights. Any is valid; by default
        v^(2 / p) / B^2 T^((1 - alpha) / p), p = 1 + alpha, at which bias and noise are of one order after T rounds.
    first_epoch : int
        Length of the first epoch; the next ones double.
    scale : float
        Factor on the part of the bounds that accounts for the noise.
    recentre : bool
        Pay for the moment of the noise: an arm takes the median of means where its half-width is smaller than that of
        Catoni's mean, which from the second epoch on estimates the residuals of the last epoch's estimate. It helps
        where the values are far from 0 compared to the noise. The noise of an epoch's rewards must be independent.
    noise_moment : float, optional
        u, needed for ``recentre``.

    Examples
    --------
    >>> import numpy as np
    >>> from noregret import Policy, SquaredExponential
    >>> arms, world = np.linspace(0, 1, 100)[:, None], np.random.default_rng(0)
    >>> policy = Policy(catoni_reds(SquaredExponential(0.2), norm=2, moment=2, horizon=20_000), arms, rng=0)
    >>> for _ in range(7):
    ...     asked = policy.ask()
    ...     policy.tell(asked, np.sin(4 * arms[asked, 0]) + 0.3 * world.standard_t(2.1, len(asked)))
    >>> len(policy.active) < 80, bool(abs(arms[policy.best().arm, 0] - np.pi / 8) < 0.1)
    (True, True)
    """
    epochs = EpochWidth(norm, 0.0, delta, horizon)
    model, width = _parts(kernel, moment, alpha, epochs, ridge, scale, recentre, noise_moment)
    return Elimination(model, RandomDesign(), width, first_epoch, 0.0, Doubling(), horizon=horizon)


@checks_constants
def catoni_bpe(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    moment: float = 1.0,
    alpha: float = 1.0,
    delta: float = 0.1,
    horizon: int | None = None,
    ridge: float | None = None,
    first_epoch: int | None = None,
    scale: float = 1.0,
    recentre: bool = False,
    noise_moment: float | None = None,
) -> Elimination:
    """BPE for heavy-tailed rewards, on finitely many arms; epochs as in `bpe`, other keywords as in `catoni_reds`."""
    first, lengths, share = epoch_plan(first_epoch, horizon)
    epochs = EpochWidth(norm, 0.0, delta, horizon, share)
    model, width = _parts(kernel, moment, alpha, epochs, ridge, scale, recentre, noise_moment)
    return Elimination(model, MaxVarianceDesign(), width, first, 0.0, lengths, separate=False, horizon=horizon)


def _parts(
    kernel: KernelLike,
    moment: float,
    alpha: float,
    epochs: EpochWidth,
    ridge: float | None,
    scale: float,
    recentre: bool,
    noise_moment: float | None,
) -> tuple[CatoniGP, CatoniWidth]:
    """Model and width."""
    if epochs.norm == 0:
        raise ValueError(f"norm must be positive, got {epochs.norm}")
    if recentre != (noise_moment is not None):
        raise ValueError(
            "recentre and noise_moment must be given together, noise_moment a bound on E|y - f(x)|^(1 + alpha), got "
            f"recentre={recentre} and noise_moment={noise_moment}: pass both, or moment alone"
        )
    events, tail = EpochEvents(epochs), Tail(moment, alpha)
    tau = tail.size**2 / epochs.norm**2 * tail.growth(epochs.horizon or 1) ** 2 if ridge is None else ridge
    model = CatoniGP(kernel, tau, epochs.norm, moment, alpha, events, scale, noise_moment)
    return model, CatoniWidth(epochs.norm, tail, events, scale)
