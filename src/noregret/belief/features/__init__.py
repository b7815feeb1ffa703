"""Features: maps phi from points to R^m with phi(x)'phi(y) close to the kernel k(x, y).

=====================  =============================================================================
features               definition, and the variance of `noregret.SparseGP` with them
=====================  =============================================================================
`QuadratureFourier`    cosines and sines at Gauss-Hermite nodes: ridge phi' V^-1 phi
`RandomFourier`        cosines and sines at random frequencies: ridge phi' V^-1 phi
`noregret.Nystrom`     the kernel at a few of the pulled arms: k(x, x) - phi'phi + ridge phi' V^-1 phi
=====================  =============================================================================

V = ridge I + the sum of phi phi' over all pulls. The classes above are frozen descriptions; their method ``on`` makes a
`FeatureMap` for some arms, which belongs to one posterior.
"""

from __future__ import annotations

from typing import Protocol, Self

from noregret.belief.posterior import Floats, Ints, Rng

LOW_RANK = 0.7
"""Share of the dimensions; if features span fewer, they are stored in a basis of their span."""


class FeatureMap(Protocol):
    """Features of N arms."""

    span: Floats | None
    """Orthonormal basis of the span of the features of all arms, (m, r); None for the unit vectors."""
    table: Floats
    """Features of every arm in that basis, (r, N); replaced when they change, rows are never changed in place."""
    unexplained: Floats
    """Prior variance of every arm that the features do not carry, (N,)."""

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Features (r, n) of any (n, d) points in the basis, and the variance they do not carry, (n,)."""

    def redraw(self, pulled: Ints, precision: Floats, variance: Floats, last: int) -> int:
        """Redraw the features after a round, if they depend on the pulls.

        ``pulled`` are the distinct arms pulled, ``precision`` the number of pulls of each (the sum of 1 / noise over
        its pulls), ``variance`` their posterior variance before the round, each (u,), and ``last`` is the arm pulled
        last. Return the number of unchanged features at the start of the table; those after them are new.
        """

    def unexplained_covariance(self, first: Ints, second: Ints, left: Floats, right: Floats) -> Floats:
        """Prior covariance that the features do not carry, of some arms with others, (n,), (m,) -> (n, m).

        ``left`` and ``right`` are the features of these arms, (r, n) and (r, m).
        """

    def unexplained_draw(self, rng: Rng) -> Floats:
        """Joint draw, (N,), of the part of f that the features do not carry."""

    def move(self, arms: Floats, index: Ints) -> Self:
        """Return the same features on other (N', d) arms; arm i is arm ``index[i]`` of the new ones."""

    def copy(self) -> Self:
        """Return an independent copy."""


class Features(Protocol):
    """Frozen recipe for features."""

    def on(self, arms: Floats, ridge: float, rng: Rng) -> FeatureMap:
        """Make the features of these (N, d) arms."""
