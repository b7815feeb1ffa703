"""Problems that change: with a context that is shown before every round, or over time without being shown.

Functions are drawn from the kernel, on evenly spaced arms of [0, 1]; the true means of every round are known, so regret
is against the best arm of the round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from noregret.belief.kernels import Columns, Kernel, SquaredExponential, as_kernel
from noregret.belief.posterior import Floats, Rng
from noregret.problems.problem import Problem, Seed, facts_of, frozen
from noregret.problems.rewards import Gaussian, Payoff

_SE = SquaredExponential(0.2)
_PRODUCT = Columns(_SE, (0,)) * Columns(_SE, (1,))
_NOISE = Gaussian(0.1)


@dataclass(frozen=True, eq=False)
class Changing:
    """N arms whose means change from round to round; after T rounds they repeat.

    Parameters
    ----------
    name : str
    arms : (N, d) floats
    means : (T, N) floats
        Expected reward of every arm in every round.
    kernel : Kernel
        The kernel for algorithms to use; with contexts, a kernel on rows (context, arm).
    payoff : Payoff
        Draws the rewards.
    norm : float, optional
        B, a bound on the RKHS norm of the function of every round, if known.
    contexts : (T, c) floats, optional
        The context shown before every round: the arms of a round are then rows (context, arm), (N, c + d).

    Examples
    --------
    >>> problem = Changing("a swap", [[0.0], [1.0]], [[0.2, 0.7], [0.7, 0.2]], _SE, Gaussian(0.0))
    >>> problem.at(0).means, problem.at(3).means
    (array([0.2, 0.7]), array([0.7, 0.2]))
    """

    name: str
    arms: Floats = field(repr=False)
    means: Floats = field(repr=False)
    kernel: Kernel
    payoff: Payoff
    norm: float | None = None
    contexts: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", frozen("arms", self.arms, "(N, d)"))
        object.__setattr__(self, "means", frozen("means", self.means, "(T, N)"))
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        if self.means.shape[1] != len(self.arms) or not self.means.size:
            raise ValueError(f"one mean per arm is needed, got {len(self.arms)} arms and {self.means.shape[1]} means")
        if self.contexts is not None:
            object.__setattr__(self, "contexts", frozen("contexts", self.contexts, "(T, c)"))
            if len(self.contexts) != len(self.means):
                raise ValueError(f"one context per round is needed, got {len(self.contexts)} for {len(self.means)}")
        self.at(0)  # the checks of Problem

    def at(self, round: int) -> Problem:
        """The problem in a round, counted from 0."""
        place, arms = round % len(self.means), self.arms
        if self.contexts is not None:
            arms = np.hstack([np.tile(self.contexts[place], (len(arms), 1)), arms])
        return Problem(self.name, arms, self.means[place], self.kernel, self.payoff, self.norm)

    @property
    def facts(self) -> dict[str, float]:
        """Known constants that hold in all rounds, by the keywords of the algorithms (see `Problem`)."""
        return facts_of(self.payoff, self.means.ravel(), self.norm)


def contextual(
    kernel: Kernel = _PRODUCT, *, points: int = 50, rounds: int = 1000, payoff: Payoff = _NOISE, rng: Seed = None
) -> Changing:
    """A smooth function of context and arm, the context uniform on [0, 1] in every round.

    The kernel is on rows (context, arm). f interpolates a draw at 60 random rows C: f(x) = k(x, C) K(C, C)^-1 draw, so
    its norm and the best arm of every context are known.
    """
    generator, arms = np.random.default_rng(rng), _line(points)
    centres = generator.random((60, 2))
    root = _root(kernel(centres, centres))
    normal, contexts = generator.standard_normal(root.shape[1]), generator.random((rounds, 1))
    weights = _weights(root) @ normal
    rows = np.column_stack([np.repeat(contexts[:, 0], points), np.tile(arms[:, 0], rounds)])
    means = np.concatenate([kernel(part, centres) @ weights for part in np.array_split(rows, rounds)])
    norm = float(np.linalg.norm(normal))
    return Changing("contextual", arms, means.reshape(rounds, points), kernel, payoff, norm, contexts)


def motion(
    kernel: Kernel = _SE,
    *,
    distance: float = 1.0,
    points: int = 50,
    rounds: int = 1000,
    payoff: Payoff = _NOISE,
    rng: Seed = None,
) -> Changing:
    """Smooth motion: a function that moves along the arms, by ``distance`` over all rounds."""
    generator, arms = np.random.default_rng(rng), _line(points)
    centres = np.linspace(0, 1 + distance, math.ceil(10 * (1 + distance)))[:, None]
    root = _root(kernel(centres, centres))
    normal = generator.standard_normal(root.shape[1])
    weights = _weights(root) @ normal
    means = [kernel(arms + distance * t / rounds, centres) @ weights for t in range(rounds)]
    return Changing("motion", arms, np.array(means), kernel, payoff, float(np.linalg.norm(normal)))


def jump(
    kernel: Kernel = _SE, *, points: int = 50, rounds: int = 1000, payoff: Payoff = _NOISE, rng: Seed = None
) -> Changing:
    """One jump: a function, and another one in the second half of the rounds."""
    late = np.arange(rounds) >= rounds // 2
    return _between_two("jump", late.astype(float), kernel, points, payoff, np.random.default_rng(rng))


def day_and_night(
    kernel: Kernel = _SE,
    *,
    period: int = 200,
    points: int = 50,
    rounds: int = 1000,
    payoff: Payoff = _NOISE,
    rng: Seed = None,
) -> Changing:
    """Return: from one function to another and back, as a cosine, in every ``period`` rounds."""
    night = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(rounds) / period)
    return _between_two("day and night", night, kernel, points, payoff, np.random.default_rng(rng))


def walk(
    kernel: Kernel = _SE,
    *,
    rate: float = 0.01,
    points: int = 50,
    rounds: int = 1000,
    payoff: Payoff = _NOISE,
    rng: Seed = None,
) -> Changing:
    """A stationary random walk of functions: f_(t+1) = sqrt(1 - rate) f_t + sqrt(rate) times a new draw."""
    if not 0 < rate < 1:
        raise ValueError(f"rate must be in (0, 1), got {rate}")
    generator, arms = np.random.default_rng(rng), _line(points)
    root = _root(kernel(arms, arms))
    steps = generator.standard_normal((rounds, root.shape[1]))
    for t in range(1, rounds):
        steps[t] = math.sqrt(1 - rate) * steps[t - 1] + math.sqrt(rate) * steps[t]
    return Changing("walk", arms, steps @ root.T, kernel, payoff, float(np.linalg.norm(steps, axis=1).max()))


def _between_two(name: str, share: Floats, kernel: Kernel, points: int, payoff: Payoff, rng: Rng) -> Changing:
    """Mixture of two drawn functions; ``share`` is the weight of the second in every round, (T,)."""
    arms = _line(points)
    root = _root(kernel(arms, arms))
    normal = rng.standard_normal((2, root.shape[1]))
    one, other = normal @ root.T
    means = np.outer(1 - share, one) + np.outer(share, other)
    return Changing(name, arms, means, kernel, payoff, float(np.linalg.norm(normal, axis=1).max()))


def _line(points: int) -> Floats:
    if points < 1:
        raise ValueError(f"points must be at least 1, got {points}")
    return np.linspace(0, 1, points)[:, None]


def _root(matrix: Floats) -> Floats:
    """Root R with R R' = K, (N, r), without directions in which K is numerically 0."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = eigenvalues > 1e-10 * eigenvalues[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))


def _weights(root: Floats) -> Floats:
    """Weights K^+ R, (N, r): with weights K^+ R z the sum of kernels has the values R z at the points and norm |z|."""
    return np.asarray(root / (root**2).sum(axis=0))
