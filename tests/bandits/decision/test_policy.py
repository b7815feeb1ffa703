"""Policy: telling in any order, bad input, the best arm, and seeds."""

import copy
import math
import pickle
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from noregret import (
    UCB,
    Batched,
    Best,
    Constant,
    ExactGP,
    Policy,
    Pull,
    Repeated,
    Sequential,
    SquaredExponential,
    Tabular,
    algorithms,
)

KERNEL = SquaredExponential(0.2)
ARMS = np.linspace(0, 1, 10)[:, None]
BATCHES = ((4, 1, 1, 7), (3,), (2, 2))


@dataclass(frozen=True)
class Batches:
    """Asks for given batches in turn, for any rewards."""

    batches: tuple[tuple[int, ...], ...] = BATCHES

    def play(self, arms, rng):
        belief = ExactGP(KERNEL, 0.1).prior(arms)
        while True:
            for batch in self.batches:
                pulled, rewards = yield Pull(np.array(batch), belief, np.arange(len(arms)))
                belief.update(pulled, rewards)

    def bounds(self, belief):
        return UCB(Constant(2.0)).bounds(belief)


def batches(rng=0):
    return Policy(Batches(), ARMS, rng=rng)


def saved(policy, tmp_path):
    """Content of a saved policy: algorithm, seed, history, held pieces, whether it was asked."""
    policy.save(tmp_path / "state.npz")
    with np.load(tmp_path / "state.npz") as file:
        return {name: file[name].tolist() for name in file}


def knows(belief):
    return (belief.rounds, belief.mean.tolist(), belief.std.tolist(), belief.information_gain)


def world(arms):
    """A reward that depends on the arm alone."""
    return np.sin(7 * ARMS[arms, 0])


def play(policy, rounds):
    asked = []
    for _ in range(rounds):
        arms = policy.ask()
        policy.tell(arms, world(arms))
        asked += arms.tolist()
    return asked


# --- asking and telling ---


def test_a_round_is_over_when_every_arm_was_told():
    policy = batches()
    assert policy.ask().tolist() == [4, 1, 1, 7]
    policy.tell([4, 1], [0.1, 0.2])
    assert policy.ask().tolist() == [1, 7]
    assert policy.belief.rounds == 0
    policy.tell([7, 1], [0.3, 0.4])
    assert policy.ask().tolist() == [3]
    assert policy.belief.rounds == 4


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("cuts", [(), (1, 2, 3), (2,), (0, 3, 3)])
def test_any_order_and_any_pieces_lead_to_the_same_belief(order, cuts):
    policy, rewards = batches(), np.array([0.1, 0.2, -0.3, 0.4])
    asked = policy.ask()
    for piece in np.split(np.array(order), cuts):
        policy.tell(asked[piece], rewards[piece])
    direct = ExactGP(KERNEL, 0.1).prior(ARMS)
    direct.update([4, 1, 1, 7], rewards)
    assert policy.belief.rounds == 4
    np.testing.assert_allclose(policy.belief.mean, direct.mean, atol=1e-12)
    assert policy.ask().tolist() == [3]


def test_repeated_arms_are_counted_one_by_one():
    policy = batches()
    policy.ask()
    policy.tell(1, 0.5)
    assert policy.ask().tolist() == [4, 1, 7]
    policy.tell(1, 0.5)
    assert policy.ask().tolist() == [4, 7]


def test_asking_again_changes_nothing(tmp_path):
    policy = Policy(algorithms.gp_ts(KERNEL), ARMS, rng=3)
    play(policy, 5)
    first = policy.ask().tolist()
    before = saved(policy, tmp_path)
    for _ in range(20):
        assert policy.ask().tolist() == first
    assert saved(policy, tmp_path) == before
    twin = Policy(algorithms.gp_ts(KERNEL), ARMS, rng=3)
    assert play(twin, 30)[5:] == play(policy, 25)


def test_what_ask_returns_is_the_callers_to_keep():
    policy = batches()
    policy.ask()[:] = 0
    assert policy.ask().tolist() == [4, 1, 1, 7]


def test_arms_nobody_asked_for_are_taken_in_with_the_round():
    policy = batches()
    policy.ask()
    policy.tell([9, 4, 9], [1.0, 2.0, 3.0])
    assert policy.ask().tolist() == [1, 1, 7]
    assert policy.belief.rounds == 0
    policy.tell([1, 1, 1, 7], [0.0, 0.0, 0.0, 0.0])
    assert policy.belief.rounds == 7
    assert set(policy.belief.pulled) == {9, 4, 1, 7}
    assert policy.ask().tolist() == [3]


def test_only_arms_nobody_asked_for_leave_the_round_open():
    policy = batches()
    policy.ask()
    for _ in range(3):
        policy.tell([8, 9], [1.0, 1.0])
        assert policy.ask().tolist() == [4, 1, 1, 7]


@pytest.mark.parametrize("pieces", [1, 2, 6])
def test_a_warm_start_is_taken_in_at_once(pieces):
    policy = Policy(algorithms.igp_ucb(KERNEL, ridge=0.1), ARMS, rng=0)
    told, rewards = np.array([0, 5, 5, 9, 2, 0]), np.arange(6.0)
    for piece in np.array_split(np.arange(6), pieces):
        policy.tell(told[piece], rewards[piece])
    assert policy.belief.rounds == 6
    direct = ExactGP(KERNEL, 0.1).prior(ARMS)
    direct.update(told, rewards)
    np.testing.assert_allclose(policy.belief.mean, direct.mean, atol=1e-12)
    assert policy.ask().tolist() == [int(np.argmax(algorithms.igp_ucb(KERNEL, ridge=0.1).rule(direct, None)))]
    policy.tell(policy.ask(), [1.0])
    assert policy.belief.rounds == 7


def test_history_told_between_rounds_is_taken_in_at_once():
    policy = batches()
    play(policy, 1)
    policy.tell([0, 0], [1.0, 2.0])
    assert policy.belief.rounds == 6


def test_numbers_lists_and_arrays_are_all_welcome():
    beliefs = []
    for arms, rewards in [
        (4, 1),
        (np.int32(4), np.float32(1)),
        ([4], [1.0]),
        (np.array([4], np.uint8), np.array([1])),
        ((4,), (True,)),
        (np.array([[4]]), np.array([[1.0]])),
        (np.array(4), np.array(1.0)),
    ]:
        policy = batches()
        policy.tell(arms, rewards)
        beliefs.append(knows(policy.belief))
    assert all(belief == beliefs[0] for belief in beliefs)


def test_telling_nothing_is_nothing(tmp_path):
    for asked in (False, True):
        policy = batches()
        if asked:
            policy.ask()
        before = saved(policy, tmp_path)
        policy.tell([], [])
        assert saved(policy, tmp_path) == before


def test_a_policy_keeps_its_own_copies():
    arms, told, rewards = ARMS.copy(), np.array([4, 1]), np.array([1.0, 2.0])
    policy = Policy(Batches(), arms, rng=0)
    policy.ask()
    policy.tell(told, rewards)
    arms[:], told[:], rewards[:] = 0.0, 0, 99.0
    policy.tell([1, 7], [3.0, 4.0])
    direct = ExactGP(KERNEL, 0.1).prior(ARMS)
    direct.update([4, 1, 1, 7], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(policy.belief.mean, direct.mean, atol=1e-12)


# --- bad input ---

BAD = [
    (0, math.nan, r"^reward of arm 0 is nan: drop it or pass a finite value$"),
    ([1, 2], [1.0, math.inf], r"^reward of arm 2 is inf: drop it or pass a finite value$"),
    ([1, 2], [-math.inf, 1.0], r"^reward of arm 1 is -inf: drop it or pass a finite value$"),
    (0, "1.0", r"^rewards must be numbers, got '1.0'$"),
    ([0, 1], [1.0, "x"], r"^rewards must be numbers, got \[1.0, 'x'\]$"),
    (0, None, r"^rewards must be numbers, got None$"),
    ([0, 1], [1.0, None], r"^rewards must be numbers, got \[1.0, None\]$"),
    (0, 1j, r"^rewards must be numbers, got 1j$"),
    ([0, 1], [[1.0], [2.0, 3.0]], r"^rewards must be numbers, got \[\[1.0\], \[2.0, 3.0\]\]$"),
    (0, 10**400, r"^rewards must be numbers, got 1000"),
    (0, np.datetime64("2020-01-01"), r"^rewards must be numbers, got .*2020-01-01"),
    (
        0,
        -1.7e308,
        r"^reward of arm 0 is -1.7e\+308: least squares takes rewards up to 1e\+100 in size; drop it, or use",
    ),
    ([0, 1], 1.0, r"^there must be one reward per arm, got 2 arms and 1 rewards$"),
    (0, [1.0, 2.0], r"^there must be one reward per arm, got 1 arms and 2 rewards$"),
    ([], [1.0], r"^there must be one reward per arm, got 0 arms and 1 rewards$"),
    (10, 1.0, r"^arm must be in 0\.\.9, got 10$"),
    ([3, -1], [1.0, 1.0], r"^arm must be in 0\.\.9, got -1$"),
    (np.array([2**63], np.uint64), [1.0], r"^arm must be in 0\.\.9, got 9223372036854775808$"),
    (3.0, 1.0, r"^arms must be whole numbers, the indices that ask\(\) returns, got 3.0$"),
    (np.array([1.0, 2.0]), [1.0, 1.0], r"^arms must be whole numbers, the indices that ask\(\) returns, got array"),
    (True, 1.0, r"^arms must be whole numbers, the indices that ask\(\) returns, got True$"),
    ([True, False], [1.0, 1.0], r"^arms must be whole numbers, the indices that ask\(\) returns, got \[True, False\]"),
    ("3", 1.0, r"^arms must be whole numbers, the indices that ask\(\) returns, got '3'$"),
    (None, 1.0, r"^arms must be whole numbers, the indices that ask\(\) returns, got None$"),
    ([2**70], [1.0], r"^arms must be whole numbers, the indices that ask\(\) returns, got \[1180"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arms", "rewards", "message"), BAD, ids=lambda value: repr(value)[:30])
@pytest.mark.parametrize("stage", ["fresh", "asked", "half told", "later"])
def test_bad_input_says_what_is_wrong_and_changes_nothing(arms, rewards, message, stage, tmp_path):
    policy = batches()
    if stage == "later":
        play(policy, 4)
    if stage != "fresh":
        policy.ask()
    if stage == "half told":
        policy.tell([1, 9], [0.5, 0.7])
    state, belief, best = saved(policy, tmp_path), knows(policy.belief), policy.best()
    with pytest.raises(ValueError, match=message):
        policy.tell(arms, rewards)
    assert saved(policy, tmp_path) == state
    assert (knows(policy.belief), policy.best()) == (belief, best)


def test_one_bad_reward_among_good_ones_rejects_them_all():
    policy = batches()
    asked = policy.ask()
    with pytest.raises(ValueError, match="reward of arm 7 is nan"):
        policy.tell(asked, [1.0, 1.0, 1.0, math.nan])
    assert policy.ask().tolist() == asked.tolist()
    policy.tell(asked, [1.0] * 4)
    assert policy.belief.rounds == 4


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([0.1, 0.2], r"^arms must be an \(N, d\) array, got shape \(2,\)"),
        ([], r"^arms must be an \(N, d\) array, got shape \(0,\)"),
        ([[0.1], [math.nan]], r"^arm 1 is not finite"),
    ],
)
def test_bad_arms(arms, message):
    with pytest.raises(ValueError, match=message):
        Policy(Batches(), arms)


# --- best and active ---


class Fragile:
    """UCB whose rule fails, or whose loop ends, at a reward of 13; ``trouble`` is raised where it is given."""

    def __init__(self, trouble=None):
        self.trouble = trouble

    def __repr__(self):
        return "Fragile()"

    def play(self, arms, rng, belief=None):
        belief = belief or ExactGP(KERNEL, 0.1).prior(arms)
        while True:
            noise = rng.random(len(arms))
            pulled, rewards = yield Pull(
                np.array([int(np.argmax(belief.mean + noise)), 3]), belief, np.arange(len(arms))
            )
            belief.update(pulled, rewards)
            if 13.0 in rewards:
                if self.trouble:
                    raise self.trouble
                return

    def bounds(self, belief):
        return UCB(Constant(2.0)).bounds(belief)


@pytest.mark.parametrize(
    ("trouble", "error"),
    [(RuntimeError("broken"), RuntimeError), (KeyboardInterrupt(), KeyboardInterrupt), (None, ValueError)],
    ids=["raises", "interrupted", "ends"],
)
def test_a_loop_that_fails_changes_nothing_and_loses_nothing(trouble, error, tmp_path):
    policy, twin = Policy(Fragile(trouble), ARMS, rng=0), Policy(Fragile(trouble), ARMS, rng=0)
    for p in (policy, twin):
        for _ in range(4):
            asked = p.ask()
            p.tell(asked, world(asked))
        p.change_arms(ARMS[::-1])
        asked = p.ask()
        p.tell(asked[:1], world(asked[:1]))
    before = saved(policy, tmp_path)
    for _ in range(2):
        with pytest.raises(error):
            policy.tell(asked[1:], [13.0])
    assert saved(policy, tmp_path) == before
    assert policy.ask().tolist() == twin.ask().tolist()
    assert knows(policy.belief) == knows(twin.belief)
    for p in (policy, twin):
        p.tell(p.ask(), world(p.ask()))
        for _ in range(3):
            asked = p.ask()
            p.tell(asked, world(asked))
    assert policy.ask().tolist() == twin.ask().tolist()
    assert knows(policy.belief) == knows(twin.belief)


def test_a_loop_that_fails_while_arms_change_changes_nothing(tmp_path):
    policy = Policy(Fragile(RuntimeError("broken")), ARMS, rng=0)
    asked = policy.ask()
    policy.tell(asked[:1], [13.0])
    before = saved(policy, tmp_path)
    with pytest.raises(RuntimeError, match="broken"):
        policy.change_arms(ARMS[::-1])
    assert saved(policy, tmp_path) == before
    assert policy.arms is not None
    assert policy.ask().tolist() == asked[1:].tolist()


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (lambda n: np.full(n, math.nan), r"^the rule .* gave nan for arm 0 after 0 rewards: scores must be numbers$"),
        (lambda n: 1.0, r"^the rule .* must give one score per arm, \(10,\), got shape \(\)$"),
        (lambda n: np.zeros((n, 1)), r"^the rule .* must give one score per arm, \(10,\), got shape \(10, 1\)$"),
        (lambda n: np.zeros(n + 1), r"^the rule .* must give one score per arm, \(10,\), got shape \(11,\)$"),
    ],
    ids=["nan", "scalar", "column", "too many"],
)
@pytest.mark.parametrize("loop", [Sequential, partial(Repeated, growth=2.0), partial(Batched, growth=2.0)], ids=str)
def test_a_rule_that_does_not_score_every_arm_is_refused(scores, message, loop):
    with pytest.raises(ValueError, match=message):
        Policy(loop(ExactGP(KERNEL, 0.1), lambda belief, rng: scores(len(belief.mean))), ARMS)


def test_best_is_the_arm_with_the_largest_lower_bound():
    policy = Policy(Sequential(ExactGP(Tabular(np.eye(3)), 1.0), UCB(Constant(2.0))), [[0.0], [1.0], [2.0]], rng=0)
    policy.tell([0] + [1] * 50, [6.0] + [2.0] * 50)  # arm 0 was lucky once, arm 1 is known to be good
    best, std = policy.best(), math.sqrt(1 / 51)
    assert policy.belief.mean[0] > policy.belief.mean[1]
    assert best == (1, pytest.approx(100 / 51), pytest.approx(100 / 51 - 2 * std), pytest.approx(100 / 51 + 2 * std))
    assert isinstance(best, Best)
    assert type(best.arm) is int


def test_best_speaks_of_the_arms_that_the_belief_is_about():
    @dataclass(frozen=True)
    class Part(Batches):
        about: tuple[int, ...] | None = None
        best: Best | None = None

        def play(self, arms, rng):
            active, about = np.array([3, 5, 8]), None if self.about is None else np.array(self.about)
            belief = ExactGP(KERNEL, 0.1).prior(arms[active if about is None else about])
            belief.update([1, 1, 1], [1.0, 1.0, 1.0])
            yield Pull(np.array([3]), belief, active, about, self.best)

    assert Policy(Part(), ARMS).best().arm == 5
    assert Policy(Part(), ARMS).active.tolist() == [3, 5, 8]
    assert Policy(Part(about=(0, 2)), ARMS).best().arm == 2
    known = Best(9, 1.0, 0.5, 1.5)
    assert Policy(Part(best=known), ARMS).best() == known


def test_all_arms_are_active_in_a_sequential():
    assert Policy(algorithms.igp_ucb(KERNEL), ARMS).active.tolist() == list(range(10))


# --- seeds ---


def arms_of(rng, rounds=12):
    return play(Policy(algorithms.gp_ts(KERNEL), ARMS, rng=rng), rounds)


def test_every_form_of_a_seed():
    expected = arms_of(5)
    assert arms_of(np.int64(5)) == expected
    assert arms_of(np.random.SeedSequence(5)) == expected
    assert arms_of(6) != expected
    assert arms_of(None) != arms_of(None)
    child = np.random.SeedSequence(5).spawn(2)[1]
    assert arms_of(child) == arms_of(np.random.SeedSequence(5, spawn_key=(1,))) != expected


def test_a_generator_is_asked_for_a_child_and_never_drawn_from():
    generator = np.random.default_rng(5)
    state = generator.bit_generator.state
    first, second = arms_of(generator), arms_of(generator)
    assert generator.bit_generator.state == state
    assert first != second
    assert first == arms_of(np.random.default_rng(5)) == arms_of(np.random.SeedSequence(5).spawn(1)[0])


def test_a_seed_sequence_is_not_changed():
    seed = np.random.SeedSequence(5)
    assert arms_of(seed) == arms_of(seed)
    assert seed.n_children_spawned == 0


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    arms_of(None)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize(
    "rng", [-1, 1.5, "0", True, np.random.RandomState(0), [1, 2]], ids=lambda rng: type(rng).__name__
)
def test_what_is_no_seed(rng):
    with pytest.raises(
        ValueError, match=r"^rng must be None, a whole number from 0, a SeedSequence or a Generator, got"
    ):
        Policy(Batches(), ARMS, rng=rng)


def test_a_policy_says_how_it_is_copied(tmp_path):
    policy = Policy(algorithms.igp_ucb(SquaredExponential(0.2)), np.linspace(0, 1, 9)[:, None], rng=0)
    policy.tell(policy.ask(), 1.0)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"save\(path\) it, and Policy.load\(path\)"):
            duplicate(policy)
    policy.save(tmp_path / "run.npz")
    assert Policy.load(tmp_path / "run.npz").ask() == policy.ask()
