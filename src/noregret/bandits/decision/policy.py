"""Policy: any algorithm as ask / tell. Its `Run` is a loop with the events that happened to it, in order."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

from noregret.bandits.belief.arms import Box, as_arms, as_space, checked, names, remaining
from noregret.bandits.belief.cluster import Blocks
from noregret.bandits.belief.drift import Discounted, Recent, VaryingGP
from noregret.bandits.belief.estimators import LeastSquares
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.belief.model_set import RidgeFamily, SharedPosterior
from noregret.bandits.belief.pulls import check_finite, check_size
from noregret.bandits.belief.robust import ConjugatePosterior
from noregret.bandits.belief.sparse import SparseGP
from noregret.bandits.decision.breakdown import Breakdown, breakdown
from noregret.bandits.decision.loops import (
    Algorithm,
    Best,
    ThinksAhead,
    check_playable,
    recommended,
    starts_from_belief,
)
from noregret.bandits.decision.rules import RateGain
from noregret.bandits.decision.saving import Event, State, Told, check_asks, joined, read, write
from noregret.gp.arrays import fresh, numpy_of
from noregret.gp.kernels import Kernel
from noregret.gp.posterior import Floats, Ints, Posterior
from noregret.gp.seeds import child, seed_sequence


class Run:
    """Loop in progress on its arms.

    If a loop can start from a belief, the belief may learn rewards that the loop does not see. The loop is then
    restarted from the belief before its next plan.
    """

    def __init__(self, algorithm: Algorithm, arms: Any, seed: np.random.SeedSequence) -> None:
        self.arms, self._algorithm, self._seed = arms, algorithm, seed
        self._rng = np.random.default_rng(seed)
        self._play = algorithm.play(arms, self._rng)
        self.pull = next(self._play)
        self.is_stale = False  # whether the belief has learnt something since the loop made its plan
        self._asks = hashlib.sha256()

    @property
    def name(self) -> str:
        """Name of the loop's class."""
        return type(self._algorithm).__name__

    @property
    def can_resume(self) -> bool:
        """True if the loop can start from a belief, which then holds all of its state."""
        return starts_from_belief(self._algorithm) and not isinstance(self.arms, Box)

    @property
    def thinks_ahead(self) -> bool:
        """True if the loop can choose arms while others are pending."""
        return self.can_resume and isinstance(self._algorithm, ThinksAhead)

    def do(self, event: Event) -> None:
        """Apply an event."""
        told = event.content
        match event.kind:
            case "send":
                self._asks.update(self._plan())
                try:
                    self.pull = self._play.send((told.arms, told.rewards))
                except StopIteration:
                    raise ValueError(f"{self.name} ended: a loop must run for ever") from None
            case "learn":
                if not self.is_stale:
                    self._asks.update(self._plan())
                self.is_stale = True
                self.pull.belief.update(told.arms, told.rewards, noise=told.noise)
            case "resume":
                self._start(self.arms, self.pull.belief)
            case "move":
                self._start(event.content, self.pull.belief.at(event.content))

    def ahead(self, pending: Ints, given: int) -> Iterator[int]:
        """Arms to pull beyond those that are pending; ``given`` arms were chosen this way before.

        Nothing changes. Random numbers come from a separate stream, which does not depend on the loop's draws.
        """
        algorithm: Any = self._algorithm
        stream = np.random.default_rng(child(self._seed, given))
        choices: Iterator[int] = algorithm.ahead(self.pull.belief, pending, stream)
        return choices

    def digest(self) -> str:
        """Hash of all arms that the loop has asked for, the present plan included."""
        asks = self._asks.copy()
        if not self.is_stale:
            asks.update(self._plan())
        return asks.hexdigest()

    def _plan(self) -> bytes:
        """Arms of the plan; points of a box in millionths of its sides, since rounding differs between machines."""
        arms = self.pull.arms
        places = np.round(arms / self.arms.sides * 1e6) if isinstance(self.arms, Box) else arms
        return bytes(places.astype("<i8").tobytes())

    def _start(self, arms: Floats, belief: Any) -> None:
        """Restart the loop on these arms from this belief."""
        start: Any = self._algorithm.play
        play = start(arms, self._rng, belief=belief)
        pull = next(play)
        self._play.close()
        self.arms, self._play, self.pull, self.is_stale = arms, play, pull, False


def as_told(run: Run, arms: Any, rewards: Any, noise_factor: Any = None) -> Told:
    """Check rewards before a run receives them; ValueError if it cannot take them."""
    told, values = checked(run.arms, arms), _numbers("rewards", rewards)
    if len(told) != values.size:
        raise ValueError(f"there must be one reward per arm, got {len(told)} arms and {values.size} rewards")
    check_finite(told, values)
    check_size(told, values, run.pull.belief.largest_reward)
    if noise_factor is None:
        return Told(told, values)
    factors = _numbers("noise_factor", noise_factor)
    if factors.size not in (1, values.size):
        raise ValueError(
            f"noise_factor must be one number or one per reward, got {factors.size} for {values.size} rewards"
        )
    fine = (factors > 0) & np.isfinite(factors)
    if not fine.all():
        raise ValueError(
            f"noise_factor must be positive and finite, a factor on the ridge, got {factors[fine.argmin()]}"
        )
    if (factors == 1).all():
        return Told(told, values)
    if not run.can_resume:
        raise ValueError(
            f"{run.name} cannot weigh rewards by their noise: its loop takes them in by itself. Tell them without "
            "noise_factor, or use a loop that starts from a belief, such as Sequential or Batched"
        )
    return Told(told, values, np.broadcast_to(factors, values.shape).copy())


def _numbers(what: str, given: Any) -> Floats:
    """Numbers as a flat array of floats; ValueError if they are not numbers."""
    try:
        values = np.asarray(given)
        if values.dtype.kind not in "biuf":
            raise TypeError
        return values.astype(float).reshape(-1)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, got {given!r}") from None


class Policy:
    """Run of an algorithm on some arms, as ask and tell.

    A round ends when every arm it asked for has been reported or forgotten, in any order and in pieces. Rewards of
    other arms may be reported too, and are learnt with the round. Rewards reported before the first ask (a warm start),
    or while arms from ``ask(n)`` are pending, are learnt immediately. Loops with epochs (`reds`, `bpe`) accept such
    rewards but do not use them: their bounds hold for arms planned before any reward of the epoch.

    Parameters
    ----------
    algorithm : Algorithm
    arms : (N, d) array, torch tensor, dask array or a Box
        A tensor and all arrays as long as the arms stay on its device, in float64 (extra ``gpu``). The blocks of a dask
        array stay on the workers of the current dask client (extra ``cluster``). On a box, arms are passed and returned
        as (n, d) points, and ``active`` is a `Region`.
    rng : None, int, SeedSequence or Generator
        The loop draws from the first child of this seed, as in `noregret.run`: the same seed and the same rewards give
        the same arms. A generator only provides a child of its seed; no numbers are drawn from it.

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
        check_playable(algorithm)
        self._begin(algorithm, as_space(arms), child(seed_sequence(rng), 0))

    def _begin(self, algorithm: Algorithm, space: Any, seed: np.random.SeedSequence) -> None:
        self.algorithm, self._first_arms, self._seed = algorithm, space, seed
        self._history: list[Event] = []  # all events of the run
        self._under_way: Run | None = Run(algorithm, space, seed)  # None if it must be rebuilt from the history
        self._doubted = False  # whether best() has warned
        self._asked: Any = self._run.pull.arms[:0]  # arms asked for, in order; the pending ones are among them
        self._waiting: Counter[Hashable] = Counter()  # number of pending pulls of each arm
        self._held: list[Told] = []  # rewards of the current round
        self._shown: Posterior | None = None  # the belief with the held rewards, computed on demand
        self._at_once = False  # whether arms chosen ahead are pending, so that rewards are not held
        self._given = 0  # number of arms chosen ahead so far

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled, and say what to do instead."""
        raise TypeError(
            "a Policy cannot be copied or pickled, as its algorithm is running: save(path) it, and Policy.load(path) "
            "continues identically"
        )

    def __repr__(self) -> str:
        """Algorithm, arms, number of rewards and of pending arms."""
        arms = repr(self.arms) if isinstance(self.arms, Box) else f"{len(self.arms)} arms"
        told, out = self.belief.rounds, self._waiting.total()
        active = "" if isinstance(self.arms, Box) else f", {len(self.active)} in play"
        return f"<Policy of {self._run.name} on {arms}{active}: {told} reward{'s' * (told != 1)}, {out} pending>"

    @property
    def _run(self) -> Run:
        if self._under_way is None:
            self._under_way = Run(self.algorithm, self._first_arms, self._seed)
            for event in self._history:
                self._under_way.do(event)
        return self._under_way

    @property
    def arms(self) -> Any:
        """The (N, d) arms, or the box."""
        return self._run.arms

    @property
    def belief(self) -> Posterior:
        """Posterior given all rewards so far. For loops with epochs, the posterior that the loop decides by."""
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
        """Return the arms to pull: (n,) indices, or (n, d) points on a box.

        Without ``n``, these are the pending arms: asked for and not reported yet. If none is pending, they are the
        loop's next arms, at least one. Asking again changes nothing.

        With ``n``, these are n new arms beyond the pending ones, chosen as if each pending arm had returned its mean.
        Asking again returns others. Rewards may come in any order and are learnt immediately. `Sequential`, `Batched`
        and `Repeated` do this. Other loops, such as those with epochs, return the next arms of their plan, possibly
        fewer than n, and learn nothing until all pending arms have been reported; ValueError if the plan has no arms
        left.
        """
        if n is not None:
            count: Any = n
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
                raise ValueError(f"n must be a whole number from 1, the new arms to ask for, got {n!r}")
            return self._ask_ahead(int(n)) if self._run.thinks_ahead else self._ask_for_more(int(n))
        if self._waiting:
            return self._pending()
        if self._run.is_stale:
            with self._all_or_nothing():
                self._do(Event("resume"))
        planned = self._run.pull.arms
        self._wait_for(planned)
        return planned.copy()

    def tell(self, arms: Any, rewards: Any, noise_factor: Any = None, noise: Any = None) -> None:
        """Report rewards of arms.

        If anything is raised, here or by the algorithm, nothing has changed. An algorithm that fails is rebuilt from
        its history, which takes as long as its rounds so far.

        Parameters
        ----------
        arms : int or (n,) ints; on a box (d,) or (n, d) floats
        rewards : float or (n,) floats
        noise_factor : float or (n,) floats, optional
            Factor on the ridge, which stands for the noise variance of one reward, for all rewards or for each: 1/4 for
            the average of 4 rewards.
        noise : float or (n,) floats, optional
            Deprecated name of ``noise_factor``, to be removed in version 2.0.

        Raises
        ------
        ValueError
            If an arm, a reward or a factor is not valid.
        """
        if noise is not None:
            if noise_factor is not None:
                raise ValueError("noise is the old name of noise_factor, got both: pass noise_factor only")
            message = "the keyword noise of Policy.tell is deprecated and goes in noregret 2.0: pass noise_factor="
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            noise_factor = noise
        run = self._run
        told = as_told(run, arms, rewards, noise_factor)
        if not len(told.arms):
            return
        with self._all_or_nothing():
            if self._at_once or run.is_stale:
                self._do(Event("learn", told))
            else:
                self._held.append(told)
                self._shown = None
            self._no_longer_pending(told.arms)

    def forget(self, arms: Any) -> None:
        """Stop waiting for the rewards of these pending arms, because they are lost.

        The round ends when the other arms have been reported. Epochs ask for the lost arms again. A reward that arrives
        later can still be reported.
        """
        lost = checked(self.arms, arms)
        unknown = Counter(names(lost)) - self._waiting
        if unknown:
            raise ValueError(
                f"arm {next(iter(unknown))} is not pending: forget takes arms asked for and not reported yet"
            )
        with self._all_or_nothing():
            self._no_longer_pending(lost)

    def change_arms(self, arms: Any) -> None:
        """Continue with other (N, d) arms and the same knowledge: new candidates, or a context for each arm.

        Indices refer to the new arms from now on. Pending arms are forgotten; rewards are kept.
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

    def best(self, within: float | None = None) -> Best:
        """Return the arm with the largest lower confidence bound: a safe choice, not the luckiest draw.

        Its ``gap`` bounds how much better another arm may be, for the algorithm's norm. Its ``breakdown`` says how
        large the norm must be for another arm to be better by more than ``within``, by default one ``noise`` of the
        algorithm. Warns, once, if the rewards contradict the norm and the noise that the bounds assume, or if the
        dictionary of a sketch is so small that the bounds are much wider than need be.
        """
        if within is not None and not 0 <= within < math.inf:
            raise ValueError(f"within must be finite and at least 0, a difference of two arms, got {within!r}")
        best = recommended(self.algorithm, self._run.pull._replace(belief=self.belief))
        if isinstance(self.arms, Box) or self._run.pull.best is not None or not has_band(self.algorithm):
            best.gap = None
        best.claim = self._claim(best.arm, within)
        if not self._doubted and (message := doubt(self.algorithm, self.belief, best)):
            self._doubted = True
            warnings.warn(message, stacklevel=2)
        return best

    def regret_bound(self) -> float:
        """Return an upper bound on the regret of all rewards so far, from the present band: a number to watch in a run.

        It is the sum over rewards of (largest upper bound - lower bound of the arm). Where the band holds, the best
        value is at most the first and that of the arm at least the second. It is usually about half of the sum of
        2 width_t std_t(x_t), which regret theorems bound, since it uses what was learnt after the pull. With arms that
        were eliminated or changed, on a `Box`, where f changes, and with bounds that have no probability: ValueError.
        """
        pull, model = self._run.pull, getattr(self.algorithm, "model", None)
        is_about_all = pull.about is None and pull.best is None and not isinstance(self.arms, Box)
        has_moved = any(event.kind == "move" for event in self._history)
        if has_moved or not (is_about_all and has_band(self.algorithm)) or isinstance(model, FORGETS):
            raise ValueError(
                "regret_bound needs a band with a probability, and the same f on the same finite arms in all rounds, "
                f"got {self._run.name}{' after change_arms' if has_moved else ''}: use an algorithm such as amm_ucb"
            )
        lower, upper = (numpy_of(ends) for ends in self.algorithm.bounds(self.belief))
        told = [event.content for event in self._history if isinstance(event.content, Told)] + self._held
        counts = np.bincount(np.concatenate([each.arms for each in told] or [self._asked[:0]]), minlength=len(upper))
        return math.inf if (lower > upper).any() else float(counts @ (upper.max() - lower))

    def _claim(self, arm: Any, within: float | None) -> Callable[[], Breakdown] | None:
        """Function that computes `Best.breakdown` from the rewards so far; None if it does not apply."""
        kernel, assumed, arms = kernel_of(self.algorithm), assumptions_of(self.algorithm), self.arms
        if kernel is None or assumed is None or isinstance(arms, Box | Blocks):
            return None
        if not (assumed.noise and self.belief.rounds):
            return None
        events, held, noise, delta = len(self._history), list(self._held), assumed.noise, assumed.delta
        size = noise if within is None else within
        return lambda: breakdown(kernel, self._told(events, held), noise, delta, numpy_of(arms), arm, size)

    def _told(self, events: int, held: list[Told]) -> tuple[Floats, Floats, Floats]:
        """Points, rewards and noise factors of the first events and of the round that was held."""
        arms, points, all_told = numpy_of(self._first_arms), [], []
        for event in (*self._history[:events], *(Event("learn", told) for told in held)):
            if event.kind == "move":
                arms = numpy_of(event.content)
            elif isinstance(told := event.content, Told):
                points.append(arms[told.arms])
                all_told.append(told)
        _, rewards, factors = joined(all_told)
        return np.concatenate(points), rewards, np.ones(len(rewards)) if factors is None else factors

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write algorithm, seed and history to one .npz file. A crash during writing leaves the previous file intact.

        A tensor of arms is written as a NumPy array. Arms on a cluster are not written.
        """
        start = self.algorithm, self._first_arms, self._seed
        digest = self._run.digest()
        write(path, State(*start, self._history, self._held, self._pending(), self._at_once, self._given, digest))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        algorithm: Algorithm | None = None,
        arms: Any = None,
        *,
        trusted: Iterable[type] = (),
    ) -> Self:
        """Continue a saved run identically, by replaying its history.

        Parameters
        ----------
        path : path of the file
        algorithm : Algorithm, optional
            Needed only if the saved one holds functions or foreign objects (a lambda as schedule, a scikit-learn
            kernel), which cannot be restored from a file.
        arms : tensor or dask array, optional
            The same arms on a device or on a cluster. Arms on a cluster are not in the file.
        trusted : dataclasses, optional
            Your own classes that the file may build, besides those of noregret: ``trusted=[MyRule]``.

        Raises
        ------
        ValueError
            If the replay asks for other arms than the saved run did: the algorithm or its dependencies have changed.
        """
        state, about = read(path, algorithm, arms, trusted)
        policy = cls.__new__(cls)
        policy._begin(state.algorithm, state.space, state.seed)
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
        """Return new arms, chosen as if the pending ones had returned their mean."""
        if self._held:
            with self._all_or_nothing():
                self._send_held("learn")
        pending = self._pending()
        new = np.fromiter(islice(self._run.ahead(pending, self._given), count), np.intp, count)
        self._wait_for(np.concatenate([pending, new]), at_once=True)
        self._given += count
        return new

    def _ask_for_more(self, count: int) -> Any:
        """Return arms of the loop's plan that have not been asked for."""
        pending, rest = self._pending(), self._unasked()
        if not len(rest):
            raise ValueError(
                f"all {len(pending)} arms that {self._run.name} has planned are pending: tell their rewards, or "
                "forget(arms) those that are lost, to continue"
            )
        new = rest[:count]
        self._wait_for(np.concatenate([pending, new]))
        return new

    def _unasked(self) -> Any:
        """Arms of the loop's plan that are neither pending nor reported."""
        return remaining(self._run.pull.arms, np.concatenate([self._pending(), *(told.arms for told in self._held)]))

    def _pending(self) -> Any:
        """Arms asked for and not reported yet, in the order of asking."""
        missing, places = self._waiting.copy(), []
        for place, name in enumerate(names(self._asked)):
            if missing[name] > 0:
                missing[name] -= 1
                places.append(place)
        return self._asked[places]

    def _wait_for(self, pending: Any, *, at_once: bool = False) -> None:
        self._asked, self._waiting, self._at_once = pending, Counter(names(pending)), at_once

    def _no_longer_pending(self, arms: Any) -> None:
        """Count arms as reported or lost; the round ends when no arm is pending."""
        back = []  # those of them that were pending, for undoing: a copy of all would cost more
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
        """Pass on the rewards of the round, if any. Loops take no noise factors, so the belief learns such rewards."""
        if self._held:
            told = joined(self._held)
            self._do(Event(kind if told.noise is None else "learn", told))
            self._held, self._shown = [], None

    def _do(self, event: Event) -> None:
        self._run.do(event)
        self._history.append(event)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo the changes of the body if it raises."""
        length, held = len(self._history), len(self._held)
        before = self._held, self._asked, self._waiting, self._at_once
        try:
            yield
        except BaseException:
            del self._history[length:]
            self._held, self._asked, self._waiting, self._at_once = before
            del self._held[held:]
            self._under_way = self._shown = None
            raise


TOO_WIDE = 2.0
"""Factor by which a dictionary may widen the bounds without a warning."""


@runtime_checkable
class Assumptions(Protocol):
    """Constants that a width assumes."""

    norm: float
    noise: float
    delta: float


def _parts(description: Any) -> Iterator[Any]:
    """A description and its parts, recursively, outer ones first."""
    yield description
    for part in fields(description) if is_dataclass(description) else ():
        yield from _parts(getattr(description, part.name))


def assumptions_of(description: Any) -> Assumptions | None:
    """First part of an algorithm that has norm, noise and delta; None if there is none, as under heavy tails."""
    return next((part for part in _parts(description) if isinstance(part, Assumptions)), None)


FORGETS = Recent, Discounted, VaryingGP
"""Models of functions that change."""


def has_band(algorithm: Any) -> bool:
    """True if the bounds have a probability, and no constant is one that theorems exclude."""
    parts = list(_parts(algorithm))
    return any(hasattr(part, "delta") for part in parts) and not any(
        getattr(part, "scale", 1.0) < 1
        or getattr(part, "constants", "theory") == "experiment"
        or not getattr(part, "corrected", True)
        or isinstance(part, RateGain)
        for part in parts
    )


def kernel_of(algorithm: Any) -> Kernel | None:
    """Kernel of an algorithm whose model takes the rewards as they are, of an f that does not change; else None."""
    model: Any = getattr(algorithm, "model", None)
    if isinstance(model, SparseGP) and isinstance(model.estimator, LeastSquares):
        return getattr(model.features, "kernel", None)
    is_exact = isinstance(model, RidgeFamily) or (isinstance(model, ExactGP) and model.truncation is None)
    return model.kernel if is_exact else None


def doubt(algorithm: Any, belief: Any, best: Best) -> str | None:
    """Warning for an algorithm whose rewards contradict its norm and noise; None if they do not.

    If f has norm at most B and the noise is R-sub-Gaussian, then at all rounds t together, with probability 1 - delta,

        y' (K_t + ridge I)^-1 y  <=  B^2 + (R^2 / ridge) c,   c = t + 2 sqrt(t L) + 2 L,   L = ln(pi^2 t^2 / (6 delta)).

    The left side, the posterior's ``misfit``, is the least of |g|^2 + sum of (y - g)^2 / ridge over all functions g,
    and f is one of them. The sum of t squared noises is at most R^2 c except with probability exp(-L) (Laurent and
    Massart 2000, whose proof holds for sub-Gaussian noise). A sketch leaves out the part q of f, by at most
    sqrt(E) |q| at all pulls together, E its ``unexplained_sum``: there the right side is multiplied by 1 + E / ridge.

    If nothing is contradicted, a warning that the dictionary of a sketch is too small, where its width has an
    ``excess`` (see `noregret.bandits.algorithms.sketching.CertifiedWidth`).
    """
    assumed = assumptions_of(algorithm)
    contradiction = _contradiction(assumed, belief)
    if best.empty:
        given = f"norm={assumed.norm:g} or noise={assumed.noise:g}" if assumed else "one of the bounds' constants"
        return f"no function fits the rewards: {contradiction or f'{given} is too small'}"
    excess: Any = getattr(assumed, "excess", None)
    if contradiction is None and excess and (factor := excess(belief)) > TOO_WIDE:
        return (
            f"the dictionary of the sketch is too small: the bounds hold, and are {factor:.1f} times as wide as they "
            "would be with all arms pulled. Please pass a larger oversampling, or coins='greedy'"
        )
    return contradiction


def _noises(belief: Any, delta: float) -> float:
    """The c of `doubt`, divided by the ridge."""
    t = belief.rounds
    log = math.log(math.pi**2 * t**2 / (6 * delta))
    return float((t + 2 * math.sqrt(t * log) + 2 * log) / belief.ridge)


def _contradiction(assumed: Assumptions | None, belief: Any) -> str | None:
    """Message if the rewards contradict the constants; for a ladder, those of every remaining rung."""
    if assumed is None or not belief.rounds:
        return None
    claims: list[tuple[Assumptions, Any]] = [(assumed, belief)]
    if isinstance(belief, SharedPosterior):
        claims = [(rung.width, posterior) for rung, posterior in belief.members.items()]
    if any(_fits(*claim) for claim in claims):
        return None
    norms, noises = [], []  # the least norm that fits if the noise is right, and the least noise if the norm is right
    for each, posterior in claims:
        c = _noises(posterior, each.delta)
        unit = assumed.norm / each.norm if each.norm else 1.0
        norms.append(math.sqrt(max(posterior.misfit - each.noise**2 * c, 0.0)) * unit)
        noises.append(math.sqrt((posterior.misfit - each.norm**2) / c))
    norm, noise = min(norms), min(noises)
    return (
        f"the rewards contradict norm={assumed.norm:g} and noise={assumed.noise:g}, under which they have probability "
        f"below {assumed.delta:g}: the bounds are too narrow. Please pass norm={norm * 1.001:.4g} if the noise is "
        f"right. If the norm is right, the noise is at least {noise:.3g}: pass that, or more. If all rewards are far "
        f"from 0, subtract their average first"
    )


def _fits(assumed: Assumptions, belief: Any) -> bool:
    """True if the rewards do not contradict norm and noise. Corrupted rewards never contradict a `ConjugateGP`."""
    if not hasattr(belief, "misfit") or isinstance(belief, ConjugatePosterior):
        return True
    room = 1 + getattr(belief, "unexplained_sum", 0.0) / belief.ridge
    most = room * (assumed.norm**2 + assumed.noise**2 * _noises(belief, assumed.delta))
    return bool(belief.misfit * (1 - 1e-6) <= most)
