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

Nystrom features compute the kernel columns of an arm once, when it first enters the dictionary. With a Cholesky root,
an arm that enters appends one feature, at O(m N); when arms leave, the features of all arms are recomputed, at
O(m^2 N). With a symmetric root they are recomputed whenever the dictionary changes.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Literal, Protocol, Self, get_args

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dpstrf
from scipy.special import roots_hermite

from noregret.bandits.belief.draws import PriorDraws, spectral_frequencies
from noregret.bandits.belief.factor import KernelColumns
from noregret.gp.arrays import (
    Array,
    at_least,
    beside,
    column_squares,
    empty_rows,
    is_tensor,
    namespace,
    numpy_of,
    slabs,
    zeros_like,
)
from noregret.gp.kernels import Kernel, KernelLike, Matern, RationalQuadratic, SquaredExponential, as_kernel
from noregret.gp.linalg import enlarged, pivoted_root, solve_lower
from noregret.gp.posterior import Floats, Ints, Rng, set_fields
from noregret.gp.threads import threads_for

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


# Fourier features

MOST_FEATURES = 20_000
"""Largest number of Fourier features: the state of the belief has their number squared."""

MOST_ON_HOST = 100_000_000
"""Numbers of a table on a device that is copied to the host to find its span; larger tables get no basis."""

SPAN_ROUNDING = 1e-13
"""Share of the largest value below which a value is treated as a rounding error."""


@dataclass(frozen=True)
class QuadratureFourier:
    """Fourier features of the SE kernel on the unit cube by Gauss-Hermite quadrature (heavy-tails paper, eq. 1).

    With nodes z and weights w of ``order`` points per axis, k(x, y) is close to the sum over the grid of the
    w cos(sqrt(2) z'(x - y) / lengthscale). Each frequency gives a cosine and a sine.

    Parameters
    ----------
    kernel : SquaredExponential
    order : int
        Nodes per axis. For an error near 1e-10: 16 at lengthscale 0.5, 32 at 0.2, 64 at 0.1.
    folded : bool
        Join z and -z, which are equivalent, into one frequency of twice the weight: order^d features instead of
        2 order^d, with the same mean and variance under least squares. The paper does not fold; truncation per
        direction on folded features equals truncation on the paper's with the level times sqrt(2).
    tolerance : float
        Largest accepted error along one axis.

    Examples
    --------
    >>> from noregret import QuadratureFourier, SquaredExponential
    >>> QuadratureFourier(SquaredExponential(0.2), order=16)
    Traceback (most recent call last):
    ...
    ValueError: order 16 is too small for lengthscale 0.2: it misses the kernel by 0.0042; order 24 would do
    """

    kernel: SquaredExponential
    order: int
    folded: bool = True
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SquaredExponential):
            raise ValueError(
                f"QuadratureFourier needs a SquaredExponential kernel, got {self.kernel!r}: take Nystrom features"
            )
        if self.order != int(self.order) or self.order < 1:
            raise ValueError(f"order must be a whole number from 1, got {self.order}")
        shortest = float(np.min(self.kernel.lengthscale))
        error = quadrature_error(shortest, self.order)
        if error > self.tolerance:
            raise ValueError(
                f"order {self.order} is too small for lengthscale {shortest:g}: it misses the kernel by {error:.2g}; "
                f"order {sufficient_order(shortest, self.tolerance)} would do"
            )

    def on(self, arms: Floats, ridge: float, rng: Rng) -> FourierMap:
        """Features of these arms, which must lie in the unit cube."""
        dimension = arms.shape[1]
        _check_size((1 if self.folded else 2) * self.order**dimension, "lower the order or take Nystrom features")
        nodes, weights = (_grid(axis, dimension) for axis in _axis(self.order))
        weights = weights.prod(axis=1)
        if self.folded:  # the grid is symmetric: its j-th point from the end is minus the j-th from the start
            half = len(nodes) // 2
            nodes, weights = nodes[half:], 2 * weights[half:]
            weights[: len(nodes) - half] /= 2  # the zero node of an odd order is its own mirror image
        return FourierMap(arms, math.sqrt(2) / np.asarray(self.kernel.lengthscale) * nodes, weights, in_cube=True)


@dataclass(frozen=True)
class RandomFourier:
    """Cosines and sines at ``count`` frequencies drawn from the kernel's spectral density (2 ``count`` features).

    Rahimi and Recht (2007). For comparison only: the error falls as 1 / sqrt(count), which is too slow for the
    theorems, and the variance is too small away from the data.
    """

    kernel: SquaredExponential | Matern | RationalQuadratic
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SquaredExponential | Matern | RationalQuadratic):
            raise ValueError(
                "RandomFourier needs a SquaredExponential, Matern or RationalQuadratic kernel, "
                f"got {self.kernel!r}: take Nystrom features"
            )
        if self.count != int(self.count) or self.count < 1:
            raise ValueError(f"count must be a whole number from 1, got {self.count}")
        _check_size(2 * self.count, "lower the count")

    def on(self, arms: Floats, ridge: float, rng: Rng) -> FourierMap:
        """Features of these arms, at newly drawn frequencies."""
        frequencies = spectral_frequencies(self.kernel, self.count, arms.shape[1], rng)
        return FourierMap(arms, frequencies, np.full(self.count, 1 / self.count))


class FourierMap:
    """sqrt(w) cos(frequency'x) and sqrt(w) sin(frequency'x) for every frequency, (F, d), and weight w, (F,)."""

    def __init__(self, arms: Floats, frequencies: Floats, weights: Floats, in_cube: bool = False) -> None:
        self._frequencies, self._weights, self._in_cube = frequencies, weights, in_cube
        self.span: Floats | None = None
        self.table, self.unexplained = self.at(arms)
        if not is_tensor(arms) or math.prod(self.table.shape) <= MOST_ON_HOST:
            self.span = _basis(numpy_of(self.table))
        if self.span is not None:
            self.table, unexplained = self.at(arms)
            self.unexplained = zeros_like(unexplained)  # up to rounding

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        if self._in_cube and (points.min() < -1e-9 or points.max() > 1 + 1e-9):
            raise ValueError(
                f"points must lie in the unit cube for QuadratureFourier, got values from {points.min():g} to "
                f"{points.max():g}: scale every column of the arms to [0, 1]"
            )
        table = self._table(points)
        if self.span is None:
            return table, 0.0 * points[:, 0]
        inside = beside(table, self.span.T) @ table
        return inside, at_least(column_squares(table) - column_squares(inside), 0.0)

    def _table(self, points: Array) -> Array:
        """Features in the unit vectors, (m, n)."""
        moving = np.flatnonzero(self._frequencies.any(axis=1))  # the sine of frequency 0 is 0
        cosines, sines = len(self._weights), len(moving)
        sizes, xp = np.sqrt(self._weights)[:, None], namespace(points)
        table = empty_rows(points[:, 0], cosines + sines)
        for slab in slabs(points[:, 0], len(table)):
            angles = beside(points, self._frequencies) @ points[slab].T
            table[:cosines, slab] = beside(points, sizes) * xp.cos(angles)
            table[cosines:, slab] = beside(points, sizes[moving]) * xp.sin(angles[beside(points, moving)])
        return table

    def redraw(self, pulled: Ints, precision: Floats, variance: Floats, last: int) -> int:
        return len(self.table)

    def unexplained_covariance(self, first: Ints, second: Ints, left: Floats, right: Floats) -> Floats:
        return np.zeros((len(first), len(second)))

    def unexplained_draw(self, rng: Rng) -> Array:
        return self.unexplained

    def move(self, arms: Floats, index: Ints) -> Self:
        return type(self)(arms, self._frequencies, self._weights, self._in_cube)

    def copy(self) -> Self:
        return self  # never changes


def _basis(table: Floats) -> Floats | None:
    """Orthonormal basis, (m, r), of the columns of an (m, N) table; None if r is not well below m."""
    vectors, upper, _ = qr(table, mode="economic", pivoting=True)
    size = np.abs(upper.diagonal())
    rank = np.count_nonzero(size > SPAN_ROUNDING * size.max())
    return np.ascontiguousarray(vectors[:, :rank]) if rank < LOW_RANK * len(table) else None


def quadrature_error(lengthscale: float, order: int) -> float:
    """Largest error of the quadrature along one axis of the unit cube, |k - phi'phi| over distances in [0, 1]."""
    nodes, weights = _axis(order)
    distance = np.linspace(0, 1, 513) / lengthscale
    return float(np.abs(np.exp(-0.5 * distance**2) - np.cos(np.outer(distance, math.sqrt(2) * nodes)) @ weights).max())


def sufficient_order(lengthscale: float, tolerance: float = 1e-6) -> int:
    """Smallest order whose `quadrature_error` is within the tolerance."""
    most = 8
    while quadrature_error(lengthscale, most) > tolerance:
        most *= 2
        if most > MOST_FEATURES:
            raise ValueError(f"lengthscale {lengthscale:g} is too short for Fourier features: take Nystrom features")
    least = most // 2 if most > 8 else 1
    while least < most:
        middle = (least + most) // 2
        least, most = (middle + 1, most) if quadrature_error(lengthscale, middle) > tolerance else (least, middle)
    return most


def _axis(order: int) -> tuple[Floats, Floats]:
    """Gauss-Hermite nodes and weights, the weights 2^(n-1) n! / (n H_(n-1)(z))^2 of sum 1."""
    nodes, weights = roots_hermite(int(order))
    return (nodes - nodes[::-1]) / 2, weights / weights.sum()


def _grid(axis: Floats, dimension: int) -> Floats:
    """All combinations of an axis with itself, (n^d, d); a reversed axis gives the reversed order."""
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def _check_size(features: int, advice: str) -> None:
    if features > MOST_FEATURES:
        raise ValueError(f"there can be at most {MOST_FEATURES} features, got {features}: {advice}")


# Nystrom features

Counting = Literal["each", "sum", "once"]
Root = Literal["symmetric", "cholesky"]
Variance = Literal["full", "subset-of-regressors"]
Coins = Literal["fresh", "kept", "greedy"]

NEGLIGIBLE = 1e-8
"""Share of the ridge: an arm with less unexplained variance adds no feature to a Cholesky root."""

ROUNDING = 1e-12
"""Share of the largest variance below which a value is treated as a rounding error."""

LINGER = 0.125
"""With kept coins, members that should leave stay until they are more than this share of the dictionary."""


@dataclass(frozen=True)
class Nystrom:
    """phi(x) = K_S^-1/2 k_S(x), S a dictionary of pulled arms, redrawn after every round by their ridge leverage.

    An arm of variance s^2 before the round is drawn with probability p = min(1, q s^2 / ridge) at each of its pulls,
    q the ``oversampling`` (BKB paper, Alg. 1; heavy-tails paper, Sec. 5 (b), which prints q s^2). If no arm is drawn, S
    holds the arm pulled last. A block of rewards in one update is one round.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    oversampling : float
        q. The theorems' q keeps every arm on problems of usual size; 5 to 10 gives a sketch; infinity keeps every arm,
        and the belief equals that of `ExactGP`.
    counting : {"each", "sum", "once"}
        An arm pulled n times is kept with probability 1 - (1 - p)^n, or min(1, n p), or p.
    root : {"symmetric", "cholesky"}
        K_S^-1/2 by eigenvalues, without those below their rounding error (m is the size of S), or the inverse of a
        pivoted Cholesky root (m is the rank of K_S). Mean and variance are the same under least squares, and the second
        takes a fraction of the time. Truncation per direction depends on the basis, and uses the first.
    variance : {"full", "subset-of-regressors"}
        k(x, x) - phi'phi + ridge phi' V^-1 phi, or its last term alone, which is too small away from S (for
        comparison).
    coins : {"fresh", "kept", "greedy"}
        An arm is kept if its coin, a uniform number, is below its probability. Coins are drawn in every round, as in
        the paper, or once, at the first pull of the arm. Probabilities change slowly, so kept coins change S by few
        arms per round, which makes a round several times cheaper with a Cholesky root. Arms that should leave then do
        so together, when they are an eighth of S; an S with more arms is not less accurate. The paper's theorem is
        proved for fresh coins.
        "greedy" draws no coins, and drops no arms: while the unexplained variance k(x, x) - phi'phi, summed over the
        pulls, is above ridge / q, the arm with the largest share of this sum enters. It needs a Cholesky root and the
        full variance. A share of 1e-8 of the ridge per pull is negligible and may stay.
    horizon : int, optional
        Number of redraws for which q is large enough. Beyond it q is raised by ``rise``, beyond twice the horizon
        again, and so on at every doubling.
    rise : float
        What q is raised by.
    """

    kernel: Kernel
    oversampling: float
    counting: Counting = "each"
    root: Root = "symmetric"
    variance: Variance = "full"
    coins: Coins = "fresh"
    horizon: int | None = None
    rise: float = 0.0

    def __init__(
        self,
        kernel: KernelLike,
        oversampling: float,
        counting: Counting = "each",
        root: Root = "symmetric",
        variance: Variance = "full",
        coins: Coins = "fresh",
        horizon: int | None = None,
        rise: float = 0.0,
    ) -> None:
        if not oversampling > 0:
            raise ValueError(f"oversampling must be positive, got {oversampling}")
        if horizon is not None and horizon < 1:
            raise ValueError(f"horizon must be a whole number from 1, got {horizon}")
        if not rise >= 0:
            raise ValueError(f"rise must be at least 0, got {rise}")
        given = {"counting": counting, "root": root, "variance": variance, "coins": coins}
        for (name, value), options in zip(given.items(), (Counting, Root, Variance, Coins), strict=True):
            if value not in get_args(options):
                raise ValueError(f"{name} must be one of {', '.join(get_args(options))}, got {value!r}")
        if coins == "greedy" and (root, variance) != ("cholesky", "full"):
            raise ValueError(f"coins='greedy' needs root='cholesky' and variance='full', got {root!r} and {variance!r}")
        q, rise = float(oversampling), float(rise)
        set_fields(self, kernel=as_kernel(kernel), oversampling=q, horizon=horizon, rise=rise, **given)

    def oversampling_at(self, redraw: int) -> float:
        """Q at a redraw, counted from 1."""
        if self.horizon is None or redraw <= self.horizon:
            return self.oversampling
        return self.oversampling + self.rise * math.ceil(math.log2(redraw / self.horizon))

    def on(self, arms: Floats, ridge: float, rng: Rng) -> NystromMap:
        """Make a map without features: the dictionary is empty before the first pull."""
        if is_tensor(arms):
            raise ValueError("Nystrom features need NumPy arms, got a tensor: pass arms.cpu().numpy(), or use ExactGP")
        return NystromMap(self, arms, ridge, rng)


class NystromMap:
    """Features of `Nystrom` with the current dictionary."""

    def __init__(self, features: Nystrom, arms: Floats, ridge: float, rng: Rng) -> None:
        self.members = np.empty(0, np.intp)  # the dictionary S, as arms
        self._features, self._arms, self._ridge, self.rng = features, arms, ridge, rng
        self._prior = PriorDraws(features.kernel, arms)
        self._redraws = 0  # so far
        self._basis: Ints = self.members  # the members that the features are made of
        self._coins = np.empty(0)  # of the arms pulled, in the order of first pulls, if coins are kept
        self._root = np.empty((0, 0))  # of K(basis, basis): the Cholesky root, or the inverse of the symmetric one
        self.span: Floats | None = None
        self._columns = KernelColumns(features.kernel, arms)
        self.table = self._room = np.empty((0, len(arms)))  # the table is the first rows of the room
        self.unexplained = self._not_carried(self._columns.variance, self.table)

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        kernel = self._features.kernel
        columns = kernel(self._arms[self._basis], points) if self.members.size else np.empty((0, len(points)))
        table = self._whiten(columns, self._root)
        return table, self._not_carried(kernel.diag(points), table)

    def redraw(self, pulled: Ints, precision: Floats, variance: Floats, last: int) -> int:
        if self._features.coins == "greedy":
            return self._fill(pulled, precision)
        state, kept = self.rng.bit_generator.state, self._features.coins == "kept"
        coins = self._coins[: pulled.size]
        coins = np.concatenate([coins, self.rng.random(pulled.size - coins.size)])
        self._redraws += 1
        drawn = pulled[coins < self._chance(precision, variance)]
        try:
            unchanged = self._replace_members(drawn if drawn.size else np.array([last], np.intp))
        except BaseException:
            self.rng.bit_generator.state = state
            self._redraws -= 1
            raise
        self._coins = coins if kept else self._coins
        return unchanged

    def _fill(self, pulled: Ints, precision: Floats) -> int:
        """Add arms until the unexplained variance of the pulls is small; return the number of unchanged features."""
        saved, before, most = vars(self).copy(), len(self.table), self._ridge / self._features.oversampling
        try:
            while (shares := precision * self.unexplained[pulled]).sum() > most:
                arm = pulled[[shares.argmax()]]
                if self.unexplained[arm] <= 2 * self._negligible:
                    break
                self._append(arm)
        except BaseException:
            vars(self).update(saved)
            raise
        return before

    def _replace_members(self, drawn: Ints) -> int:
        """Replace the dictionary by these arms at the least cost; return the number of unchanged features."""
        is_member = np.zeros(len(self._arms), bool)
        is_member[self.members] = True
        new = drawn[~is_member[drawn]]
        leaving, features = self.members.size + new.size - drawn.size, self._features
        linger = leaving <= (LINGER * self.members.size if features.coins == "kept" else 0)
        if linger and not new.size:
            return len(self.table)
        if linger and features.root == "cholesky":
            return self._append(new)
        self._embed(drawn)
        return 0

    def unexplained_covariance(self, first: Ints, second: Ints, left: Floats, right: Floats) -> Floats:
        if self._features.variance != "full":
            return np.zeros((len(first), len(second)))
        return np.asarray(self._features.kernel(self._arms[first], self._arms[second]) - left.T @ right)

    def unexplained_draw(self, rng: Rng) -> Floats:
        """Draw g - phi'(K_S^-1/2 g_S) for a prior draw g, which has covariance k - phi'phi."""
        if self._features.variance != "full":
            return self.unexplained
        draw: Floats = self._prior.draw(rng)
        if not self.members.size:
            return draw
        return np.asarray(draw - self._whiten(draw[self._basis][:, None], self._root)[:, 0] @ self.table)

    def move(self, arms: Floats, index: Ints) -> Self:
        other = type(self)(self._features, arms, self._ridge, self.rng)
        if self.members.size:
            other._embed(index[self.members])
        other._coins, other._redraws = self._coins, self._redraws
        return other

    def extended(self, arms: Floats) -> Self:
        """Return the same features on arms that begin with the present ones, at O(m^2) per new arm."""
        other, (table, unexplained) = copy.copy(self), self.at(arms[len(self._arms) :])
        other._arms, other._columns = arms, self._columns.extended(arms)
        other._prior = PriorDraws(self._features.kernel, arms)
        other.table = other._room = np.hstack([self.table, table])
        other.unexplained = np.concatenate([self.unexplained, unexplained])
        return other

    def copy(self) -> Self:
        twin = copy.copy(self)
        twin.rng, twin._columns = copy.deepcopy(self.rng), self._columns.copy()
        twin._room = self.table  # full, so the twin appends to its own array
        return twin

    def _chance(self, precision: Floats, variance: Floats) -> Floats:
        """Probability that each pulled arm is kept, (u,)."""
        tiny = np.finfo(float).tiny  # an infinite oversampling keeps arms of variance 0 too
        q = self._features.oversampling_at(self._redraws)
        p = np.minimum(1.0, q * np.maximum(variance, tiny) / self._ridge)
        match self._features.counting:
            case "each":
                return np.asarray(1 - (1 - p) ** precision)
            case "sum":
                return np.minimum(1.0, precision * p)
        return p

    def _embed(self, members: Ints) -> None:
        """Replace the dictionary by these arms, and recompute features and unexplained variance of all arms."""
        with threads_for(members.size**2 * len(self._arms)):
            corner, span = self._columns.among(members), None
            if self._features.root == "symmetric":
                kept, (root, span) = np.arange(len(corner)), _symmetric_inverse_root(corner)
            else:
                kept, root = self._pivoted(corner)
            table = self._whiten(self._columns.copies_of(members[kept]), root)
            unexplained = self._not_carried(self._columns.variance, table)
        self.members, self._basis, self._root = members, members[kept], root
        self.span, self.table, self.unexplained, self._room = span, table, unexplained, table

    def _append(self, new: Ints) -> int:
        """Add these arms to the dictionary, at O(m N) per new feature; return the number of unchanged features."""
        before, count = len(self.table), len(self._arms)
        with threads_for(new.size * before * count):
            carried = self.table[:, new]
            kept, corner = self._pivoted(self._columns.among(new) - carried.T @ carried)
            border, basis = carried[:, kept].T, new[kept]
            rows = solve_lower(corner, self._columns.copies_of(basis) - border @ self.table)
            unexplained = self._not_carried(self.unexplained, rows)
        self._room = enlarged(self._room, before + len(rows))
        self._room[before : before + len(rows)] = rows
        self._root = np.block([[self._root, np.zeros((before, len(rows)))], [border, corner]])
        self.table = self._room[: before + len(rows)]
        self.members, self._basis = np.append(self.members, new), np.append(self._basis, basis)
        self.unexplained = unexplained
        return before

    def _whiten(self, columns: Floats, root: Floats) -> Floats:
        """K_S^-1/2 times kernel columns, (m, n) -> (r, n); these may be overwritten."""
        return root @ columns if self._features.root == "symmetric" else solve_lower(root, columns)

    def _pivoted(self, corner: Floats) -> tuple[Ints, Floats]:
        """Pivots and pivoted Cholesky root of a covariance, cut off where the rest is negligible."""
        factor, pivots, rank, _ = dpstrf(corner, tol=self._negligible, lower=1)
        return pivots[:rank] - 1, np.ascontiguousarray(np.tril(factor)[:rank, :rank])

    @property
    def _negligible(self) -> float:
        """Unexplained variance of an arm that adds no feature."""
        return max(NEGLIGIBLE * self._ridge, ROUNDING * float(self._columns.variance.max()))

    def _not_carried(self, prior: Floats, table: Floats) -> Floats:
        """k(x, x) - phi'phi, (n,); 0 for the subset of regressors."""
        if self._features.variance != "full":
            return np.zeros(len(prior))
        return np.asarray(np.maximum(prior - column_squares(table), 0.0))


def _symmetric_inverse_root(corner: Floats) -> tuple[Floats, Floats]:
    """Symmetric pseudo-inverse root of K_S = Q D Q' in the basis Q, D^-1/2 Q'; and Q."""
    root = pivoted_root(corner)
    if root.shape[1] < LOW_RANK * len(corner):  # K_S = R R' with few columns: eigenvalues of a small matrix suffice
        frame, upper = np.linalg.qr(root)
        values, vectors = np.linalg.eigh(upper @ upper.T)
        vectors = frame @ vectors
    else:
        values, vectors = np.linalg.eigh(corner)
    kept = values > values.max(initial=0.0) * len(corner) * np.finfo(float).eps
    vectors = vectors[:, kept]
    return (vectors / np.sqrt(values[kept])).T, vectors
