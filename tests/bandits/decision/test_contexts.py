"""Contexts: rows (context, arm), arms that change in every round, and problems that change under a run."""

import numpy as np
import pytest

from noregret import UCB, Batched, Columns, Constant, ExactGP, Policy, SquaredExponential, algorithms, problems, run
from noregret.cli import main
from noregret.problems import Changing, Gaussian
from noregret.testing import check_problem

SE = SquaredExponential(0.2)
CONTEXT, ARM = Columns(SE, (0,)), Columns(SE, (1,))
PRODUCT = CONTEXT * ARM
PROBLEM = problems.contextual(points=20, rounds=120, rng=0)
CHANGING = ("contextual", "light-by-time", "motion", "jump", "day-and-night", "walk")


def played(algorithm, problem, rounds, seed=0):
    """The arms that a policy pulls whose arms are changed before every round."""
    policy, arms = Policy(algorithm, problem.at(0).arms, rng=seed), []
    _, world = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    for t in range(rounds):
        if t:
            policy.change_arms(problem.at(t).arms)
        asked = policy.ask()
        policy.tell(asked, problem.at(t).rewards(asked, world))
        arms += asked.tolist()
    return policy, arms


def test_it_is_ay_ucb_on_the_joined_rows():
    """A policy on all (context, arm) rows that chooses among those of the context has the same posterior."""
    policy, arms = played(algorithms.cgp_ucb(PRODUCT, norm=PROBLEM.norm), PROBLEM, 60)
    rows = np.vstack([PROBLEM.at(t).arms for t in range(60)])
    whole = algorithms.ay_ucb(PRODUCT, norm=PROBLEM.norm)
    belief = whole.model.prior(rows)
    _, world = (np.random.default_rng(child) for child in np.random.SeedSequence(0).spawn(2))
    for t in range(60):
        here = slice(20 * t, 20 * (t + 1))
        assert int((belief.mean + whole.rule.width(belief) * belief.std)[here].argmax()) == arms[t]
        belief.update(20 * t + arms[t], PROBLEM.at(t).rewards(np.array(arms[t : t + 1]), world))
    np.testing.assert_allclose(policy.belief.mean, belief.mean[-20:], atol=1e-7)
    np.testing.assert_allclose(policy.belief.std, belief.std[-20:], atol=1e-7)


RELATIVES = {
    "product": algorithms.cgp_ucb(PRODUCT, norm=PROBLEM.norm),
    "sum": algorithms.cgp_ucb(CONTEXT + ARM, norm=PROBLEM.norm),
    "thompson": algorithms.gp_ts(PRODUCT, norm=PROBLEM.norm, noise=0.1, scale=0.3, ridge=0.01),
    "sketched": algorithms.bkb(PRODUCT, norm=PROBLEM.norm, noise=0.1, horizon=120, constants="experiment"),
    "truncated": algorithms.tgp_ucb(PRODUCT, norm=PROBLEM.norm, moment=3.0, scale=0.02),
    "robust": algorithms.rcgp_ucb(PRODUCT, norm=PROBLEM.norm, noise=0.1),
    "forgetting": algorithms.sw_gp_ucb(PRODUCT, norm=PROBLEM.norm, window=110),
    "walking": algorithms.tv_gp_ucb(PRODUCT, rate=0.001),
}


def test_a_policy_on_contexts_comes_back_from_a_file(tmp_path):
    algorithm = RELATIVES["product"]
    policy, _ = played(algorithm, PROBLEM, 30)
    policy.save(tmp_path / "run.npz")
    loaded = Policy.load(tmp_path / "run.npz")
    for each in (policy, loaded):
        each.change_arms(PROBLEM.at(30).arms)
    assert loaded.ask().tolist() == policy.ask().tolist()
    np.testing.assert_array_equal(loaded.belief.mean, policy.belief.mean)


# Problems that change


@pytest.mark.parametrize("name", CHANGING)
def test_every_round_is_a_problem(name):
    problem = problems.NAMES[name](rounds=40, rng=1)
    assert (len(problem.means), problem.means.std(axis=0).max() > 0.05) == (40, True)
    for t in (0, 39):
        check_problem(problem.at(t), draws=200)
    np.testing.assert_array_equal(problem.at(43).means, problem.means[3])
    columns = 1 if problem.contexts is None else 2
    assert problem.at(7).arms.shape == (len(problem.arms), columns)
    assert problem.kernel(problem.at(0).arms, problem.at(1).arms).shape == (len(problem.arms),) * 2


@pytest.mark.parametrize("name", ["motion", "jump", "day-and-night", "walk"])
def test_the_norm_bounds_the_function_of_every_round(name):
    problem = problems.NAMES[name](rounds=40, rng=2)
    for t in (0, 13, 39):
        assert problems.rkhs_norm(SE(problem.arms, problem.arms), problem.means[t]) <= 1.01 * problem.norm


def test_how_they_change():
    slide = problems.motion(points=51, rounds=100, distance=1.0, rng=0).means
    np.testing.assert_allclose(slide[50][:25], slide[0][25:50], atol=1e-9)
    leap = problems.jump(rounds=10, rng=0).means
    assert len(np.unique(leap[:5], axis=0)) == len(np.unique(leap[5:], axis=0)) == 1
    days = problems.day_and_night(rounds=100, period=40, rng=0).means
    np.testing.assert_allclose(days[80], days[0], atol=1e-9)
    np.testing.assert_allclose(days[10], (days[0] + days[20]) / 2, atol=1e-9)
    steps = problems.walk(rounds=2000, rate=0.1, rng=0).means[:, 20]
    assert np.corrcoef(steps[1:], steps[:-1])[0, 1] == pytest.approx(0.9**0.5, abs=0.03)
    assert steps.std() == pytest.approx(1.0, abs=0.2)


def test_every_pull_of_a_batch_meets_a_round_of_its_own():
    means = np.arange(12.0).reshape(6, 2)
    problem = Changing("ramp", [[0.0], [1.0]], means, SE, Gaussian(0.0))
    trace = run(algorithms.bpe(SE, noise=0.1, horizon=6, first_epoch=3), problem, 6, rng=0)
    np.testing.assert_array_equal(trace.rewards, means[np.arange(6), trace.arms])


def test_who_cannot_follow_says_so(capsys):
    with pytest.raises(
        ValueError, match=r"^Elimination cannot change its arms in the middle of a run, as this problem does"
    ):
        run(algorithms.bpe(PRODUCT, noise=0.1, horizon=50), PROBLEM, 50, rng=0)
    assert main(["run", "bpe", "--problem", "contextual", "--rounds", "50", "--trials", "1", "--jobs", "1"]) == 2
    assert "bpe: Elimination cannot change its arms" in capsys.readouterr().err


def test_a_batch_is_cut_where_the_arms_change():
    """Contexts that stay for three rounds each: batches of up to three arms, and every arm meets its context."""
    contexts = np.repeat(np.linspace(0, 1, 10), 3)[:, None]
    means = np.repeat(np.random.default_rng(0).standard_normal((10, 20)), 3, axis=0)
    problem = Changing("steps", PROBLEM.arms, means, PRODUCT, Gaussian(0.0), contexts=contexts)
    batches = Batched(ExactGP(PRODUCT, 0.01), UCB(Constant(2.0)), size=5)
    trace = run(batches, problem, 30, rng=0, watch={"context": lambda pull: pull.belief.arms[0, 0]})
    np.testing.assert_array_equal(trace.rewards, means[np.arange(30), trace.arms])
    np.testing.assert_array_equal(trace.watched["context"], contexts[:, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"means": [[1.0]]}, "one mean per arm is needed, got 2 arms and 1 means"),
        ({"means": [1.0, 2.0]}, r"means must have shape \(T, N\), got \(2,\)"),
        ({"contexts": [[1.0], [2.0]]}, "one context per round is needed, got 2 for 1"),
        ({"contexts": [1.0]}, r"contexts must have shape \(T, c\), got \(1,\)"),
        ({"payoff": 0.1}, "payoff must be a reward model"),
    ],
)
def test_bad_problems(changes, message):
    settings = {"name": "two", "arms": [[0.0], [1.0]], "means": [[0.2, 0.7]], "kernel": SE, "payoff": Gaussian(0.1)}
    with pytest.raises(ValueError, match=message):
        Changing(**settings | changes)


def test_walk_refuses_a_rate_that_is_none():
    with pytest.raises(ValueError, match=r"rate must be in \(0, 1\), got 1.5"):
        problems.walk(rate=1.5)
