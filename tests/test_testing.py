"""The public checks can fail: each of these parts is broken in one way, and the check says which."""

import itertools
import math
from itertools import repeat
from types import SimpleNamespace

import numpy as np
import pytest

from noregret import UCB, Constant, ExactGP, Pull, SquaredExponential, algorithms
from noregret.bandits.belief.exact import ExactPosterior
from noregret.testing import (
    check_algorithm,
    check_beats_random,
    check_kernel,
    check_model,
    check_problem,
    check_rule,
    check_schedule,
)

ARMS = np.linspace(0, 1, 8)[:, None]
SE = SquaredExponential(0.3)
FAULTS = {}


def fault(message):
    """Register a function that passes a broken part to a check, with the expected message."""
    return lambda function: FAULTS.setdefault(function.__name__, (function, message))


@fault(r"k\(y, x\) must equal k\(x, y\)")
def kernel_that_is_not_symmetric():
    check_kernel(lambda X, Y: X - 2 * Y.T, ARMS)


@fault("k must be positive semi-definite, got eigenvalue -")
def kernel_with_a_negative_eigenvalue():
    check_kernel(lambda X, Y: np.abs(X - Y.T), ARMS)


@fault("diag")
def kernel_with_another_diagonal():
    function = lambda X, Y: SE(X, Y)  # noqa: E731
    function.diag = lambda X: np.zeros(len(X))
    check_kernel(function, ARMS)


@fault("must be finite")
def kernel_with_nan():
    check_kernel(lambda X, Y: np.full((len(X), len(Y)), np.nan), ARMS)


@fault("shape")
def kernel_of_the_wrong_shape():
    check_kernel(lambda X, Y: SE(X, Y)[:, :-1], ARMS)


@fault("finite number from 0 on, got -1")
def schedule_below_zero():
    check_schedule(lambda belief: -1.0)


@fault("finite number from 0 on, got nan after 0 rounds")
def schedule_that_fails_before_the_first_reward():
    check_schedule(lambda belief: math.nan if not belief.rounds else 1.0)


@fault("asked twice")
def schedule_with_a_mind_of_its_own():
    count = itertools.count()
    check_schedule(lambda belief: next(count))


@fault(r"a schedule must not change the posterior \(std\)")
def schedule_that_pulls():
    check_schedule(lambda belief: belief.update(0) or 1.0)


@fault("one score per arm: expected")
def rule_with_one_score():
    check_rule(lambda belief, rng: np.zeros(1))


@fault("scores must be finite")
def rule_that_divides_by_the_rounds():
    check_rule(lambda belief, rng: np.full(len(belief.mean), 1 / belief.rounds if belief.rounds else math.inf))


@fault("the same generator must give the same scores")
def rule_with_a_generator_of_its_own():
    own = np.random.default_rng(0)
    check_rule(lambda belief, rng: own.random(len(belief.mean)))


@fault("a rule must not change the posterior")
def rule_that_pulls():
    check_rule(lambda belief, rng: belief.update(0) or np.zeros(len(belief.mean)))


@fault("bounds must be")
def rule_whose_bounds_cross():
    class Crossed(UCB):
        def bounds(self, posterior):
            return super().bounds(posterior)[::-1]

    check_rule(Crossed(Constant(1.0)))


def check_broken(**methods):
    """Check a model whose posterior has these methods instead of its own."""
    broken = type("Broken", (ExactPosterior,), methods)
    check_model(SimpleNamespace(prior=lambda arms, rng: broken(ExactGP(SE, 0.1), arms)), ARMS)


def method(name):
    return getattr(ExactPosterior, name)


@fault("an update without rewards must not count as a round")
def model_that_counts_planned_pulls():
    def update(self, arms, rewards=None, *, noise=None):
        method("update")(self, arms, self.mean[arms] if rewards is None else rewards, noise=noise)

    check_broken(update=update)


@fault("an update without rewards must not move the mean")
def model_that_takes_no_reward_for_zero():
    def update(self, arms, rewards=None, *, noise=None):
        method("update")(self, arms, np.zeros(np.size(arms)) if rewards is None else rewards, noise=noise)
        self.rounds -= np.size(arms) if rewards is None else 0

    check_broken(update=update)


@fault("one pull of their average at a quarter of the ridge")
def model_that_ignores_the_noise():
    check_broken(update=lambda self, arms, rewards=None, *, noise=None: method("update")(self, arms, rewards))


@fault("the order of rewards must not matter|one reward at a time")
def model_that_forgets_the_rest_of_a_block():
    def update(self, arms, rewards=None, *, noise=None):
        rewards = rewards if rewards is None else np.where(np.arange(np.size(rewards)), 0.0, rewards)
        method("update")(self, arms, rewards, noise=noise)

    check_broken(update=update)


@fault("an update of a copy must not count in the original")
def model_whose_copies_are_itself():
    check_broken(copy=lambda self: self)


@fault("mean and std must not be written to in place")
def model_that_overwrites_its_mean():
    def update(self, arms, rewards=None, *, noise=None):
        mean = self._conditioning.factor.mean
        method("update")(self, arms, rewards, noise=noise)
        mean[:] = self._conditioning.factor.mean
        self._conditioning.factor.mean = mean

    check_broken(update=update)


@fault("samples must average the mean")
def model_whose_samples_are_off():
    check_broken(sample=lambda self, rng: method("sample")(self, rng) + 0.1)


@fault("samples must have the covariance")
def model_whose_samples_are_not_joint():
    check_broken(sample=lambda self, rng: self.mean + self.std * rng.standard_normal(len(self.mean)))


@fault(r"predict\(arms\) must be mean and std")
def model_that_predicts_something_else():
    check_broken(predict=lambda self, points: (np.zeros(len(points)), np.ones(len(points))))


@fault(r"at\(points\) must")
def model_that_forgets_when_it_moves():
    check_broken(at=lambda self, arms: ExactGP(SE, 0.1).prior(arms))


@fault("pulled must be the arms in order of their first pull")
def model_that_sorts_what_was_pulled():
    check_broken(pulled=property(lambda self: np.sort(self._conditioning.pulls.arms)))


@fault(r"a pull must gain 1/2 ln\(1 \+ std\^2 / ridge\)")
def model_that_gains_too_much():
    def update(self, arms, rewards=None, *, noise=None):
        method("update")(self, arms, rewards, noise=noise)
        self._conditioning.factor.gain += 0.1

    def at(self, arms):
        moved = method("at")(self, arms)
        moved._conditioning.factor.gain = self.information_gain
        return moved

    check_broken(update=update, at=at)


@fault("each pull must claim the gain 1/2")
def model_that_claims_what_it_gains():
    def update(self, arms, rewards=None, *, noise=None):
        method("update")(self, arms, rewards, noise=noise)
        if rewards is not None:
            self.claimed_gain = self.information_gain

    check_broken(update=update)


@fault(r"a reward must add \(reward - mean\)\^2 / \(ridge \+ std\^2\) to the misfit")
def model_that_fits_too_badly():
    def update(self, arms, rewards=None, *, noise=None):
        method("update")(self, arms, rewards, noise=noise)
        self._conditioning.factor.misfit += 0.1

    def at(self, arms):
        moved = method("at")(self, arms)
        moved._conditioning.factor.misfit = self.misfit
        return moved

    check_broken(update=update, at=at)


@fault("the effective dimension must be the sum")
def model_with_another_dimension():
    check_broken(effective_dimension=property(lambda self: float(self.rounds)))


class Toy:
    """Gaussian rewards around a bump."""

    arms = np.random.default_rng(0).random((50, 1))
    means = SE(arms, np.array([[0.3]]))[:, 0]

    def rewards(self, arms, rng):
        return self.means[arms] + 0.1 * rng.standard_normal(len(arms))


def check_loop(play):
    """Check an algorithm with this loop."""
    check_algorithm(SimpleNamespace(play=play, bounds=UCB(Constant(2.0)).bounds), Toy())


@fault(r"ask\(\) must give at least one arm of 0\.\.49, got \[50\]")
def algorithm_that_asks_beyond_the_arms():
    def play(arms, rng):
        yield Pull(np.array([len(arms)]), ExactGP(SE, 0.1).prior(arms), np.arange(len(arms)))

    check_loop(play)


@fault(r"ask\(\) must give at least one arm")
def algorithm_that_asks_for_nothing():
    def play(arms, rng):
        yield Pull(np.array([], np.intp), ExactGP(SE, 0.1).prior(arms), np.arange(len(arms)))

    check_loop(play)


@fault("once more from the same seed must lead to the same arms")
def algorithm_with_a_generator_of_its_own():
    own = np.random.default_rng(0)

    def play(arms, rng):
        belief = ExactGP(SE, 0.1).prior(arms)
        while True:
            belief.update(*(yield Pull(own.integers(len(arms), size=1), belief, np.arange(len(arms)))))

    check_loop(play)


@fault("in two pieces, the last first must lead to the same arms")
def algorithm_that_takes_rewards_for_those_it_asked_for():
    def play(arms, rng):
        belief, batch = ExactGP(SE, 0.1).prior(arms), np.array([3, 9, 27])
        while True:
            _, rewards = yield Pull(batch, belief, np.arange(len(arms)))
            belief.update(batch, rewards[: len(batch)])
            batch = np.argsort(belief.mean)[-3:]

    check_loop(play)


def check_ahead(ahead):
    """Check a valid loop with this choice while arms are pending."""
    sound = algorithms.amm_ucb(SE, noise=0.1)
    check_algorithm(SimpleNamespace(play=sound.play, bounds=sound.bounds, ahead=ahead), Toy())


@fault(r"ask\(3\) must not change the belief")
def algorithm_that_learns_while_it_thinks_ahead():
    def ahead(belief, out, rng):
        while True:
            belief.update(7)
            yield 7

    check_ahead(ahead)


@fault(r"ask\(3\) must give one to three arms of 0\.\.49, got \[50 50 50\]")
def algorithm_that_thinks_of_arms_that_are_not_there():
    check_ahead(lambda belief, out, rng: repeat(50))


@fault("regret must be below 0.7 of random's")
def algorithm_that_is_no_better_than_chance():
    check_beats_random(algorithms.random(SE), Toy(), 200, 5, 0.7)


@fault("arm .* must average")
def problem_with_a_bias():
    class Biased(Toy):
        def rewards(self, arms, rng):
            return super().rewards(arms, rng) + 0.02

    check_problem(Biased())


@fault("the same generator must give the same rewards")
def problem_with_a_generator_of_its_own():
    class Own(Toy):
        def rewards(self, arms, rng):
            return super().rewards(arms, np.random.default_rng())

    check_problem(Own())


@fault("rewards must have the shape of the arms")
def problem_with_one_reward():
    check_problem(SimpleNamespace(arms=ARMS, means=np.zeros(8), rewards=lambda arms, rng: np.zeros(1)))


@fault("rewards must be finite")
def problem_with_nan():
    check_problem(SimpleNamespace(arms=ARMS, means=np.zeros(8), rewards=lambda arms, rng: np.full(len(arms), np.nan)))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name):
    function, message = FAULTS[name]
    with pytest.raises(AssertionError, match=message):
        function()


@pytest.mark.slow
def test_the_sound_versions_pass():
    check_kernel(SE, ARMS)
    check_schedule(Constant(1.0))
    check_rule(UCB(Constant(1.0)))
    check_broken()
    check_algorithm(algorithms.amm_ucb(SE), Toy())
    check_beats_random(algorithms.amm_ucb(SE), Toy(), 200, 5, 0.7)
    check_problem(Toy())
