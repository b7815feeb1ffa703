"""Elimination: its epochs and designs, and rewards that were not asked for."""

import math
from dataclasses import replace

import numpy as np
import pytest

from noregret import (
    Box,
    Constant,
    Elimination,
    ExactGP,
    Matern,
    MaxVarianceDesign,
    Policy,
    QuadratureFourier,
    RandomDesign,
    SparseGP,
    SquaredExponential,
    TruncatedRewards,
    algorithms,
    run,
)
from noregret.bandits.decision.designs import Doubling, SquareRootLengths
from noregret.bandits.decision.elimination import ShrinkingBox
from noregret.bandits.decision.region import Region
from noregret.problems import Gaussian, Problem

KERNEL = SquaredExponential(0.2)


def bumps(sd=0.1, points=200, seed=0):
    """Two hills, the right one higher, on uniform points."""
    arms = np.random.default_rng(seed).random((points, 1))
    means = np.exp(-50 * (arms[:, 0] - 0.25) ** 2) * 0.7 + np.exp(-50 * (arms[:, 0] - 0.75) ** 2)
    return Problem("bumps", arms, means, KERNEL, Gaussian(sd))


def epochs(algorithm, problem, count, seed=0):
    """The first pulls of a run, one per epoch."""
    rng = np.random.default_rng(seed)
    play = algorithm.play(problem.arms, rng)
    pulls = [next(play)]
    while len(pulls) < count:
        arms = pulls[-1].arms
        pulls.append(play.send((arms, problem.rewards(arms, rng))))
    return pulls


# Epochs


def test_the_lengths_of_epochs():
    own, doubling = SquareRootLengths(1000), Doubling()
    lengths = [own(1)]
    for _ in range(3):
        lengths.append(own(lengths[-1]))
    assert lengths == [32, 179, 424, 652]
    assert SquareRootLengths(100)(1) == 10  # a whole root is not rounded up
    assert [doubling(50), doubling(100)] == [100, 200]


@pytest.mark.parametrize(
    ("algorithm", "lengths"),
    [
        (algorithms.reds(KERNEL, constants="experiment", first_epoch=20), [20, 40, 80, 160]),
        (algorithms.bpe(KERNEL, constants="experiment", first_epoch=20), [20, 40, 80, 160]),
        (algorithms.bpe(KERNEL, constants="experiment", horizon=1000), [32, 179, 424, 365, 287]),
    ],
    ids=["reds", "bpe with REDS's", "bpe with its own"],
)
def test_a_policy_asks_for_a_whole_epoch(algorithm, lengths):
    problem, world = bumps(), np.random.default_rng(3)
    policy, asked = Policy(algorithm, problem.arms, rng=0), []
    for _ in lengths:
        arms = policy.ask()
        asked.append(len(arms))
        assert np.isin(arms, policy.active).all()
        policy.tell(arms, problem.rewards(arms, world))
    assert asked == lengths


def test_an_epoch_cut_by_the_horizon_eliminates_nothing():
    problem = bumps()
    reds = algorithms.reds(KERNEL, constants="experiment", first_epoch=50)
    trace = run(reds, problem, 149, rng=0, watch=["active"])
    assert len(trace.arms) == 149
    assert set(trace.watched["active"][:50]) == {200}
    assert len(set(trace.watched["active"][50:])) == 1
    assert trace.watched["active"][50] < 200


def test_rewards_told_one_by_one_count_once_against_the_horizon():
    """A first epoch of 4 leaves 6 of 10 for the second, which would have 8."""
    loop = Elimination(ExactGP(KERNEL, 0.2), RandomDesign(), Constant(100.0), 4, horizon=10)
    play = loop.play(np.linspace(0, 1, 20)[:, None], np.random.default_rng(0))
    plans, pull = [], next(play)
    for _ in range(4):
        plans.append(len(pull.arms))
        pull = play.send((pull.arms[:1], np.zeros(1)))
    assert plans == [4, 3, 2, 1]
    assert len(pull.arms) == 6


def test_elimination_by_hand():
    """Line 10 in the print, on the epoch's own rewards, for both rules of keeping."""
    problem = bumps()
    for keep in ("upper", "mean"):
        loop = Elimination(ExactGP(KERNEL, 0.2), RandomDesign(), Constant(0.7), 30, slack=0.05, keep=keep)
        rng, active = np.random.default_rng(0), np.arange(200)
        play = loop.play(problem.arms, rng)
        pull = next(play)
        for _ in range(3):
            rewards = problem.rewards(pull.arms, rng)
            x, K = problem.arms[pull.arms], KERNEL
            inverse = np.linalg.inv(K(x, x) + 0.2 * np.eye(len(x)))
            cross = K(x, problem.arms[active])
            mean = cross.T @ inverse @ rewards
            std = np.sqrt(1 - np.einsum("ij,ik,kj->j", cross, inverse, cross))
            half = 0.7 * std + 0.05
            if keep == "upper":
                kept = mean + half >= (mean - half).max()
            else:
                kept = mean >= mean.max() - 2 * 0.7 * std.max() - 2 * 0.05
            pull = play.send((pull.arms, rewards))
            active = active[kept]
            assert pull.active.tolist() == active.tolist()
            assert len(pull.about) == len(pull.belief.mean) == len(kept)
        assert len(active) < 150


def test_the_pieces_of_a_box_share_what_is_left_before_the_horizon():
    pieces = [Region(Box([side])).surveyed(np.random.default_rng(0)) for side in ([0.0, 0.3], [0.7, 1.0])]
    loop = ShrinkingBox(Elimination(ExactGP(KERNEL, 0.2), RandomDesign(), Constant(1.0), 50))
    plan = loop.plan(pieces, 16, 31, np.random.default_rng(0))
    assert ((plan < 0.5).sum(), (plan > 0.5).sum()) == (16, 15)
    assert len(loop.plan(pieces, 50, None, np.random.default_rng(0))) == 100


def test_the_first_epoch_goes_on_until_the_range_is_known():
    """App. D.2: c0 max UCB + (1 - c0) min UCB <= max LCB - 2 B max s at the end of it and not before."""
    problem = bumps(sd=0.0)
    reds = algorithms.reds(KERNEL, norm=3, noise=0, first_epoch=3, first_level=0.5)
    rng = np.random.default_rng(1)
    play = reds.play(problem.arms, rng)
    pull, told, met = next(play), [], []
    while len(pull.active) == 200 and len(told) < 200:
        assert len(pull.arms) == 3
        told += pull.arms.tolist()
        belief = ExactGP(KERNEL, 0).prior(problem.arms)
        belief.update(told, problem.means[told])
        upper, lower = belief.mean + 3 * belief.std, belief.mean - 3 * belief.std
        met.append(0.5 * upper.max() + 0.5 * upper.min() <= lower.max() - 6 * belief.std.max())
        pull = play.send((pull.arms, problem.means[pull.arms]))
    assert met[-1]
    assert not any(met[:-1])
    assert len(met) > 2
    assert len(pull.arms) == 2 * len(told)
    assert problem.means[pull.active].min() >= 0.5 * (problem.means.max() + problem.means.min())


# Designs


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [KERNEL, Matern(1.5, 0.3), Matern(2.5, 1.0)], ids=str)
@pytest.mark.parametrize("ridge", [0.0, 0.01, 0.2])
def test_the_shortlist_changes_the_time_and_not_the_plan(kernel, ridge):
    arms, model = np.random.default_rng(5).random((300, 2)), ExactGP(kernel, ridge)
    belief, greedy = model.prior(arms), []
    for _ in range(60):
        greedy.append(int(np.argmax(belief.std)))
        belief.update(greedy[-1], None)
    for shortlist in (4, 16, 300):
        plan = MaxVarianceDesign(shortlist)(model, arms, 60, np.random.default_rng(0))
        assert plan.tolist() == greedy


def test_random_design_is_uniform_with_replacement():
    plan = RandomDesign()(ExactGP(KERNEL, 0.1), np.linspace(0, 1, 10)[:, None], 20_000, np.random.default_rng(0))
    assert np.abs(np.bincount(plan, minlength=10) - 2000).max() < 5 * math.sqrt(2000)


# Rewards that were not asked for


@pytest.mark.parametrize("name", ["reds", "bpe"])
@pytest.mark.parametrize("when", ["before the first epoch", "inside the first", "inside the second"])
def test_rewards_beyond_the_plan_do_not_decide_who_is_eliminated(name, when):
    """They may have been chosen by looking, and `EpochWidth` is for points that were not."""
    problem, algorithm = bumps(), algorithms.NAMES[name](KERNEL, norm=3, noise=0.1, horizon=1000, first_epoch=50)
    alone, helped = (Policy(algorithm, problem.arms, rng=0) for _ in range(2))
    plan, best = alone.ask(), int(problem.means.argmax())
    if when == "before the first epoch":
        beyond = np.setdiff1d(np.arange(200), plan)[:20]
        helped.tell(beyond, np.full(20, 9.0))
        assert helped.belief.rounds == 0
    for epoch in ("inside the first", "inside the second"):
        plan = alone.ask()
        assert helped.ask().tolist() == plan.tolist()
        rewards = problem.rewards(plan, np.random.default_rng(1))
        alone.tell(plan, rewards)
        helped.tell(plan, rewards) if when != epoch else helped.tell(
            [*plan, *[best] * 50], [*rewards, *np.full(50, -9.0)]
        )
        assert helped.active.tolist() == alone.active.tolist()
        assert helped.best() == alone.best()


def test_a_reward_told_before_its_arm_was_asked_for_counts_as_the_plans():
    problem = bumps()
    policies = [
        Policy(algorithms.reds(KERNEL, constants="experiment", first_epoch=20), problem.arms, rng=0) for _ in "ab"
    ]
    plan = policies[0].ask()
    policies[1].tell(plan[7], problem.means[plan[7]])
    assert policies[1].belief.rounds == 1
    assert len(policies[1].ask()) == 19
    for policy in policies:
        policy.tell(policy.ask(), problem.means[policy.ask()])
    assert policies[0].active.tolist() == policies[1].active.tolist()


def test_a_run_with_rewards_beyond_its_plan_goes_on_identically_after_loading(tmp_path):
    problem, world = bumps(), np.random.default_rng(1)
    policy = Policy(algorithms.reds(KERNEL, constants="experiment", first_epoch=20), problem.arms, rng=0)
    policy.tell([3, 3, 190], [1.0, 2.0, 3.0])
    for _ in range(2):
        plan = np.append(policy.ask(), [5, 5, 100])
        policy.tell(plan, problem.rewards(plan, world))
    policy.save(tmp_path / "run.npz")
    again = Policy.load(tmp_path / "run.npz")
    assert again.ask().tolist() == policy.ask().tolist()
    assert again.best() == policy.best()


@pytest.mark.parametrize("design", [RandomDesign(), MaxVarianceDesign()], ids=["reds", "bpe"])
def test_any_model_goes_into_the_loop(design):
    """A sketch that truncates at infinity is least squares, and on quadrature features the exact posterior."""
    problem, exact = bumps(), ExactGP(KERNEL, 0.2)
    sketch = SparseGP(QuadratureFourier(KERNEL, 32), 0.2, TruncatedRewards(Constant(math.inf)))
    loop = Elimination(exact, design, Constant(1.0), 25)
    if isinstance(design, RandomDesign):
        same = [epochs(replace(loop, model=model), problem, 4)[-1].active.tolist() for model in (exact, sketch)]
        assert same[0] == same[1]
    assert run(replace(loop, model=sketch), problem, 200, rng=0).regret[-50:].mean() < 0.3
