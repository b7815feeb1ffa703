"""Where arrays live: in NumPy's memory, on the device of a torch tensor, or in blocks on the workers of a cluster.

Everything as long as the arms stays where the arms are, in float64; everything else is NumPy. What must know the place
asks here, and is otherwise written with operators, indexing and the functions of the array API standard. Numbers on a
cluster (`noregret.belief.cluster.belief`) answer to NumPy's functions.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noregret.extra import extra

Array = Any
"""An array that lives where the arms do, NumPy's, torch's or a cluster's; annotated `Floats` where NumPy's is usual."""

SLAB = 2_000_000
"""Numbers that are computed at once where a table as long as the arms is filled: more would need the table twice."""

SLAB_ON_DEVICE = 100 * SLAB
"""The same on a device, where a small product costs as much as a large one."""


def is_tensor(array: Any) -> bool:
    """Whether this is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def on_device(array: Array) -> bool:
    """Whether an array lives elsewhere than in the memory of this machine's processor."""
    return is_tensor(array) and array.device.type != "cpu"


def namespace(array: Array) -> Any:
    """The array API functions for arrays like this one: NumPy itself, or array-api-compat's of torch."""
    return np if isinstance(array, np.ndarray) or not is_tensor(array) else _torch_functions()


@cache
def _torch_functions() -> Any:
    return extra("array_api_compat.torch", "gpu")


def float64_tensor(tensor: Any) -> Array:
    """A tensor as float64 where it is; its columns lie together, as kernels read them one after the other."""
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
    """NumPy's values where the array lives, of the same type."""
    if isinstance(array, np.ndarray):
        return values
    return namespace(array).asarray(values, device=array.device)


def numpy_of(array: Any) -> Any:
    """The array as NumPy's: itself if it is, a copy if it lives elsewhere."""
    if isinstance(array, np.ndarray):
        return array
    return array.cpu().numpy() if is_tensor(array) else np.asarray(array)


def as_array(numbers: Any) -> Array:
    """Numbers as an array: one that lives elsewhere stays there."""
    return numbers if is_tensor(numbers) or hasattr(numbers, "top") else np.asarray(numbers)


def top(numbers: Array) -> tuple[int, float]:
    """The place of the largest number, the first on ties or the first nan, and the number there, with one wait."""
    if isinstance(numbers, np.ndarray):
        place = numbers.argmax()
        return int(place), numbers[place]
    if not is_tensor(numbers):
        return numbers.top()  # type: ignore[no-any-return]
    place = numbers.argmax()
    index, number = numbers_of(place.to(numbers.dtype), numbers.take(place))  # a double holds any index exactly
    return int(index), number


def largest(numbers: Array, count: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The places of so many of the largest numbers, in falling order, the first on ties; and the numbers there."""
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
    """Some of the (N, d) arms as NumPy's, (n,) -> (n, d)."""
    if not isinstance(arms, np.ndarray) and not is_tensor(arms):
        return arms.rows(places)  # type: ignore[no-any-return]
    return numpy_of(arms[places])  # type: ignore[no-any-return]


def numbers_of(*scalars: Any) -> list[float]:
    """Scalars of one place as Python's numbers: one wait for the device, however many they are."""
    if isinstance(scalars[0], float):
        return [float(scalar) for scalar in scalars]
    numbers: list[float] = _torch_functions().stack(scalars).tolist()
    return numbers


def column_squares(table: Any) -> Any:
    """The sum of squares of every column, (r, n) -> (n,)."""
    if isinstance(table, np.ndarray):
        return np.einsum("ij,ij->j", table, table)
    norms = namespace(table).linalg.vector_norm(table, axis=0)  # one pass, where a product would be three
    return norms * norms


def at_least(array: Array, least: float) -> Array:
    """The larger of each number and this one."""
    return array.clip(min=least) if is_tensor(array) else np.maximum(array, least)


def between(array: Array, least: float, most: float) -> Array:
    """Each number, or the nearer of these two where it lies outside of them."""
    return array.clip(least, most) if is_tensor(array) else np.minimum(np.maximum(array, least), most)


def special(array: Array) -> Any:
    """SciPy's special functions, or torch's, which go by the same names."""
    if is_tensor(array):
        return sys.modules["torch"].special
    import scipy.special

    return scipy.special


STANDARD_NAMES = {"power": "pow", "absolute": "abs", "invert": "bitwise_invert"}
"""NumPy's names of functions that the array API standard calls otherwise."""


def function_like(function: Any, array: Array) -> Any:
    """A function of NumPy's or SciPy's as that of arrays like this one."""
    functions, name = namespace(array), STANDARD_NAMES.get(function.__name__, function.__name__)
    return getattr(functions if hasattr(functions, name) else special(array), name)


def root_of_positive(variance: Any) -> Any:
    """The square root of each number, 0 for those below 0, (n,) -> (n,)."""
    if isinstance(variance, np.ndarray):  # in every round: no calls that can be saved
        return np.sqrt(np.maximum(variance, 0.0))
    return variance.clip(min=0.0).sqrt_()


def empty_rows(like: Any, count: int) -> Any:
    """A table of so many rows where the (N,) array lives, (count, N), with anything in it."""
    if isinstance(like, np.ndarray):
        return np.empty((count, len(like)))
    return namespace(like).empty((count, len(like)), dtype=like.dtype, device=like.device)


def stacked(arms: Array, points: NDArray[Any]) -> Array:
    """NumPy's (n, d) points below the (N, d) arms, where these live."""
    return joined([arms, beside(arms, points)])


def joined(arrays: list[Array]) -> Array:
    """Arrays that live in one place, one behind the other."""
    return np.concatenate(arrays) if isinstance(arrays[0], np.ndarray) else namespace(arrays[0]).concat(arrays)


def slabs(like: Array, rows: int, numbers: int = SLAB) -> list[slice]:
    """Slices of an (N,) array that are so wide that so many rows of one are as many numbers as are computed at once."""
    numbers, count = SLAB_ON_DEVICE if on_device(like) else numbers, len(like)
    width = max(numbers // max(rows, 1), 1)
    return [slice(start, min(start + width, count)) for start in range(0, count, width)]


def zeros_like(array: Any) -> Any:
    """As many zeros in the same place."""
    return np.zeros(len(array)) if isinstance(array, np.ndarray) else namespace(array).zeros_like(array)


def explain_memory(error: BaseException, arms: Array, rows: int) -> None:
    """Raise MemoryError, and say how many arms fit, if the error is that the arms' device has no room for this."""
    if type(error).__name__ != "OutOfMemoryError":
        return
    numbers = rows + 2 * arms.shape[1] + 8  # a row each, the arms twice, and what a round holds for a moment
    fit = device_memory(arms.device) // (8 * numbers)
    raise MemoryError(
        f"{len(arms):,} arms with {rows} rows do not fit on {arms.device}: about {fit:,} arms would: pass so many"
    ) from error


def device_memory(device: Any) -> int:
    """Bytes that are free on a device, or are held by this process."""
    memory = getattr(sys.modules["torch"], device.type)
    return int(memory.mem_get_info(device)[0] + memory.memory_reserved(device))


def ones(points: Array) -> Array:
    """A one for each of the (n, d) points, where they live, (n,)."""
    if isinstance(points, np.ndarray):
        return np.ones(len(points))
    return namespace(points).ones(len(points), dtype=points.dtype, device=points.device)


def fresh(array: Array) -> Array:
    """A copy in the same place; itself if nobody can write to it, as on a cluster."""
    if is_tensor(array):
        return array.clone()
    return array.copy() if isinstance(array, np.ndarray) else array
