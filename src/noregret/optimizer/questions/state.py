"""State: a snapshot as questions see it, with pending trials and the balance of explorers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

from noregret.gp.posterior import Floats, Rng
from noregret.optimizer.model.costs import Prices
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.model.posterior import PosteriorAtArms
from noregret.optimizer.questions.balance import Realised

Asked = int | Floats
"""An arm of the snapshot, or the (d,) coordinates of a new point."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PendingSnapshot(Snapshot):
    """Snapshot in which pending trials count as measured, with the expected values."""

    pending: tuple[int, ...]
    """Points of the pending trials."""
    balance: Realised
    measured: PosteriorAtArms
    """The posterior without the pending trials."""
    prices: Prices | None = None
    """Predicted costs of the arms, if costs are known."""

    @property
    def known(self) -> int:
        """Number of answers and pending trials."""
        return len(self.history) + len(self.pending)


def state_of(
    snapshot: Snapshot, pending: Sequence[int], balance: Realised, last: PendingSnapshot | None = None
) -> PendingSnapshot:
    """State in which these points, which are arms of the snapshot, have pending trials.

    It continues the ``last`` state where only pending trials came since, so that a batch costs one step per trial.
    """
    belief, margins, done = snapshot.belief, list(snapshot.margins), 0
    if last is not None and last.measured is belief and tuple(pending[: len(last.pending)]) == last.pending:
        belief, margins, done = last.belief, list(last.margins), len(last.pending)
    for number in pending[done:]:
        arm = int(snapshot.arms([number])[0])
        belief = _as_expected(belief, arm)
        margins = [m and m._replace(posterior=_as_expected(m.posterior, arm)) for m in margins]
    same = {each.name: getattr(snapshot, each.name) for each in fields(snapshot)}
    changed = {"belief": belief, "margins": margins, "pending": tuple(pending), "balance": balance}
    return PendingSnapshot(**(same | changed), measured=snapshot.belief)


def _as_expected(posterior: PosteriorAtArms, arm: int) -> PosteriorAtArms:
    after = posterior.told(arm, float(posterior.mean[arm]), posterior.noise_variance(arm))
    return replace(after, rounds=posterior.rounds)


class Question(Protocol):
    """One kind of question."""

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        """Return what to measure, None if there is nothing of this kind to ask."""
