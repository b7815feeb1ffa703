"""The symmetric inverse root of a matrix that changes by one rank-one term after another.

An eigendecomposition gives V^-1/2 at once, at some 9 r^3 operations. Between two of them,

    V^-1/2 = sum over j of w_j (V + s_j I)^-1

with nodes s and weights w that make this true up to rounding for all eigenvalues in a range (N. Hale, N. J. Higham and
L. N. Trefethen, SIAM J. Numer. Anal. 46, 2008). A term z z' changes each inverse by the rank-one term c_j d_j d_j' with
d_j = (V + s_j I)^-1 z, so a new root is O(J k r) operations away, J nodes and k terms since the decomposition.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ellipj, ellipkm1

from noregret.belief.posterior import Floats

FULL = 16
"""After so many terms a new decomposition is cheaper than one more term."""
FEW_ROWS = 48
"""Matrices with fewer rows are decomposed afresh at every term: cheaper than following them."""
STEEP = 1e6
"""A matrix whose eigenvalues differ by a larger factor is decomposed afresh at every term: it would need many nodes."""
HEADROOM = 4.0
"""The nodes are good for eigenvalues up to so many times the largest, since terms make it grow."""


class InverseRoot:
    """V^-1/2 of a positive definite (r, r) matrix V, kept while terms are added to V."""

    def __init__(self, matrix: Floats) -> None:
        self._values, self._vectors = np.linalg.eigh(matrix)
        low, high = float(self._values[0]), float(self._values[-1])
        self._count, self._spare = 0, -1.0  # terms so far, and by how much the largest eigenvalue may still grow
        if len(matrix) < FEW_ROWS or HEADROOM * high > STEEP * low:
            return
        self._spare = (HEADROOM - 1) * high
        nodes, self._weights = _quadrature(low, HEADROOM * high)
        self._start = 1 / (self._values + nodes[:, None])  # (J, r): the inverses before any term, on the diagonal
        self._steps = np.empty((len(nodes), FULL, len(matrix)))  # d, in coordinates of the eigenvectors
        self._factors = np.empty((len(nodes), FULL))  # c

    def add(self, term: Floats) -> bool:
        """Take in V + z z' for z = ``term``, (r,); False, and nothing is changed, if it is time for a new one."""
        k, size = self._count, float(term @ term)
        if k == FULL or size > self._spare:
            return False
        z = term @ self._vectors
        steps = self._start * z
        if k:
            before, factors = self._steps[:, :k], self._factors[:, :k]
            steps -= ((factors * (before @ z))[:, None] @ before)[:, 0]
        self._steps[:, k], self._factors[:, k] = steps, 1 / (1 + steps @ z)
        self._count, self._spare = k + 1, self._spare - size
        return True

    def __matmul__(self, right: Floats) -> Floats:
        """V^-1/2 times (r, n) or (r,)."""
        inside = self._vectors.T @ right
        scale = self._values**-0.5
        found = (inside.T * scale).T
        if self._count:
            steps = self._steps[:, : self._count].reshape(-1, len(scale))
            weights = (self._weights[:, None] * self._factors[:, : self._count]).reshape(-1)
            found -= steps.T @ ((steps @ inside).T * weights).T
        return np.asarray(self._vectors @ found)


def _quadrature(low: float, high: float) -> tuple[Floats, Floats]:
    """Nodes and weights, (J,), with the sum over j of w_j / (x + s_j) = x^-1/2 up to rounding for x in [low, high]."""
    ratio = low / high
    count = math.ceil((math.log(1 / ratio) + 3) * math.log(1 / np.finfo(float).eps) / (2 * math.pi**2))
    quarter = float(ellipkm1(ratio))
    sn, cn, dn, _ = ellipj((np.arange(count) + 0.5) * quarter / count, 1 - ratio)
    weights = 2 / math.pi * math.sqrt(low) * quarter / count * dn / cn**2
    return np.asarray(low * (sn / cn) ** 2, dtype=float), np.asarray(weights, dtype=float)
