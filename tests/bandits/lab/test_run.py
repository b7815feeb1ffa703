"""The driver against small fakes, whose every draw the test can repeat."""

import math
from dataclasses import dataclass, field
from time import sleep

import numpy as np
import pytest

from noregret import Box, Policy, Pull, SquaredExponential, compare, problems, run
from noregret.algorithms import NAMES
from noregret.bandits.lab.trials import build

MEANS = np.array([0.0, 1.0, 0.25])


@dataclass(frozen=True)
class Cycle:
    """Pulls arms 0, 1, 2, 0, ... in batches and records what it is sent."""

    size: int = 1
    sent: list = field(default_factory=list, repr=False)
    closed: list = field(default_factory=list, repr=False)

    def play(self, arms, rng):
        next_arm = 0
        try:
            while True:
                batch = (next_arm + np.arange(self.size)) % len(arms)
                self.sent.append((yield Pull(batch, None, np.arange(len(arms)))))
                next_arm += self.size
        finally:
            self.closed.append(True)


@dataclass(frozen=True)
class Dice:
    """Pulls arms at random from its own stream."""

    def play(self, arms, rng):
        while True:
            yield Pull(rng.integers(len(arms), size=1), None, np.arange(len(arms)))


class Toy:
    name = "toy"
    arms = np.arange(3.0)[:, None]
    means = MEANS

    def rewards(self, arms, rng):
        return self.means[arms] + rng.standard_normal(len(arms))


def noise(trace):
    return trace.rewards - MEANS[trace.arms]


def test_a_trace_holds_what_was_pulled_and_its_regret():
    trace = run(Cycle(), Toy(), 5, rng=0)
    assert trace.arms.tolist() == [0, 1, 2, 0, 1]
    assert trace.regret.tolist() == [1.0, 0.0, 0.75, 1.0, 0.0]
    assert trace.cumulative_regret.tolist() == [1.0, 1.0, 1.75, 2.75, 2.75]
    assert (trace.algorithm, trace.problem) == ("Cycle(size=1)", "toy")
    assert trace.versions["numpy"] == np.__version__


def test_algorithms_on_one_seed_meet_the_same_noise():
    one, batched, other = (run(a, Toy(), 50, rng=3) for a in (Cycle(), Cycle(size=7), Dice()))
    np.testing.assert_allclose(noise(one), noise(other), atol=1e-12)
    np.testing.assert_allclose(noise(one), noise(batched), atol=1e-12)
    assert (run(Dice(), Toy(), 50, rng=3).arms == other.arms).all()
    assert (run(Dice(), Toy(), 50, rng=4).arms != other.arms).any()


def test_policy_and_world_draw_from_the_two_children_of_the_seed():
    policy, world = map(np.random.default_rng, np.random.SeedSequence(8).spawn(2))
    trace = run(Dice(), Toy(), 20, rng=8)
    assert trace.arms.tolist() == [policy.integers(3, size=1)[0] for _ in range(20)]
    np.testing.assert_allclose(noise(trace), world.standard_normal(20), atol=1e-12)


def test_every_kind_of_rng_and_the_recorded_seed_repeats_the_run():
    seed = np.random.SeedSequence(5, spawn_key=(2,))
    first, again = run(Dice(), Toy(), 30, rng=seed), run(Dice(), Toy(), 30, rng=seed)
    assert seed.n_children_spawned == 0
    assert (first.arms == again.arms).all()
    generator = np.random.default_rng(5)
    for rng in (seed, generator, generator, None):
        trace = run(Dice(), Toy(), 30, rng=rng)
        replay = run(Dice(), Toy(), 30, rng=np.random.SeedSequence(**trace.seed))
        assert (trace.rewards == replay.rewards).all()
    one, two = (run(Dice(), Toy(), 30, rng=generator) for _ in range(2))
    assert (one.arms != two.arms).any()


def test_the_last_batch_is_cut_and_the_loop_closed():
    algorithm = Cycle(size=4)
    trace = run(algorithm, Toy(), 10, rng=0)
    assert trace.arms.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert [arms.tolist() for arms, _ in algorithm.sent] == [[0, 1, 2, 0], [1, 2, 0, 1]]
    assert np.concatenate([rewards for _, rewards in algorithm.sent]).tolist() == trace.rewards[:8].tolist()
    assert algorithm.closed == [True]


def test_the_loop_is_closed_when_the_problem_fails():
    class Broken(Toy):
        def rewards(self, arms, rng):
            raise OSError("no measurement")

    algorithm = Cycle()
    with pytest.raises(OSError, match="no measurement"):
        run(algorithm, Broken(), 10, rng=0)
    assert algorithm.closed == [True]


@pytest.mark.parametrize("horizon", [0, -3, 2.5, 10.0, "10", None])
def test_horizon_must_be_a_positive_whole_number(horizon):
    with pytest.raises(ValueError, match="horizon must be a positive whole number, got"):
        run(Cycle(), Toy(), horizon)


def test_a_numpy_integer_is_a_whole_number():
    assert len(run(Cycle(), Toy(), np.int64(4), rng=0).arms) == 4


def test_bad_loops_and_bad_rewards_are_named():
    class Stops:
        def play(self, arms, rng):
            yield Pull(np.arange(3), None, np.arange(3))

    class Sick(Toy):
        means = np.array([0.0, 1.0, np.nan])

    with pytest.raises(ValueError, match="stopped after 3 of 10 rounds"):
        run(Stops(), Toy(), 10)
    with pytest.raises(ValueError, match="at least one arm, got none after 0 rounds"):
        run(Cycle(size=0), Toy(), 10)
    with pytest.raises(ValueError, match="reward of arm 2 in round 3 is nan"):
        run(Cycle(), Sick(), 10)


@pytest.mark.parametrize("name", NAMES)
def test_a_reward_that_is_not_finite_is_named_whatever_the_algorithm_would_make_of_it(name):
    class Sickening(Toy):
        arms, calls = np.linspace(0, 1, 5)[:, None], 0

        def rewards(self, arms, rng):
            self.calls += 1
            return np.full(len(arms), math.nan if self.calls == 3 else 0.5)

    algorithm = NAMES[name](SquaredExponential(0.2), **({"horizon": 2000} if "bkb" in name else {}))
    with pytest.raises(
        ValueError, match=r"^reward of arm \d in round \d+ is nan: the problem must return finite reward"
    ):
        run(algorithm, Sickening(), 2000, rng=0)


def test_the_loop_hears_nothing_of_a_reward_that_is_not_finite():
    heard = []

    class Listens:
        def play(self, arms, rng):
            while True:
                heard.append((yield Pull(np.arange(3), None, np.arange(3))))

    class Sick(Toy):
        means = np.array([0.0, 1.0, np.inf])

    with pytest.raises(ValueError, match="reward of arm 2 in round 3 is inf"):
        run(Listens(), Sick(), 10)
    assert heard == []


@pytest.mark.slow
def test_seconds_are_the_algorithms_own_and_progress_is_rare():
    class Slow(Cycle):
        def play(self, arms, rng):
            for pull in super().play(arms, rng):
                sleep(0.01)
                yield pull

    class SlowWorld(Toy):
        def rewards(self, arms, rng):
            sleep(0.04)
            return super().rewards(arms, rng)

    calls = []

    def progress(done):
        calls.append(done)
        sleep(0.05)

    trace = run(Slow(), SlowWorld(), 15, progress=progress)
    assert 0.15 <= trace.seconds < 0.5  # the world sleeps 0.6 s
    assert calls[-1] == 15
    assert 2 <= len(calls) <= 8
    assert calls == sorted(set(calls))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["amm-ucb", "gp-ts", "bbkb", "mini-gp-ucb", "reds", "bpe", "gp-threds", "lb-gp-ucb", "random"]
)
def test_simple_regret_is_that_of_the_arm_a_policy_would_recommend(name):
    problem = problems.NAMES["rkhs-se"](rng=0)
    settings = {"norm": 2 * problem.norm, "constants": "experiment", "first_epoch": 8}
    algorithm = build(NAMES[name], problem, 60, settings)
    trace, policy, done = run(algorithm, problem, 60, rng=3), Policy(algorithm, problem.arms, rng=3), 0
    while done < 60:
        arms = policy.ask()[: 60 - done]
        policy.tell(arms, trace.rewards[done : done + len(arms)])
        done += len(arms)
        if done <= 10 or done == 60:
            assert trace.simple_regret[done - 1] == problem.means.max() - problem.means[policy.best().arm]
    assert trace.simple_regret.shape == (60,)
    assert set(trace.simple_regret) <= set(problem.means.max() - problem.means)


def test_simple_regret_on_a_box():
    square, noise = Box([[0.0, 1.0], [0.0, 1.0]]), problems.Gaussian(0.2)
    maximum = problems.MAXIMA[problems.branin]
    problem = problems.Continuous("branin", square, problems.branin, maximum, SquaredExponential(0.2), noise)
    trace = run(NAMES["reds"](problem.kernel, constants="experiment", first_epoch=5), problem, 30, rng=0)
    assert trace.simple_regret.shape == (30,)
    assert (trace.simple_regret >= -1e-9).all()


def test_an_algorithm_without_bounds_recommends_nothing():
    assert np.isnan(run(Cycle(), Toy(), 5, rng=0).simple_regret).tolist() == [True] * 5


@pytest.mark.parametrize("given", ["igp-ucb", NAMES["igp-ucb"]])
def test_a_name_or_a_builder_is_not_an_algorithm(given):
    problem = problems.NAMES["rkhs-se"](rng=0)
    for play in (lambda: run(given, problem, 10), lambda: Policy(given, problem.arms)):
        with pytest.raises(ValueError, match=r"algorithm must have a method play, .*: build it first"):
            play()


@pytest.mark.parametrize("play", [run, lambda algorithm, *rest: compare(["igp-ucb"], *rest)])
def test_a_name_is_not_a_problem(play):
    with pytest.raises(ValueError, match=r"problem must have arms, .* got 'rkhs-se'"):
        play(NAMES["igp-ucb"](SquaredExponential(0.2)), "rkhs-se", 10)
