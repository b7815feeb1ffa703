"""Kernels: frozen values that combine with ``+`` and ``*``.

A kernel maps points (n, d) and (m, d) to the (n, m) matrix of k(x, y). Any such callable is accepted as a kernel,
including scikit-learn's kernel objects (see `as_kernel`). The second points may be a torch tensor; the matrix is then a
tensor on the same device. Kernels that do not support this raise ValueError.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.linalg import LinAlgError

from noregret.gp import functions as sp
from noregret.gp.arrays import Array, beside, is_tensor, namespace, ones
from noregret.gp.posterior import Floats


class Kernel(ABC):
    """A positive definite function k(x, y)."""

    @abstractmethod
    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Kernel matrix, (n, d), (m, d) -> (n, m)."""

    @abstractmethod
    def diag(self, X: Floats) -> Floats:
        """k(x, x) of every row, (n, d) -> (n,)."""

    def gain_rate(self, rounds: int, dimension: int) -> float:
        """Order of the largest information gain in ``rounds`` pulls, with constant 1."""
        raise ValueError(
            f"no growth rate of the information gain is known for {self}: "
            "pass gain='realised', gain='greedy' or a number"
        )

    def __add__(self, other: KernelLike) -> Kernel:
        return Sum(self, as_kernel(other))

    def __radd__(self, other: KernelLike) -> Kernel:
        return Sum(as_kernel(other), self)

    def __mul__(self, other: KernelLike | float) -> Kernel:
        if isinstance(other, int | float | np.number):
            return Scaling(float(other), self)
        return Product(self, as_kernel(other))

    __rmul__ = __mul__


KernelLike = Kernel | Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class SquaredExponential(Kernel):
    """k(x, y) = exp(-r^2 / 2), r the distance in units of ``lengthscale`` (one, or one per dimension).

    >>> SquaredExponential(0.5)(np.array([[0.0]]), np.array([[0.5]])).round(4)
    array([[0.6065]])
    """

    lengthscale: Lengthscale

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _positive("lengthscale", self.lengthscale))

    def __call__(self, X: Array, Y: Array) -> Array:
        squared = distance(X, Y, self.lengthscale, "sqeuclidean")
        squared *= -0.5
        return namespace(squared).exp(squared, out=squared)

    def diag(self, X: Array) -> Array:
        return ones(X)

    def gain_rate(self, rounds: int, dimension: int) -> float:
        """(ln t)^(d + 1), infinite if that overflows."""
        try:
            return math.log(max(rounds, 1)) ** (dimension + 1)
        except OverflowError:
            return math.inf


@dataclass(frozen=True)
class Matern(Kernel):
    """k(x, y) = 2^(1-nu) / Gamma(nu) z^nu K_nu(z), z = sqrt(2 nu) r, r in units of ``lengthscale``.

    Closed forms for nu = 1/2, 3/2 and 5/2, the Bessel function for others; 1 at r = 0.
    """

    nu: float
    lengthscale: Lengthscale

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _positive("lengthscale", self.lengthscale))
        if not 0 < self.nu <= 100:
            limit = ": take SquaredExponential, its limit" if self.nu > 100 else ""
            raise ValueError(f"nu must be in (0, 100], got {self.nu}{limit}")

    def __call__(self, X: Array, Y: Array) -> Array:
        return in_pieces(self._piece, X, Y)

    def _piece(self, X: Array, Y: Array) -> Array:
        z = distance(X, Y, self.lengthscale, "euclidean")
        z *= math.sqrt(2 * self.nu)
        exp = namespace(z).exp
        match self.nu:
            case 0.5:
                return exp(-z)
            case 1.5:
                return (1 + z) * exp(-z)
            case 2.5:  # (1 + z + z z / 3) exp(-z), with few temporary matrices
                polynomial = z * z
                polynomial /= 3
                polynomial += 1 + z
                z *= -1
                exp(z, out=z)
                z *= polynomial
                return z
        _refuse_tensor(self, Y, "take nu = 0.5, 1.5 or 2.5, or ")
        with np.errstate(invalid="ignore", over="ignore"):
            k = 2 ** (1 - self.nu) / sp.gamma(self.nu) * z**self.nu * sp.kv(self.nu, z)
        overflow = ~np.isfinite(k)
        if overflow.any():
            k[overflow] = self._where_factors_overflow(z[overflow])
        return np.asarray(k)

    def _where_factors_overflow(self, z: Floats) -> Floats:
        """Kernel at z where K_nu overflows (small z: the series) or z^nu does (large z: 0).

        The series is 1 - q / (nu - 1) + q^2 / (2 (nu - 1) (nu - 2)) - ..., q = z^2 / 4; for nu <= 4 it is 1 at such z.
        """
        nu, quarter = self.nu, z * z / 4
        if nu <= 4:
            return np.where(z < 1, 1.0, 0.0)
        series = 1 - quarter / (nu - 1) * (1 - quarter / (2 * (nu - 2)) * (1 - quarter / (3 * (nu - 3))))
        return np.where(z < 1, series, 0.0)

    def diag(self, X: Array) -> Array:
        return ones(X)

    def gain_rate(self, rounds: int, dimension: int) -> float:
        """t^(d (d+1) / (2 nu + d (d+1))) ln t."""
        power = dimension * (dimension + 1)
        return float(rounds ** (power / (2 * self.nu + power))) * math.log(max(rounds, 1))


@dataclass(frozen=True)
class RationalQuadratic(Kernel):
    """k(x, y) = (1 + r^2 / (2 alpha))^-alpha, r in units of ``lengthscale``."""

    alpha: float
    lengthscale: Lengthscale

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _positive("lengthscale", self.lengthscale))
        object.__setattr__(self, "alpha", _positive("alpha", self.alpha))

    def __call__(self, X: Array, Y: Array) -> Array:
        squared = distance(X, Y, self.lengthscale, "sqeuclidean")
        return (1 + squared / (2 * self.alpha)) ** -self.alpha

    def diag(self, X: Array) -> Array:
        return ones(X)


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, y) = x'y + ``offset``. Theorems that assume k(x, x) <= 1 need arms in the unit ball."""

    offset: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.offset < math.inf:
            raise ValueError(f"offset must be finite and at least 0, got {self.offset}")

    def __call__(self, X: Array, Y: Array) -> Array:
        return beside(Y, X) @ Y.T + self.offset

    def diag(self, X: Array) -> Array:
        return (X * X).sum(axis=1) + self.offset

    def gain_rate(self, rounds: int, dimension: int) -> float:
        """D ln t."""
        return dimension * math.log(max(rounds, 1))


@dataclass(frozen=True, eq=False)
class Tabular(Kernel):
    """Given kernel matrix; points are indices into it, as an (n, 1) column.

    >>> k = Tabular([[1.0, 0.5], [0.5, 1.0]])
    >>> k(k.arms, k.arms[:1])
    array([[1. ],
           [0.5]])
    """

    matrix: Floats = field(repr=False)

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise ValueError(f"matrix must be square, got shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise ValueError("matrix must be finite: fill or drop the rows with nan or inf")
        scale = np.abs(matrix).max()
        if np.abs(matrix - matrix.T).max() > 1e-10 * scale:
            raise ValueError("matrix must be symmetric: pass (M + M.T) / 2 if the difference is meant to be none")
        try:
            sp.cholesky(matrix + 1e-8 * scale * np.eye(len(matrix)), lower=True)
        except LinAlgError:
            raise ValueError("matrix must be positive semi-definite: it has a negative eigenvalue") from None
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    def __repr__(self) -> str:
        return f"Tabular(<{len(self.matrix)} x {len(self.matrix)} matrix>)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tabular) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())

    @property
    def arms(self) -> Floats:
        """All points of the kernel, (n, 1)."""
        return np.arange(float(len(self.matrix)))[:, None]

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return np.asarray(self.matrix[np.ix_(self._index(X), self._index(Y))])

    def diag(self, X: Floats) -> Floats:
        i = self._index(X)
        return np.asarray(self.matrix[i, i])

    def _index(self, points: Floats) -> np.ndarray[Any, np.dtype[np.intp]]:
        _refuse_tensor(self, points)
        column = np.asarray(points).reshape(-1)
        index = column.astype(np.intp)
        if len(column) != len(points) or (index != column).any():
            raise ValueError("points of a Tabular kernel are one column of whole numbers: pass kernel.arms as arms")
        if index.size and not (index.min() >= 0 and index.max() < len(self.matrix)):
            raise ValueError(f"points of this Tabular kernel must be in 0..{len(self.matrix) - 1}")
        return index


@dataclass(frozen=True)
class Sum(Kernel):
    """k(x, y) = left(x, y) + right(x, y)."""

    left: Kernel
    right: Kernel

    def __call__(self, X: Array, Y: Array) -> Array:
        return in_pieces(lambda X, Y: self.left(X, Y) + self.right(X, Y), X, Y)

    def diag(self, X: Floats) -> Floats:
        return self.left.diag(X) + self.right.diag(X)


@dataclass(frozen=True)
class Product(Kernel):
    """k(x, y) = left(x, y) right(x, y)."""

    left: Kernel
    right: Kernel

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return self.left(X, Y) * self.right(X, Y)

    def diag(self, X: Floats) -> Floats:
        return self.left.diag(X) * self.right.diag(X)


@dataclass(frozen=True)
class Scaling(Kernel):
    """k(x, y) = factor * kernel(x, y)."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        _positive("factor of a kernel", self.factor)

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return self.factor * self.kernel(X, Y)

    def diag(self, X: Floats) -> Floats:
        return self.factor * self.kernel.diag(X)

    def gain_rate(self, rounds: int, dimension: int) -> float:
        """Rate of the kernel without the factor."""
        return self.kernel.gain_rate(rounds, dimension)


@dataclass(frozen=True)
class Columns(Kernel):
    """k(x, y) = kernel(x', y'), where x' and y' are some of the columns of x and y.

    >>> Columns(SquaredExponential(0.5), (1,))(np.array([[7.0, 0.0]]), np.array([[8.0, 0.5]])).round(4)
    array([[0.6065]])
    """

    kernel: Kernel
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        object.__setattr__(self, "columns", tuple(int(column) for column in self.columns))
        if not self.columns or min(self.columns) < 0:
            raise ValueError(f"columns must be at least one number from 0, got {self.columns}")

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        first, second = self._of(X), self._of(Y)
        if len(Y) > 1 and not is_tensor(Y) and (second == second[:1]).all():  # as with one context for all candidates
            return np.repeat(self.kernel(first, second[:1]), len(Y), axis=1)
        return self.kernel(first, second)

    def diag(self, X: Floats) -> Floats:
        return self.kernel.diag(self._of(X))

    def _of(self, points: Array) -> Array:
        if max(self.columns) >= points.shape[1]:
            raise ValueError(f"points must have a column {max(self.columns)}, got {points.shape[1]} columns from 0")
        return points[:, list(self.columns)]


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """Any callable (n, d), (m, d) -> (n, m) as a kernel; its own ``diag`` is used if it has one."""

    function: Callable[[Floats, Floats], Floats]

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        _refuse_tensor(self.function, Y)
        return np.asarray(self.function(X, Y), dtype=float)

    def diag(self, X: Floats) -> Floats:
        _refuse_tensor(self.function, X)
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(X), dtype=float)
        values = [self(x[None], x[None]) for x in X]
        if any(value.shape != (1, 1) for value in values):
            raise ValueError(
                f"{self.function} must take (n, d) and (m, d) points and give an (n, m) array, got shape "
                f"{values[0].shape} for two single points"
            )
        return np.array([value[0, 0] for value in values])


def as_kernel(kernel: KernelLike) -> Kernel:
    """Convert any callable (n, d), (m, d) -> (n, m) to a kernel, including scikit-learn's kernel objects."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) or not callable(kernel):
        raise ValueError(f"kernel must be a kernel object or a function (n, d), (m, d) -> (n, m), got {kernel!r}")
    return FunctionKernel(kernel)


def _refuse_tensor(kernel: Any, points: Any, advice: str = "") -> None:
    """Raise ValueError if the points are a tensor, which this kernel does not support."""
    if is_tensor(points):
        raise ValueError(f"{kernel} works on NumPy arms only, got a tensor: {advice}pass arms.cpu().numpy()")


def _positive(name: str, value: Any) -> Any:
    """Check that all values are positive and finite, and return them as a float or a tuple of floats."""
    array = np.asarray(value, dtype=float)
    if array.ndim > 1 or not (np.isfinite(array).all() and (array > 0).all()) or array.size == 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return float(array) if array.ndim == 0 else tuple(float(v) for v in array)


Lengthscale = float | tuple[float, ...]
Metric = Literal["euclidean", "sqeuclidean"]

PIECE = 65_536
"""Numbers of a kernel matrix that are computed at once. A piece that fits into the processor's cache is two to three
times as fast: a large matrix would be written to memory and read again at each step of a formula."""


def in_pieces(kernel: Callable[[Array, Array], Array], X: Array, Y: Array) -> Array:
    """kernel(X, Y), (n, d), (m, d) -> (n, m); a large NumPy matrix is computed some rows at a time, see `PIECE`.

    If X and Y are equal, only half of the symmetric matrix is computed.
    """
    rows = max(PIECE // max(len(Y), 1), 1)
    if len(X) <= rows or is_tensor(Y):
        return kernel(X, Y)
    matrix = np.empty((len(X), len(Y)))
    if np.array_equal(X, Y):
        rows = max(rows // 2, 1)  # smaller pieces skip more of the other half
        for start in range(0, len(X), rows):
            stop = start + rows
            matrix[start:stop, start:] = kernel(X[start:stop], Y[start:])
            matrix[stop:, start:stop] = matrix[start:stop, stop:].T
        return matrix
    for start in range(0, len(X), rows):
        matrix[start : start + rows] = kernel(X[start : start + rows], Y)
    return matrix


def distance(X: Floats, Y: Floats, lengthscale: Lengthscale, metric: Metric) -> Array:
    """Distances (or squared ones) in units of the lengthscale, from differences: exactly 0 for equal points."""
    if isinstance(lengthscale, tuple) and Y.shape[1] != len(lengthscale):
        raise ValueError(f"points have {Y.shape[1]} dimensions but the kernel has {len(lengthscale)} lengthscales")
    if is_tensor(Y):
        squared = _squared_distance(X, Y, lengthscale)
        return squared if metric == "sqeuclidean" else squared.sqrt_()
    if isinstance(lengthscale, tuple):
        scale = np.array(lengthscale)
        return _apart(X / scale, Y / scale, metric)
    apart = _apart(X, Y, metric)
    apart /= lengthscale**2 if metric == "sqeuclidean" else lengthscale
    return apart


def _apart(X: Floats, Y: Floats, metric: Metric) -> Floats:
    """Distances (or squared ones), (n, d), (m, d) -> (n, m); in one dimension faster than cdist, and bitwise equal."""
    if X.shape[1] != 1 or Y.shape[1] != 1:
        return np.asarray(sp.cdist(X, Y, metric))
    gap = np.asarray(X - Y.T, dtype=float)
    return np.asarray(np.abs(gap, out=gap) if metric == "euclidean" else np.multiply(gap, gap, out=gap))


def _squared_distance(X: Array, Y: Array, lengthscale: Lengthscale) -> Array:
    """Squared distances on the device of Y, (n, d), (m, d) -> (n, m), one dimension at a time."""
    squared: Array = None
    for axis, (x, y) in enumerate(zip(beside(Y, X).T, Y.T, strict=True)):
        gap = x[:, None] - y
        if isinstance(lengthscale, tuple):
            gap /= lengthscale[axis]
        squared = gap * gap if squared is None else squared.addcmul_(gap, gap)
    return squared if isinstance(lengthscale, tuple) else squared.div_(lengthscale**2)
