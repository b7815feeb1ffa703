"""Functions of SciPy. Each part of it is imported with the first call: all take longer than the Optimizer itself."""

from __future__ import annotations

from importlib import import_module
from typing import Any

HOMES = {
    "brentq": "scipy.optimize",
    "cKDTree": "scipy.spatial",
    **dict.fromkeys(("cdist", "pdist", "squareform"), "scipy.spatial.distance"),
    **dict.fromkeys(("cho_solve", "cholesky"), "scipy.linalg"),
    **dict.fromkeys(("dpotrf", "dpotri", "dpotrs", "dpstrf", "dtrtri"), "scipy.linalg.lapack"),
    "dtrsm": "scipy.linalg.blas",
}
"""Modules of functions; all others are in `scipy.special`."""


def __getattr__(name: str) -> Any:
    function = globals()[name] = getattr(import_module(HOMES.get(name, "scipy.special")), name)
    return function
