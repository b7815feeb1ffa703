"""Doubt: what the rewards say against the norm and the noise that confidence bounds are made of.

If f has norm at most B and the noise is R-sub-Gaussian, then at all rounds t together, with probability 1 - delta,

    y' (K_t + ridge I)^-1 y  <=  B^2 + (R^2 / ridge) c,    c = t + 2 sqrt(t L) + 2 L,    L = ln(pi^2 t^2 / (6 delta)):

the left side, the posterior's ``misfit``, is the least of |g|^2 + sum of (y - g)^2 / ridge over all functions g, and f
is one of them; the sum of t squared noises is at most R^2 c but for probability exp(-L) (Laurent and Massart 2000,
whose proof holds for sub-Gaussian noise).
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, runtime_checkable

from noregret.belief.conjugate import ConjugatePosterior
from noregret.belief.shared import SharedPosterior
from noregret.decision.loops import Best


@runtime_checkable
class Assumptions(Protocol):
    """What a width takes for given."""

    norm: float
    noise: float
    delta: float


def assumptions_of(description: Any) -> Assumptions | None:
    """The first part of an algorithm that has norm, noise and delta; None if there is none, as under heavy tails."""
    if isinstance(description, Assumptions):
        return description
    parts = fields(description) if is_dataclass(description) else ()
    found = (assumptions_of(getattr(description, part.name)) for part in parts)
    return next((part for part in found if part is not None), None)


def doubt(algorithm: Any, belief: Any, best: Best) -> str | None:
    """What to say about the bounds of an algorithm whose rewards contradict its norm and noise; None if they do not."""
    assumed = assumptions_of(algorithm)
    contradiction = _contradiction(assumed, belief)
    if best.empty:
        given = f"norm={assumed.norm:g} or noise={assumed.noise:g}" if assumed else "one of the bounds' constants"
        return f"no function fits the rewards: {contradiction or f'{given} is too small'}"
    return contradiction


def _noises(belief: Any, delta: float) -> float:
    """C / ridge."""
    t = belief.rounds
    log = math.log(math.pi**2 * t**2 / (6 * delta))
    return float((t + 2 * math.sqrt(t * log) + 2 * log) / belief.ridge)


def _contradiction(assumed: Assumptions | None, belief: Any) -> str | None:
    """What to say if the rewards contradict the constants; those of every rung that is left, if there is a ladder."""
    if assumed is None or not belief.rounds:
        return None
    claims: list[tuple[Assumptions, Any]] = [(assumed, belief)]
    if isinstance(belief, SharedPosterior):
        claims = [(rung.width, posterior) for rung, posterior in belief.members.items()]
    if any(_fits(*claim) for claim in claims):
        return None
    norm = min(_least_norm(each, its) * (assumed.norm / each.norm if each.norm else 1.0) for each, its in claims)
    noise = min(_least_noise(*claim) for claim in claims)
    return (
        f"the rewards contradict norm={assumed.norm:g} and noise={assumed.noise:g}, under which they have probability "
        f"below {assumed.delta:g}: the bounds are too narrow. Please pass norm={norm * 1.001:.4g} if the noise is "
        f"right. If the norm is right, the noise is at least {noise:.3g}: pass that, or more. If all rewards are far "
        f"from 0, subtract their average first"
    )


def _fits(assumed: Assumptions, belief: Any) -> bool:
    """Whether the rewards do not contradict norm and noise, as far as one can see.

    A posterior that expects corrupted rewards is not contradicted by them.
    """
    if not hasattr(belief, "misfit") or isinstance(belief, ConjugatePosterior):
        return True
    return bool(belief.misfit * (1 - 1e-6) <= assumed.norm**2 + assumed.noise**2 * _noises(belief, assumed.delta))


def _least_norm(assumed: Assumptions, belief: Any) -> float:
    """The least norm that the rewards would not contradict, if the noise is right."""
    return math.sqrt(max(belief.misfit - assumed.noise**2 * _noises(belief, assumed.delta), 0.0))


def _least_noise(assumed: Assumptions, belief: Any) -> float:
    """The least noise that they would not contradict, if the norm is right."""
    return math.sqrt((belief.misfit - assumed.norm**2) / _noises(belief, assumed.delta))
