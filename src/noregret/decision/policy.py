"""Policy: any algorithm as ask / tell."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

from noregret.belief.arms import as_arms
from noregret.belief.arrays import fresh
from noregret.belief.box import Box
from noregret.belief.conjugate import ConjugatePosterior
from noregret.belief.model_set import SharedPosterior
from noregret.belief.posterior import Posterior
from noregret.decision.arms import as_space, checked, names, remaining
from noregret.decision.loops import Algorithm, Best, recommended
from noregret.decision.playing import Event, Run, Told, as_told, child, joined, seed_sequence
from noregret.decision.saving import State, check_asks, read, write


class Policy:
    """One run of an algorithm on some arms.

    A round is over when every arm it asked for has been told or forgotten, in any order and in pieces; arms that nobody
    asked for are taken in along with it. What is told before anything was asked is taken in at once (a warm start), and
    so is what is told while arms are out that were asked for by number. Loops with epochs (`reds`, `bpe`) accept such
    rewards and do not use them: their bounds are for arms planned before any reward of the epoch.

    Parameters
    ----------
    algorithm : Algorithm
    arms : (N, d) array, torch tensor, dask array or a Box
        A tensor stays on its device, and so does all that is as long as the arms, in float64 (extra ``gpu``). The
        blocks of a dask array stay on the workers of dask's client at hand (extra ``cluster``). On a box, arms are told
        and returned as (n, d) points, and ``active`` is a `Region`.
    rng : None, int, SeedSequence or Generator
        The loop draws from the first child of this seed, as in `noregret.run`: the same seed and the same rewards give
        the same arms. A generator is only asked for a child of its seed, never drawn from.

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
        self._begin(algorithm, as_space(arms), child(seed_sequence(rng), 0))

    def _begin(self, algorithm: Algorithm, space: Any, seed: np.random.SeedSequence) -> None:
        self.algorithm, self._first_arms, self._seed = algorithm, space, seed
        self._history: list[Event] = []  # what has happened to the run
        self._under_way: Run | None = Run(algorithm, space, seed)  # None if it must be built again from the history
        self._doubted = False  # whether best() has warned
        self._asked: Any = self._run.pull.arms[:0]  # arms asked for, in order; those that are out among them
        self._waiting: Counter[Hashable] = Counter()  # how often each arm is out
        self._held: list[Told] = []  # what was told of the round under way
        self._shown: Posterior | None = None  # the belief with what is held, once somebody has looked
        self._at_once = False  # whether arms are out that were chosen ahead, so that rewards are not held
        self._given = 0  # how many arms were ever chosen ahead

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled, and say what to do instead."""
        raise TypeError(
            "a Policy cannot be copied or pickled, as its algorithm is under way: save(path) it, and Policy.load(path) "
            "goes on as it would"
        )

    def __repr__(self) -> str:
        """What plays on which arms, and how far it is."""
        arms = repr(self.arms) if isinstance(self.arms, Box) else f"{len(self.arms)} arms"
        told, out = self.belief.rounds, self._waiting.total()
        active = "" if isinstance(self.arms, Box) else f", {len(self.active)} in play"
        return f"<Policy of {self._run.name} on {arms}{active}: {told} reward{'s' * (told != 1)} told, {out} out>"

    @property
    def _run(self) -> Run:
        if self._under_way is None:
            self._under_way = self._replayed()
        return self._under_way

    @property
    def arms(self) -> Any:
        """The (N, d) arms, or the box."""
        return self._run.arms

    @property
    def belief(self) -> Posterior:
        """The posterior of all that was told.

        Where it is not all of the loop's knowledge, as with epochs, it is the one that the loop goes by.
        """
        if not (self._held and self._run.can_resume):
            return self._run.pull.belief
        if self._shown is None:
            told, self._shown = joined(self._held), self._run.pull.belief.copy()
            self._shown.update(told.arms, told.rewards, noise=told.noise)
        return self._shown

    @property
    def active(self) -> Any:
        """Indices of the arms still in play, (n,); on a box the `Region` that is left."""
        return self._run.pull.active

    def ask(self, n: int | None = None) -> Any:
        """The arms to pull: (n,) indices, or (n, d) points on a box.

        Without a number they are those that are out, asked for and not told yet; if none is, the loop's next ones, at
        least one. Asking again changes nothing.

        With a number they are ``n`` new arms beyond those that are out, chosen as if each of these had returned its
        mean, so asking again gives others. Answers may come in any order and count at once. `Sequential`, `Batched` and
        `Repeated` choose so. Other loops, such as those with epochs, hand out what is left of their plan, which may be
        fewer arms than n, and nothing is learnt until all that is out has been told; ValueError when nothing is left.
        """
        if n is not None:
            return self._ask_ahead(_count(n)) if self._run.thinks_ahead else self._ask_for_more(_count(n))
        if self._waiting:
            return self._out()
        if self._run.is_stale:
            with self._all_or_nothing():
                self._do(Event("resume"))
        planned = self._run.pull.arms
        self._wait_for(planned)
        return planned.copy()

    def tell(self, arms: Any, rewards: Any, noise: Any = None) -> None:
        """Report rewards of arms, each a number or (n,) of them.

        ``noise`` is how much noisier than usual they are: a factor on the ridge, for all or for each, as in
        `Posterior.update`. The average of 4 rewards has noise 1/4.

        ValueError if one is bad. Whatever is raised, here or by the algorithm, nothing has changed then: an algorithm
        that fails is built again from its history, which takes as long as its rounds so far.
        """
        run = self._run
        told = as_told(run, arms, rewards, noise)
        if not len(told.arms):
            return
        with self._all_or_nothing():
            if self._at_once or run.is_stale:
                self._do(Event("learn", told))
            else:
                self._held.append(told)
                self._shown = None
            self._no_longer_out(told.arms)

    def forget(self, arms: Any) -> None:
        """Wait no longer for the rewards of these arms, which are out: they got lost.

        A round is over then when the others have been told. Epochs ask for them again. Should a reward come after all,
        tell it: arms nobody asked for are welcome.
        """
        lost = checked(self.arms, arms)
        unknown = Counter(names(lost)) - self._waiting
        if unknown:
            raise ValueError(f"arm {next(iter(unknown))} is not out: forget takes arms asked for and not told yet")
        with self._all_or_nothing():
            self._no_longer_out(lost)

    def change_arms(self, arms: Any) -> None:
        """Go on with other (N, d) arms, keeping what was learnt: fresh candidates, or a context beside each arm.

        From now on indices name the new arms. Arms asked for and not told yet are forgotten; rewards told are not.
        """
        if not self._run.can_resume:
            raise ValueError(f"{self._run.name} cannot change its arms in the middle of a run")
        arms = fresh(as_arms(arms))
        if arms.shape[1] != self.arms.shape[1]:
            raise ValueError(f"new arms must have {self.arms.shape[1]} columns like the old ones, got {arms.shape[1]}")
        with self._all_or_nothing():
            self._wait_for(self._asked[:0])
            self._send_held()
            self._do(Event("move", arms))

    def best(self) -> Best:
        """The arm with the largest lower confidence bound: a safe choice, not the luckiest draw.

        Warns, once, if the rewards contradict the norm and the noise that the bounds take for given.
        """
        best = recommended(self.algorithm, self._run.pull._replace(belief=self.belief))
        if not self._doubted and (message := doubt(self.algorithm, self.belief, best)):
            self._doubted = True
            warnings.warn(message, stacklevel=2)
        return best

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write algorithm, seed and history to one .npz file; a crash meanwhile leaves the previous file whole.

        Arms that are a tensor are written as NumPy's. Arms on a cluster are not written.
        """
        state = State(self._history, self._held, self._out(), self._at_once, self._given, self._run.digest())
        write(path, self.algorithm, self._first_arms, self._seed, state)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        algorithm: Algorithm | None = None,
        arms: Any = None,
        *,
        trusted: Iterable[type] = (),
    ) -> Self:
        """Continue a saved run exactly where it was, by replaying its history.

        ValueError if the replay asks for other arms than were asked for then: the algorithm, or what it computes with,
        has changed.

        ``algorithm`` is needed only if the saved one holds functions or foreign objects (a lambda as schedule, a
        scikit-learn kernel), which no file brings back. ``arms`` are the same arms where they are to live: on a device,
        or on a cluster, whose arms are not in the file. ``trusted`` are your own dataclasses that the file may build,
        beside those of noregret: ``trusted=[MyRule]``.
        """
        algorithm, space, seed, state, about = read(path, algorithm, arms, trusted)
        policy = cls.__new__(cls)
        policy._begin(algorithm, space, seed)
        for event in state.history:
            if isinstance(event.content, Told):
                event = event._replace(content=as_told(policy._run, *event.content))
            policy._do(event)
        check_asks(policy._run.digest(), about, os.fspath(path))
        policy._held = [as_told(policy._run, *told) for told in state.held]
        policy._wait_for(policy._unasked() if state.out is None else state.out, at_once=state.at_once)
        policy._given = state.given
        return policy

    def _ask_ahead(self, count: int) -> Any:
        """New arms, chosen as if those out had returned their mean."""
        if self._held:
            with self._all_or_nothing():
                self._send_held("learn")
        out = self._out()
        new = np.fromiter(islice(self._run.ahead(out, self._given), count), np.intp, count)
        self._wait_for(np.concatenate([out, new]), at_once=True)
        self._given += count
        return new

    def _ask_for_more(self, count: int) -> Any:
        """Arms of the loop's plan that have not been asked for."""
        out, rest = self._out(), self._unasked()
        if not len(rest):
            raise ValueError(
                f"all that {self._run.name} has planned is out, {len(out)} arms: tell their rewards, or forget(arms) "
                "those that are lost, and it goes on"
            )
        new = rest[:count]
        self._wait_for(np.concatenate([out, new]))
        return new

    def _unasked(self) -> Any:
        """The arms of the loop's plan that are neither out nor told."""
        return remaining(self._run.pull.arms, np.concatenate([self._out(), *(told.arms for told in self._held)]))

    def _out(self) -> Any:
        """The arms asked for and not told yet, in the order of asking."""
        missing, places = self._waiting.copy(), []
        for place, name in enumerate(names(self._asked)):
            if missing[name] > 0:
                missing[name] -= 1
                places.append(place)
        return self._asked[places]

    def _wait_for(self, out: Any, *, at_once: bool = False) -> None:
        self._asked, self._waiting, self._at_once = out, Counter(names(out)), at_once

    def _no_longer_out(self, arms: Any) -> None:
        """Count arms as told or lost; when none is out any more, the round is over."""
        back = []  # those of them that were out: what costs little must not touch all the others
        for name in names(arms) if self._waiting else ():
            if self._waiting[name] > 0:
                self._waiting[name] -= 1
                back.append(name)
            if not self._waiting[name]:
                del self._waiting[name]
        if not self._waiting:
            self._at_once = False
            try:
                self._send_held()
            except BaseException:
                self._waiting.update(back)
                raise

    def _send_held(self, kind: Literal["send", "learn"] = "send") -> None:
        """Pass on what was told of a round, if anything was; a loop hears nothing of noise, so the belief learns it."""
        if self._held:
            told = joined(self._held)
            self._do(Event(kind if told.noise is None else "learn", told))
            self._held, self._shown = [], None

    def _do(self, event: Event) -> None:
        self._run.do(event)
        self._history.append(event)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo what was done inside if anything is raised there."""
        length, held, before = (
            len(self._history),
            len(self._held),
            (self._held, self._asked, self._waiting, self._at_once),
        )
        try:
            yield
        except BaseException:
            del self._history[length:]
            self._held, self._asked, self._waiting, self._at_once = before
            del self._held[held:]
            self._under_way = self._shown = None
            raise

    def _replayed(self) -> Run:
        """The run as its history has made it."""
        run = Run(self.algorithm, self._first_arms, self._seed)
        for event in self._history:
            run.do(event)
        return run


def _count(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a whole number from 1, the new arms to ask for, got {n!r}")
    return int(n)


@runtime_checkable
class Assumptions(Protocol):
    """What a width takes for given."""

    norm: float
    noise: float
    delta: float


def assumptions_of(description: Any) -> Assumptions | None:
    """The first part of an algorithm that has norm, noise and delta; None if there is none, as under heavy tails."""
    if isinstance(description, Assumptions):
        return description
    parts = fields(description) if is_dataclass(description) else ()
    found = (assumptions_of(getattr(description, part.name)) for part in parts)
    return next((part for part in found if part is not None), None)


def doubt(algorithm: Any, belief: Any, best: Best) -> str | None:
    """What to say about the bounds of an algorithm whose rewards contradict its norm and noise; None if they do not."""
    assumed = assumptions_of(algorithm)
    contradiction = _contradiction(assumed, belief)
    if best.empty:
        given = f"norm={assumed.norm:g} or noise={assumed.noise:g}" if assumed else "one of the bounds' constants"
        return f"no function fits the rewards: {contradiction or f'{given} is too small'}"
    return contradiction


def _noises(belief: Any, delta: float) -> float:
    """C / ridge."""
    t = belief.rounds
    log = math.log(math.pi**2 * t**2 / (6 * delta))
    return float((t + 2 * math.sqrt(t * log) + 2 * log) / belief.ridge)


def _contradiction(assumed: Assumptions | None, belief: Any) -> str | None:
    """What to say if the rewards contradict the constants; those of every rung that is left, if there is a ladder."""
    if assumed is None or not belief.rounds:
        return None
    claims: list[tuple[Assumptions, Any]] = [(assumed, belief)]
    if isinstance(belief, SharedPosterior):
        claims = [(rung.width, posterior) for rung, posterior in belief.members.items()]
    if any(_fits(*claim) for claim in claims):
        return None
    norm = min(_least_norm(each, its) * (assumed.norm / each.norm if each.norm else 1.0) for each, its in claims)
    noise = min(_least_noise(*claim) for claim in claims)
    return (
        f"the rewards contradict norm={assumed.norm:g} and noise={assumed.noise:g}, under which they have probability "
        f"below {assumed.delta:g}: the bounds are too narrow. Please pass norm={norm * 1.001:.4g} if the noise is "
        f"right. If the norm is right, the noise is at least {noise:.3g}: pass that, or more. If all rewards are far "
        f"from 0, subtract their average first"
    )


def _fits(assumed: Assumptions, belief: Any) -> bool:
    """Whether the rewards do not contradict norm and noise, as far as one can see.

    A posterior that expects corrupted rewards is not contradicted by them.
    """
    if not hasattr(belief, "misfit") or isinstance(belief, ConjugatePosterior):
        return True
    return bool(belief.misfit * (1 - 1e-6) <= assumed.norm**2 + assumed.noise**2 * _noises(belief, assumed.delta))


def _least_norm(assumed: Assumptions, belief: Any) -> float:
    """The least norm that the rewards would not contradict, if the noise is right."""
    return math.sqrt(max(belief.misfit - assumed.noise**2 * _noises(belief, assumed.delta), 0.0))


def _least_noise(assumed: Assumptions, belief: Any) -> float:
    """The least noise that they would not contradict, if the norm is right."""
    return math.sqrt((belief.misfit - assumed.norm**2) / _noises(belief, assumed.delta))
