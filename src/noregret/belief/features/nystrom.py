"""Nystrom features: any kernel, projected on a dictionary of the pulled arms.

Kernel columns are computed once per arm, when it first enters the dictionary. With a Cholesky root, an arm that enters
appends one feature, at O(m N); when arms leave, the features of all arms are recomputed, at O(m^2 N). With a symmetric
root they are recomputed whenever the dictionary changes.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
from scipy.linalg.lapack import dpstrf

from noregret.belief.arrays import column_squares, is_tensor
from noregret.belief.features import LOW_RANK
from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.numerics.columns import KernelColumns
from noregret.belief.numerics.draws import PriorDraws
from noregret.belief.numerics.linalg import enlarged, pivoted_root, solve_lower
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Ints, Rng, set_fields

Counting = Literal["each", "sum", "once"]
Root = Literal["symmetric", "cholesky"]
Variance = Literal["full", "subset-of-regressors"]
Coins = Literal["fresh", "kept"]

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
    coins : {"fresh", "kept"}
        An arm is kept if its coin, a uniform number, is below its probability. Coins are drawn in every round, as in
        the paper, or once, at the first pull of the arm. Probabilities change slowly, so kept coins change S by few
        arms per round, which makes a round several times cheaper with a Cholesky root. Arms that should leave then do
        so together, when they are an eighth of S; an S with more arms is not less accurate. The theorem is proved for
        fresh coins.
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
        least = max(NEGLIGIBLE * self._ridge, ROUNDING * float(self._columns.variance.max()))
        factor, pivots, rank, _ = dpstrf(corner, tol=least, lower=1)
        return pivots[:rank] - 1, np.ascontiguousarray(np.tril(factor)[:rank, :rank])

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
