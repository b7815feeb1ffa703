"""Rewards that contradict norm and noise: one warning, and only if it is true."""

import re
import warnings

import numpy as np
import pytest

from noregret import Policy, SquaredExponential, algorithms

KERNEL = SquaredExponential(0.3)
ARMS = np.linspace(0, 1, 20)[:, None]
BUILDERS = [
    "ay-ucb",
    "amm-ucb",
    "dmm-ucb",
    "igp-ucb",
    "gp-ts",
    "gp-ei",
    "gp-pi",
    "random",
    "mini-gp-ucb",
    "reds",
    "bpe",
    "lb-gp-ucb",
    "a-gp-ucb",
]


CONTRADICTION = r"^(no function fits the rewards: )?the rewards contradict norm=1 and noise=0.1, under which"


def told(name, f, sd, count=200, seed=0, **constants):
    """A policy with rewards of random arms."""
    policy, world = Policy(algorithms.NAMES[name](KERNEL, **constants), ARMS, rng=0), np.random.default_rng(seed)
    arms = world.integers(len(ARMS), size=count)
    policy.tell(arms, f[arms] + sd * world.standard_normal(count))
    return policy


def function(norm, seed=0):
    weights = np.random.default_rng(seed).standard_normal(len(ARMS))
    K = KERNEL(ARMS, ARMS)
    return norm / np.sqrt(weights @ K @ weights) * (K @ weights)


@pytest.mark.parametrize("name", BUILDERS)
def test_rewards_near_a_thousand_contradict_norm_1(name):
    policy = told(name, np.full(20, 1000.0), 0.1)
    with pytest.warns(UserWarning, match=CONTRADICTION):
        policy.best()
    policy.best()  # once is enough: warnings are errors here


@pytest.mark.parametrize("name", BUILDERS)
def test_the_advice_in_the_warning_helps(name):
    with pytest.warns(UserWarning, match=CONTRADICTION) as caught:
        told(name, np.full(20, 1000.0), 0.1).best()
    norm = float(re.search(r"pass norm=(\S+) if", str(caught[0].message))[1])
    best = told(name, np.full(20, 1000.0), 0.1, norm=norm).best()
    assert best.lower <= 1000 <= best.upper
    told(name, np.full(20, 1000.0) - 1000, 0.1).best()


def test_noise_that_is_too_small_is_found_too():
    with pytest.warns(UserWarning, match=CONTRADICTION) as caught:
        told("ay-ucb", function(1.0), 1.0).best()
    least = float(re.search(r"noise is at least (\S+): pass that", str(caught[0].message))[1])
    assert 0.5 < least <= 1.0
    told("ay-ucb", function(1.0), 1.0, noise=1.0).best()


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_where_the_constants_are_right_nothing_is_said(name):
    """Each warning has probability delta = 0.1 at most; of 260 runs in all none gives one."""
    for seed in range(20):
        policy = told(name, function(1.0, seed), 0.1, count=30 + 20 * seed, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            policy.best()


@pytest.mark.parametrize("name", ["ay-ucb", "lb-gp-ucb"])
def test_a_norm_of_0_is_advised_a_finite_one(name):
    with pytest.warns(UserWarning, match="the rewards contradict norm=0") as caught:
        told(name, np.full(20, 1000.0), 0.1, norm=0.0).best()
    norm = float(re.search(r"pass norm=(\S+) if", str(caught[0].message))[1])
    assert 100 < norm < 10_000


def test_corrupted_rewards_are_no_contradiction_where_they_are_expected():
    f, corrupted = function(0.9), np.isin(np.arange(100), (2, 7))
    for seed in range(5):
        policy, world = Policy(algorithms.rcgp_ucb(KERNEL), ARMS, rng=0), np.random.default_rng(seed)
        for off in 50.0 * corrupted:
            arm = policy.ask()
            policy.tell(arm, f[arm] + off + 0.1 * world.standard_normal(1))
        policy.best()  # warnings are errors here


def test_a_ladder_is_contradicted_when_every_rung_is():
    f = 100 * np.sin(40 * ARMS[:, 0])
    with pytest.warns(UserWarning, match="the rewards contradict norm=1 and noise=0.01") as caught:
        told("lb-gp-ucb", f, 0.01, noise=0.01).best()
    norm = float(re.search(r"pass norm=(\S+) if", str(caught[0].message))[1])
    assert 1 < norm < 100 * 20
    told("lb-gp-ucb", f, 0.01, noise=0.01, norm=norm).best()
    told("lb-gp-ucb", function(3.0), 0.1).best()  # too large a norm for the first rung, but not for all


def test_an_empty_confidence_set_is_reported():
    """DMM: no function of norm 0.01 comes near the rewards, at any ridge."""
    policy = told("dmm-ucb", np.full(20, 5.0), 0.1, norm=0.01)
    with pytest.warns(UserWarning, match=r"^no function fits the rewards: .*norm=0.01 or noise=0.1 is too small"):
        best = policy.best()
    assert best.empty
    assert best.lower > best.upper
    assert not told("dmm-ucb", function(1.0), 0.1).best().empty
    assert (np.diff(policy.algorithm.rule(policy.belief, None)) != 0).any(), "arms are still chosen by their means"
