"""Policy: any algorithm as ask / tell."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import warnings
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Self

import numpy as np

from noregret.belief.arrays import fresh, is_tensor, numpy_of
from noregret.belief.box import Box
from noregret.belief.posterior import Floats, Posterior, as_arms, check_size
from noregret.decision.arms import as_space, checked, names
from noregret.decision.doubt import doubt
from noregret.decision.loops import Algorithm, Best
from noregret.decision.record import describe
from noregret.decision.saving import FORMAT, check_asks, packed, read, recorded, unpacked
from noregret.files import write_atomically


class Policy:
    """One run of an algorithm on some arms.

    A round is over when every arm it asked for has been told, in any order and in pieces; arms that nobody asked
    for are taken in along with it. What is told before anything was asked is taken in at once (a warm start).

    Parameters
    ----------
    algorithm : Algorithm
    arms : (N, d) array, torch tensor or a Box
        A tensor stays on its device, and so does all that is as long as the arms, in float64 (extra ``gpu``). On a
        box, arms are told and returned as (n, d) points, and ``active`` is a `Region`.
    rng : None, int, SeedSequence or Generator
        A generator is only asked for a child of its seed, never drawn from.

    Examples
    --------
    >>> import noregret
    >>> arms = np.linspace(0, 1, 50)[:, None]
    >>> policy = noregret.Policy(noregret.algorithms.amm_ucb(noregret.SquaredExponential(0.2), noise=0.1), arms, rng=0)
    >>> world = np.random.default_rng(1)
    >>> for _ in range(100):
    ...     asked = policy.ask()
    ...     policy.tell(asked, np.sin(3 * arms[asked, 0]) + 0.1 * world.standard_normal(len(asked)))
    >>> best = policy.best()
    >>> bool(best.lower <= 1.0 <= best.upper), bool(abs(arms[best.arm, 0] - np.pi / 6) < 0.1)
    (True, True)
    """

    def __init__(self, algorithm: Algorithm, arms: Any, *, rng: Any = None) -> None:
        self.algorithm, self._first_arms, self._seed = algorithm, as_space(arms), seed_sequence(rng)
        self._run = _Run(algorithm, self._first_arms, self._seed)
        self._doubted = False  # whether best() has warned
        self._changes: list[tuple[int, Any]] = []  # other arms, each after so many rounds
        self._waiting: Counter[Hashable] = Counter()  # arms asked for and not told yet
        self._held: list[tuple[Any, Floats]] = []  # what was told of the round under way
        self._history: list[tuple[Any, Floats]] = []  # what the loop was sent, round by round

    @property
    def arms(self) -> Any:
        """The (N, d) arms, or the box."""
        return self._run.arms

    @property
    def belief(self) -> Posterior:
        """The posterior that the arms now asked for were chosen by."""
        return self._run.pull.belief

    @property
    def active(self) -> Any:
        """Indices of the arms still in play, (n,); on a box the `Region` that is left."""
        return self._run.pull.active

    def ask(self) -> Any:
        """The arms still to pull in this round, at least one: (n,) indices, or (n, d) points on a box.

        Asking again changes nothing.
        """
        plan = self._run.pull.arms
        if not self._waiting:
            self._waiting = Counter(names(plan))
            return plan.copy()
        missing, places = self._waiting.copy(), []
        for place, name in enumerate(names(plan)):
            if missing[name] > 0:
                missing[name] -= 1
                places.append(place)
        return plan[places]

    def tell(self, arms: Any, rewards: Any) -> None:
        """Report rewards of arms, each a number or (n,) of them.

        ValueError if one is bad. Whatever is raised, here or by the algorithm, nothing has changed then: an algorithm
        that fails is built again from its history, which takes as long as its rounds so far.
        """
        told = self._checked(arms, rewards)
        if not told[0].size:
            return
        with self._all_or_nothing():
            self._held.append(told)
            self._waiting = self._waiting - Counter(names(told[0])) if self._waiting else self._waiting
            if not self._waiting:
                self._send_held()

    def change_arms(self, arms: Any) -> None:
        """Go on with other (N, d) arms, keeping what was learnt: fresh candidates, or a context beside each arm.

        From now on indices name the new arms. Arms asked for and not told yet are forgotten; rewards told are not.
        """
        if isinstance(self.arms, Box) or "belief" not in inspect.signature(self.algorithm.play).parameters:
            raise ValueError(f"{type(self.algorithm).__name__} cannot change its arms in the middle of a run")
        arms = fresh(as_arms(arms))
        if arms.shape[1] != self.arms.shape[1]:
            raise ValueError(f"new arms must have {self.arms.shape[1]} columns like the old ones, got {arms.shape[1]}")
        with self._all_or_nothing():
            if self._held:
                self._send_held()
            self._run.move(arms)
            self._waiting = Counter()
        self._changes.append((len(self._history), arms))

    def best(self) -> Best:
        """The arm with the largest lower confidence bound: a safe choice, not the luckiest draw.

        Warns, once, if the rewards contradict the norm and the noise that the bounds take for given.
        """
        best = self._best()
        if not self._doubted and (message := doubt(self.algorithm, self.belief, best)):
            self._doubted = True
            warnings.warn(message, stacklevel=2)
        return best

    def _best(self) -> Best:
        pull = self._run.pull
        if pull.best is not None:
            return pull.best
        lower, upper = self.algorithm.bounds(self.belief)
        i = int(lower.argmax())
        about = pull.active if pull.about is None else pull.about
        return Best(int(about[i]), float(self.belief.mean[i]), float(lower[i]), float(upper[i]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write algorithm, seed and history to one .npz file; a crash meanwhile leaves the previous file whole.

        Arms that are a tensor are written as NumPy's, and loaded as such: ``change_arms`` brings them back to a device.
        """
        arrays: dict[str, Any] = {}
        about = {
            "format": FORMAT,
            "version": version("noregret"),
            "asks": self._run.digest(),
            "algorithm": describe(self.algorithm, arrays),
            "repr": repr(self.algorithm),
            "seed": {
                "entropy": np.asarray(self._seed.entropy).tolist(),
                "spawn_key": np.asarray(self._seed.spawn_key, dtype=int).tolist(),
            },
            "box": isinstance(self._first_arms, Box),
            "asked": bool(self._waiting),
            "changes": [rounds for rounds, _ in self._changes],
        }
        arms = self._first_arms.bounds if isinstance(self._first_arms, Box) else self._first_arms
        content: dict[str, Any] = {"about": np.array(json.dumps(about)), "arms": _numpy(arms)}
        content |= arrays | {f"change_{i}": _numpy(arms) for i, (_, arms) in enumerate(self._changes)}
        content |= packed("sent", self._history) | packed("held", self._held)
        write_atomically(path, lambda file: np.savez(file, **content))

    @classmethod
    def load(cls, path: str | os.PathLike[str], algorithm: Algorithm | None = None) -> Self:
        """Continue a saved run exactly where it was, by replaying its history.

        ValueError if the replay asks for other arms than were asked for then: the algorithm, or what it computes with,
        has changed.

        ``algorithm`` is needed only if the saved one holds functions or foreign objects (a lambda as schedule, a
        scikit-learn kernel), which no file brings back.
        """
        content, about = read(path)
        seed = np.random.SeedSequence(about["seed"]["entropy"], spawn_key=tuple(about["seed"]["spawn_key"]))
        space = Box(content["arms"]) if about.get("box") else content["arms"]
        policy = cls(recorded(about, content, algorithm), space, rng=seed)
        for arms, rewards in unpacked("sent", content):
            policy._change_as_recorded(about["changes"], content)
            policy._send(*policy._checked(arms, rewards))
        policy._change_as_recorded(about["changes"], content)
        check_asks(policy._run.digest(), about, os.fspath(path))
        if about["asked"]:
            policy.ask()
        for arms, rewards in unpacked("held", content):
            policy.tell(arms, rewards)
        return policy

    def _send_held(self) -> None:
        self._send(np.concatenate([a for a, _ in self._held]), np.concatenate([r for _, r in self._held]))
        self._held = []

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo what was done inside if anything is raised there."""
        rounds, held, waiting = len(self._history), self._held.copy(), self._waiting
        try:
            yield
        except BaseException:
            del self._history[rounds:]
            self._held, self._waiting = held, waiting
            self._run = self._replayed()
            raise

    def _replayed(self) -> _Run:
        """The run as its history and its changes of arms have made it."""
        run, changes = _Run(self.algorithm, self._first_arms, self._seed), self._changes.copy()
        for done in range(len(self._history) + 1):
            while changes and changes[0][0] == done:
                run.move(changes.pop(0)[1])
            if done < len(self._history):
                run.send(*self._history[done])
        return run

    def _change_as_recorded(self, changes: list[int], content: dict[str, Any]) -> None:
        """While replaying: change the arms as often as the saved run had done after so many rounds."""
        while len(self._changes) < len(changes) and changes[len(self._changes)] == len(self._history):
            self.change_arms(content[f"change_{len(self._changes)}"])

    def _send(self, arms: Any, rewards: Floats) -> None:
        self._run.send(arms, rewards)
        self._history.append((arms, rewards))

    def _checked(self, arms: Any, rewards: Any) -> tuple[Any, Floats]:
        told, values = checked(self.arms, arms), _numbers(rewards)
        if len(told) != values.size:
            raise ValueError(f"arms and rewards must be as many, got {len(told)} arms and {values.size} rewards")
        if not np.isfinite(values).all():
            i = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"reward of arm {told[i]} is {values[i]}: drop it or pass a finite value")
        check_size(told, values, self.belief.largest_reward)
        return told, values


class _Run:
    """A loop under way on its arms."""

    def __init__(self, algorithm: Algorithm, arms: Any, seed: np.random.SeedSequence) -> None:
        self.arms, self._algorithm, self._rng = arms, algorithm, np.random.default_rng(seed)
        self._play = algorithm.play(arms, self._rng)
        self.pull = next(self._play)
        self._asks = hashlib.sha256()

    def digest(self) -> str:
        """A number that tells apart runs which have asked for different arms, up to and with this round."""
        asks = self._asks.copy()
        asks.update(self._asked())
        return asks.hexdigest()

    def _asked(self) -> bytes:
        """The arms of this round; points of a box to a millionth of its sides, as rounding differs among machines."""
        arms = self.pull.arms
        places = np.round(arms / self.arms.sides * 1e6) if isinstance(self.arms, Box) else arms
        return bytes(places.astype("<i8").tobytes())

    def send(self, arms: Any, rewards: Floats) -> None:
        """What was pulled and what came back."""
        self._asks.update(self._asked())
        try:
            self.pull = self._play.send((arms, rewards))
        except StopIteration:
            raise ValueError(f"{type(self._algorithm).__name__} ended: a loop must go on for ever") from None

    def move(self, arms: Floats) -> None:
        """Go on with other arms."""
        start: Any = self._algorithm.play
        play = start(arms, self._rng, belief=self.pull.belief.at(arms))
        pull = next(play)
        self._play.close()
        self.arms, self._play, self.pull = arms, play, pull


def seed_sequence(rng: Any) -> np.random.SeedSequence:
    """A seed that can be written down, from None, an int, a SeedSequence or a Generator (a child of its seed)."""
    if isinstance(rng, np.random.Generator):
        parent: Any = rng.bit_generator.seed_seq
        rng = parent.spawn(1)[0]
    if isinstance(rng, np.random.SeedSequence):
        return np.random.SeedSequence(rng.entropy, spawn_key=rng.spawn_key)
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        return np.random.SeedSequence(None if rng is None else int(rng))
    raise ValueError(f"rng must be None, a whole number from 0, a SeedSequence or a Generator, got {rng!r}")


def _numpy(arms: Any) -> Floats:
    return np.array(numpy_of(arms) if is_tensor(arms) else arms)


def _numbers(rewards: Any) -> Floats:
    try:
        values = np.asarray(rewards)
        if values.dtype.kind not in "biuf":
            raise TypeError
        return values.astype(float).reshape(-1)
    except (TypeError, ValueError):
        raise ValueError(f"rewards must be numbers, got {rewards!r}") from None
