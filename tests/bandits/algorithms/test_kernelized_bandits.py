"""Widths by hand from an explicit kernel matrix, settings of the builders, and coverage of the bands."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from noregret import (
    Constant,
    ExactGP,
    GreedyGain,
    Policy,
    RateGain,
    RealisedGain,
    SquaredExponential,
    Tabular,
    algorithms,
)
from noregret.bandits.algorithms.kernelized_bandits import IGPWidth, SrinivasWidth
from noregret.bandits.algorithms.tighter_widths import DMM, AMMWidth, AYWidth
from noregret.bandits.belief.model_set import RidgeFamily

ALGEBRA = settings(derandomize=True, deadline=None, max_examples=40)
KERNEL = SquaredExponential(0.2)
ARMS = np.linspace(0, 1, 30)[:, None]

# Two arms with K = [[1, 1/2], [1/2, 1]], each pulled once, rewards 1 and -1, ridge 1/2:
# det(I + K / ridge) = det [[3, 1], [1, 3]] = 8, (K + ridge I)^-1 = [[3/4, -1/4], [-1/4, 3/4]], y'(K + ridge I)^-1 y = 2
TABLE = Tabular([[1.0, 0.5], [0.5, 1.0]])
GAIN = 0.5 * math.log(8)
NORM, NOISE, DELTA = 2.0, 0.3, 0.05


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The problems are small, so one thread is fastest."""
    with threadpool_limits(1):
        yield


def two_arms(ridge=0.5, model=None):
    belief = (model or ExactGP(TABLE, ridge)).prior(TABLE.arms)
    belief.update([0, 1], [1.0, -1.0])
    return belief


def test_the_example_is_as_computed_by_hand():
    belief = two_arms()
    assert belief.information_gain == pytest.approx(GAIN)
    assert belief.misfit == pytest.approx(2.0)
    assert belief.mean == pytest.approx([0.5, -0.5])
    assert belief.std**2 == pytest.approx([1 - (0.75 + 0.75 / 4 - 0.25)] * 2)


def test_igp_width():
    """B + R sqrt(2 (gamma + 1 + ln(1/delta))); R / sqrt(ridge) for R below ridge 1, where the theorem needs it."""
    root = math.sqrt(2 * (GAIN + 1 + math.log(20)))
    assert IGPWidth(NORM, NOISE, DELTA, RealisedGain(), corrected=False)(two_arms()) == pytest.approx(2 + 0.3 * root)
    expected = 2 + 0.3 / math.sqrt(0.5) * root
    assert IGPWidth(NORM, NOISE, DELTA, RealisedGain())(two_arms()) == pytest.approx(expected)
    root = math.sqrt(2 * (7.0 + 1 + math.log(20)))
    for ridge in (1.0, 1.1, 4.0):
        assert IGPWidth(NORM, NOISE, DELTA, Constant(7.0))(two_arms(ridge)) == pytest.approx(2 + 0.3 * root)


def test_srinivas_width():
    """sqrt(2 B^2 + 300 gamma ln^3((t + 1) / delta)): two rewards seen, so the third round is chosen."""
    expected = math.sqrt(2 * 4 + 300 * GAIN * math.log(3 / 0.05) ** 3)
    assert SrinivasWidth(NORM, DELTA, RealisedGain())(two_arms()) == pytest.approx(expected)


def test_ay_width():
    expected = 2 + 0.3 / math.sqrt(0.5) * math.sqrt(math.log(8) + 2 * math.log(20))
    assert AYWidth(NORM, NOISE, DELTA)(two_arms()) == pytest.approx(expected)


def test_amm_width():
    """With c = R^2 / ridge."""
    expected = math.sqrt(4 + 0.09 / 0.5 * (math.log(8) + 2 * math.log(20)))
    assert AMMWidth(NORM, NOISE, DELTA)(two_arms()) == pytest.approx(expected)


def test_dmm_bounds():
    ridges, K, y = (0.5, 0.05, 0.15, 1.5, 5.0), TABLE.matrix, np.array([1.0, -1.0])

    def q(a):
        return a * y @ np.linalg.solve(K + a * np.eye(2), y)

    budget = q(0.5) + 0.09 * math.log(8) + 2 * 0.09 * math.log(20)
    lower, upper = [], []
    for a in ridges:
        mean = K @ np.linalg.solve(K + a * np.eye(2), y)
        std = np.sqrt(np.diag(K - K @ np.linalg.solve(K + a * np.eye(2), K)))
        half = math.sqrt(max(0.0, budget + a * 4 - q(a)) / a) * std
        lower.append(mean - half)
        upper.append(mean + half)
    belief = two_arms(model=RidgeFamily(TABLE, ridges))
    np.testing.assert_allclose(DMM(NORM, NOISE, DELTA).bounds(belief), (np.max(lower, axis=0), np.min(upper, axis=0)))
    np.testing.assert_allclose(DMM(NORM, NOISE, DELTA)(belief, None), np.min(upper, axis=0))
    assert (np.min(upper, axis=0) < upper[0] - 0.01).all()  # another ridge than the first is the better one here


def test_before_the_first_reward():
    belief = ExactGP(TABLE, 1.0).prior(TABLE.arms)
    width = IGPWidth(NORM, NOISE, DELTA, RealisedGain())
    assert width(belief) == pytest.approx(2 + 0.3 * math.sqrt(2 * (1 + math.log(20))))
    assert SrinivasWidth(NORM, DELTA, RealisedGain())(belief) == pytest.approx(math.sqrt(8))
    assert AMMWidth(NORM, NOISE, DELTA)(belief) == pytest.approx(math.sqrt(4 + 0.09 * 2 * math.log(20)))


def test_scale_is_on_the_noise_part_only():
    belief, gain = two_arms(1.0), RealisedGain()
    for make in (
        lambda scale: IGPWidth(NORM, NOISE, DELTA, gain, scale),
        lambda scale: AYWidth(NORM, NOISE, DELTA, scale),
    ):
        full, half = make(1.0)(belief), make(0.5)(belief)
        assert half == pytest.approx(NORM + 0.5 * (full - NORM))
    for make, norm in (
        (lambda scale: AMMWidth(NORM, NOISE, DELTA, scale), NORM),
        (lambda scale: SrinivasWidth(NORM, DELTA, gain, scale), math.sqrt(2) * NORM),
    ):
        full, half = make(1.0)(belief), make(0.5)(belief)
        assert half**2 == pytest.approx(norm**2 + 0.25 * (full**2 - norm**2))
        assert make(0.0)(belief) == pytest.approx(norm)


def test_the_dmm_scale_is_on_the_noise_part_only():
    family = RidgeFamily(TABLE, (0.5, 0.05, 5.0))
    scaled = DMM(NORM, NOISE, DELTA, 0.5).bounds(two_arms(model=family))
    np.testing.assert_allclose(scaled, DMM(NORM, 0.5 * NOISE, DELTA).bounds(two_arms(model=family)))


def random_belief(seed, model):
    rng = np.random.default_rng(seed)
    belief, n = model.prior(rng.random((12, 1))), rng.integers(1, 60)
    belief.update(rng.integers(12, size=n), np.clip(rng.standard_normal(n), -2, 2))
    return belief


@ALGEBRA
@given(st.integers(0, 2**32), st.floats(1e-3, 5), st.floats(0.0, 10), st.floats(0.01, 5), st.floats(1e-6, 0.9))
def test_amm_is_never_wider_than_ay_nor_narrower_than_the_norm(seed, ridge, norm, noise, delta):
    belief = random_belief(seed, ExactGP(KERNEL, ridge))
    amm, ay = AMMWidth(norm, noise, delta)(belief), AYWidth(norm, noise, delta)(belief)
    assert norm - 1e-12 <= amm <= ay + 1e-12


@ALGEBRA
@given(st.integers(0, 2**32), st.floats(0.01, 5), st.floats(0.0, 10), st.floats(0.01, 1), st.floats(1e-6, 0.9))
def test_dmm_lies_within_the_band_of_amm(seed, ridge, norm, noise, delta):
    family = RidgeFamily(KERNEL, (ridge, 0.1 * ridge, 0.3 * ridge, 3 * ridge, 10 * ridge))
    belief = random_belief(seed, family)
    lower, upper = DMM(norm, noise, delta).bounds(belief)
    first = belief.members[ridge]
    half = AMMWidth(norm, noise, delta)(first) * first.std
    assert (lower >= first.mean - half - 1e-9).all()
    assert (upper <= first.mean + half + 1e-9).all()


BUILDERS = [algorithms.igp_ucb, algorithms.gp_ucb, algorithms.gp_ts, algorithms.gp_ei, algorithms.gp_pi]


@pytest.mark.parametrize("builder", [*BUILDERS, algorithms.random])
def test_ridges(builder):
    """theory 1 + 2/T, or 1 where no horizon is known; experiment R^2; the one given, where given."""
    assert builder(KERNEL, horizon=100).model == ExactGP(KERNEL, 1.02)
    assert builder(KERNEL).model.ridge == 1.0
    assert builder(KERNEL, noise=0.3, horizon=100, constants="experiment").model.ridge == pytest.approx(0.09)
    assert builder(KERNEL, ridge=0.7, horizon=100).model.ridge == 0.7
    assert builder(KERNEL, ridge=0.7, constants="experiment").model.ridge == 0.7


@pytest.mark.parametrize("builder", [algorithms.ay_ucb, algorithms.amm_ucb])
def test_ridges_of_tighter_widths(builder):
    assert builder(KERNEL, noise=0.3).model.ridge == pytest.approx(0.09)
    assert builder(KERNEL, noise=0.3, ridge=0.7).model.ridge == 0.7


def test_dmm_takes_five_ridges_around_the_first():
    assert algorithms.dmm_ucb(KERNEL, ridge=2.0).model.ridges == pytest.approx((2.0, 0.2, 0.6, 6.0, 20.0))
    assert algorithms.dmm_ucb(KERNEL, noise=0.3).model.ridges[0] == pytest.approx(0.09)


def test_widths_of_the_builders():
    theory = algorithms.igp_ucb(KERNEL, norm=NORM, noise=NOISE, delta=DELTA, scale=0.5)
    assert theory.rule.width == IGPWidth(NORM, NOISE, DELTA, RealisedGain(), 0.5, True)
    run = algorithms.igp_ucb(KERNEL, norm=NORM, noise=NOISE, delta=DELTA, constants="experiment")
    assert run.rule.width == IGPWidth(NORM, NOISE, DELTA, RateGain(KERNEL), 1.0, False)
    thompson = algorithms.gp_ts(KERNEL, norm=NORM, noise=NOISE, delta=DELTA)
    assert thompson.rule.width == IGPWidth(NORM, NOISE, DELTA / 2, RealisedGain(), 1.0, True)
    assert algorithms.gp_ucb(KERNEL, norm=NORM, delta=DELTA).rule.width == SrinivasWidth(NORM, DELTA, RealisedGain())
    assert algorithms.ay_ucb(KERNEL, norm=NORM, noise=NOISE, delta=DELTA).rule.width == AYWidth(NORM, NOISE, DELTA)
    assert algorithms.amm_ucb(KERNEL, norm=NORM, noise=NOISE, delta=DELTA).rule.width == AMMWidth(NORM, NOISE, DELTA)
    assert algorithms.dmm_ucb(KERNEL, norm=NORM, noise=NOISE, delta=DELTA).rule == DMM(NORM, NOISE, DELTA)
    assert (algorithms.gp_ei(KERNEL).rule.margin, algorithms.gp_pi(KERNEL).rule.margin) == (0.0, 0.01)


def test_gains_of_the_builders():
    model = ExactGP(KERNEL, 1.0)

    def gain(choice):
        return algorithms.igp_ucb(KERNEL, gain=choice).rule.width.gain

    own = Constant(1.0)
    assert gain("realised") == RealisedGain()
    assert gain("greedy") == GreedyGain(model)
    assert gain("rate") == RateGain(KERNEL)
    assert gain(3) == Constant(3)
    assert gain(own) is own


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: algorithms.igp_ucb(KERNEL, constants="best"), r"^constants must be 'theory' or 'experiment', got 'be"),
        (lambda: algorithms.igp_ucb(KERNEL, gain="max"), r"^gain must be 'realised', 'greedy', 'rate', a number or a"),
        (lambda: algorithms.gp_ei(KERNEL, constants=None), r"^constants must be 'theory' or 'experiment', got None"),
        (
            lambda: algorithms.igp_ucb(KERNEL, ridge=-1.0),
            r"^ridge must be positive, or 0 for noise-free rewards, got",
        ),
        (lambda: algorithms.igp_ucb(KERNEL, delta=0), r"^delta must be in \(0, 1\), got 0$"),
        (lambda: algorithms.gp_ucb(KERNEL, delta=1.5), r"^delta must be in \(0, 1\), got 1.5$"),
        (lambda: algorithms.ay_ucb(KERNEL, delta=math.nan), r"^delta must be in \(0, 1\), got nan$"),
        (lambda: algorithms.gp_ei(KERNEL, delta=-0.1), r"^delta must be in \(0, 1\), got -0.1$"),
        (lambda: algorithms.gp_ts(KERNEL, norm=-1.0), r"^norm must be finite and at least 0, got -1.0$"),
        (lambda: algorithms.amm_ucb(KERNEL, norm=math.nan), r"^norm must be finite and at least 0, got nan$"),
        (lambda: algorithms.dmm_ucb(KERNEL, noise=-0.1), r"^noise must be finite and at least 0, got -0.1$"),
        (lambda: algorithms.igp_ucb(KERNEL, noise=math.inf), r"^noise must be finite and at least 0, got inf$"),
        (lambda: algorithms.igp_ucb(KERNEL, scale=-1.0), r"^scale must be finite and at least 0, got -1.0$"),
    ],
)
def test_errors_say_what_must_hold_and_what_came(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_rounds_of_igp_ucb_by_hand():
    """Thirty rounds replayed from the definitions: argmax mean + beta std with the width of the rewards seen."""
    f, rng = np.sin(5 * ARMS[:, 0]), np.random.default_rng(0)
    policy = Policy(algorithms.igp_ucb(KERNEL, norm=2.0, noise=0.1, horizon=30), ARMS, rng=0)
    K, ridge, pulls, rewards = KERNEL(ARMS, ARMS), 1 + 2 / 30, [], []
    for _ in range(30):
        noisy = K[np.ix_(pulls, pulls)] + ridge * np.eye(len(pulls))
        mean = K[:, pulls] @ np.linalg.solve(noisy, rewards)
        variance = 1 - np.einsum("ij,ji->i", K[:, pulls], np.linalg.solve(noisy, K[pulls]))
        gain = 0.5 * np.linalg.slogdet(noisy / ridge)[1]
        beta = 2.0 + 0.1 * math.sqrt(2 * (gain + 1 + math.log(10)))
        scores = mean + beta * np.sqrt(variance)
        (arm,) = policy.ask()
        assert scores[arm] >= scores.max() - 1e-9
        pulls.append(int(arm))
        rewards.append(f[arm] + 0.1 * rng.standard_normal())
        policy.tell(arm, rewards[-1])


def runs_covered(build, kernel, runs=20, rounds=300, noise=0.5):
    """Number of runs in which the band contains f on all arms at all rounds; f = K a, so that B^2 = a'K a is known."""
    covered = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        arms = rng.random((50, 1))
        matrix, weights = kernel(arms, arms), np.zeros(50)
        weights[rng.integers(50, size=8)] = rng.standard_normal(8)
        f = matrix @ weights
        algorithm = build(kernel, norm=math.sqrt(weights @ f), noise=noise, delta=0.1)
        play = algorithm.play(arms, rng)
        pull, holds = next(play), True
        for _ in range(rounds):
            lower, upper = algorithm.bounds(pull.belief)
            holds = holds and bool((lower <= f + 1e-9).all() and (f <= upper + 1e-9).all())
            pull = play.send((pull.arms, f[pull.arms] + noise * rng.standard_normal(len(pull.arms))))
        covered += holds
    return covered


def test_a_band_that_is_too_narrow_is_found_out():
    """The same measurement with a third of the noise part and no allowance for the norm: it must fail."""

    def narrow(kernel, *, norm, noise, delta):
        return algorithms.amm_ucb(kernel, norm=0.0, noise=noise, delta=delta, scale=1 / 3)

    assert runs_covered(narrow, SquaredExponential(0.2), runs=10, rounds=100) < 9


def test_theorem_1_with_eta_0_is_the_width_of_ay_ucb_at_ridge_1():
    """Distinct arms: the noise's self-normalised norm is within the bound at all rounds, and the width loses its 1."""
    kernel, delta, violated = SquaredExponential(0.2), 0.1, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        arms, noise = rng.random((30, 2)), rng.standard_normal(30)
        for t in range(1, 31):
            K = kernel(arms[:t], arms[:t])
            size = noise[:t] @ np.linalg.solve(np.linalg.inv(K + 1e-9 * np.eye(t)) + np.eye(t), noise[:t])
            if size > np.linalg.slogdet(np.eye(t) + K)[1] + 2 * np.log(1 / delta):
                violated += 1
                break
    assert violated <= 8  # 4 of 40 are allowed; more than 8 have probability 0.02

    belief = ExactGP(kernel, 1.0).prior(arms)
    belief.update(np.arange(30), noise)
    with_1 = IGPWidth(2.0, 0.3, delta, RealisedGain())(belief)
    assert AYWidth(2.0, 0.3, delta)(belief) == pytest.approx(2.0 + np.sqrt((with_1 - 2.0) ** 2 - 2 * 0.3**2))
    belief.update([3, 3, 3], [1.0, 1.0, 1.0])  # K_t is singular now: eta = 0 is not covered, AY is
    assert AYWidth(2.0, 0.3, delta)(belief) < IGPWidth(2.0, 0.3, delta, RealisedGain())(belief)
