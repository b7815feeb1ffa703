"""Features: maps phi from points to R^m with phi(x)'phi(y) close to the kernel k(x, y).

=====================  =============================================================================
features               what they are, and the variance that `noregret.SparseGP` gives with them
=====================  =============================================================================
`QuadratureFourier`    cosines and sines at Gauss-Hermite nodes: ridge phi' V^-1 phi
`RandomFourier`        cosines and sines at random frequencies: ridge phi' V^-1 phi
`noregret.Nystrom`     the kernel at a few of the pulled arms: k(x, x) - phi'phi + ridge phi' V^-1 phi
=====================  =============================================================================

V = ridge I + the sum of phi phi' over all pulls. The classes above are frozen descriptions; their method ``on`` puts
them to work on some arms, as a `FeatureMap` that belongs to one posterior.
"""

from __future__ import annotations

from typing import Protocol, Self

from noregret.belief.posterior import Floats, Ints, Rng

LOW_RANK = 0.7
"""Features that span less than this share of their dimensions are worth a basis of their span."""


class FeatureMap(Protocol):
    """Features at work on N arms."""

    span: Floats | None
    """Orthonormal basis of what the features of all arms span, (m, r); None for the unit vectors."""
    table: Floats
    """Features of every arm in that basis, (r, N); replaced, its rows never written to, when they change."""
    unexplained: Floats
    """Prior variance of every arm that the features do not carry, (N,)."""

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Features (r, n) of any (n, d) points in the basis, and the variance they do not carry, (n,)."""
        ...

    def redraw(self, pulled: Ints, precision: Floats, variance: Floats, last: int) -> int:
        """After a round: choose the features anew if they depend on the pulls.

        Parameters
        ----------
        pulled : (u,) ints
            The distinct arms pulled.
        precision : (u,) floats
            How often each of them was pulled (the sum of 1 / noise over its pulls).
        variance : (u,) floats
            Their posterior variance before the round.
        last : int
            The arm pulled last.

        Returns
        -------
        int
            How many features are as they were, from the first one on; those after them are new.
        """
        ...

    def unexplained_covariance(self, first: Ints, second: Ints) -> Floats:
        """Prior covariance that the features do not carry, of some arms with others, (n,), (m,) -> (n, m)."""
        ...

    def unexplained_draw(self, rng: Rng) -> Floats:
        """A joint draw, (N,), of that part of f which the features do not carry."""
        ...

    def move(self, arms: Floats, index: Ints) -> Self:
        """The same features on other (N', d) arms; what was arm i of the old ones is now ``index[i]``."""
        ...

    def copy(self) -> Self:
        """An independent map with the same features."""
        ...


class Features(Protocol):
    """A frozen recipe for features."""

    def on(self, arms: Floats, ridge: float, rng: Rng) -> FeatureMap:
        """Put them to work on these (N, d) arms."""
        ...
