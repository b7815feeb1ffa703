"""A-GP-UCB, LB-GP-UCB and RCGP-UCB: formulas by hand, dropped and kept rungs, and regret."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from noregret import Constant, ExactGP, Linear, Matern, Nystrom, Policy, SparseGP, SquaredExponential
from noregret.algorithms import a_gp_ucb, igp_ucb, lb_gp_ucb, rcgp_ucb
from noregret.bandits.algorithms.sketching import BKBWidth
from noregret.bandits.algorithms.unknown_constants import SuspectedRegret
from noregret.bandits.belief.model_set import SharedPosterior
from noregret.bandits.belief.robust import ConjugateGP
from noregret.bandits.decision.balancing import Balanced, Rung
from noregret.bandits.problems.problem import rkhs_norm
from noregret.problems import Gaussian, Problem
from noregret.testing import check_model

ARMS = np.linspace(0, 1, 60)[:, None]


def hill(seed, lengthscale=0.1, noise=0.02):
    """One hill of norm 1, somewhere."""
    centre = np.random.default_rng(seed).uniform(0.1, 0.9)
    kernel = SquaredExponential(lengthscale)
    return Problem("hill", ARMS, kernel(ARMS, np.array([[centre]]))[:, 0], kernel, Gaussian(noise), 1.0)


def lengthscales(rungs):
    return [rung.model.kernel.lengthscale for rung in rungs]


def pulls(algorithm, problem, rounds, seed=0):
    """Arms that a loop asks for in each round of a run."""
    world, play = np.random.default_rng(seed), algorithm.play(problem.arms, np.random.default_rng(0))
    pull = next(play)
    for _ in range(rounds):
        yield pull
        pull = play.send((pull.arms, problem.rewards(pull.arms, world)))
    yield pull


# the ladders


def test_the_ladder_has_lengthscales_a_factor_e_apart_down_to_the_growing_depth():
    ladder = lb_gp_ucb(SquaredExponential(0.8), norm=2.0, start=5.0).ladder
    assert lengthscales(ladder(0, 1)) == pytest.approx([0.8, 0.8 / math.e])  # above 0.8 / 5
    assert lengthscales(ladder(10_000, 1)) == pytest.approx([0.8 * math.exp(-i) for i in range(5)])  # above 0.8 / 100
    assert [rung.width.norm for rung in ladder(0, 1)] == pytest.approx([2.0, 2.0 * math.exp(0.5)])
    in_the_plane = ladder(0, 2)
    assert lengthscales(in_the_plane) == pytest.approx([0.8 * math.exp(-i / 2) for i in range(4)])
    assert [rung.width.norm for rung in in_the_plane] == pytest.approx([2.0 * math.exp(i / 2) for i in range(4)])


@pytest.mark.parametrize("builder", [a_gp_ucb, lb_gp_ucb])
def test_the_model_is_that_of_the_lengthscale_that_was_given(builder):
    assert builder(SquaredExponential(0.8), noise=0.2).model == ExactGP(SquaredExponential(0.8), 0.2**2)


def test_a_matern_ladder_has_finer_steps():
    rungs = lb_gp_ucb(Matern(1.5, 0.5), start=2.0).ladder(0, 1)
    assert lengthscales(rungs) == pytest.approx([0.5 * math.exp(-i / 4) for i in range(3)])  # 4 ln 2 = 2.8


def test_a_ladder_shortens_every_lengthscale_of_a_kernel_with_several():
    rungs = lb_gp_ucb(SquaredExponential((0.8, 0.4)), start=2.0).ladder(0, 2)
    assert lengthscales(rungs)[1] == pytest.approx((0.8 * math.exp(-0.5), 0.4 * math.exp(-0.5)))


def test_with_norms_the_rungs_are_all_pairs_and_share_a_belief_per_lengthscale():
    algorithm = lb_gp_ucb(SquaredExponential(0.8), norm=1.0, norms=True, start=5.0)
    rungs = algorithm.ladder(16, 1)
    pairs = {(round(rung.model.kernel.lengthscale, 6), round(rung.width.norm, 6)) for rung in rungs}
    root = math.exp(0.5)
    assert pairs == {(0.8, n) for n in (1, 2, 4)} | {(round(0.8 / math.e, 6), round(root * n, 6)) for n in (1, 2, 4)}
    belief = next(algorithm.play(ARMS, np.random.default_rng(0))).belief
    assert len(belief.members) == 4
    assert len({id(posterior) for posterior in belief.members.values()}) == 2


def test_the_width_of_a_rung_by_hand():
    algorithm = lb_gp_ucb(SquaredExponential(0.5), norm=3.0, noise=0.2, delta=0.1, ridge=2.0, scale=0.5)
    rung = algorithm.ladder(0, 1)[0]
    posterior = rung.model.prior(ARMS)
    posterior.update([3, 40], [1.0, 0.0])
    expected = 3.0 + 0.5 * 0.2 * math.sqrt(2 * (posterior.information_gain + 1 + math.log(4.2 / 0.1)))
    assert rung.width(posterior) == pytest.approx(expected)
    assert algorithm.delta == pytest.approx(0.1 / 2.1)


def test_the_ridge_is_the_noise_variance_and_the_width_allows_for_it():
    theory = lb_gp_ucb(SquaredExponential(0.5), norm=3.0, noise=0.2).ladder(0, 1)[0]
    experiment = lb_gp_ucb(SquaredExponential(0.5), norm=3.0, noise=0.2, constants="experiment").ladder(0, 1)[0]
    prior = theory.model.prior(ARMS)
    assert theory.model.ridge == experiment.model.ridge == pytest.approx(0.04)
    assert theory.width(prior) - 3.0 == pytest.approx((experiment.width(prior) - 3.0) / 0.2)


def test_the_suspected_regret_by_hand():
    gain = 0.25**-1 * math.log(50) ** 2
    expected = math.sqrt(50) * (3.0 * math.sqrt(gain) + gain)
    assert SuspectedRegret(SquaredExponential(0.25), 3.0)(50, 1) == pytest.approx(expected)
    gain = 0.25**-2 * math.log(50) ** 3
    expected = math.sqrt(50) * (3.0 * math.sqrt(gain) + gain)
    assert SuspectedRegret(SquaredExponential(0.25), 3.0)(50, 2) == pytest.approx(expected)


def test_the_shrinking_ladder_by_hand():
    ladder = a_gp_ucb(SquaredExponential(0.8), norm=2.0, lengthscale_power=0.5, norm_power=0.25).ladder
    (rung,) = ladder(0, 2)
    assert (rung.model.kernel.lengthscale, rung.width.norm) == pytest.approx((0.8, 2.0))
    assert rung.width.delta == pytest.approx(0.1 * 6 / math.pi**2)
    (rung,) = ladder(10_000, 2)  # g = 100, rounded down to 1.1^48; b = 10, to 1.1^24
    assert rung.model.kernel.lengthscale == pytest.approx(0.8 / 1.1**48)
    assert rung.width.norm == pytest.approx(2.0 * 1.1**24 * 1.1**96)
    assert rung.width.delta == pytest.approx(0.1 * 6 / (49 * math.pi) ** 2)
    assert 100 / 1.1 < 1.1**48 <= 100
    assert 10 / 1.1 < 1.1**24 <= 10


# one set of rewards, several models


def test_a_model_admitted_late_knows_what_one_from_the_start_knows():
    early, late = ExactGP(SquaredExponential(0.3), 0.1), ExactGP(Matern(2.5, 0.1), 0.5)
    belief, expected = SharedPosterior(ARMS), late.prior(ARMS)
    belief.admit("early", early)
    for arms, rewards, noise in (([5, 3, 5], [1.0, 2.0, 0.5], None), ([3], [0.1], 4.0), ([9, 5], [1.0, -1.0], [1, 2])):
        belief.update(arms, rewards, noise=noise)
        expected.update(arms, rewards, noise=noise)
    belief.admit("late", late)
    belief.leader = "late"
    for name in ("mean", "std", "rounds", "pulled", "information_gain", "effective_dimension"):
        assert getattr(belief, name) == pytest.approx(getattr(expected, name), abs=1e-10), name


def test_points_that_are_no_arms_teach_every_model_and_those_admitted_late():
    early, late = ExactGP(SquaredExponential(0.3), 0.1), ExactGP(Matern(2.5, 0.1), 0.5)
    belief, expected = SharedPosterior(ARMS[::2]), late.prior(ARMS[::2])
    belief.admit("early", early)
    for posterior in (belief, expected):
        posterior.update([3, 4], [1.0, 0.5])
        posterior.learn(ARMS[[6, 7, 9]], [2.0, 0.0, 1.0])  # the first of them is an arm
        posterior.learn(ARMS[7], 0.3, noise=2.0)
    twin = belief.copy()
    twin.learn(ARMS[11], 5.0)
    belief.admit("late", late)
    belief.leader = "late"
    for name in ("mean", "std", "rounds", "information_gain", "effective_dimension"):
        assert getattr(belief, name) == pytest.approx(getattr(expected, name), abs=1e-10), name
    assert twin.rounds == belief.rounds + 1 == 7


def test_a_leader_that_is_dismissed_leaves_the_lead_to_another():
    belief = SharedPosterior(ARMS)
    for lengthscale in (0.3, 0.1):
        belief.admit(lengthscale, ExactGP(SquaredExponential(lengthscale), 0.1))
    belief.update([7], [1.0])
    belief.dismiss(0.3)
    belief.admit("new", ExactGP(SquaredExponential(0.05), 0.1))
    assert set(belief.members) == {0.1, "new"}
    assert belief.mean == pytest.approx(belief.members[0.1].mean)
    assert belief.members["new"].mean[7] == pytest.approx(1 / 1.1)


def test_a_robust_posterior_trusts_outliers_of_points_as_it_does_those_of_arms():
    whole, part = (ConjugateGP(SquaredExponential(0.2), 0.01).prior(arms) for arms in (ARMS, ARMS[::3]))
    pulls, rewards = [4, 5, 4, 9, 4], [1.0, -1.0, 1e6, 0.5, -1e3]
    whole.update(pulls, rewards, noise=[1, 2, 1, 1, 3])
    part.learn(ARMS[pulls], rewards, noise=[1, 2, 1, 1, 3])
    for name in ("mean", "std", "rounds", "information_gain", "claimed_gain", "misfit"):
        assert getattr(part, name) == pytest.approx(getattr(whole.at(ARMS[::3]), name), rel=1e-6, abs=1e-8), name


def test_a_copy_goes_its_own_way():
    belief = SharedPosterior(ARMS)
    for name in "ab":
        belief.admit(name, ExactGP(SquaredExponential(0.3), 0.1))
    twin = belief.copy()
    twin.update([1, 2], [5.0, 5.0])
    assert (belief.rounds, twin.rounds) == (0, 2)
    assert not belief.mean.any()
    assert twin.members["a"] is twin.members["b"]


# balancing


@dataclass(frozen=True)
class Always:
    """The same rungs at every round."""

    rungs: tuple[Rung, ...]

    def __call__(self, rounds, dimension):
        return self.rungs


@dataclass(frozen=True)
class Proportional:
    """Suspected regret of this amount a round."""

    rate: float

    def __call__(self, rounds, dimension):
        return self.rate * rounds


def rung(kernel, rate=1.0, width=0.0):
    return Rung(ExactGP(kernel, 0.01), Constant(width), Proportional(rate))


def test_rungs_play_in_inverse_proportion_to_their_suspected_regret():
    fast, slow = rung(SquaredExponential(0.3), 1.0), rung(SquaredExponential(0.1), 4.0)
    algorithm = Balanced(Always((fast, slow)), 1.0, 0.1)
    leaders = [pull.belief.leader for pull in pulls(algorithm, hill(0), 49)]
    assert [leaders.count(fast), leaders.count(slow)] == [40, 10]


def test_a_rung_is_dropped_when_its_own_rewards_and_widths_cannot_reach_anothers():
    """Without noise: avg + (2 / n) sum of width * std < the other's avg, and not before."""
    line, bump = rung(Linear(), width=0.3), rung(SquaredExponential(0.1), width=3.0)
    algorithm, problem = Balanced(Always((line, bump)), 0.0, 0.1), hill(1, noise=0.0)
    own, reach = {line: [], bump: []}, 0.0
    for pull in pulls(algorithm, problem, 200):
        if own[line] and own[bump]:
            refuted = np.mean(own[line]) + 2 * reach / len(own[line]) < np.mean(own[bump])
            assert (line not in pull.belief.members) == refuted
            if refuted:
                break
        arm, leader = pull.arms[0], pull.belief.leader
        own[leader].append(problem.means[arm])
        reach += 0.3 * pull.belief.std[arm] if leader == line else 0.0
    else:
        raise AssertionError("a line must not explain a hill")


def test_rewards_of_arms_that_nobody_asked_for_count_as_no_rungs_own():
    """Counted as the first rung's own, these would refute it."""
    algorithm = Balanced(Always((rung(SquaredExponential(0.3)), rung(SquaredExponential(0.1)))), 0.01, 0.1)
    policy = Policy(algorithm, ARMS, rng=0)
    policy.tell([59] * 20, [-10.0] * 20)  # a warm start, before anything was asked
    for _ in range(20):
        policy.tell(policy.ask(), [0.0])
    assert len(policy.belief.members) == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_lengthscale_that_its_own_rewards_refute_is_dropped_and_the_right_one_never(seed):
    problem = hill(seed)  # lengthscale 0.1, and so all shorter ones explain it
    norm = math.sqrt(0.1 / 2.0)  # N (2 / l)^(1/2) is 1 at l = 0.1
    algorithm = lb_gp_ucb(SquaredExponential(2.0), norm=norm, noise=0.02, ridge=0.01, start=math.exp(3.5))
    *_, last = pulls(algorithm, problem, 300, seed)
    left = lengthscales(last.belief.members)
    assert 2.0 not in left
    assert left[-1] == pytest.approx(2.0 * math.exp(-3))
    assert left[-1] <= 0.1


@pytest.mark.parametrize("norms", [False, True])
def test_the_reported_band_holds_all_the_way(norms):
    problem = hill(3, noise=0.1)
    algorithm = lb_gp_ucb(SquaredExponential(0.4), norm=0.5, noise=0.1, norms=norms)
    for pull in list(pulls(algorithm, problem, 150))[::10]:
        lower, upper = algorithm.bounds(pull.belief)
        assert (lower <= problem.means).all()
        assert (problem.means <= upper).all()


def test_the_band_is_the_widest_of_the_rungs_that_are_left():
    algorithm = lb_gp_ucb(SquaredExponential(0.4), noise=0.1)
    *_, last = pulls(algorithm, hill(3, noise=0.1), 30)
    lower, upper = algorithm.bounds(last.belief)
    for rung_left, fit in last.belief.members.items():
        half_width = rung_left.width(fit) * fit.std
        assert (lower <= fit.mean - half_width + 1e-12).all()
        assert (upper >= fit.mean + half_width - 1e-12).all()


def test_arms_cannot_change_in_the_middle_of_a_run():
    policy = Policy(lb_gp_ucb(SquaredExponential(0.4)), ARMS, rng=0)
    with pytest.raises(ValueError, match="Balanced cannot change its arms"):
        policy.change_arms(ARMS[:5])


# A-GP-UCB


def test_all_data_are_refitted_under_the_present_kernel():
    problem, seen = hill(0, noise=0.1), ([], [])
    algorithm, world = a_gp_ucb(SquaredExponential(0.4), noise=0.1), np.random.default_rng(0)
    policy = Policy(algorithm, ARMS, rng=0)
    for _ in range(60):
        arms = policy.ask()
        rewards = problem.rewards(arms, world)
        policy.tell(arms, rewards)
        seen[0].extend(arms)
        seen[1].extend(rewards)
    direct = ExactGP(SquaredExponential(0.4 / 1.1**10), 0.01).prior(ARMS)  # 1.1^10 <= 60^(1/4) < 1.1^11
    direct.update(*seen)
    assert policy.belief.mean == pytest.approx(direct.mean, abs=1e-9)
    assert policy.belief.std == pytest.approx(direct.std, abs=1e-9)
    assert policy.belief.information_gain == pytest.approx(direct.information_gain)


# regret


# RCGP-UCB


def test_small_residuals_make_it_the_exact_posterior():
    rng = np.random.default_rng(0)
    robust, exact = (
        ConjugateGP(SquaredExponential(0.2), 0.04).prior(ARMS),
        ExactGP(SquaredExponential(0.2), 0.04).prior(ARMS),
    )
    for arm in rng.integers(60, size=40):
        unit = math.hypot(exact.std[arm], 0.2)
        reward = exact.mean[arm] + unit * rng.uniform(-1.96, 1.96)
        robust.update(arm, reward)
        exact.update(arm, reward)
    assert robust.mean == pytest.approx(exact.mean, abs=1e-12)
    assert robust.std == pytest.approx(exact.std, abs=1e-12)


def test_the_mean_is_the_closed_form_with_weights_from_the_mean_before_each_reward():
    """mean = k' (K + J)^-1 (y - m_w), std alike, J and m_w from w = sqrt(ridge / 2) (1 + u^2)^(-1/2) by differences."""
    rng, kernel, ridge = np.random.default_rng(1), SquaredExponential(0.2), 0.04
    arms, rewards = rng.integers(60, size=12), 3 * rng.standard_normal(12)
    belief, noises, values, outlying = ConjugateGP(kernel, ridge, 1.5, 0.8).prior(ARMS), [], [], 0
    for arm, y in zip(arms, rewards, strict=True):
        mean, unit = belief.mean[arm], math.sqrt(belief.std[arm] ** 2 + ridge)

        def log_square(reward, mean=mean, unit=unit):
            u = max(abs(reward - mean) / unit - 1.5, 0) / 0.8
            return math.log(ridge / 2 / (1 + u**2))

        slope = (log_square(y + 1e-6) - log_square(y - 1e-6)) / 2e-6
        noises.append(ridge**2 / (2 * math.exp(log_square(y))))
        values.append(y - ridge * slope)
        outlying += slope != 0
        belief.update(arm, y)
    assert outlying >= 3
    gram, cross = kernel(ARMS[arms], ARMS[arms]) + np.diag(noises), kernel(ARMS[arms], ARMS)
    assert belief.mean == pytest.approx(cross.T @ np.linalg.solve(gram, values), abs=1e-6)
    assert belief.std**2 == pytest.approx(1 - np.einsum("ij,ij->j", cross, np.linalg.solve(gram, cross)), abs=1e-6)


def test_one_absurd_reward_has_bounded_influence():
    """No reward moves any mean by more than 5 deviations of the noise, and a huge one moves none at all."""
    before = ConjugateGP(SquaredExponential(0.2), 0.01).prior(ARMS)
    before.update(np.arange(0, 60, 6), np.sin(ARMS[::6, 0]))
    moved = []
    for reward in (*np.geomspace(0.01, 1e6, 200), 1e100, 1e300):
        after = before.copy()
        after.update(30, reward)
        moved.append(np.abs(after.mean - before.mean).max())
    assert max(moved) < 0.5
    assert max(moved[-2:]) < 1e-9
    exact = ExactGP(SquaredExponential(0.2), 0.01).prior(ARMS)
    exact.update(30, 1e6)
    assert np.abs(exact.mean).max() > 1e5


def test_one_block_is_as_good_as_one_reward_at_a_time():
    block, single = (ConjugateGP(SquaredExponential(0.2), 0.01).prior(ARMS) for _ in range(2))
    arms, rewards, noise = [3, 9, 3], [1.0, 50.0, -40.0], [1.0, 2.0, 0.5]
    block.update(arms, rewards, noise=noise)
    for pull in zip(arms, rewards, noise, strict=True):
        single.update(pull[0], pull[1], noise=pull[2])
    assert block.mean == pytest.approx(single.mean)
    assert block.rounds == single.rounds == 3


def test_the_conjugate_model_keeps_the_contract():
    check_model(ConjugateGP(Matern(2.5, 0.3), 0.1, threshold=50.0), ARMS[::8])


# errors


@pytest.mark.parametrize("builder", [a_gp_ucb, lb_gp_ucb])
def test_a_kernel_without_a_lengthscale_is_refused_with_advice_that_works(builder):
    with pytest.raises(ValueError, match=r"for c \* k pass k, and sqrt\(c\) times the norm"):
        builder(4.0 * SquaredExponential(0.2), norm=1.0)
    scaled, plain = 4.0 * SquaredExponential(0.2), SquaredExponential(0.2)
    values = plain(ARMS[:, :], ARMS[[10, 50]]) @ [1.0, -1.0]
    ratio = rkhs_norm(plain(ARMS, ARMS), values) / rkhs_norm(scaled(ARMS, ARMS), values)
    assert ratio == pytest.approx(math.sqrt(4.0), rel=1e-6)
    builder(plain, norm=2.0)


@pytest.mark.parametrize(
    ("builder", "wrong", "message"),
    [
        (lb_gp_ucb, {"start": 0.5}, "start must be finite and at least 1"),
        (lb_gp_ucb, {"norm": -1.0}, "norm must be"),
        (lb_gp_ucb, {"delta": 2.0}, "delta must be"),
        (a_gp_ucb, {"constants": "mine"}, "constants must be"),
        (a_gp_ucb, {"lengthscale_power": -0.1}, "lengthscale_power must be"),
        (a_gp_ucb, {"noise": math.nan}, "noise must be"),
        (rcgp_ucb, {"noise": 0.0}, "noise must be positive where no ridge is given"),
        (rcgp_ucb, {"ridge": 0.0}, "ridge must be positive"),
        (lb_gp_ucb, {"start": math.inf}, "start must be finite"),
        (rcgp_ucb, {"threshold": -1.0}, "threshold must be"),
        (rcgp_ucb, {"softness": 0.0}, "softness must be positive"),
    ],
)
def test_bad_constants_are_refused(builder, wrong, message):
    with pytest.raises(ValueError, match=message):
        builder(SquaredExponential(0.2), **wrong)


def test_the_rate_of_the_gain_on_arms_with_many_columns_is_refused():
    arms = np.random.default_rng(0).standard_normal((6, 900))
    policy = Policy(igp_ucb(SquaredExponential(1.0), gain="rate"), arms, rng=0)
    with pytest.raises(ValueError, match=r"the gain's rate must be finite, .*: pass gain='realised'"):
        policy.tell(np.arange(6).repeat(4), np.zeros(24))
    policy = Policy(igp_ucb(SquaredExponential(1.0), gain="realised"), arms, rng=0)
    policy.tell(np.arange(6).repeat(4), np.zeros(24))
    policy.best()


def test_rewards_of_any_size_count_for_nothing_if_they_are_absurd():
    belief = ConjugateGP(SquaredExponential(0.2), 0.01).prior(ARMS)
    belief.update([0, 0, 0, 1, 0], [1e100, 1e300, -1e200, 1e80, 1e308])
    np.testing.assert_allclose(belief.mean, 0.0, atol=1e-9)
    belief.update([0] * 20, [1.0] * 20)
    assert belief.mean[0] == pytest.approx(1.0, abs=0.01)


# Sketched rungs


def test_a_rung_of_a_sketch_is_that_of_bkb_and_norms_share_it():
    """Guess and double: norms N, 2 N, 4 N, ... on one lengthscale, all on one Nystrom sketch."""
    algorithm = lb_gp_ucb(
        SquaredExponential(0.1), norm=0.25, noise=0.02, norms=True, start=1, lengthscale_power=0, oversampling=4.0
    )
    rungs = algorithm.ladder(256, 1)
    assert [rung.width.norm for rung in rungs] == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert rungs[0].model == SparseGP(Nystrom(SquaredExponential(0.1), 4.0, root="cholesky", coins="kept"), 0.02**2)
    assert len({rung.model for rung in rungs}) == 1
    by_hand = BKBWidth(0.5, 0.02, 0.1 / 2.1 / 2, 0.5)
    prior = rungs[1].model.prior(ARMS, np.random.default_rng(0))
    assert rungs[1].width(prior) == by_hand(prior)


@pytest.mark.slow
def test_guess_and_double_finds_the_hill_on_a_sketch_and_its_band_holds():
    """A first guess of an eighth of the norm; the sketch has fewer features than the pulled arms."""
    problem = hill(0)
    algorithm = lb_gp_ucb(
        problem.kernel, norm=0.125, noise=0.02, norms=True, start=1, lengthscale_power=0, oversampling=1.0
    )
    *_, pull = pulls(algorithm, problem, 300)
    lower, upper = algorithm.bounds(pull.belief)
    assert ((lower <= problem.means) & (problem.means <= upper)).all()
    assert pull.belief.rank < len(pull.belief.pulled)
    assert problem.means[pull.arms[0]] > 0.9
