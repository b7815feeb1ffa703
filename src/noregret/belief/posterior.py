"""The contracts of the belief layer, and its notation.

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
``claimed_gain``          1/2 sum over the rewards of ln(1 + s^2 / ridge), s the std of before their update
``misfit``                y' (K_t + ridge I)^-1 y
========================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Rng = np.random.Generator

HUGE = 1e100
"""The largest reward that least squares takes in: sums and squares of such numbers are finite. Robust estimators take
any finite reward, and a larger one for this one."""


class Posterior(Protocol):
    """The belief about f on N arms: the one mutable object of a run.

    ``mean`` and ``std`` are never written to in place, so whoever keeps one keeps a snapshot. On a cluster it raises
    ValueError if it is asked for something after the belief has learnt more.
    """

    rounds: int

    @property
    def arms(self) -> Floats:
        """The arms, (N, d)."""
        ...

    @property
    def ridge(self) -> float:
        """The ridge lambda of one observation."""
        ...

    @property
    def mean(self) -> Floats:
        """Posterior mean of every arm, (N,)."""
        ...

    @property
    def std(self) -> Floats:
        """Posterior standard deviation of every arm, (N,)."""
        ...

    @property
    def information_gain(self) -> float:
        """Realised gain, 1/2 ln det(I + K_t / ridge)."""
        ...

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over all pulls so far."""
        ...

    @property
    def claimed_gain(self) -> float:
        """The gain as each update claimed it: 1/2 sum over its rewards of ln(1 + std^2 / ridge), std as of before it.

        For rewards that come one at a time it is the realised gain. For a block it is more, since the arms of a block
        tell about each other; and it stays what it was when the features change.
        """
        ...

    @property
    def misfit(self) -> float:
        """How ill the rewards y fit the prior: y' (K_t + ridge I)^-1 y, K_t that of the features if there are any.

        Rewards count as the estimator took them on arrival. Where the mean is not linear in them, it is the misfit
        of least squares all the same.
        """
        ...

    @property
    def rank(self) -> int:
        """How many features are in use: the distinct pulled arms, for the exact posterior."""
        ...

    @property
    def largest_reward(self) -> float:
        """Rewards beyond this size are refused: infinity if the mean is robust, as with truncation."""
        ...

    @property
    def pulled(self) -> Ints:
        """The distinct arms pulled so far, in order of their first pull."""
        ...

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards.

        Parameters
        ----------
        arms : int or (n,) ints
        rewards : float or (n,) floats, optional
            None changes the variance only, as if every arm had returned its current mean; it does not
            count as a round.
        noise : float or (n,) floats, optional
            Factor on the ridge of each observation, 1 by default.
        """
        ...

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of (n, d) points that need not be arms; those that are count as pulls of these.

        Parameters
        ----------
        points : (n, d) floats, or (d,) for one
        rewards : float or (n,) floats, optional
            None changes the variance only, as in `update`.
        noise : float or (n,) floats, optional
            Factor on the ridge of each observation, 1 by default.
        """
        ...

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points, not only the arms."""
        ...

    def sample(self, rng: Rng) -> Floats:
        """One function drawn from the belief, jointly on all arms, (N,)."""
        ...

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of the arms ``first`` (n,) with the arms ``second`` (m,), (n, m)."""
        ...

    def at(self, arms: Any) -> Posterior:
        """The same knowledge about other (N, d) arms, for arm sets that change."""
        ...

    def copy(self) -> Self:
        """An independent posterior with the same knowledge, for thinking ahead."""
        ...


class Model(Protocol):
    """A frozen recipe for a belief: what is assumed about f before any reward."""

    def prior(self, arms: Any, rng: Rng | None = None) -> Posterior:
        """Belief about f on these (N, d) arms before any reward; ``rng`` is for models that draw features."""
        ...


def check_finite(arms: Any, rewards: Floats) -> None:
    """Refuse rewards, (n,), that are nan or infinite."""
    fine = np.isfinite(rewards)
    if not fine.all():
        i = int(fine.argmin())
        raise ValueError(f"reward of arm {arms[i]} is {rewards[i]}: drop it or pass a finite value")


def check_size(arms: Any, rewards: Floats, largest: float) -> None:
    """Refuse rewards, (n,), that are larger than the belief can take in."""
    large = np.abs(rewards) > largest
    if large.any():
        i = int(np.argmax(large))
        raise ValueError(
            f"reward of arm {arms[i]} is {rewards[i]:g}: least squares takes rewards up to {largest:g} in size; drop "
            "it, or use a robust algorithm such as tgp_ucb"
        )


def as_pulls(
    arms: Any, rewards: Any, noise: Any, count: int, largest: float
) -> tuple[Ints, Floats | None, Floats | None]:
    """Check what an update was given, and give it back as arrays: arms, rewards and noise factors, each (n,) or None.

    ``count`` is the number of arms there are, ``largest`` the size up to which rewards are taken.
    """
    places = _as_indices(arms, count)
    values = None if rewards is None else _as_rewards(rewards, places, largest)
    return places, values, None if noise is None else _as_noise(noise, places.size)


def _as_indices(arms: Any, count: int) -> Ints:
    places = np.asarray(arms).reshape(-1)
    kind = places.dtype.kind
    if kind == "b":
        raise ValueError("arms must be indices, got a mask: pass np.flatnonzero(mask)")
    if kind not in "iu" and places.size:
        raise ValueError(f"arms must be whole numbers, got {places.tolist()[0]!r}: name arms by their index")
    if places.size == 1:  # in scalars: this is the hot path
        inside = 0 <= int(places[0]) < count
    else:
        inside = not places.size or (int(places.min()) >= 0 and int(places.max()) < count)
    if not inside:
        raise ValueError(f"arms must be in 0..{count - 1}, got {places[(places < 0) | (places >= count)][0]}")
    return places.astype(np.intp, copy=False)


def _as_rewards(rewards: Any, arms: Ints, largest: float) -> Floats:
    values = np.asarray(rewards)
    if values.dtype.kind not in "fiubO":
        raise ValueError(f"rewards must be real numbers, got {rewards!r}")
    values = values.astype(float, copy=False).reshape(-1)
    if values.size != arms.size:
        raise ValueError(
            f"rewards must be one per arm, got {_many(arms.size, 'arm')} and {_many(values.size, 'reward')}"
        )
    if values.size != 1 or not abs(float(values[0])) <= HUGE:  # one reward in scalars: this is the hot path
        check_finite(arms, values)
        check_size(arms, values, largest)
    return values


def _as_noise(noise: Any, count: int) -> Floats:
    factors = np.asarray(noise, dtype=float)
    if factors.ndim > 1 or factors.size not in (1, count):
        raise ValueError(f"noise must be one number or one per arm, got {factors.size} for {_many(count, 'arm')}")
    factors = np.broadcast_to(factors, (count,))
    fine = (factors > 0) & np.isfinite(factors)
    if not fine.all():
        raise ValueError(f"noise must be positive and finite, got {factors[fine.argmin()]}")
    return factors


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


Schedule = Callable[[Posterior], float]


@dataclass(frozen=True)
class Constant:
    """The same number at every round."""

    value: float

    def __call__(self, posterior: Posterior) -> float:
        return self.value


def as_schedule(name: str, given: object) -> Schedule:
    """Return the schedule, or for a number a `Constant`; ValueError, with the field's name, for anything else.

    >>> as_schedule("width", 2)
    Constant(value=2.0)
    """
    if isinstance(given, float | int | np.number) and not isinstance(given, bool) and not np.isnan(given):
        return Constant(float(given))
    if not callable(given) or isinstance(given, type):
        raise ValueError(f"{name} must be a number or a schedule such as Constant(2.0), got {given!r}")
    return cast(Schedule, given)


def convert_numbers(owner: Any, *names: str) -> None:
    """Turn numbers in these fields of a frozen dataclass into schedules."""
    for name in names:
        object.__setattr__(owner, name, as_schedule(name, getattr(owner, name)))
