"""Catoni's influence function: a sum in which a few large numbers have little effect."""

from __future__ import annotations

import numpy as np

from noregret.gp.posterior import Floats

LARGEST_DEVIATION = 1e150
"""Largest |z| in psi: its square is still a float."""


def influence(z: Floats, alpha: float = 1.0) -> Floats:
    """psi(z) = sgn(z) ln(1 + |z| + |z|^(1 + alpha) / (1 + alpha)).

    >>> influence(np.array([-1.0, 0.0, 0.1, 1e9])).round(3)
    array([-0.916,  0.   ,  0.1  , 40.753])
    """
    size = np.minimum(np.abs(z), LARGEST_DEVIATION)
    return np.asarray(np.sign(z) * np.log1p(size * (1 + size**alpha / (1 + alpha))))
