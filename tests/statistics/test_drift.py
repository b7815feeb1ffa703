"""Bands and regret of the algorithms that forget, on functions that change."""

import numpy as np
import pytest
from tests.bandits.algorithms.test_drift import DRIFT, KERNEL, numbers_in

from noregret import Policy, algorithms, problems, run


def holds(algorithm, problem, rounds, seed):
    """Test whether the band contains all arms' means in every round of a run."""
    policy, world = Policy(algorithm, problem.arms, rng=seed), np.random.default_rng(seed)
    for t in range(rounds):
        lower, upper = algorithm.bounds(policy.belief)
        if not ((lower <= problem.at(t).means) & (problem.at(t).means <= upper)).all():
            return False
        arm = policy.ask()
        policy.tell(arm, problem.at(t).rewards(arm, world))
    return True


def test_the_band_of_a_window_with_its_drift_term_holds():
    """1 - delta for all of 200 rounds, on a function that slides fast: 3 of 3 runs, and none without the term."""
    for seed in range(3):
        problem = problems.motion(points=20, rounds=200, distance=6.0, rng=seed)
        apart = max(np.abs(problem.means[t] - problem.means[max(t - 40, 0) : t]).max() for t in range(1, 200))
        facts = {"norm": problem.norm, "noise": 0.1, "delta": 0.1 / 200}
        assert holds(algorithms.sw_gp_ucb(KERNEL, window=40, variation=apart, **facts), problem, 200, seed)
        assert not holds(algorithms.sw_gp_ucb(KERNEL, window=40, **facts), problem, 200, seed)


def test_the_bands_of_a_walk_and_of_weights_hold():
    """1 - delta: TV-GP-UCB on its own walk, WGP-UCB on a constant function; at least 9 of 10 runs each."""
    walks = [problems.walk(points=15, rounds=150, rate=0.05, rng=seed) for seed in range(10)]
    walking = algorithms.tv_gp_ucb(KERNEL, rate=0.05, noise=0.1)
    assert sum(holds(walking, walk, 150, seed) for seed, walk in enumerate(walks)) >= 9
    assert not holds(algorithms.tv_gp_ucb(KERNEL, rate=0.0005, noise=0.1), walks[0], 150, 0)
    still = [problems.jump(points=15, rounds=1, rng=seed) for seed in range(10)]
    facts = {"discount": 0.95, "noise": 0.1, "delta": 0.1 / 100}
    kept = [holds(algorithms.wgp_ucb(KERNEL, norm=p.norm, **facts), p, 100, seed) for seed, p in enumerate(still)]
    assert sum(kept) >= 9


@pytest.mark.parametrize("name", DRIFT)
def test_after_a_jump_those_that_forget_recover(name):
    """Of the last 100 of 400 rounds, after a jump at 200: at most a third of the regret with all rewards remembered.

    The jump makes the best arm the worst: f turns into -f. Mean of 5 seeds.
    """
    settings = {"tv-gp-ucb": {"rate": 0.03, "scale": 0.5}, "sw-gp-ucb": {"window": 60}, "r-gp-ucb": {"period": 60}}
    forgets, remembers = [], []
    for seed in range(5):
        before = problems.jump(points=30, rounds=1, rng=seed)
        means = np.repeat(np.vstack([before.means, -before.means]), 200, axis=0)
        problem = problems.Changing("turn", before.arms, means, KERNEL, before.payoff, before.norm)
        facts = {"noise": 0.1, "scale": 0.5} | ({} if name == "tv-gp-ucb" else {"norm": before.norm})
        builder = algorithms.NAMES[name]
        algorithm = builder(KERNEL, **facts | settings.get(name, {"discount": 0.96}))
        forgets.append(run(algorithm, problem, 400, rng=seed).regret[-100:].mean())
        plain = algorithms.ay_ucb(KERNEL, noise=0.1, scale=0.5, norm=before.norm)
        remembers.append(run(plain, problem, 400, rng=seed).regret[-100:].mean())
    assert np.mean(forgets) < np.mean(remembers) / 3, (forgets, remembers)


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIFT)
def test_memory_stays_what_it_is_however_long_the_run(name):
    """Memory after 900 rounds is no more than after 300, except for 50 arms that may be new."""
    algorithm = algorithms.NAMES[name](KERNEL, **DRIFT[name])
    arms, world = np.linspace(0, 1, 50)[:, None], np.random.default_rng(0)
    play = algorithm.play(arms, world)
    pull, held = next(play), {}
    for t in range(1, 901):
        pull = play.send((pull.arms, world.standard_normal(1)))
        held[t] = numbers_in(pull.belief)
    assert pull.belief.rounds == 900
    assert max(held.values()) < 25_000
    assert max(held[t] for t in range(600, 901)) <= max(held[t] for t in range(1, 600)) + 3_000
