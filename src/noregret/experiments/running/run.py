"""One run: an algorithm plays against a problem whose truth is known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from math import isfinite
from time import perf_counter
from typing import Any, NoReturn, Protocol

import numpy as np

from noregret.belief.box import Box
from noregret.belief.posterior import Floats, Ints, Rng
from noregret.decision.loops import Algorithm, Play, Pull
from noregret.decision.playing import seed_sequence
from noregret.experiments.running.trace import Trace
from noregret.problems.continuous import Continuous

PROGRESS_SECONDS = 0.1
"""The shortest time between two reports of progress."""

WATCHABLE: dict[str, Callable[[Pull], float]] = {
    "active": lambda pull: len(pull.active),
    "gain": lambda pull: pull.belief.information_gain,
    "rank": lambda pull: pull.belief.rank,
}
"""What a run can note at every pull: arms still in play, information gain, features in use."""


class World(Protocol):
    """What a run needs of a problem."""

    @property
    def arms(self) -> Floats:
        """The options, (N, d)."""
        ...

    @property
    def means(self) -> Floats:
        """The true mean reward of every arm, (N,)."""
        ...

    def rewards(self, arms: Ints, rng: Rng, /) -> Floats:
        """One noisy reward for each of these (n,) arms, (n,)."""
        ...


def run(
    algorithm: Algorithm,
    problem: World | Continuous,
    horizon: int,
    *,
    rng: Any = None,
    progress: Callable[[int], None] | None = None,
    watch: Iterable[str] = (),
) -> Trace:
    """Play an algorithm on a problem and record what happened.

    Parameters
    ----------
    algorithm : Algorithm
    problem : object with ``arms`` (N, d), ``means`` (N,) and ``rewards(arms, rng)``
        Or, on a `Box`, with ``arms``, ``rewards(points, rng)`` and ``regret(points)``: a `problems.Continuous`.
    horizon : int
        Number of rewards. A batch that would go beyond it is cut.
    rng : None, int, SeedSequence or Generator
        Its first child is the policy's stream, its second the world's: algorithms compared on a seed meet the
        same noise. A SeedSequence is not changed; a Generator is asked for a child of its seed.
    progress : callable, optional
        Called with the number of rounds done, about ten times a second, and at the end.
    watch : names
        What else to note at every round, in ``trace.watched``: 'active' (arms still in play), 'gain' (information
        gain), 'rank' (features in use: the size of the dictionary).

    Returns
    -------
    Trace

    Raises
    ------
    ValueError
        If the horizon is not a positive whole number, or the algorithm stops or asks for no arm before it, or the
        problem returns a reward that is not finite, or there is nothing of a name to watch.
    """
    horizon, seed, watched = _positive(horizon), seed_sequence(rng), _watched(watch, horizon)
    policy, world = (np.random.default_rng(child) for child in seed.spawn(2))
    play = algorithm.play(problem.arms, policy)
    try:
        arms, rewards, seconds = _drive(play, problem, horizon, world, progress, watched)
    finally:
        play.close()
    return Trace(
        arms=arms,
        rewards=rewards,
        regret=_regret(problem, arms),
        seconds=seconds,
        algorithm=repr(algorithm),
        problem=str(getattr(problem, "name", None) or repr(problem)),
        seed={"entropy": np.asarray(seed.entropy).tolist(), "spawn_key": list(seed.spawn_key)},
        watched=watched,
    )


def _drive(
    play: Play,
    problem: World | Continuous,
    horizon: int,
    world: Rng,
    progress: Callable[[int], None] | None,
    watched: dict[str, Floats],
) -> tuple[Ints, Floats, float]:
    """Fill (horizon,) arms and rewards; also return the seconds spent in the algorithm.

    With one arm per pull this loop is the overhead of every round, so nothing is checked or allocated in it that
    need not be.
    """
    all_rewards = np.empty(horizon)
    draw, clock, done = problem.rewards, perf_counter, 0
    start = clock()
    due = start + PROGRESS_SECONDS if progress else float("inf")
    pull = next(play)
    seconds = clock() - start
    all_arms = np.empty((horizon, *pull.arms.shape[1:]), dtype=pull.arms.dtype)
    while True:
        arms = pull.arms
        end = done + len(arms)
        if end > horizon:
            arms, end = arms[: horizon - done], horizon
        rewards = draw(arms, world)
        if not (isfinite(rewards[0]) if end - done == 1 else np.isfinite(rewards).all()):
            _refuse(arms, rewards, done)
        all_arms[done:end] = arms
        all_rewards[done:end] = rewards
        if watched:
            for name, values in watched.items():
                values[done:end] = WATCHABLE[name](pull)
        if end == horizon:
            break
        if end == done:
            raise ValueError(f"a pull must hold at least one arm, got none after {done} rounds")
        done = end
        start = clock()
        if start > due and progress:
            progress(done)
            start = clock()
            due = start + PROGRESS_SECONDS
        try:
            pull = play.send((arms, rewards))
        except StopIteration:
            raise ValueError(f"the algorithm stopped after {done} of {horizon} rounds") from None
        seconds += clock() - start
    if progress:
        progress(horizon)
    return all_arms, all_rewards, seconds


def _regret(problem: Any, arms: Any) -> Floats:
    """The best mean minus each pulled arm's, (n,); a problem on a box says it itself."""
    if isinstance(problem.arms, Box):
        return np.asarray(problem.regret(arms), dtype=float)
    means = np.asarray(problem.means, dtype=float)
    return np.asarray(means.max() - means[arms])


def _positive(horizon: Any) -> int:
    try:
        value = operator.index(horizon)
    except TypeError:
        value = 0
    if value < 1:
        raise ValueError(f"horizon must be a positive whole number, got {horizon!r}")
    return value


def _watched(names: Iterable[str], horizon: int) -> dict[str, Floats]:
    watched = {name: np.empty(horizon) for name in names}
    for name in watched:
        if name not in WATCHABLE:
            raise ValueError(f"watch must be of {', '.join(WATCHABLE)}, got {name!r}")
    return watched


def _refuse(arms: Ints, rewards: Floats, done: int) -> NoReturn:
    bad = int(np.argmin(np.isfinite(rewards)))
    raise ValueError(
        f"reward of arm {arms[bad]} in round {done + bad + 1} is {rewards[bad]}: the problem must return finite rewards"
    )
