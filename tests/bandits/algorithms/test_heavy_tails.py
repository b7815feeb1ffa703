"""TGP-UCB, ATA-GP-UCB and the later methods: formulas by hand, coverage, absurd rewards, compositions."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from noregret import (
    Constant,
    ExactGP,
    ExpectedImprovement,
    Matern,
    Nystrom,
    Policy,
    QuadratureFourier,
    RandomFourier,
    Sequential,
    SparseGP,
    SquaredExponential,
    Tabular,
    Thompson,
    problems,
    run,
)
from noregret.algorithms import NAMES, ata_gp_ucb, hvt_ucb, igp_ucb, mom_gp_ucb, tgp_ucb
from noregret.bandits.algorithms.heavy_tails import ATALevel, ATAWidth, LogEvents, Tail, TGPLevel, TGPWidth
from noregret.bandits.algorithms.robust_bandits import HvtLevel, HvtWidth, MoMWidth
from noregret.bandits.belief.features import quadrature_error
from noregret.bandits.decision.designs import RandomDesign
from noregret.bandits.decision.elimination import Elimination
from noregret.bandits.lab.figures.heavy_tails import share_needed
from noregret.testing import check_schedule

SE = SquaredExponential(0.2)
ROBUST = ["tgp-ucb", "ata-gp-ucb", "mom-gp-ucb", "hvt-ucb"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def state(rounds, rank=64, gain=2.0, ridge=1.0):
    return SimpleNamespace(rounds=rounds, rank=rank, information_gain=gain, ridge=ridge)


def test_tgp_level_and_width_by_hand():
    """v = 4, alpha = 1: b_16 = 2 * 16^(1/4) = 4; 1 + 3 * 4 * sqrt(2 * 2 + 2 * 2) at delta = e^-2 and a gain of 2."""
    tail = Tail(4.0)
    assert TGPLevel(tail)(state(16)) == pytest.approx(4.0)
    width = TGPWidth(1.0, tail, math.exp(-2), form="paper")
    assert width(state(16)) == pytest.approx(1 + 12 * math.sqrt(8))
    assert width(state(16, ridge=4.0)) == pytest.approx(1 + 6 * math.sqrt(8))
    assert width(state(0, gain=0.0)) == 1.0
    scaled = TGPWidth(1.0, tail, math.exp(-2), scale=0.1, form="paper")
    assert scaled(state(16)) == pytest.approx(1 + 1.2 * math.sqrt(8))
    assert TGPLevel(Tail(8.0, 0.5))(state(64)) == pytest.approx(4 * 4)  # 8^(2/3) * 64^(1/3)


def test_tgp_width_at_all_rounds_by_hand():
    """At t = 16: sqrt(2) * 4 * (1 + 2^(1/4) sqrt(2 + 2 + 2 ln(1.29 * 5))); narrower than printed."""
    tail = Tail(4.0)
    width, printed = TGPWidth(1.0, tail, math.exp(-2)), TGPWidth(1.0, tail, math.exp(-2), form="paper")
    noise = math.sqrt(2) * 4 * (1 + 2**0.25 * math.sqrt(4 + 2 * math.log(1.29 * 5)))
    assert width(state(16)) == pytest.approx(1 + noise)
    assert TGPWidth(1.0, tail, math.exp(-2), scale=0.1)(state(16)) == pytest.approx(1 + 0.1 * noise)
    assert width(state(0, gain=0.0)) == 1.0
    now = state(20_000, gain=12.0)
    assert printed(now) / width(now) == pytest.approx(1.8, abs=0.15)


def test_tgp_experiment_width_by_hand():
    """B sqrt(ridge) + b_t sqrt(ln t)."""
    width = TGPWidth(3.0, Tail(4.0), 0.1, "experiment")
    assert width(state(16, ridge=4.0)) == pytest.approx(6 + 4 * math.sqrt(math.log(16)))
    assert width(state(0)) == width(state(1)) == 3.0


def test_ata_level_and_width_by_hand():
    """m = 64, T = 20 000, delta = 0.1: ln(2 m T / delta) = 17.0581..."""
    log = LogEvents(2.0, 0.1, 20_000)
    assert log(state(5)) == pytest.approx(17.05810, abs=1e-5)
    assert ATALevel(Tail(4.0), log)(state(5)) == pytest.approx(math.sqrt(4 / 17.05810), rel=1e-6)
    width = ATAWidth(1.0, Tail(4.0), log)
    assert width(state(5)) == pytest.approx(1 + 4 * 8 * 2 * math.sqrt(17.05810), rel=1e-6)
    assert width(state(5, ridge=4.0)) == pytest.approx(1 + 4 * 4 * 2 * math.sqrt(17.05810), rel=1e-6)
    assert width(state(0)) == 1.0


def test_ata_below_alpha_one_by_hand():
    """alpha = 1/2, v = 8, t = 64: v^(2/3) = 4, t^(1/6) = 2; the camera-ready's exponent 1/3 would give 4."""
    log = LogEvents(2.0, 0.1, 20_000)
    L = 17.05810
    assert ATALevel(Tail(8.0, 0.5), log)(state(64)) == pytest.approx(4 / L ** (2 / 3) * 2, rel=1e-6)
    assert ATAWidth(1.0, Tail(8.0, 0.5), log)(state(64)) == pytest.approx(1 + 4 * 8 * 4 * L ** (1 / 3) * 2, rel=1e-6)


def test_level_and_width_belong_together():
    """Lemma 13: 2 b ln + 2 v b^-alpha t^((1 - alpha)/2) = 4 v^(1/(1+alpha)) ... only without the stray 1/2 in b."""
    for alpha in (1.0, 0.9, 0.3):
        tail, log, now = Tail(5.0, alpha), LogEvents(2.0, 0.1, 1000), state(100, rank=7)
        b, L = ATALevel(tail, log)(now), log(now)
        bound = 2 * b * L + 2 * 5.0 * b**-alpha * 100 ** ((1 - alpha) / 2)
        assert ATAWidth(0.0, tail, log)(now) == pytest.approx(math.sqrt(7) * bound)


def test_levels_rise_so_truncation_gets_milder():
    """The paper says more aggressive."""
    for level in (TGPLevel(Tail(4.0)), ATALevel(Tail(4.0, 0.9), LogEvents(2.0, 0.1, 100))):
        assert level(state(10)) < level(state(11)) < level(state(1000))


def test_without_a_horizon_the_confidence_is_spent_on_all_rounds_to_come():
    """sum over t of 6 delta / (pi t)^2 = delta."""
    spent = sum(math.exp(-LogEvents(2.0, 0.1)(state(t, rank=1))) * 2 for t in range(1, 100_000))
    assert spent == pytest.approx(0.1, rel=1e-4)
    assert LogEvents(1.0, 1.0, 1)(state(1, rank=1)) == pytest.approx(math.log(2))  # never 0


def test_ata_settings_of_theory_and_experiment():
    """q = 6 rho ln(4T/delta) / eps^2 and B (1 + 1/sqrt(1 - eps)), against ln(T) / eps^2 and B; m + 1 in the log."""
    theory = ata_gp_ucb(SE, norm=2.0, moment=4.0, horizon=20_000, epsilon=0.5, delta=0.1)
    assert theory.model.features == Nystrom(SE, 6 * 3 * math.log(8e5) / 0.25)
    assert theory.rule.width(state(0)) == pytest.approx(2 * (1 + math.sqrt(2)))
    assert theory.rule.width.log(state(9)) == pytest.approx(math.log(4 * 64 * 20_000 / 0.1))
    experiment = ata_gp_ucb(SE, norm=2.0, moment=4.0, horizon=20_000, constants="experiment", ridge=4.0)
    assert experiment.model.features == Nystrom(SE, math.log(20_000) / 0.1**2, "once")
    assert experiment.rule.width(state(0)) == 4.0
    assert experiment.rule.width(state(9, ridge=4.0)) == pytest.approx(
        4 + math.sqrt(64 / 4) * 2 * math.sqrt(math.log(65 * 20_000))
    )
    qff = ata_gp_ucb(SE, features="qff", order=32, moment=4.0, horizon=20_000, constants="experiment")
    assert qff.model.features == QuadratureFourier(SE, 32, folded=False)
    assert qff.rule.width.log(state(9)) == pytest.approx(math.log(64 * 20_000))


def test_the_theorys_oversampling_keeps_every_arm():
    """So "Nystrom" is exact there."""
    problem = problems.rkhs_sum(SE, rng=0)
    play = ata_gp_ucb(SE, **_facts(problem), horizon=20_000).play(problem.arms, np.random.default_rng(0))
    pull, world = next(play), np.random.default_rng(1)
    for _ in range(60):
        pull = play.send((pull.arms, problem.rewards(pull.arms, world)))
        assert len(pull.belief.dictionary) == len(pull.belief.pulled)


def test_quadrature_order_is_chosen_or_checked():
    assert ata_gp_ucb(SE, features="qff").model.features == QuadratureFourier(SE, 30)
    with pytest.raises(ValueError, match="order 8 is too small"):
        ata_gp_ucb(SE, features="qff", order=8)
    with pytest.raises(ValueError, match="needs a SquaredExponential"):
        ata_gp_ucb(Matern(2.5, 0.2), features="qff")


def test_theorem_3_asks_for_more_nodes_than_the_experiments_use():
    """2 log_(4/e)(T^3) = 154 at T = 20 000; 32 are enough for the kernel to 1e-11."""
    assert math.ceil(2 * math.log(20_000**3) / math.log(4 / math.e)) == 154
    assert quadrature_error(0.2, 32) < 1e-11


def test_remark_1_needs_the_norm_in_the_moment():
    """E y^2 <= B^2 + R^2, not R^2: a reward of f = 1 with noise 0.1 would be truncated in the first rounds."""
    assert TGPLevel(Tail(0.1**2))(state(1)) < 1 < TGPLevel(Tail(1 + 0.1**2))(state(1))


def test_median_of_means_width_by_hand():
    """B = 1, v = 4, m = 16, k = 9, t = 90: 3 * 3 * (1 + sqrt(9 * 16 * 4)); the rounds do not count at alpha = 1."""
    assert MoMWidth(9.0, Tail(4.0), 9)(state(90, rank=16)) == pytest.approx(9 * (1 + 24))
    half = MoMWidth(0.0, Tail(4.0, 0.5), 9, factor=1.0, inner=1.0)(state(9 * 64, rank=16))
    assert half == pytest.approx(3 * 64 ** (2 / 3) * 2)
    algorithm = mom_gp_ucb(SE, horizon=20_000, delta=0.1)
    assert algorithm.times == algorithm.model.estimator.groups == math.ceil(24 * math.log(math.e * 2e5))
    assert mom_gp_ucb(SE, horizon=20_000, delta=0.1, constants="experiment").times == 13


def test_hvt_level_and_width_by_hand():
    """alpha = 1: tau_0 = sqrt(2 m ln(1 + T/m) / ln(2 T^2 / delta))."""
    level = HvtLevel(Tail(4.0), 0.1, 640)
    tau = math.sqrt(2 * 64 * math.log(11) / math.log(2 * 640**2 / 0.1))
    assert level(state(5)) == level(state(500)) == pytest.approx(tau)
    expected = math.sqrt(6) + 107 * math.log(2 * 640**2 / 0.1) * tau
    assert HvtWidth(1.0, level)(state(5)) == pytest.approx(expected)
    assert HvtWidth(1.0, level, "experiment")(state(5)) == pytest.approx(1 + math.sqrt(2 * (2 + math.log(10))))


@pytest.mark.parametrize("name", ROBUST)
@pytest.mark.parametrize("constants", ["theory", "experiment"])
def test_schedules_are_finite_from_the_first_round_on(name, constants):
    algorithm = NAMES[name](SE, moment=4.0, alpha=0.7, constants=constants)
    check_schedule(algorithm.rule.width, algorithm.model.prior(np.linspace(0, 1, 7)[:, None]))


def _facts(problem):
    return {name: problem.facts[name] for name in ("norm", "moment", "alpha")}


def test_the_largest_value_is_no_bound_on_the_norm():
    """The paper takes B = max|f| = 1; the RKHS norm is larger."""
    norms = [problems.rkhs_sum(SE, rng=seed).norm for seed in range(30)]
    assert min(norms) > 1
    assert 1.1 < np.mean(norms) < 1.6


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e300, -1e300])
@pytest.mark.parametrize("when", [0, 1, 60])
@pytest.mark.parametrize("name", ROBUST)
def test_robust_algorithms_survive_an_absurd_reward(name, when, size):
    """Warnings are errors here. The run continues, and the estimate of its best arm stays reasonable."""
    problem = problems.rkhs_sum(SE, points=30, rng=0)
    facts = _facts(problem) | {"constants": "experiment", "scale": 0.1}
    policy, world = Policy(NAMES[name](SE, **facts), problem.arms, rng=0), np.random.default_rng(0)
    for t in range(120):
        arms = policy.ask()
        rewards = problem.rewards(arms, world)
        rewards[0] = size if t == when else rewards[0]
        policy.tell(arms, rewards)
        assert np.abs(policy.belief.mean).max() < 50
    assert np.isfinite(policy.best()).all()


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in (*ROBUST, "rcgp-ucb", "catoni-reds", "catoni-bpe")]
)
def test_least_squares_algorithms_say_what_happened(name):
    """Refused before any change: the policy continues as if the reward had not been reported."""
    builder = NAMES[name]
    facts = {"horizon": 100, "bounds": (0.5, 1.5)}
    keywords = {k: v for k, v in facts.items() if k in builder.__kwdefaults__}
    one, two = (Policy(builder(SE, **keywords), np.linspace(0, 1, 12)[:, None], rng=0) for _ in range(2))
    asked = one.ask()
    with pytest.raises(ValueError, match=r"is 1e\+300: least squares takes rewards up to 1e\+100 in size; drop it"):
        one.tell(asked, np.full(asked.size, 1e300))
    for policy in (one, two):
        policy.tell(policy.ask(), np.ones(asked.size))
    assert one.ask().tolist() == two.ask().tolist()


def test_run_reports_an_absurd_reward_too():
    problem = problems.Problem("spikes", [[0.0], [1.0]], [0.0, 0.0], SE, problems.Spikes(0.1, 1.0, 1e200))
    with pytest.raises(ValueError, match="least squares takes rewards up to"):
        run(igp_ucb(SE), problem, 5, rng=0)
    assert np.isfinite(run(tgp_ucb(SE, moment=1.0), problem, 5, rng=0).regret).all()


TRUNCATED = ExactGP(SE, 0.04, truncation=TGPLevel(Tail(2.0)))


@pytest.mark.parametrize(
    "algorithm",
    [
        Sequential(TRUNCATED, Thompson(Constant(0.5))),
        Sequential(TRUNCATED, ExpectedImprovement()),
        Elimination(TRUNCATED, RandomDesign(), Constant(2.0), first_epoch=30),
        Elimination(SparseGP(Nystrom(SE, 5.0), 0.04), RandomDesign(), Constant(2.0), first_epoch=30),
    ],
    ids=["thompson", "ei", "elimination", "elimination on a sketch"],
)
def test_truncation_needs_no_new_code_with_other_rules_and_loops(algorithm):
    arms = np.linspace(0, 1, 30)[:, None]
    f, world = np.sin(6 * arms[:, 0]), np.random.default_rng(0)
    robust = algorithm.model is TRUNCATED
    policy, told = Policy(algorithm, arms, rng=1), 0
    while told < 300:
        asked = policy.ask()
        spikes = 1e6 * world.choice([-1, 0, 1], p=[0.02, 0.96, 0.02], size=asked.size) * robust
        policy.tell(asked, f[asked] + 0.2 * world.standard_normal(asked.size) + spikes)
        told += asked.size
    assert f[policy.best().arm] > 0.8


def test_a_table_works_with_nystrom_features():
    kernel = Tabular(SE(np.linspace(0, 1, 20)[:, None], np.linspace(0, 1, 20)[:, None]))
    means = np.sin(np.arange(20.0) / 4)
    problem = problems.Problem("table", kernel.arms, means, kernel, problems.StudentT(3, 0.1))
    for name in ROBUST[1:]:
        algorithm = NAMES[name](kernel, moment=2.0, constants="experiment", scale=0.05)
        assert run(algorithm, problem, 400, rng=0).regret[-50:].mean() < 0.3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tgp_ucb(SE, alpha=0.0), "alpha must be in"),
        (lambda: ata_gp_ucb(SE, alpha=1.5), "with more moments than two take alpha = 1"),
        (lambda: hvt_ucb(SE, moment=0.0), "moment must be positive, got 0.0"),
        (lambda: tgp_ucb(SE, moment=math.inf), "moment must be positive"),
        (lambda: tgp_ucb(SE, delta=0.0), "delta must be in"),
        (lambda: tgp_ucb(SE, norm=-1.0), "norm must be finite and at least 0"),
        (lambda: ata_gp_ucb(SE, constants="practice"), "constants must be 'theory' or 'experiment'"),
        (lambda: ata_gp_ucb(SE, features="fourier"), "features must be 'nystrom', 'qff' or"),
        (lambda: ata_gp_ucb(SE, order=32), "order is for features='qff'"),
        (lambda: ata_gp_ucb(SE, features="qff", oversampling=5), "oversampling is for features='nystrom'"),
        (lambda: ata_gp_ucb(SE, epsilon=1.0), "epsilon must be in"),
        (lambda: ata_gp_ucb(SE, delta=2.0), "delta must be in"),
    ],
)
def test_builders_say_what_they_need(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_the_band_on_random_fourier_features_fails_where_that_on_quadrature_holds():
    """Largest share of the half-width that f needs: it grows with the pulls if the features miss f, and else falls."""
    both = RandomFourier(SE, 4), QuadratureFourier(SE, 24)
    trials = [[share_needed(each, 30_000, np.random.default_rng(i))["share"] for i in range(8)] for each in both]
    random, quadrature = np.array(trials)
    assert (random[:, -1] > 1).sum() >= 4
    assert np.median(random[:, -1]) > 2 * np.median(random[:, 0])
    assert (quadrature[:, -1] < 1).all()
    assert np.median(quadrature[:, -1]) < np.median(quadrature[:, 0])
