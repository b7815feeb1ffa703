"""Contracts of a belief on arms (`Posterior`, `Model`, `Schedule`), its notation, and the types of arrays.

========================  ==========================================================================
here                      meaning
========================  ==========================================================================
``arms``                  the N options, rows of an (N, d) array, named by their index
``ridge``                 lambda, added to the kernel matrix of the observations
``rounds``                t, the number of rewards received
``mean``                  mu(x) = k_t(x)' (K_t + ridge I)^-1 y
``std``                   s(x), with s(x)^2 = k(x, x) - k_t(x)' (K_t + ridge I)^-1 k_t(x);
                          never divided by the ridge
``information_gain``      1/2 ln det(I + K_t / ridge), the realised gain
``effective_dimension``   sum over the pulls s = 1..t of std(x_s)^2 / ridge
``claimed_gain``          1/2 sum over the rewards of ln(1 + s^2 / ridge), s the std before their update
``misfit``                y' (K_t + ridge I)^-1 y
========================  ==========================================================================
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NewType, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Rng = np.random.Generator

Slot = NewType("Slot", int)
"""Position of a point in the order in which distinct points were first pulled, as opposed to the index of an arm."""

HUGE = 1e100
"""Largest reward that least squares accepts: sums and squares of such numbers are finite. Robust estimators accept any
finite reward, and clip it to this size."""


class Copyable:
    """Object with independent copies: they share its attributes except ``OWN``, of which each has a copy."""

    OWN: ClassVar[tuple[str, ...]] = ()

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = copy.copy(self)
        for name in self.OWN:
            value = getattr(self, name)
            setattr(twin, name, None if value is None else value.copy())
        return twin


class Posterior(Protocol):
    """Belief about f on N arms: the one mutable object of a run.

    ``mean`` and ``std`` are replaced, never changed in place, so a reference to one is a snapshot. On a cluster, a
    snapshot raises ValueError when it is read after a further update.
    """

    rounds: int

    @property
    def arms(self) -> Floats:
        """Arms, (N, d)."""

    @property
    def ridge(self) -> float:
        """Ridge lambda of one observation."""

    @property
    def mean(self) -> Floats:
        """Posterior mean of every arm, (N,)."""

    @property
    def std(self) -> Floats:
        """Posterior standard deviation of every arm, (N,)."""

    @property
    def information_gain(self) -> float:
        """Realised gain, 1/2 ln det(I + K_t / ridge)."""

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over all pulls so far."""

    @property
    def claimed_gain(self) -> float:
        """Sum over the updates of 1/2 sum over their rewards of ln(1 + std^2 / ridge), with the std before the update.

        For rewards that come one at a time it equals the realised gain. For a block it is larger, since the arms of a
        block inform about each other. It does not change when the features change.
        """

    @property
    def misfit(self) -> float:
        """Misfit of the rewards y under the prior: y' (K_t + ridge I)^-1 y, with the kernel of the features, if any.

        Rewards enter as the estimator changed them on arrival. If the mean is not linear in them, it is still the
        misfit of least squares.
        """

    @property
    def rank(self) -> int:
        """Number of features in use; for the exact posterior, the number of distinct pulled arms."""

    @property
    def largest_reward(self) -> float:
        """Largest accepted size of a reward: infinity if the mean is robust, as with truncation."""

    @property
    def pulled(self) -> Ints:
        """Distinct arms pulled so far, in order of their first pull."""

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Update the belief with one or many rewards.

        Parameters
        ----------
        arms : int or (n,) ints
        rewards : float or (n,) floats, optional
            None changes the variance only, as if every arm had returned its current mean; it does not
            count as a round.
        noise : float or (n,) floats, optional
            Factor on the ridge of each observation, 1 by default.
        """

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Update the belief with rewards of (n, d) points, or of one, (d,); the rest is as in `update`.

        A point that equals an arm counts as a pull of it.
        """

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points, not only the arms."""

    def sample(self, rng: Rng) -> Floats:
        """Draw one function from the belief, jointly on all arms, (N,)."""

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of the arms ``first`` (n,) with the arms ``second`` (m,), (n, m)."""

    def at(self, arms: Any) -> Posterior:
        """Return the same knowledge about other (N, d) arms, for arm sets that change."""

    def copy(self) -> Self:
        """Return an independent posterior with the same knowledge, for planning ahead."""


class Model(Protocol):
    """Frozen recipe for a belief: the assumptions about f before any reward."""

    def prior(self, arms: Any, rng: Rng | None = None) -> Posterior:
        """Belief about f on these (N, d) arms before any reward; ``rng`` is for models that draw features."""


Schedule = Callable[[Posterior], float]
"""A number that depends on the state of a run: a width, a level, an information gain."""

Rule = Callable[[Posterior, Rng], Floats]
"""One score per arm, (N,); the arm with the largest is pulled."""


@dataclass(frozen=True)
class Constant:
    """Schedule with the same number in every round."""

    value: float

    def __call__(self, posterior: Posterior) -> float:
        return self.value


def as_schedule(name: str, given: object) -> Schedule:
    """Convert to a schedule: a number becomes a `Constant`; ValueError, with the field's name, for anything else.

    >>> as_schedule("width", 2)
    Constant(value=2.0)
    """
    if isinstance(given, float | int | np.number) and not isinstance(given, bool) and not np.isnan(given):
        return Constant(float(given))
    if not callable(given) or isinstance(given, type):
        raise ValueError(f"{name} must be a number or a schedule such as Constant(2.0), got {given!r}")
    return cast(Schedule, given)


def set_fields(owner: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def convert_numbers(owner: Any, *names: str) -> None:
    """Convert numbers in these fields of a frozen dataclass to schedules."""
    set_fields(owner, **{name: as_schedule(name, getattr(owner, name)) for name in names})
