"""Bounds: against values by hand, brute force and runs."""

import itertools
import math

import numpy as np
import pytest

from noregret import Matern, SquaredExponential, algorithms, bounds, problems, run

ARMS = np.linspace(0, 1, 30)[:, None]
KERNEL = SquaredExponential(0.2)


def gain_of(matrix, pulls, ridge):
    return 0.5 * np.linalg.slogdet(np.eye(len(pulls)) + matrix[np.ix_(pulls, pulls)] / ridge)[1]


@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_the_largest_gain_is_not_below_any_and_close_to_it_after_some_pulls(ridge):
    arms = np.array([[0.0], [0.1], [0.7]])
    matrix = KERNEL(arms, arms)
    for rounds, tolerance in ((1, math.inf), (3, 0.2), (8, 0.03)):
        every = itertools.combinations_with_replacement(range(3), rounds)
        largest = max(gain_of(matrix, list(pulls), ridge) for pulls in every)
        found = bounds.max_gain(KERNEL, arms, rounds, ridge)
        assert largest <= found <= (1 + tolerance) * largest


def test_the_gain_of_one_arm_is_known():
    assert bounds.max_gain(KERNEL, [[0.5]], 7, 0.5) == pytest.approx(0.5 * math.log(1 + 7 / 0.5))


def test_independent_arms_share_the_pulls():
    far = 1e3 * np.arange(4)[:, None]
    assert bounds.max_gain(KERNEL, far, 40, 2.0) == pytest.approx(2 * math.log(1 + 10 / 2.0))


@pytest.mark.parametrize(("ridge", "chosen"), [(1e6, 1), (0.2, 2)])
def test_the_beginning_of_random_exploration_on_two_arms_by_hand(ridge, chosen):
    """The eigenfunctions are 1 and +-1, so N(R) = R and F = 1; T(1) is the smaller eigenvalue, (1 - c) / 2."""
    found = bounds.random_exploration(KERNEL, [[0.0], [0.1]], ridge)
    assert found.heads == pytest.approx([1, 2])
    assert found.tails == pytest.approx([(1 - math.exp(-0.125)) / 2, 0])
    assert (found.chosen, found.largest, found.flat) == (chosen, pytest.approx(1), math.ceil(729 * math.log(120)))
    n = found.concentrated
    assert 1944 * chosen * math.log(60 * n) <= n
    assert 1944 * chosen * math.log(60 * (n - 1)) > n - 1
    assert found.pulls == n


@pytest.mark.parametrize("ridge", [0.2, 3e4, 1e6, 1e9])
def test_the_beginning_of_random_exploration_by_brute_force(ridge):
    """All R of four arms for every n up to 200,000, with the eigenfunctions from a singular value decomposition."""
    arms, delta, n = np.array([[0.0], [0.2], [0.3], [0.8]]), 0.05, np.arange(1.0, 200_001)
    functions, values, _ = np.linalg.svd(KERNEL(arms, arms) / 4)
    squares, starts = 4 * functions**2, []
    for R in range(1, 5):
        head = max(sum(squares[x, j] for j in range(R)) for x in range(4))
        tail = max(sum(values[j] * squares[x, j] for j in range(R, 4)) for x in range(4))
        following = values[R] if R < 4 else 0.0
        first = head <= n / (1944 * np.log(6 * n / delta))
        second = np.maximum(42 * tail, n * following) * math.log(12 / delta) <= ridge / 27
        starts += n[first & second].tolist()[:1]
    flat = math.ceil(729 * squares.max() ** 2 * math.log(12 / delta))
    found = bounds.random_exploration(KERNEL, arms, ridge, delta=delta)
    assert (found.pulls, found.concentrated, found.flat) == (max(min(starts), flat), min(starts), flat)


def test_arms_of_one_place_have_one_eigenfunction():
    found = bounds.random_exploration(KERNEL, np.full((30, 1), 0.5), 0.2)
    assert (len(found.heads), found.chosen, found.concentrated) == (1, 1, 27_856)


def test_igp_ucb_by_hand():
    found = bounds.igp_ucb(KERNEL, 1000, arms=[[0.5]], norm=2.0, noise=0.3, delta=0.05)
    ridge = 1 + 2 / 1000
    gain = 0.5 * math.log(1 + 1000 / ridge)
    width = 2.0 + 0.3 * math.sqrt(2 * (gain + 1 + math.log(20)))
    assert (found.gain, found.width) == (pytest.approx(gain), pytest.approx(width))
    assert found.regret == pytest.approx(2 * width * math.sqrt(1000 * 2 * gain / math.log(1 + 1 / ridge)))
    assert not found.is_trivial


def test_gp_ts_by_hand():
    found = bounds.gp_ts(KERNEL, 10**9, arms=[[0.5]], norm=1.0, noise=0.1, delta=0.1)
    ridge, rounds, p = 1 + 2e-9, 10**9, 1 / (4 * math.e * math.sqrt(math.pi))
    gain = 0.5 * math.log(1 + rounds / ridge)
    width = 1.0 + 0.1 * math.sqrt(2 * (gain + 1 + math.log(20)))
    spread = width * (1 + math.sqrt(2 * math.log(rounds**2)))
    total = math.sqrt(rounds * 2 * gain / math.log(1 + 1 / ridge))
    regret = 11 * spread / p * total + 3 * math.pi**2 / 6 + 15 * spread / p * math.sqrt(2 * rounds * math.log(20))
    assert found.regret == pytest.approx(regret)


@pytest.mark.parametrize(("name", "growth"), [("bkb", 1.0), ("bbkb", 2.0)])
def test_bkb_by_hand(name, growth):
    """A greedy dictionary with E / ridge of 1/4 at most; with the paper's width fresh coins, and a = 3."""
    bound, constants = bounds.NAMES[name], {"arms": [[0.5]], "norm": 2.0, "noise": 0.3, "delta": 0.05, "ridge": 0.09}
    gain, rounds = 0.5 * math.log(1 + 10**6 / 0.09), 10**6
    total = math.sqrt(rounds * 2 * gain / math.log(1 + 1 / 0.09))
    kappa = float(np.linalg.eigvalsh([[1.0, 0.5], [0.5, 1.25]])[-1])
    width = math.sqrt(growth) * (math.sqrt(kappa) * 2.0 + math.sqrt(2 * gain + 0.25 + 2 * math.log(20)))
    found = bound(KERNEL, rounds, **constants)
    assert found.width == pytest.approx(width)
    assert found.regret == pytest.approx(2 * width * math.sqrt(kappa) * total)
    paper = bound(KERNEL, rounds, width="paper", **constants)
    start = (1 + math.sqrt(2)) * 2.0 + math.sqrt(3 * 3 * growth * 2 * gain + 2 * math.log(40))
    assert paper.width == pytest.approx(math.sqrt(growth) * start)
    assert paper.regret == pytest.approx(2 * paper.width * math.sqrt(3) * total)
    with pytest.raises(ValueError, match="there is no bound for coins='kept' with width='certified': leave coins out"):
        bound(KERNEL, rounds, coins="kept", **constants)
    with pytest.raises(ValueError, match=r"epsilon must be in \(0, 1\), got 1"):
        bound(KERNEL, rounds, epsilon=1, **constants)


@pytest.mark.parametrize("name", bounds.NAMES)
def test_no_bound_is_above_the_trivial_one_and_each_is_below_it_in_the_end(name):
    few, many = (bounds.NAMES[name](KERNEL, rounds, arms=ARMS[::6], norm=1.5) for rounds in (10, 10**11))
    assert few.per_round <= 3.0
    assert few.is_trivial
    assert few.per_round == 3.0
    assert not many.is_trivial
    assert many.per_round < 2.0


def test_larger_kernels_have_larger_functions():
    assert bounds.ay_ucb(4.0 * KERNEL, 1, arms=ARMS, norm=1.0).regret == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["igp-ucb", "ay-ucb", "bpe", "mini-gp-ucb", "bkb", "bbkb"])
def test_runs_keep_the_bound(name):
    kernel, norm, rounds = Matern(2.5, 0.3), 1.0, 300
    weights = np.random.default_rng(0).uniform(-1, 1, len(ARMS))
    matrix = kernel(ARMS, ARMS)
    means = matrix @ weights / math.sqrt(weights @ matrix @ weights)
    problem = problems.Problem("drawn", ARMS, means, kernel, problems.Gaussian(0.1), norm)
    builder = algorithms.NAMES[name]
    further = {"horizon": rounds} if name in ("igp-ucb", "bpe") else {}
    further |= {"coins": "greedy"} if name in ("bkb", "bbkb") else {}
    trace = run(builder(kernel, norm=norm, noise=0.1, **further), problem, rounds, rng=0)
    assert trace.cumulative_regret[-1] <= bounds.NAMES[name](kernel, rounds, arms=ARMS, norm=norm, noise=0.1).regret


def test_rounds_until_is_the_first_up_to_a_thousandth():
    bound = lambda rounds: bounds.igp_ucb(KERNEL, rounds, arms=ARMS[::6])  # noqa: E731
    found = bounds.rounds_until(bound, 0.2)
    assert bound(found).per_round <= 0.2 < bound(round(found * 0.998)).per_round


def test_evaluations_make_every_arm_known():
    found = bounds.evaluations(KERNEL, 0.1, arms=ARMS, norm=1.0, noise=0.2, delta=0.1)
    assert bounds.evaluations(KERNEL, 0.1, arms=ARMS, norm=1.0, noise=0.2, delta=0.1, most=found - 1) is None
    one = bounds.evaluations(KERNEL, 0.05, arms=[[0.0]], norm=0.0, noise=0.2, delta=0.1)
    width = math.sqrt(2 * math.log(1 / 0.05))  # ridge R^2: after n pulls s^2 is R^2 / (n + R^2)
    assert one == math.ceil((0.2 * width / 0.05) ** 2 - 0.04)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="rounds must be"):
        bounds.ay_ucb(KERNEL, 0, arms=ARMS)
    with pytest.raises(ValueError, match="noise and ridge must be positive"):
        bounds.bpe(KERNEL, 10, arms=ARMS, noise=0.0)
    with pytest.raises(ValueError, match="precision must be positive"):
        bounds.evaluations(KERNEL, 0.0, arms=ARMS)
    with pytest.raises(ValueError, match="ridge must be positive"):
        bounds.random_exploration(KERNEL, ARMS, -0.1)
    with pytest.raises(ValueError, match="the horizon of a bound is its rounds, 10: leave horizon out"):
        bounds.igp_ucb(KERNEL, 10, arms=ARMS, horizon=10)


@pytest.mark.parametrize(
    "ask", [bounds.ay_ucb, lambda kernel, rounds, arms: bounds.max_gain(kernel, arms, rounds, 1.0)]
)
def test_a_list_of_numbers_is_not_one_arm_of_many_dimensions(ask):
    with pytest.raises(ValueError, match=r"arms must be an \(N, d\) array, got shape \(30,\): numbers go in as"):
        ask(KERNEL, 1000, arms=ARMS[:, 0])


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("igp-ucb", {"constants": "experiment"}),
        ("amm-ucb", {"scale": 0.1}),
        ("gp-ts", {"gain": "rate"}),
        ("bkb", {"oversampling": 5.0}),
        ("ata-gp-ucb", {"features": "qff"}),
        ("bpe", {"truncation": 2.0}),
    ],
)
def test_settings_that_no_theorem_covers_have_no_bound(name, setting):
    ((key, value),) = setting.items()
    with pytest.raises(ValueError, match=f"there is no bound for {key}={value!r}: leave {key} out"):
        bounds.NAMES[name](KERNEL, 10, arms=ARMS, **setting)


def test_only_the_theorem_with_the_gap_is_not_proved():
    found = {name: bound(KERNEL, 10, arms=ARMS[::6]).is_proved for name, bound in bounds.NAMES.items()}
    assert [name for name, is_proved in found.items() if not is_proved] == ["ata-gp-ucb"]
