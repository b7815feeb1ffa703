"""One run: an algorithm plays against a problem whose truth is known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from math import isfinite
from time import perf_counter
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import numpy as np

from noregret.bandits.belief.arms import Box, as_space
from noregret.bandits.decision.loops import Algorithm, Play, Pull, check_playable, recommended, starts_from_belief
from noregret.bandits.lab.trace import Trace
from noregret.bandits.problems.problem import Continuous
from noregret.gp.posterior import Floats, Ints, Rng
from noregret.gp.seeds import seed_sequence

PROGRESS_SECONDS = 0.1
"""Shortest time between two reports of progress, in seconds."""

WATCHABLE: dict[str, Callable[[Pull], float]] = {
    "active": lambda pull: len(pull.active),
    "gain": lambda pull: pull.belief.information_gain,
    "rank": lambda pull: pull.belief.rank,
}
"""Quantities that a run can record at every pull: arms still in play, information gain, features in use."""


Draw = Callable[[Any, Rng], Floats]
"""Function from arms and a generator to rewards."""

Watch = Iterable[str] | Mapping[str, "str | Callable[[Pull], float]"]
"""Names of `WATCHABLE`, or functions of a pull by name."""


class World(Protocol):
    """The part of a problem that a run needs."""

    @property
    def arms(self) -> Floats:
        """The options, (N, d)."""

    @property
    def means(self) -> Floats:
        """The true mean reward of every arm, (N,)."""

    def rewards(self, arms: Ints, rng: Rng, /) -> Floats:
        """One noisy reward for each of these (n,) arms, (n,)."""


@runtime_checkable
class ChangingWorld(Protocol):
    """The part of a changing problem that a run needs: the problem of every round."""

    def at(self, round: int, /) -> World:
        """The problem in a round, counted from 0; an arm has the same index in all rounds."""


def run(
    algorithm: Algorithm,
    problem: World | ChangingWorld | Continuous,
    horizon: int,
    *,
    rng: Any = None,
    progress: Callable[[int], None] | None = None,
    watch: Watch = (),
) -> Trace:
    """Play an algorithm on a problem and return the trace.

    Parameters
    ----------
    algorithm : Algorithm
    problem : object with ``arms`` (N, d), ``means`` (N,) and ``rewards(arms, rng)``
        Or, on a `Box`, with ``arms``, ``rewards(points, rng)`` and ``regret(points)``: a `problems.Continuous`. Or,
        if it changes, with ``at(round)``, the problem in a round, from 0: a `problems.Changing`. Regret is then against
        the best arm of the round. If its arms change too, as rows (context, arm) do, the algorithm moves to the arms of
        the next round, as by `Policy.change_arms`, and a batch ends where they change.
    horizon : int
        Number of rewards. The last batch is cut to fit.
    rng : None, int, SeedSequence or Generator
        Its first child is the policy's stream and its second the problem's: algorithms compared on a seed have the
        same noise. A SeedSequence is not changed; a Generator spawns a child of its seed.
    progress : callable, optional
        Called with the number of rounds done, about ten times a second, and at the end.
    watch : names, or a dict of functions
        Further quantities to record at every round, in ``trace.watched``: 'active' (arms still in play), 'gain'
        (information gain), 'rank' (features in use: the size of the dictionary). A dict maps a name to a function of
        the `Pull`, or to one of these three: ``{"spread": lambda pull: pull.belief.std.max(), "rank": "rank"}``.

    Returns
    -------
    Trace

    Raises
    ------
    ValueError
        If the horizon is not a positive whole number; the algorithm or the problem is only a name; the algorithm stops
        or asks for no arm before the horizon; the problem returns a reward that is not finite; ``watch`` has an unknown
        name or a value that is not a number; or the arms change and the algorithm cannot continue with other arms.
    """
    try:
        rounds = operator.index(horizon)
    except TypeError:
        rounds = 0
    if rounds < 1:
        raise ValueError(f"horizon must be a positive whole number, got {horizon!r}")
    check_playable(algorithm)
    check_world(problem)
    horizon, seed = rounds, seed_sequence(rng)
    check_follows(algorithm, problem)
    watched, advice = _Watched(watch, horizon), _Advice(algorithm, horizon)
    policy, world = (np.random.default_rng(child) for child in seed.spawn(2))
    if isinstance(problem, ChangingWorld):
        play, draw = _follow(algorithm, problem, policy), _draws(problem)
    else:
        play, draw = algorithm.play(as_space(problem.arms), policy), problem.rewards
    try:
        arms, rewards, seconds = _drive(play, draw, horizon, world, progress, watched, advice)
    finally:
        play.close()
    return Trace(
        arms=arms,
        rewards=rewards,
        regret=_regret(problem, arms, np.arange(horizon)),
        seconds=seconds,
        algorithm=repr(algorithm),
        problem=str(getattr(problem, "name", None) or repr(problem)),
        seed={"entropy": np.asarray(seed.entropy).tolist(), "spawn_key": list(seed.spawn_key)},
        watched=watched.values,
        simple_regret=advice.regret(problem),
    )


def _drive(
    play: Play,
    draw: Draw,
    horizon: int,
    world: Rng,
    progress: Callable[[int], None] | None,
    watched: _Watched,
    advice: _Advice,
) -> tuple[Ints, Floats, float]:
    """Return (horizon,) arms and rewards, and the seconds spent in the algorithm.

    With one arm per pull this loop is the overhead of every round, so it checks and allocates as little as possible.
    """
    all_rewards = np.empty(horizon)
    clock, done = perf_counter, 0
    start = clock()
    due = start + PROGRESS_SECONDS if progress else float("inf")
    pull = next(play)
    seconds = clock() - start
    all_arms = np.empty((horizon, *pull.arms.shape[1:]), dtype=pull.arms.dtype)
    while True:
        if done >= advice.due:
            advice.note(pull, done)
        arms = pull.arms
        end = done + len(arms)
        if end > horizon:
            arms, end = arms[: horizon - done], horizon
        rewards = draw(arms, world)
        if not (isfinite(rewards[0]) if end - done == 1 else np.isfinite(rewards).all()):
            bad = int(np.argmin(np.isfinite(rewards)))
            what = f"reward of arm {arms[bad]} in round {done + bad + 1} is {rewards[bad]}"
            raise ValueError(f"{what}: the problem must return finite rewards")
        all_arms[done:end] = arms
        all_rewards[done:end] = rewards
        if watched.functions:
            watched.note(pull, done, end)
        if end == horizon:
            advice.note_last(pull, arms, rewards)
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


def _follow(algorithm: Algorithm, problem: ChangingWorld, rng: Rng) -> Play:
    """Play on the arms of the next round; a pull ends where the arms change."""
    start: Any = algorithm.play
    arms, done = problem.at(0).arms, 0
    play = start(arms, rng)
    pull = next(play)
    while True:
        rounds = range(1, len(pull.arms))
        stay = next((i for i in rounds if not np.array_equal(problem.at(done + i).arms, arms)), len(pull.arms))
        pulled, rewards = yield pull._replace(arms=pull.arms[:stay])
        try:
            pull = play.send((pulled, rewards))
        except StopIteration:
            return
        done += len(pulled)
        coming = problem.at(done).arms
        if not np.array_equal(coming, arms):
            check_follows(algorithm, problem, done)
            play.close()
            arms, play = coming, start(coming, rng, belief=pull.belief.at(coming))
            pull = next(play)


def check_world(problem: Any) -> None:
    """Raise ValueError unless this is a problem: a name is not one yet."""
    if not (hasattr(problem, "arms") or isinstance(problem, ChangingWorld)):
        raise ValueError(
            f"problem must have arms, means and rewards, as problems.NAMES['rkhs-se'](rng=0) has, got {problem!r}"
        )


def check_follows(algorithm: Algorithm, problem: Any, round: int = 1) -> None:
    """Raise ValueError if the problem's arms change in this round and the algorithm cannot continue with others."""
    changes = isinstance(problem, ChangingWorld) and not starts_from_belief(algorithm)
    if changes and not np.array_equal(problem.at(round - 1).arms, problem.at(round).arms):
        name = type(algorithm).__name__
        raise ValueError(f"{name} cannot change its arms in the middle of a run, as this problem does: use Sequential")


def _draws(problem: ChangingWorld) -> Draw:
    """Rewards of a changing problem: every pull is one round."""
    rounds = count()
    return lambda arms, rng: np.concatenate([problem.at(next(rounds)).rewards(arm, rng) for arm in arms[:, None]])


def _regret(problem: Any, arms: Any, rounds: Any) -> Floats:
    """Best mean minus the mean of each pulled arm in these rounds, (n,); a problem on a box computes it itself."""
    if isinstance(problem, ChangingWorld):
        present = [(problem.at(int(round)).means, arm) for round, arm in zip(rounds, arms, strict=True)]
        return np.array([float(np.max(means) - means[arm]) for means, arm in present])
    if isinstance(problem.arms, Box):
        return np.asarray(problem.regret(arms), dtype=float)
    means = np.asarray(problem.means, dtype=float)
    return np.asarray(means.max() - means[arms])


class _Watched:
    """Quantities recorded at every pull, by name."""

    def __init__(self, watch: Watch, horizon: int) -> None:
        chosen = dict(watch) if isinstance(watch, Mapping) else {name: name for name in watch}
        for function in chosen.values():
            if not callable(function) and function not in WATCHABLE:
                raise ValueError(
                    f"watch must be of {', '.join(WATCHABLE)}, or a dict of functions of a pull, got {function!r}"
                )
        self.functions = {name: f if callable(f) else WATCHABLE[f] for name, f in chosen.items()}
        self.values = {name: np.empty(horizon) for name in self.functions}

    def note(self, pull: Pull, done: int, end: int) -> None:
        """Record the quantities of a pull for rounds ``done + 1`` to ``end``."""
        for name, function in self.functions.items():
            value = function(pull)
            if not isinstance(value, SupportsFloat):
                raise ValueError(f"the watched quantity {name!r} must be a number, got {value!r}")
            self.values[name][done:end] = float(value)


class _Advice:
    """Recommended arms over the run, computed at growing intervals because bounds take time."""

    def __init__(self, algorithm: Algorithm, horizon: int) -> None:
        self._algorithm, self._horizon = algorithm, horizon
        self._rounds, self._arms = list[int](), list[Any]()
        self.due = 0 if hasattr(algorithm, "bounds") else horizon + 1
        """Number of rounds after which to compute the next recommendation."""

    def note(self, pull: Pull, done: int) -> None:
        """Compute the recommendation after ``done`` rounds."""
        self._rounds.append(done)
        self._arms.append(recommended(self._algorithm, pull).arm)
        self.due = done + 1 + done // 10

    def note_last(self, pull: Pull, arms: Any, rewards: Floats) -> None:
        """Compute the last recommendation, after the belief has learnt the last rewards if it is the whole state."""
        if self.due > self._horizon and not self._rounds:
            return
        if starts_from_belief(self._algorithm):
            learn = pull.belief.update if np.ndim(arms) == 1 else pull.belief.learn  # indices, or points of a box
            learn(arms, rewards)
        self.note(pull, self._horizon)

    def regret(self, problem: World | ChangingWorld | Continuous) -> Floats:
        """Regret of the latest recommended arm after each round, (horizon,)."""
        if not self._rounds:
            return np.full(self._horizon, np.nan)
        latest = np.searchsorted(self._rounds, np.arange(1, self._horizon + 1), side="right") - 1
        coming = np.minimum(self._rounds, self._horizon - 1)  # the round that the arm was recommended for
        return _regret(problem, np.array(self._arms), coming)[latest]
