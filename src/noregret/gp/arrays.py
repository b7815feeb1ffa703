"""Array operations that depend on where the arms are: in NumPy, on a torch device, or on the workers of a cluster.

Arrays as long as the arms stay where the arms are, in float64; all others are NumPy arrays. Code that must distinguish
the places calls the functions here. All other code uses operators, indexing and the functions of the array API
standard. Numbers on a cluster (`noregret.bandits.belief.cluster.BlockNumbers`) support NumPy's functions.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noregret.extra import extra

Array = Any
"""Array in the same place as the arms: NumPy, torch or a cluster; annotated `Floats` where NumPy is usual."""

SLAB = 2_000_000
"""Numbers computed at once while a table as long as the arms is filled; more would need the memory twice."""

SLAB_ON_DEVICE = 100 * SLAB
"""As `SLAB`, on a device, where a small product takes as long as a large one."""


def is_tensor(array: Any) -> bool:
    """True for a torch tensor. Torch is not imported for the test."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def on_device(array: Array) -> bool:
    """True if an array is not in the main memory of this machine."""
    return is_tensor(array) and array.device.type != "cpu"


def namespace(array: Array) -> Any:
    """Array API functions for this kind of array: NumPy, or array-api-compat's namespace for torch."""
    return np if isinstance(array, np.ndarray) or not is_tensor(array) else _torch_functions()


@cache
def _torch_functions() -> Any:
    return extra("array_api_compat.torch", "gpu")


def float64_tensor(tensor: Any) -> Array:
    """Convert a tensor to float64 on its device, with contiguous columns, since kernels read column by column."""
    xp = _torch_functions()
    if tensor.requires_grad:
        raise ValueError("arms must not require grad, nothing is differentiated here: pass arms.detach()")
    if tensor.dtype in (xp.float16, xp.bfloat16) or tensor.dtype.is_complex:
        raise ValueError(
            f"arms must be float64, float32 or whole numbers, got {tensor.dtype}: pass arms.double() if it has all the "
            "digits that tell arms apart"
        )
    try:
        wide = tensor.to(xp.float64)
    except TypeError as error:
        raise ValueError(f"arms need a device with float64, got {tensor.device} ({error}): pass arms.cpu()") from None
    return wide.T.contiguous().T if wide.ndim == 2 else wide


def beside(array: Any, values: NDArray[Any]) -> Any:
    """Copy NumPy values to the place of the array, with the array's type."""
    if isinstance(array, np.ndarray):
        return values
    return namespace(array).asarray(values, device=array.device)


def numpy_of(array: Any) -> Any:
    """Convert to NumPy: the array itself if it is one, else a copy."""
    if isinstance(array, np.ndarray):
        return array
    return array.cpu().numpy() if is_tensor(array) else np.asarray(array)


def as_array(numbers: Any) -> Array:
    """Convert numbers to an array; tensors and numbers on a cluster are returned unchanged."""
    return numbers if is_tensor(numbers) or hasattr(numbers, "top") else np.asarray(numbers)


def top(numbers: Array) -> tuple[int, float]:
    """Index and value of the largest number, the first on ties or the first nan; a device is waited for once."""
    if isinstance(numbers, np.ndarray):
        place = numbers.argmax()
        return int(place), numbers[place]
    if not is_tensor(numbers):
        return numbers.top()  # type: ignore[no-any-return]
    place = numbers.argmax()
    index, number = numbers_of(place.to(numbers.dtype), numbers.take(place))  # a double holds any index exactly
    return int(index), number


def largest(numbers: Array, count: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Indices and values of the ``count`` largest numbers, in decreasing order, the lowest index first on ties."""
    if not isinstance(numbers, np.ndarray) and not is_tensor(numbers):
        return numbers.largest(count)  # type: ignore[no-any-return]
    values = numpy_of(numbers)
    if count < len(values):
        least = np.partition(values, -count)[-count]
        above = np.flatnonzero(values > least)
        places = np.concatenate([above, np.flatnonzero(values == least)[: count - above.size]])
    else:
        places = np.arange(len(values))
    places = places[np.lexsort((places, -values[places]))]
    return places, values[places]


def rows(arms: Array, places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Some of the (N, d) arms as a NumPy array, (n,) -> (n, d)."""
    if not isinstance(arms, np.ndarray) and not is_tensor(arms):
        return arms.rows(places)  # type: ignore[no-any-return]
    return numpy_of(arms[places])  # type: ignore[no-any-return]


def numbers_of(*scalars: Any) -> list[float]:
    """Scalars of one place as Python numbers; a device is waited for once."""
    if isinstance(scalars[0], float):
        return [float(scalar) for scalar in scalars]
    numbers: list[float] = _torch_functions().stack(scalars).tolist()
    return numbers


def column_squares(table: Any) -> Any:
    """Sum of squares of every column, (r, n) -> (n,)."""
    if isinstance(table, np.ndarray):
        return np.einsum("ij,ij->j", table, table)
    norms = namespace(table).linalg.vector_norm(table, axis=0)  # one pass, where a product would take three
    return norms * norms


def at_least(array: Array, least: float) -> Array:
    """Maximum of each number and ``least``."""
    return array.clip(min=least) if is_tensor(array) else np.maximum(array, least)


def between(array: Array, least: float, most: float) -> Array:
    """Clip each number to [least, most]."""
    return array.clip(least, most) if is_tensor(array) else np.minimum(np.maximum(array, least), most)


def special(array: Array) -> Any:
    """Special functions of SciPy or of torch, which have the same names."""
    if is_tensor(array):
        return sys.modules["torch"].special
    import scipy.special

    return scipy.special


STANDARD_NAMES = {"power": "pow", "absolute": "abs", "invert": "bitwise_invert"}
"""NumPy function names and their different names in the array API standard."""


def function_like(function: Any, array: Array) -> Any:
    """Counterpart of a NumPy or SciPy function for this kind of array."""
    functions, name = namespace(array), STANDARD_NAMES.get(function.__name__, function.__name__)
    return getattr(functions if hasattr(functions, name) else special(array), name)


def root_of_positive(variance: Any) -> Any:
    """Square root of each number, 0 for negative ones, (n,) -> (n,)."""
    if isinstance(variance, np.ndarray):  # hot path: as few calls as possible
        return np.sqrt(np.maximum(variance, 0.0))
    return variance.clip(min=0.0).sqrt_()


def empty_rows(like: Any, count: int) -> Any:
    """Uninitialised (count, N) table in the place of the (N,) array."""
    if isinstance(like, np.ndarray):
        return np.empty((count, len(like)))
    return namespace(like).empty((count, len(like)), dtype=like.dtype, device=like.device)


def stacked(arms: Array, points: NDArray[Any]) -> Array:
    """Stack NumPy (n, d) points below the (N, d) arms, in the place of the arms."""
    return joined([arms, beside(arms, points)])


def joined(arrays: list[Array]) -> Array:
    """Concatenate arrays of one place."""
    return np.concatenate(arrays) if isinstance(arrays[0], np.ndarray) else namespace(arrays[0]).concat(arrays)


def slabs(like: Array, rows: int, numbers: int = SLAB) -> list[slice]:
    """Slices of an (N,) array such that ``rows`` rows of one slice have at most about ``numbers`` numbers."""
    numbers, count = SLAB_ON_DEVICE if on_device(like) else numbers, len(like)
    width = max(numbers // max(rows, 1), 1)
    return [slice(start, min(start + width, count)) for start in range(0, count, width)]


def zeros_like(array: Any) -> Any:
    """Zeros of the same length in the same place."""
    return np.zeros(len(array)) if isinstance(array, np.ndarray) else namespace(array).zeros_like(array)


def explain_memory(error: BaseException, arms: Array, rows: int) -> None:
    """Raise MemoryError with the number of arms that fit, if the device of the arms is out of memory."""
    if type(error).__name__ != "OutOfMemoryError":
        return
    numbers = rows + 2 * arms.shape[1] + 8  # per arm: the rows, the arm twice, and temporaries of a round
    fit = device_memory(arms.device) // (8 * numbers)
    raise MemoryError(
        f"{len(arms):,} arms with {rows} rows do not fit on {arms.device}: about {fit:,} arms would, pass fewer"
    ) from error


def device_memory(device: Any) -> int:
    """Bytes on a device that are free or held by this process."""
    memory = getattr(sys.modules["torch"], device.type)
    return int(memory.mem_get_info(device)[0] + memory.memory_reserved(device))


def ones(points: Array) -> Array:
    """Ones, (n,), in the place of the (n, d) points."""
    if isinstance(points, np.ndarray):
        return np.ones(len(points))
    return namespace(points).ones(len(points), dtype=points.dtype, device=points.device)


def fresh(array: Array) -> Array:
    """Copy in the same place; the array itself if it is read-only, as on a cluster."""
    if is_tensor(array):
        return array.clone()
    return array.copy() if isinstance(array, np.ndarray) else array
