"""Breakdown norm: how large the norm of f must be for a claim to be false, with no norm assumed.

For R-sub-Gaussian noise and every ridge a, q(a) = a y'(K_t + a I)^-1 y and gain(a) = 1/2 ln det(I + K_t / a). With
probability 1 - delta, for any f and at all t together, the misfit sum (y_s - f(x_s))^2 of f is at most

    Q_t = 2 R^2 ln(1/delta) - 2 R^2 ln(average over a of exp(-q(a) / (2 R^2) - gain(a))).

B* of a claim is the least norm of a function of misfit at most Q_t that violates it, B0 that of any. For the claim "no
arm is better than x by more than w", the arm z and the difference f(z) - f(x), duality gives

    B*^2 = least over z of the largest over b of (q(b) - Q_t) / b + max(0, w - mean_b(difference))^2 / variance_b.

Every b gives a lower bound of it, so the largest of some is valid (docs/guarantees_details.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noregret.gp.kernels import Kernel
from noregret.gp.posterior import Floats

RIDGES = np.logspace(-6, 6, 41)[:, None]
"""Ridges a and b, as parts of R^2. They are fixed in advance, as the mixture needs."""

SMALLEST = 1e-12
"""Least b as a part of the largest eigenvalue, and least variance as a part of the prior one, that rounding allows."""

BLOCK = 10_000
"""Arms that are looked at together."""


@dataclass(frozen=True)
class Breakdown:
    """Norms that f must have for the claim "no arm is better than this one by more than ``within``" to be false.

    With probability 1 - delta, at all times together: the claim is true or |f| >= ``norm``, and |f| >= ``least``. The
    norm is that of the algorithm's kernel; no bound on it is assumed.
    """

    within: float
    norm: float
    """B*, the least norm of a function that fits and violates the claim; infinite with one arm."""
    least: float
    """B0, the least norm of a function that fits the rewards."""

    @property
    def ratio(self) -> float:
        """B* / B0: the claim is false only if f is at least this much rougher than needed. Nan while B0 = 0."""
        return self.norm / self.least if self.least else math.nan


def breakdown(
    kernel: Kernel,
    told: tuple[Floats, Floats, Floats],
    noise: float,
    delta: float,
    arms: Floats,
    arm: int,
    within: float,
) -> Breakdown:
    """Breakdown norm of the claim that none of the (N, d) arms is better than this one by more than ``within``.

    ``told`` are t points (t, d), their rewards (t,) and the factors on the noise's R^2 (t,). It costs O(u^3 + u^2 N)
    for u distinct points.
    """
    points, places = np.unique(told[0], axis=0, return_inverse=True)
    (_, rewards, factors), places = told, places.reshape(-1)
    weights = np.bincount(places, 1 / factors)
    average = np.bincount(places, rewards / factors) / weights
    scatter = float(((rewards - average[places]) ** 2 / factors).sum())
    root = np.sqrt(weights)
    eigenvalues, basis = np.linalg.eigh(root[:, None] * kernel(points, points) * root)
    eigenvalues, rotated = np.maximum(eigenvalues, 0.0), basis.T @ (root * average)

    ridges = noise**2 * RIDGES
    inverse = 1 / (eigenvalues + ridges)  # (ridges, u), as the arrays below
    misfits = ridges[:, 0] * (inverse @ rotated**2) + scatter  # q
    evidence = -misfits / (2 * noise**2) - 0.5 * np.log1p(eigenvalues / ridges).sum(axis=1)
    largest = 2 * noise**2 * (math.log(len(ridges) / delta) - np.logaddexp.reduce(evidence))  # Q_t
    forced = np.where(ridges[:, 0] > SMALLEST * eigenvalues[-1], (misfits - largest) / ridges[:, 0], -np.inf)

    least, centre = math.inf, arms[arm : arm + 1]
    for others in np.array_split(np.delete(arms, arm, axis=0), range(BLOCK, len(arms) - 1, BLOCK)):
        if len(others):
            apart = basis.T @ (root[:, None] * (kernel(points, others) - kernel(points, centre)))
            prior = kernel.diag(others) + kernel.diag(centre) - 2 * kernel(others, centre)[:, 0]
            variances = np.maximum(prior - inverse @ apart**2, SMALLEST * prior + np.finfo(float).tiny)
            short = np.maximum(within - (inverse * rotated) @ apart, 0.0)
            least = min(least, float((forced[:, None] + short**2 / variances).max(axis=0).min()))
    return Breakdown(within, math.sqrt(max(least, 0.0)), math.sqrt(max(float(forced.max()), 0.0)))
