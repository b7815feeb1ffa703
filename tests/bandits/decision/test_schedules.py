"""Schedules: constants and the three information gains."""

import gc
import math
import pickle
from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
import pytest

from noregret import (
    UCB,
    Constant,
    Elimination,
    ExactGP,
    GreedyGain,
    Linear,
    Matern,
    Policy,
    RandomDesign,
    RateGain,
    RealisedGain,
    Scaled,
    Sequential,
    SquaredExponential,
    Tabular,
    Thompson,
    ThresholdTree,
)
from noregret.bandits.algorithms.kernelized_bandits import IGPWidth, SrinivasWidth
from noregret.bandits.algorithms.tighter_widths import AMMWidth, AYWidth
from noregret.bandits.belief.estimators import ClippedResiduals, TruncatedDirections, TruncatedRewards
from noregret.bandits.decision.balancing import Rung
from noregret.bandits.decision.elimination import Survival
from noregret.optimizer import OptimizerConfig
from noregret.testing import check_schedule

MODEL = ExactGP(SquaredExponential(0.3), 0.1)
ARMS = np.array([[0.0], [0.1], [0.45], [0.5], [1.0]])


def gain(kernel, ridge, pulls, arms=ARMS):
    points = arms[list(pulls)]
    return 0.5 * np.linalg.slogdet(np.eye(len(points)) + kernel(points, points) / ridge)[1]


@pytest.mark.parametrize(
    "schedule",
    [
        Constant(2.0),
        Scaled(Constant(2.0), 0.5),
        RealisedGain(),
        RateGain(SquaredExponential(0.3)),
        RateGain(Matern(2.5, 0.3)),
        RateGain(Linear()),
        GreedyGain(MODEL),
        IGPWidth(1.0, 0.1, 0.1, RealisedGain()),
        SrinivasWidth(1.0, 0.1, GreedyGain(MODEL)),
        AYWidth(1.0, 0.1, 0.1),
        AMMWidth(1.0, 0.1, 0.1),
    ],
    ids=lambda schedule: str(schedule)[:50],
)
def test_keeps_the_contract(schedule):
    check_schedule(schedule)
    check_schedule(schedule, ExactGP(Linear(1.0), 0.5).prior(ARMS))


def test_constant_and_scaled():
    assert Constant(3.0)(None) == 3.0
    assert Scaled(lambda posterior: posterior, 2.0)(5.0) == 10.0


def test_realised_gain_is_the_log_determinant_of_what_was_pulled():
    belief = MODEL.prior(ARMS)
    belief.update([0, 3, 3, 4], [1.0, 2.0, 3.0, 4.0])
    assert RealisedGain()(belief) == pytest.approx(gain(MODEL.kernel, 0.1, [0, 3, 3, 4]))


@pytest.mark.parametrize("kernel", [SquaredExponential(0.3), Matern(0.5, 0.2), Linear(0.2)], ids=str)
@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_greedy_gain_is_above_the_true_maximum_and_below_it_over_one_minus_one_over_e(kernel, ridge):
    """Brute force over every multiset of at most 5 of 5 arms."""
    model = ExactGP(kernel, ridge)
    schedule, belief = GreedyGain(model), model.prior(ARMS)
    assert schedule(belief) == 0.0
    for t in range(1, 6):
        belief.update(0, 0.0)
        most = max(gain(kernel, ridge, pulls) for pulls in combinations_with_replacement(range(5), t))
        assert most <= schedule(belief) * (1 + 1e-12)
        assert schedule(belief) <= most / (1 - math.exp(-1)) * (1 + 1e-12)


def test_greedy_gain_is_above_the_maximum_where_greedy_itself_is_not():
    """The arm with the largest variance lies between two others that together are more informative."""
    features = np.array([[0.8, 0.8], [1.1, 0.0], [0.0, 1.1]])
    model = ExactGP(Tabular(features @ features.T), 0.1)
    belief = model.prior(model.kernel.arms)
    belief.update([0, 0], [0.0, 0.0])
    most = gain(model.kernel, 0.1, [1, 2], model.kernel.arms)
    assert gain(model.kernel, 0.1, [0, 1], model.kernel.arms) < most < GreedyGain(model)(belief)


def test_greedy_gain_is_the_same_whatever_the_run_pulls():
    schedule, one, other = GreedyGain(MODEL), MODEL.prior(ARMS), MODEL.prior(ARMS)
    one.update([0] * 6, [1.0] * 6)
    for arm in (4, 3, 2, 1, 0, 2):
        other.update(arm, 5.0)
        schedule(other)
    assert schedule(one) == pytest.approx(schedule(other))
    assert schedule(one.copy()) == pytest.approx(schedule(one))


@pytest.mark.parametrize("narrow", [0.5, 0.0])
def test_greedy_gain_counts_what_was_learnt_at_arms_that_are_gone(narrow):
    """On similar arms there is hardly any gain; earlier gain stays in the width."""
    policy = Policy(Sequential(MODEL, UCB(GreedyGain(MODEL))), ARMS, rng=0)
    policy.tell(np.arange(len(ARMS)), np.zeros(len(ARMS)))
    gained = policy.belief.information_gain
    policy.change_arms(narrow + 1e-9 * ARMS)
    for _ in range(5):
        assert GreedyGain(MODEL)(policy.belief) >= policy.belief.information_gain >= gained - 1e-9
        policy.tell(policy.ask(), [0.0])


def test_greedy_gain_looks_at_the_runs_own_arms():
    schedule, few, many = GreedyGain(MODEL), MODEL.prior(ARMS[:1]), MODEL.prior(ARMS)
    for belief in (few, many):
        belief.update([0] * 4, [0.0] * 4)
    assert schedule(few) == pytest.approx(gain(MODEL.kernel, 0.1, [0] * 4) / (1 - math.exp(-1)))
    assert schedule(many) > schedule(few)


@pytest.mark.slow
def test_greedy_gain_forgets_finished_runs():
    schedule, belief = GreedyGain(MODEL), MODEL.prior(ARMS)
    schedule(belief)
    assert len(schedule._greedy) == 1
    del belief
    gc.collect()
    assert len(schedule._greedy) == 0


def test_schedules_can_be_sent_to_other_processes():
    schedule, belief = GreedyGain(MODEL), MODEL.prior(ARMS)
    belief.update([1, 2], [0.0, 0.0])
    value = schedule(belief)
    twin = pickle.loads(pickle.dumps(schedule))
    assert twin == schedule
    assert twin(belief) == pytest.approx(value)


@pytest.mark.parametrize(
    ("kernel", "rate"),
    [
        (SquaredExponential(0.2), lambda t, d: math.log(t) ** (d + 1)),
        (Matern(2.5, 0.2), lambda t, d: t ** (d * (d + 1) / (5 + d * (d + 1))) * math.log(t)),
        (Matern(0.5, 0.2), lambda t, d: t ** (d * (d + 1) / (1 + d * (d + 1))) * math.log(t)),
        (Linear(), lambda t, d: d * math.log(t)),
    ],
    ids=["se", "matern-2.5", "matern-0.5", "linear"],
)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_rate_gain(kernel, rate, d):
    """Constant 1, and gamma_0 = gamma_1 = 0."""
    values = [RateGain(kernel)(SimpleNamespace(rounds=t, arms=np.zeros((4, d)))) for t in range(6)]
    assert values[:2] == [0.0, 0.0]
    assert values[2:] == pytest.approx([rate(t, d) for t in range(2, 6)])


def test_rate_gain_says_at_once_where_no_rate_is_known():
    with pytest.raises(ValueError, match=r"^no growth rate of the information gain is known for Tabular\(<2 x 2 matr"):
        RateGain(Tabular(np.eye(2)))


KERNEL = SquaredExponential(0.3)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (UCB, "width"),
        (Thompson, "width"),
        (lambda number: Scaled(number, 2.0), "schedule"),
        (lambda number: IGPWidth(1.0, 0.1, 0.1, number), "gain"),
        (lambda number: SrinivasWidth(1.0, 0.1, number), "gain"),
        (lambda number: ExactGP(KERNEL, 0.1, number), "truncation"),
        (TruncatedRewards, "level"),
        (TruncatedDirections, "level"),
        (lambda number: ClippedResiduals(number, 1.0), "level"),
        (lambda number: Elimination(MODEL, RandomDesign(), number, 4), "width"),
        (Survival, "width"),
        (lambda number: ThresholdTree(MODEL, number, (0.0, 1.0)), "width"),
        (lambda number: Rung(MODEL, number, lambda rounds, columns: 1.0), "width"),
        (lambda number: OptimizerConfig(interval=number), "interval"),
    ],
)
def test_a_number_is_a_constant_wherever_a_schedule_is_wanted(make, field):
    for number in (2, 2.0, np.float64(2)):
        assert getattr(make(number), field) == Constant(2.0)
    schedule = RealisedGain()
    assert getattr(make(schedule), field) is schedule
    for bad in ("2", True, math.nan, None if field != "truncation" else [2], RealisedGain):
        with pytest.raises(ValueError, match=f"{field} must be a number or a schedule such as Constant"):
            make(bad)


@pytest.mark.parametrize(
    "algorithm",
    [
        Sequential(ExactGP(KERNEL, 0.1, 1.5), UCB(2.0)),
        Sequential(MODEL, Thompson(1)),
        Elimination(MODEL, RandomDesign(), 2.0, 4),
        ThresholdTree(MODEL, 2.0, (0.0, 1.0), points_per_cell=2, patience=3),
    ],
)
def test_a_policy_with_a_number_for_a_schedule_plays_and_continues_after_loading(algorithm, tmp_path):
    policy = Policy(algorithm, ARMS, rng=0)
    for _ in range(6):
        arms = policy.ask()
        policy.tell(arms, np.sin(np.arange(np.size(arms))))
    policy.save(tmp_path / "p")
    again = Policy.load(tmp_path / "p")
    assert repr(again.algorithm) == repr(algorithm)
    for _ in range(6):
        arms = policy.ask()
        np.testing.assert_array_equal(again.ask(), arms)
        for one in (policy, again):
            one.tell(arms, np.cos(np.arange(np.size(arms))))
