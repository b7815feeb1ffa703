"""Elimination under heavy tails with Catoni's mean: `catoni_reds` and `catoni_bpe`. They are ours, not a paper's.

In an epoch of REDS or BPE the arms do not depend on the epoch's rewards. So the mean of the Gaussian process is a sum
of rewards with fixed weights. If E[y^2] <= v, Catoni's mean of them (`noregret.bandits.belief.robust`) is within

    sqrt(B^2 + (2 v / ridge) ln(|D| / delta')) std(x)

of f(x) at all arms x of all epochs, with probability 1 - delta. This is the band of REDS with sqrt(v) in place of the
sub-Gaussian constant. There is no factor sqrt(m) and no level that grows with t, so the regret is of order
sqrt(gamma T) up to logarithms, where ATA-GP-UCB has gamma sqrt(T). docs/guarantees_details.md has the proof.

=================  =======================================================================================
symbol             here
=================  =======================================================================================
B                  ``norm``: f has RKHS norm at most B
alpha, v           ``alpha`` in (0, 1] and ``moment``: E|y|^(1 + alpha) <= v for the reward y itself, f included
T, delta           ``horizon``, ``delta``; delta' as in `EpochWidth`
=================  =======================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from noregret.bandits.algorithms.constants import Checked, checks_constants
from noregret.bandits.algorithms.domain_shrinking import FIRST_EPOCH, EpochWidth, epoch_plan
from noregret.bandits.algorithms.heavy_tails import Tail
from noregret.bandits.belief.robust import CatoniGP
from noregret.bandits.decision.designs import Doubling, MaxVarianceDesign, RandomDesign
from noregret.bandits.decision.elimination import Elimination
from noregret.gp.kernels import KernelLike
from noregret.gp.posterior import Posterior


@dataclass(frozen=True)
class EpochEvents:
    """ln(|D| / delta') of an `EpochWidth`."""

    width: EpochWidth

    def __call__(self, posterior: Posterior) -> float:
        return self.width.log_events(posterior)


@dataclass(frozen=True)
class CatoniWidth(Checked):
    """sqrt(B^2 + c^2 / ridge), c = (v n^((1 - alpha) / 2))^(1/p) (p l / alpha)^(alpha / p), p = 1 + alpha, n rewards.

    l = ln(|D| / delta') is ``log_events``. For alpha = 1, c^2 = 2 v l. ``scale`` is on c.
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
        return math.hypot(self.norm, self.scale * noise / math.sqrt(posterior.ridge))

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
        Any is valid; by default v^(2 / (1 + alpha)) / B^2, at which the two parts of the bounds are of one order.
    first_epoch : int
        Length of the first epoch; the next ones double.
    scale : float
        Factor on the part of the bounds that accounts for the noise.

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
    model, width = _parts(kernel, moment, alpha, EpochWidth(norm, 0.0, delta, horizon), ridge, scale)
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
) -> Elimination:
    """BPE for heavy-tailed rewards, on finitely many arms; epochs as in `bpe`, other keywords as in `catoni_reds`."""
    first, lengths, share = epoch_plan(first_epoch, horizon)
    model, width = _parts(kernel, moment, alpha, EpochWidth(norm, 0.0, delta, horizon, share), ridge, scale)
    return Elimination(model, MaxVarianceDesign(), width, first, 0.0, lengths, separate=False, horizon=horizon)


def _parts(
    kernel: KernelLike, moment: float, alpha: float, epochs: EpochWidth, ridge: float | None, scale: float
) -> tuple[CatoniGP, CatoniWidth]:
    """Model and width."""
    if epochs.norm == 0:
        raise ValueError(f"norm must be positive, got {epochs.norm}")
    events, tail = EpochEvents(epochs), Tail(moment, alpha)
    model = CatoniGP(kernel, tail.size**2 / epochs.norm**2 if ridge is None else ridge, moment, alpha, events)
    return model, CatoniWidth(epochs.norm, tail, events, scale)
