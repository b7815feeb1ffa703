"""Arms asked for by number: new ones while others are pending, rewards in any order, some of them lost."""

import math
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noregret import (
    UCB,
    Batched,
    Box,
    Constant,
    ExactGP,
    ExpectedImprovement,
    Nystrom,
    Policy,
    Pull,
    Repeated,
    Sequential,
    SparseGP,
    SquaredExponential,
    Thompson,
    algorithms,
    problems,
    run,
)

KERNEL, RIDGE, WIDTH = SquaredExponential(0.3), 0.05, UCB(Constant(2.0))
MODEL = ExactGP(KERNEL, RIDGE)
ARMS = np.random.default_rng(0).random((15, 2))
GRID = np.linspace(0, 1, 15)[:, None]  # on which arms tie, so that rounding decides
LOOPS = {
    "sequential": Sequential(MODEL, WIDTH),
    "batched": Batched(MODEL, WIDTH, size=3),
    "repeated": Repeated(MODEL, WIDTH, 1.5),
    "thompson": Sequential(MODEL, Thompson(Constant(1.0))),
    "improvement": Batched(MODEL, ExpectedImprovement(), growth=2.0),
    "sketch": Sequential(SparseGP(Nystrom(KERNEL, 3.0), RIDGE), WIDTH),
}


def world(arms):
    return np.sin(5 * ARMS[arms, 0]) + ARMS[arms, 1]


def knows(belief):
    return belief.rounds, belief.mean.tolist(), belief.std.tolist(), belief.information_gain


def reloaded(policy):
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder, "run.npz"))
        return Policy.load(Path(folder, "run.npz"), policy.algorithm)


@dataclass
class Model:
    """A policy in a few lines: all rewards in order and the pending arms, without stored choices."""

    told: list
    out: Counter

    @property
    def belief(self):
        belief = MODEL.prior(ARMS)
        for arm, reward, noise in self.told:
            belief.update(arm, reward, noise=noise)
        return belief

    def choices(self, count):
        belief, chosen = self.belief, []
        belief.update(list(self.out.elements()))
        for _ in range(count):
            chosen.append(int(np.argmax(WIDTH(belief, None))))
            belief.update(chosen[-1])
        return chosen


steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "more", "more", "tell", "tell", "stranger", "forget", "noisy", "reload", "move"]),
        st.integers(1, 4),
        st.randoms(use_true_random=False),
    ),
    max_size=25,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sequential", "batched", "repeated"])
@settings(deadline=None, max_examples=15)
@given(steps=steps)
def test_any_interleaving_is_that_of_a_plain_model(name, steps):
    check_interleaving(name, steps)


def check_interleaving(name, steps):
    """Raise AssertionError unless a policy answers calls in this order as a plain model does."""
    policy, model = Policy(LOOPS[name], ARMS, rng=0), Model([], Counter())

    def tell(arms, noise=None):
        rewards = world(np.array(arms, dtype=int)) + 0.1 * len(model.told)
        policy.tell(arms, rewards, noise)
        model.told += [(a, r, 1.0 if noise is None else noise) for a, r in zip(arms, rewards, strict=True)]
        model.out -= Counter(arms)

    for step, count, random in steps:
        some = random.sample(sorted(model.out.elements()), min(count, model.out.total()))
        match step:
            case "ask":
                asked = policy.ask().tolist()
                if model.out:
                    assert Counter(asked) == model.out
                elif name == "sequential":
                    assert asked == model.choices(1)
                model.out = Counter(asked)
            case "more":
                expected = model.choices(count)
                assert policy.ask(count).tolist() == expected
                model.out += Counter(expected)
            case "tell" if some:
                tell(some)
            case "noisy" if some:
                tell(some, noise=0.5 * count)
            case "stranger":
                tell([random.randrange(len(ARMS)) for _ in range(count)])
            case "forget":
                policy.forget(some)
                model.out -= Counter(some)
            case "reload":
                policy = reloaded(policy)
            case "move":
                policy.change_arms(ARMS)
                model.out = Counter()
        belief = model.belief
        assert policy.belief.rounds == belief.rounds
        np.testing.assert_allclose(policy.belief.mean, belief.mean, atol=1e-7)
        np.testing.assert_allclose(policy.belief.std, belief.std, atol=1e-7)
    if model.out:
        tell(sorted(model.out.elements()))
    assert policy.belief.rounds == len(model.told)
    np.testing.assert_allclose(policy.belief.mean, model.belief.mean, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
@settings(deadline=None, max_examples=3)
@given(steps=steps)
def test_a_policy_that_is_saved_and_loaded_at_every_step_goes_on_the_same(name, steps):
    check_saved_and_loaded(name, steps)


def check_saved_and_loaded(name, steps):
    """Raise AssertionError unless a policy continues identically after it was saved and loaded at every step."""
    policy, twin = (Policy(LOOPS[name], GRID, rng=4) for _ in range(2))
    for step, count, random in steps:
        out = sorted(policy._waiting.elements())
        some = np.array(random.sample(out, min(count, len(out))), dtype=int)
        for each in (policy, twin):
            match step:
                case "ask" | "reload":
                    each.ask()
                case "more":
                    each.ask(count)
                case "tell":
                    each.tell(some, world(some))
                case "noisy":
                    each.tell(some, world(some), noise_factor=np.arange(1.0, len(some) + 1))
                case "stranger":
                    each.tell(count, 0.5)
                case "forget":
                    each.forget(some)
                case "move":
                    each.change_arms(each.arms[::-1])
        twin = reloaded(twin)
        # a sketch rounds by how its rewards were grouped, which differs once it was loaded
        np.testing.assert_allclose(np.hstack(knows(twin.belief)), np.hstack(knows(policy.belief)), rtol=1e-9, atol=1e-9)
        assert twin.best().arm == policy.best().arm
    assert twin.ask().tolist() == policy.ask().tolist()
    assert twin.ask(3).tolist() == policy.ask(3).tolist()


@pytest.mark.parametrize("name", LOOPS)
def test_asking_by_number_gives_so_many_and_without_one_what_is_out(name):
    policy = Policy(LOOPS[name], ARMS, rng=0)
    first, second = policy.ask(3), policy.ask(2)
    assert (first.shape, second.shape) == ((3,), (2,))
    assert policy.ask().tolist() == [*first, *second]
    assert policy.belief.rounds == 0
    policy.tell(second[1], 0.3)
    assert policy.belief.rounds == 1
    assert Counter(policy.ask().tolist()) == Counter([*first, second[0]])


def test_arms_out_are_not_asked_for_again_as_long_as_others_tell_more():
    policy = Policy(LOOPS["sequential"], ARMS, rng=0)
    assert len({*policy.ask(5).tolist(), *policy.ask(5).tolist()}) == 10


def test_what_is_out_by_a_plain_round_counts_too():
    policy, other = (Policy(LOOPS["batched"], ARMS, rng=0) for _ in range(2))
    batch = policy.ask()
    policy.tell(batch[:1], world(batch[:1]))
    new = policy.ask(2)
    other.tell(batch[:1], world(batch[:1]))
    assert new.tolist() == Model([(batch[0], world(batch[0]), 1.0)], Counter(batch[1:].tolist())).choices(2)
    assert policy.ask().tolist() == [*batch[1:], *new]
    assert knows(policy.belief) == knows(other.belief)


def test_after_all_answers_the_loop_goes_on_from_them():
    policy, plain = Policy(LOOPS["batched"], ARMS, rng=0), Policy(LOOPS["batched"], ARMS, rng=0)
    arms = policy.ask(4)
    for arm in arms[::-1]:
        policy.tell(arm, world(arm))
        plain.tell(arm, world(arm))
    assert policy.ask().tolist() == plain.ask().tolist()


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", [1]])
def test_what_is_no_number_of_arms(n):
    policy = Policy(LOOPS["sequential"], ARMS, rng=0)
    with pytest.raises(ValueError, match=r"^n must be a whole number from 1, the new arms to ask for, got"):
        policy.ask(n)
    assert not policy._waiting


# --- guarantees ---


@pytest.mark.parametrize("told", [0, 10, 40])
@pytest.mark.parametrize("out", [1, 4, 16])
def test_the_std_shrinks_by_no_more_than_the_factor_that_the_guarantee_states(told, out):
    policy, pulls = Policy(LOOPS["sequential"], ARMS, rng=0), np.random.default_rng(1).integers(len(ARMS), size=told)
    policy.tell(pulls, world(pulls))
    belief, ahead = policy.belief, policy.belief.copy()
    arms = policy.ask(out)
    ahead.update(arms)
    shrunk = (belief.std / ahead.std).max()
    factor = math.sqrt(1 + (belief.std[arms] ** 2).sum() / RIDGE)
    assert 1 < shrunk <= factor + 1e-9
    assert factor <= math.exp(ahead.information_gain - belief.information_gain) + 1e-9


# --- lost arms ---


def test_a_round_is_over_when_the_others_were_told():
    policy = Policy(LOOPS["batched"], ARMS, rng=0)
    batch = policy.ask()
    policy.tell(batch[:2], world(batch[:2]))
    policy.forget(batch[2])
    direct = MODEL.prior(ARMS)
    direct.update(batch[:2], world(batch[:2]))
    assert knows(policy.belief)[:2] == knows(direct)[:2]
    assert len(policy.ask()) == 3


def test_a_lost_arm_is_as_if_it_had_never_been_asked_for():
    policy, plain = (Policy(LOOPS["sequential"], ARMS, rng=0) for _ in range(2))
    lost = policy.ask(2)
    policy.forget(lost)
    assert policy.ask(2).tolist() == plain.ask(2).tolist() == lost.tolist()
    policy.forget(lost[0])
    policy.tell(lost[0], 0.4)  # it arrived late
    assert policy.belief.rounds == 1


@pytest.mark.parametrize("arms", [[3], [1, 1]])
def test_what_is_not_out_cannot_be_forgotten(arms):
    policy = Policy(Batches(((1, 2), (4,))), ARMS, rng=0)
    policy.ask()
    with pytest.raises(ValueError, match=r"^arm \d is not pending: forget takes arms asked for and not reported yet$"):
        policy.forget(arms)
    with pytest.raises(ValueError, match=r"^arm must be in 0..14, got 15$"):
        policy.forget(15)
    assert policy.ask().tolist() == [1, 2]


# --- loops with a plan ---


@dataclass(frozen=True)
class Batches:
    """Asks for given batches in turn, for any rewards."""

    batches: tuple[tuple[int, ...], ...]

    def play(self, arms, rng):
        belief = MODEL.prior(arms)
        while True:
            for batch in self.batches:
                pulled, rewards = yield Pull(np.array(batch), belief, np.arange(len(arms)))
                belief.update(pulled, rewards)

    def bounds(self, belief):
        return WIDTH.bounds(belief)


def reds():
    return algorithms.reds(KERNEL, constants="experiment", first_epoch=6)


def test_an_epoch_is_handed_out_in_parts_and_then_says_what_to_do():
    policy, whole = (Policy(reds(), ARMS, rng=0) for _ in range(2))
    plan = whole.ask()
    parts = [policy.ask(2), policy.ask(3), policy.ask(3)]
    assert [len(part) for part in parts] == [2, 3, 1]
    assert np.concatenate(parts).tolist() == plan.tolist()
    message = r"^all 6 arms that Elimination has planned are pending: tell their rewards, or forget"
    with pytest.raises(ValueError, match=message):
        policy.ask(1)
    policy.forget(plan[1])  # as the message says
    assert policy.ask(1).tolist() == [plan[1]]
    for arm in plan[::-1]:
        policy.tell(arm, world(arm))
    whole.tell(plan, world(plan))
    assert policy.belief.rounds == whole.belief.rounds == 6
    assert policy.ask().tolist() == whole.ask().tolist()


def test_an_epoch_asks_again_for_what_was_lost():
    policy = Policy(reds(), ARMS, rng=0)
    plan = policy.ask()
    policy.tell(plan[1:], world(plan[1:]))
    assert policy.belief.rounds == 0
    policy.forget(plan[0])
    assert policy.ask().tolist() == [plan[0]]
    policy.tell(plan[0], world(plan[0]))
    assert policy.belief.rounds == 6


def test_points_of_a_box_are_handed_out_and_forgotten_too():
    policy = Policy(reds(), Box([[0.0, 1.0], [0.0, 1.0]]), rng=0)
    points = np.vstack([policy.ask(2), policy.ask(2)])
    assert points.shape == (4, 2)
    np.testing.assert_array_equal(reloaded(policy).ask(), points)
    policy.forget(points[0])
    np.testing.assert_array_equal(policy.ask(), points[1:])
    policy.tell(points[1:], np.zeros(3))
    assert any((points[0] == point).all() for point in policy.ask())


def test_a_loop_of_ones_own_hands_out_its_plan():
    policy = Policy(Batches(((4, 1, 1, 7), (3,))), ARMS, rng=0)
    assert policy.ask(2).tolist() == [4, 1]
    assert policy.ask(1).tolist() == [1]
    assert policy.ask().tolist() == [4, 1, 1]
    assert reloaded(policy).ask(9).tolist() == [7]


# --- failures ---


class Trouble:
    """A width that fails at this number of rewards."""

    def __init__(self, rounds):
        self.rounds = rounds

    def __call__(self, belief):
        if belief.rounds == self.rounds:
            raise RuntimeError("no width")
        return 2.0


def test_an_ask_that_fails_changes_nothing():
    policy = Policy(Sequential(MODEL, UCB(Trouble(2))), ARMS, rng=0)
    out = policy.ask(3)
    policy.tell(out[:2], world(out[:2]))
    before = knows(policy.belief)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no width"):
            policy.ask(1)
        assert policy.ask().tolist() == out[2:].tolist()
        assert knows(policy.belief) == before
    policy.tell(out[2], world(out[2]))
    assert policy.ask(2).shape == (2,)


def test_a_tell_that_fails_changes_nothing_while_arms_are_out(monkeypatch):
    policy = Policy(LOOPS["sequential"], ARMS, rng=0)
    out = policy.ask(4)
    policy.tell(out[0], 0.5)
    before = knows(policy.belief)
    with pytest.raises(ValueError, match="least squares takes rewards up to"):
        policy.tell(out[1:3], [0.5, 1e200])

    update = type(policy.belief).update

    def interrupted(self, *args, **keywords):
        monkeypatch.setattr(type(self), "update", update)
        update(self, *args, **keywords)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(policy.belief), "update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.tell(out[1:3], [0.5, 0.6])
    assert knows(policy.belief) == before
    assert policy.ask().tolist() == out[1:].tolist()


# --- noise ---


@pytest.mark.parametrize("name", ["sequential", "batched", "repeated", "sketch"])
def test_noise_is_a_factor_on_the_ridge(name):
    policy, arms = Policy(LOOPS[name], ARMS, rng=0), np.array([3, 7, 3])
    policy.tell(arms, world(arms), noise_factor=[0.25, 2.0, 1.0])
    direct = LOOPS[name].model.prior(ARMS, np.random.default_rng(0))
    direct.update(arms, world(arms), noise=[0.25, 2.0, 1.0])
    assert policy.belief.rounds == 3
    if name != "sketch":  # whose dictionary is drawn
        assert knows(policy.belief) == knows(direct)
        assert policy.ask()[0] == np.argmax(WIDTH(direct, None))
    assert knows(reloaded(policy).belief) == knows(policy.belief)
    assert reloaded(policy).ask().tolist() == policy.ask().tolist()


def test_noise_in_a_round_counts_when_it_is_over_and_is_shown_before():
    policy = Policy(LOOPS["batched"], ARMS, rng=0)
    batch = policy.ask()
    policy.tell(batch[:1], world(batch[:1]), noise_factor=4.0)
    direct = MODEL.prior(ARMS)
    direct.update(batch[:1], world(batch[:1]), noise=4.0)
    assert knows(policy.belief) == knows(direct)
    policy = reloaded(policy)
    policy.tell(batch[1:], world(batch[1:]))
    direct = MODEL.prior(ARMS)
    direct.update(batch, world(batch), noise=[4.0, 1.0, 1.0])
    assert knows(policy.belief) == knows(direct)
    assert policy.ask().tolist() == next(LOOPS["batched"].play(ARMS, None, direct)).arms.tolist()


def test_a_noise_of_one_is_no_noise():
    for name in LOOPS:
        one, none = (Policy(LOOPS[name], ARMS, rng=0) for _ in range(2))
        for _ in range(3):
            one.tell(one.ask(), world(one.ask()), noise_factor=1)
            none.tell(none.ask(), world(none.ask()))
        assert one.ask().tolist() == none.ask().tolist()
    policy = Policy(reds(), ARMS, rng=0)
    policy.tell(policy.ask(), world(policy.ask()), noise_factor=np.ones(6))
    assert policy.belief.rounds == 6


def test_the_old_keyword_noise_works_and_warns():
    old, new = (Policy(LOOPS["batched"], ARMS, rng=0) for _ in range(2))
    arms = new.ask()
    new.tell(arms, world(arms), noise_factor=0.25)
    old.ask()
    with pytest.warns(DeprecationWarning, match=r"noise of Policy.tell is deprecated and goes in noregret 2.0: pass"):
        old.tell(arms, world(arms), noise=0.25)
    assert knows(old.belief) == knows(new.belief)
    with pytest.raises(ValueError, match=r"^noise is the old name of noise_factor, got both: pass noise_factor only$"):
        old.tell(arms, world(arms), noise_factor=0.25, noise=0.25)


BAD_NOISE = [
    (0.0, r"^noise_factor must be positive and finite, a factor on the ridge, got 0.0$"),
    (-1, r"^noise_factor must be positive and finite, a factor on the ridge, got -1.0$"),
    ([1.0, math.nan], r"^noise_factor must be positive and finite, a factor on the ridge, got nan$"),
    ([1.0, math.inf], r"^noise_factor must be positive and finite, a factor on the ridge, got inf$"),
    ([1.0, 2.0, 3.0], r"^noise_factor must be one number or one per reward, got 3 for 2 rewards$"),
    ([], r"^noise_factor must be one number or one per reward, got 0 for 2 rewards$"),
    ("2", r"^noise_factor must be numbers, got '2'$"),
    ([1.0, None], r"^noise_factor must be numbers, got \[1.0, None\]$"),
]


@pytest.mark.parametrize(("noise", "message"), BAD_NOISE, ids=[str(noise) for noise, _ in BAD_NOISE])
@pytest.mark.parametrize("ask", [lambda p: None, lambda p: p.ask(), lambda p: p.ask(2)], ids=["fresh", "round", "out"])
def test_bad_noise_changes_nothing(noise, message, ask):
    policy = Policy(LOOPS["batched"], ARMS, rng=0)
    ask(policy)
    before, out = knows(policy.belief), +policy._waiting
    with pytest.raises(ValueError, match=message):
        policy.tell([3, 4], [0.1, 0.2], noise)
    assert (knows(policy.belief), policy._waiting) == (before, out)


@pytest.mark.parametrize(
    "algorithm", [reds(), Batches(((1, 2),)), algorithms.lb_gp_ucb(KERNEL)], ids=["epochs", "own", "ladder"]
)
def test_a_loop_that_cannot_weigh_rewards_says_so(algorithm):
    policy = Policy(algorithm, ARMS, rng=0)
    before = knows(policy.belief)
    with pytest.raises(
        ValueError, match=r"cannot weigh rewards by their noise: .* Tell them without noise_factor, or use a"
    ):
        policy.tell(policy.ask(), world(policy.ask()), noise_factor=2.0)
    assert knows(policy.belief) == before
    policy.tell(policy.ask(), world(policy.ask()))  # as the message says


# --- seeds ---


@pytest.mark.parametrize("name", ["gp-ts", "random", "bkb", "reds", "gp-threds", "igp-ucb", "mini-bkb", "bbkb"])
def test_a_policy_and_a_run_of_one_seed_agree(name):
    problem = problems.NAMES["rkhs-se"](rng=0)
    algorithm = algorithms.NAMES[name](problem.kernel, **({"horizon": 60} if "bkb" in name else {}))
    trace, policy, done = run(algorithm, problem, 60, rng=7), Policy(algorithm, problem.arms, rng=7), 0
    while done < 60:
        arms = policy.ask()[: 60 - done]
        assert arms.tolist() == trace.arms[done : done + len(arms)].tolist()
        policy.tell(arms, trace.rewards[done : done + len(arms)])
        done += len(arms)
