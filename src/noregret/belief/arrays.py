"""Where arrays live: in NumPy's memory, or on the device of a torch tensor.

Everything as long as the arms stays where the arms are, in float64; everything else is NumPy. What must know the place
asks here, and is otherwise written with operators, indexing and the functions of the array API standard.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
"""An array that lives where the arms do: NumPy's or torch's, of float64. Annotated `Floats` where NumPy's is usual."""


def is_tensor(array: Any) -> bool:
    """Whether this is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def namespace(array: Any) -> Any:
    """The array API functions for arrays like this one: NumPy itself, or array-api-compat's of a tensor."""
    if isinstance(array, np.ndarray):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(array)


def beside(array: Any, values: NDArray[Any]) -> Any:
    """NumPy's values where the array lives, of the same type."""
    if isinstance(array, np.ndarray):
        return values
    return namespace(array).asarray(values, device=array.device)


def numpy_of(array: Any) -> Any:
    """The array as NumPy's: itself if it is, a copy if it lives elsewhere."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def column_squares(table: Any) -> Any:
    """The sum of squares of every column, (r, n) -> (n,)."""
    if isinstance(table, np.ndarray):
        return np.einsum("ij,ij->j", table, table)
    return namespace(table).vecdot(table, table, axis=0)


def root_of_positive(variance: Any) -> Any:
    """The square root of each number, 0 for those below 0, (n,) -> (n,)."""
    if isinstance(variance, np.ndarray):
        return np.sqrt(np.maximum(variance, 0.0))
    return variance.clip(min=0.0).sqrt_()


def empty_rows(like: Any, count: int) -> Any:
    """A table of so many rows where the (N,) array lives, (count, N), with anything in it."""
    if isinstance(like, np.ndarray):
        return np.empty((count, len(like)))
    return namespace(like).empty((count, len(like)), dtype=like.dtype, device=like.device)


def zeros_like(array: Any) -> Any:
    """As many zeros in the same place."""
    return np.zeros(len(array)) if isinstance(array, np.ndarray) else namespace(array).zeros_like(array)
