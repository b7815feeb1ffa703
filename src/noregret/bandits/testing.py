"""Conformance checks of kernels, schedules, rules, models, algorithms and problems.

Call them from your own tests; each raises AssertionError with the condition and the actual value.

>>> from noregret import SquaredExponential
>>> check_kernel(3.0 * SquaredExponential(0.2), np.linspace(0, 1, 9)[:, None])
>>> check_kernel(lambda X, Y: X - Y.T, [[0.0], [1.0]])
Traceback (most recent call last):
AssertionError: k(y, x) must equal k(x, y): expected -1.0, got 1.0 at (0, 1)
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from noregret.bandits.belief.arms import as_arms
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.decision.loops import Algorithm, ThinksAhead
from noregret.bandits.decision.policy import Policy
from noregret.bandits.decision.rules import Band
from noregret.bandits.lab.run import World, run
from noregret.gp.kernels import KernelLike, SquaredExponential, as_kernel
from noregret.gp.posterior import Floats, Ints, Model, Posterior, Rule, Schedule

__all__ = [
    "check_algorithm",
    "check_beats_random",
    "check_kernel",
    "check_model",
    "check_problem",
    "check_rule",
    "check_schedule",
]

SPREAD = ("std", "information_gain", "effective_dimension")
COUNTS = ("rounds", "information_gain", "effective_dimension", "claimed_gain", "misfit")
KNOWLEDGE = ("rounds", "mean", *SPREAD, "rank", "pulled")
Pieces = Callable[[int], Iterable[Ints]]


def check_kernel(kernel: KernelLike, points: Any) -> None:
    """Check that k is symmetric and positive semi-definite on (n, d) points, in blocks and on the diagonal."""
    k, X = as_kernel(kernel), as_arms(points).copy()
    X.setflags(write=False)
    matrix, n = k(X, X), len(X)
    _equal(f"shape of k(X, X) for {n} points", matrix.shape, (n, n))
    _require(np.isfinite(matrix).all(), "k(X, X) must be finite, got nan or inf")
    _agree("k(y, x) must equal k(x, y)", matrix.T, matrix)
    _agree("diag(X) must be the diagonal of k(X, X)", k.diag(X), matrix.diagonal())
    _agree("k of one point and X must be a row of k(X, X)", k(X[:1], X), matrix[:1])
    lowest = np.linalg.eigvalsh(matrix).min()
    _require(lowest >= -1e-8 * matrix.diagonal().max(), f"k must be positive semi-definite, got eigenvalue {lowest}")


def check_schedule(schedule: Schedule, prior: Posterior | None = None) -> None:
    """Check that it returns a finite number >= 0 at every stage of a run from ``prior``, and changes nothing."""
    for belief in _stages(prior):
        before, value = belief.copy(), schedule(belief)
        good = np.ndim(value) == 0 and math.isfinite(value) and value >= 0
        _require(good, f"a schedule must give a finite number from 0 on, got {value!r} after {belief.rounds} rounds")
        _agree("a schedule asked twice must give the same", schedule(belief), value)
        _same("a schedule must not change the posterior", belief, before)


def check_rule(rule: Rule, prior: Posterior | None = None) -> None:
    """Check that it returns one finite score per arm at every stage of a run, equal for equal generators.

    If the rule has ``bounds``, the lower must not be above the upper. The run starts from ``prior``.
    """
    for belief in _stages(prior):
        before, n = belief.copy(), len(belief.mean)
        scores = rule(belief, np.random.default_rng(0))
        _equal("a rule must give one score per arm", np.shape(scores), (n,))
        _require(np.isfinite(scores).all(), f"scores must be finite, got {scores} after {belief.rounds} rounds")
        _agree("the same generator must give the same scores", rule(belief, np.random.default_rng(0)), scores)
        if isinstance(rule, Band):
            lower, upper = rule.bounds(belief)
            ordered = np.shape(lower) == np.shape(upper) == (n,) and (lower <= upper).all()
            _require(ordered, f"bounds must be {n} lower ones below {n} upper ones, got {lower} and {upper}")
        _same("a rule must not change the posterior", belief, before)


def check_model(model: Model, arms: Any, *, linear: bool = True, fixed: bool = True) -> None:
    """Check the contract of `noregret.gp.posterior.Posterior` on (N, d) arms, for a ridge above 0.

    ``linear``: the mean is linear in the rewards, as with least squares but not with truncation. ``fixed``: the
    variance depends only on the pulled arms, unlike with a dictionary that is redrawn during the run.
    """
    arms, draw = as_arms(arms), np.random.default_rng(0)
    pulls, rewards = draw.integers(len(arms), size=16), draw.standard_normal(16)

    def told(order: Any, *sizes: int) -> Posterior:
        belief = model.prior(arms, np.random.default_rng(1))
        for block in np.split(np.asarray(order), np.cumsum(sizes)):
            belief.update(pulls[block], rewards[block])
        return belief

    prior = model.prior(arms, np.random.default_rng(1))
    for name in COUNTS:
        _agree(f"before any reward, {name} must be 0", getattr(prior, name), 0)
    _agree("before any reward, mean must be 0", prior.mean, np.zeros(len(arms)))
    _equal("before any reward, arms pulled and stds", (prior.pulled.size, prior.std.size), (0, len(arms)))
    _check_separate(told(range(16)))
    belief = told(range(16), 1, 5, 2)
    _equal("rounds must count the rewards", belief.rounds, len(pulls))
    first = list(dict.fromkeys(pulls.tolist()))
    _equal("pulled must be the arms in order of their first pull", belief.pulled.tolist(), first)
    dimension = (belief.std[pulls] ** 2).sum() / belief.ridge
    _agree("the effective dimension must be the sum of std^2 / ridge", belief.effective_dimension, dimension, 1e-6)
    _check_elsewhere(belief, arms[::-2])
    _check_thinking_ahead(belief)
    _check_sample(belief)
    _check_claims(model.prior(arms, np.random.default_rng(1)), pulls, rewards)
    if fixed and linear:
        _check_misfit(model.prior(arms, np.random.default_rng(1)), pulls, rewards)
    if fixed:
        _check_shrinking(model.prior(arms, np.random.default_rng(1)), pulls)
        names = ("mean", *SPREAD) if linear else SPREAD
        _same("one block must be as good as one reward at a time", told(range(16)), told(range(16), *[1] * 15), names)
        _same("the order of rewards must not matter", belief, told(range(16)[::-1]), names)
        many, once = (model.prior(arms, np.random.default_rng(1)) for _ in range(2))
        many.update([1, 1, 1, 1, 0], [0.1, 0.2, 0.3, 0.2, 0.5])
        once.update([1, 0], [0.2, 0.5], noise=[1 / 4, 1])
        _same("four pulls of an arm must be one pull of their average at a quarter of the ridge", many, once, names)
        _check_learning(model, arms, pulls, rewards, names)


def check_algorithm(algorithm: Algorithm, problem: World, *, rounds: int = 40) -> None:
    """Check it in a `Policy`: rewards in any order and in pieces, saving and loading, bad rewards, lost arms.

    Use a problem without equal arms, so that no choice depends on rounding.
    """
    ways: dict[str, Pieces] = {
        "once more from the same seed": lambda n: [np.arange(n)],
        "one at a time": lambda n: np.arange(n)[:, None],
        "in two pieces, the last first": lambda n: np.array_split(np.arange(n), 2)[::-1],
    }
    whole = _play(Policy(algorithm, problem.arms, rng=0), problem, rounds)
    for way, pieces in ways.items():
        arms = _play(Policy(algorithm, problem.arms, rng=0), problem, rounds, pieces)
        _equal(f"rewards reported {way} must lead to the same arms", arms, whole)
    policy = Policy(algorithm, problem.arms, rng=0)
    _play(policy, problem, rounds // 2)
    _check_bad_rewards(policy)
    asked, others = policy.ask(), np.setdiff1d(np.arange(len(problem.arms)), policy.ask())
    some = np.append(asked[: asked.size // 2], others[:1])  # the round is unfinished: half of its arms, and another one
    policy.tell(some, problem.rewards(some, np.random.default_rng(2)))
    loaded = _loaded(policy)
    _equal("a loaded policy must ask for the same arms", loaded.ask().tolist(), policy.ask().tolist())
    _same("a loaded policy must believe the same", loaded.belief, policy.belief)
    then, expected = (_play(p, problem, rounds // 2) for p in (loaded, policy))
    _equal("a loaded policy must continue with the same arms", then, expected)
    _equal("a loaded policy must have the same best arm", loaded.best(), policy.best())
    _check_asking_by_number(Policy(algorithm, problem.arms, rng=0), problem, rounds // 6)


def check_problem(problem: World, *, draws: int = 2000, margin: float = 6.0) -> None:
    """Check one finite reward per arm, the same from the same generator, and averages near the means.

    The average of ``draws`` rewards may deviate by ``margin`` standard errors; raise ``draws`` if rewards are
    rare. At most 50 of the arms are checked, including the best.
    """
    means, n = np.asarray(problem.means, dtype=float), len(problem.arms)
    _equal("means must hold one number per arm", means.shape, (n,))
    arms = np.unique(np.append(np.linspace(0, n - 1, min(n, 49)).astype(np.intp), means.argmax()))
    rewards, again = (problem.rewards(np.repeat(arms, draws), np.random.default_rng(0)) for _ in range(2))
    _equal("rewards must have the shape of the arms", np.shape(rewards), (arms.size * draws,))
    _require(np.isfinite(rewards).all(), "rewards must be finite, got nan or inf")
    _agree("the same generator must give the same rewards", again, rewards)
    table = rewards.reshape(-1, draws)
    allowed = margin * table.std(axis=1) / math.sqrt(draws) + 1e-9 * (1 + np.abs(means[arms]))
    for arm, average, error in zip(arms, table.mean(axis=1), allowed, strict=True):
        _require(abs(average - means[arm]) <= error, f"arm {arm} must average {means[arm]} +- {error}, got {average}")


def check_beats_random(algorithm: Algorithm, problem: World, horizon: int, seeds: int, margin: float) -> None:
    """Check that its mean regret over ``seeds`` runs is below ``margin`` times that of random arms."""
    regret = np.mean([run(algorithm, problem, horizon, rng=seed).cumulative_regret[-1] for seed in range(seeds)])
    chance = horizon * float(np.mean(np.max(problem.means) - problem.means))
    _require(regret <= margin * chance, f"regret must be below {margin} of random's {chance:.4g}, got {regret:.4g}")


def _stages(prior: Posterior | None) -> Iterator[Posterior]:
    """A posterior before the first reward, after it, after a block and after repetitions."""
    belief = (prior or ExactGP(SquaredExponential(0.3), 0.1).prior(np.linspace(0, 1, 7)[:, None])).copy()
    yield belief
    last = len(belief.mean) - 1
    for arms, rewards in (([last], [0.5]), ([0, last, 0], [1.0, -1.0, 0.5]), ([0] * 9, [0.0] * 9)):
        belief.update(arms, rewards)
        yield belief


def _check_elsewhere(belief: Posterior, points: Floats) -> None:
    _agree("predict(arms) must be mean and std", belief.predict(belief.arms), (belief.mean, belief.std), 1e-6)
    moved = belief.at(points)
    _agree("at(points) must believe what predict(points) says", (moved.mean, moved.std), belief.predict(points), 1e-6)
    _same("at(points) must know as much", moved, belief, COUNTS)


def _check_separate(belief: Posterior) -> None:
    """Check that a copy is independent, and that earlier means and stds do not change."""
    mean, std, rounds = belief.mean, belief.std, belief.rounds
    kept, twin, other = (mean.copy(), std.copy()), belief.copy(), belief.copy()
    twin.update([0, 1], [5.0, -5.0])
    _equal("an update of a copy must not count in the original", (belief.rounds, twin.rounds), (rounds, rounds + 2))
    _same("an update of a copy must not reach the original", belief, other)
    belief.update(0, 1.0)
    _agree("mean and std must not be written to in place", (mean, std), kept)


def _check_thinking_ahead(belief: Posterior) -> None:
    ahead, arms = belief.copy(), belief.pulled[:2]
    ahead.update(arms)
    _equal("an update without rewards must not count as a round", ahead.rounds, belief.rounds)
    _agree("an update without rewards must not move the mean", ahead.mean, belief.mean)
    _agree("an update without rewards must not change the claimed gain", ahead.claimed_gain, belief.claimed_gain)
    lower = (ahead.std <= belief.std + 1e-9).all() and (ahead.std < belief.std)[arms].all()
    _require(lower, f"an update without rewards must lower the std, got {ahead.std} from {belief.std}")


def _check_sample(belief: Posterior, draws: int = 4000) -> None:
    """Check mean and covariance of draws, to 5 standard errors."""
    rng, everywhere, variance = np.random.default_rng(0), np.arange(belief.mean.size), belief.std**2
    covariance = belief.covariance(everywhere, everywhere)
    _agree("the covariance must have std^2 on its diagonal", covariance.diagonal(), variance, 1e-7)
    samples = np.array([belief.sample(rng) for _ in range(draws)])
    off = np.abs(samples.mean(axis=0) - belief.mean) - 5 * belief.std / math.sqrt(draws)
    _require(off.max() < 1e-6, f"samples must average the mean, got {off.max()} more than 5 standard errors off")
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / draws)
    off = np.abs(np.cov(samples.T) - covariance) - 5 * error
    _require(off.max() < 1e-6, f"samples must have the covariance, got {off.max()} more than 5 standard errors off")


def _check_shrinking(belief: Posterior, pulls: Ints) -> None:
    for arm in pulls:
        std, gain = belief.std, belief.information_gain
        belief.update(arm, 0.0)
        _require((belief.std <= std + 1e-9).all(), f"the std must never grow, got {belief.std} after {std}")
        step = 0.5 * math.log1p(std[arm] ** 2 / belief.ridge)
        _agree("a pull must gain 1/2 ln(1 + std^2 / ridge)", belief.information_gain - gain, step, 1e-6)


def _check_claims(belief: Posterior, pulls: Ints, rewards: Floats) -> None:
    for block in np.split(np.arange(len(pulls)), (1, 6, 8)):
        std, claimed = belief.std[pulls[block]], belief.claimed_gain
        belief.update(pulls[block], rewards[block])
        step = 0.5 * np.log1p(std**2 / belief.ridge).sum()
        what = "each pull must claim the gain 1/2 ln(1 + std^2 / ridge) of before its update"
        _agree(what, belief.claimed_gain - claimed, step, 1e-6)


def _check_misfit(belief: Posterior, pulls: Ints, rewards: Floats) -> None:
    for arm, reward in zip(pulls, rewards, strict=True):
        mean, variance, misfit = belief.mean[arm], belief.std[arm] ** 2, belief.misfit
        belief.update(arm, reward)
        step = (reward - mean) ** 2 / (belief.ridge + variance)
        what = "a reward must add (reward - mean)^2 / (ridge + std^2) to the misfit"
        _agree(what, belief.misfit - misfit, step, 1e-6)


def _check_learning(model: Model, arms: Floats, pulls: Ints, rewards: Floats, names: tuple[str, ...]) -> None:
    """Check rewards of points that are arms of one posterior and mostly not of another."""
    whole, part = (model.prior(each, np.random.default_rng(1)) for each in (arms, arms[::3]))
    whole.update(pulls, rewards)
    part.learn(arms[pulls[:9]], rewards[:9])
    part.learn(arms[pulls[9]], rewards[9])
    part.learn(arms[pulls[10:]], rewards[10:], noise=np.ones(len(pulls) - 10))
    what = "rewards of points that are not arms must have the same effect as if they were"
    _equal(what, part.rounds, whole.rounds)
    _same(what, part, whole.at(arms[::3]), names)


def _play(policy: Policy, problem: World, rounds: int, pieces: Pieces = lambda n: [np.arange(n)]) -> list[int]:
    """Play at least ``rounds`` rewards, reported in these pieces of each batch; return the arms asked for."""
    world, n = np.random.default_rng(1), len(problem.arms)
    asked: list[int] = []
    while len(asked) < rounds:
        arms = policy.ask()
        good = arms.size > 0 and arms.min() >= 0 and arms.max() < n
        _require(good, f"ask() must give at least one arm of 0..{n - 1}, got {arms}")
        _equal("ask() asked twice", policy.ask().tolist(), arms.tolist())
        rewards = problem.rewards(arms, world)
        for piece in pieces(arms.size):
            policy.tell(arms[piece], rewards[piece])
        asked += arms.tolist()
    return asked


def _check_asking_by_number(policy: Policy, problem: World, times: int) -> None:
    """Check ask(n), with rewards in reverse order, and the first arm lost every other time."""
    world, n, told = np.random.default_rng(3), len(problem.arms), 0
    for i in range(times):
        before = policy.belief.copy()
        arms = policy.ask(3)
        good = 1 <= arms.size <= 3 and arms.min() >= 0 and arms.max() < n
        _require(good, f"ask(3) must give one to three arms of 0..{n - 1}, got {arms}")
        _same("ask(3) must not change the belief", policy.belief, before)
        _equal("ask() after ask(3)", policy.ask().tolist(), arms.tolist())
        loaded = _loaded(policy)
        answered = arms[i % 2 :][::-1]
        rewards = problem.rewards(answered, world)
        for each in (policy, loaded):
            each.forget(arms[: i % 2])
            each.tell(answered, rewards)
        _same("a policy loaded with arms out must believe the same", loaded.belief, policy.belief)
        told += answered.size
    if isinstance(policy.algorithm, ThinksAhead):
        _equal("rewards must be learnt immediately: rounds", policy.belief.rounds, told)


def _loaded(policy: Policy) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder, "run.npz"))
        return Policy.load(Path(folder, "run.npz"), policy.algorithm)


def _check_bad_rewards(policy: Policy) -> None:
    asked, before = policy.ask(), policy.belief.copy()
    first, n = int(asked[0]), len(policy.arms)
    bad: list[Any] = [math.nan, math.inf, None, "1", 1j, [1.0, 2.0]]
    for arm, reward in [*((first, value) for value in bad), (n, 1.0), (-1, 1.0), (0.5, 1.0)]:
        with suppress(ValueError):
            policy.tell(arm, reward)
            raise AssertionError(f"tell({arm!r}, {reward!r}) must raise ValueError")
    _equal("after a bad reward, ask()", policy.ask().tolist(), asked.tolist())
    _same("a bad reward must change nothing", policy.belief, before)


def _same(what: str, one: Posterior, other: Posterior, names: tuple[str, ...] = KNOWLEDGE) -> None:
    for name in names:
        _agree(f"{what} ({name})", getattr(one, name), getattr(other, name), 1e-7)


def _agree(what: str, got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Equal in shape, and in value up to the tolerance times the larger of 1 and the largest value."""
    one, other = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    _require(one.shape == other.shape, f"{what}: expected shape {other.shape}, got {one.shape}")
    off = np.abs(one - other)
    if off.size and not off.max() <= tolerance * max(1.0, np.abs(other).max()):
        i = tuple(int(j) for j in np.unravel_index(np.argmax(np.nan_to_num(off, nan=np.inf)), off.shape))
        raise AssertionError(f"{what}: expected {other[i]}, got {one[i]}" + (f" at {i}" if i else ""))


def _equal(what: str, got: Any, expected: Any) -> None:
    _require(got == expected, f"{what}: expected {expected}, got {got}")


def _require(holds: Any, message: str) -> None:
    if not holds:
        raise AssertionError(message)
