"""REDS, BPE and GP-ThreDS: their formulas, and the theorems of the paper."""

import math

import numpy as np
import pytest

from noregret import (
    Box,
    Constant,
    ExactGP,
    MaxVarianceDesign,
    Policy,
    RandomDesign,
    SquaredExponential,
    algorithms,
)
from noregret.bandits.algorithms.domain_shrinking import EpochWidth

KERNEL = SquaredExponential(0.2)
LINE = np.linspace(0, 1, 60)[:, None]


# Widths and slacks


def test_the_theorys_width_and_slack_by_hand():
    """B = 2, R = 0.3, tau = 0.09, delta = 0.1, T = 1000, 60 arms: delta' = 0.1 / 59.794706 = 0.00167239."""
    reds = algorithms.reds(KERNEL, norm=2, noise=0.3, horizon=1000)
    belief = reds.model.prior(LINE)
    assert belief.ridge == pytest.approx(0.09)
    # sqrt(4 + 0.3^2 * 2 / 0.09 ln(60 / 0.00167239)) = sqrt(4 + 2 * 10.487801)
    assert reds.width(belief) == pytest.approx(4.997559, abs=1e-4)
    # 2 * 2 / 1000 + 0.3 sqrt(2 / 90 ln(4000 / 0.00167239)) = 0.004 + 0.3 sqrt(0.0222222 * 14.687507)
    assert reds.slack == pytest.approx(0.175392, abs=1e-5)
    lower, upper = reds.bounds(belief)
    assert upper - lower == pytest.approx(2 * (4.997559 + 0.175392), abs=1e-3)


def test_the_width_bounds_the_error_of_the_worst_function_and_noise():
    """The largest error at x with |f| <= B and |noise| <= c is B sqrt(std^2 - ridge |a|^2) + c |a|."""
    rng, norm, ridge, noise = np.random.default_rng(0), 2.0, 0.3, 1.7
    points, x = rng.random((9, 1)), rng.random((40, 1))
    weights = np.linalg.solve(KERNEL(points, points) + ridge * np.eye(9), KERNEL(points, x))
    belief = ExactGP(KERNEL, ridge).prior(np.vstack([points, x]))
    belief.update(np.arange(9), np.zeros(9))
    std, size = belief.std[9:], np.linalg.norm(weights, axis=0)
    apart = (
        1 - 2 * (weights * KERNEL(points, x)).sum(axis=0) + (weights * (KERNEL(points, points) @ weights)).sum(axis=0)
    )
    np.testing.assert_allclose(apart, std**2 - ridge * size**2, atol=1e-9)
    assert (
        norm * np.sqrt(np.maximum(apart, 0)) + noise * size <= math.hypot(norm, noise / math.sqrt(ridge)) * std + 1e-9
    ).all()


def test_scale_is_on_the_noise_part_alone():
    reds = algorithms.reds(KERNEL, norm=2, noise=0.3, horizon=1000, scale=0.5)
    assert reds.width(reds.model.prior(LINE)) == pytest.approx(math.hypot(2, 4.57988 / 2), abs=1e-4)
    assert reds.slack == pytest.approx(0.004 + 0.171392 / 2, abs=1e-5)


@pytest.mark.parametrize("horizon", [None, 5000])
def test_testing_the_first_epoch_again_is_paid_for(horizon):
    """App. D.2 tests after N_1, 2 N_1, ... rewards: the chances of an error at any of them add up to one epoch's."""
    facts = {"norm": 2, "noise": 0.3, "delta": 0.1, "horizon": horizon, "first_epoch": 20}
    once, again = algorithms.reds(KERNEL, **facts).width, algorithms.reds(KERNEL, first_level=0.5, **facts).width
    total = sum(again.epoch_delta(rounds) for rounds in range(20, 20 * 10_000, 20))
    assert (0.99 if horizon else 0.5) * once.epoch_delta(20) <= total <= once.epoch_delta(20)
    if horizon:
        assert again.epoch_delta(21) == again.epoch_delta(40)
        belief = ExactGP(KERNEL, 0.09).prior(LINE)
        belief.update(np.arange(60), np.zeros(60))
        share = 0.1 / (6 * math.log2(5000)) * 6 / (math.pi * 3) ** 2
        by_hand = math.sqrt(4 + 2 * math.log(len(belief.arms) / share))
        assert again(belief) == pytest.approx(by_hand)
        assert again.slack(0.09) > once.slack(0.09), "at the last test that may be"


def test_without_a_horizon_delta_is_shared_out_over_all_epochs():
    width = algorithms.reds(KERNEL, norm=1, noise=0.1, delta=0.2).width
    # after 64 rewards: 3 * 0.2 / (pi log2(128))^2 = 0.6 / (7 pi)^2
    assert width.epoch_delta(64) == pytest.approx(0.6 / (7 * math.pi) ** 2)
    for first in (1, 7, 50):
        spent = 2 * sum(width.epoch_delta(first * 2**r) for r in range(60))
        assert spent <= 0.2


def test_without_noise_the_width_is_the_norm():
    for noise_free in ({"noise": 0}, {"ridge": 0}, {"ridge": 0, "horizon": 100, "constants": "experiment"}):
        for build in (algorithms.reds, algorithms.bpe):
            loop = build(KERNEL, norm=3, **noise_free)
            assert (loop.width(loop.model.prior(LINE)), loop.slack, loop.model.ridge) == (3, 0, 0)


def test_the_experiments_constants():
    reds = algorithms.reds(KERNEL, noise=0.2, constants="experiment")
    bpe = algorithms.bpe(KERNEL, noise=0.2, constants="experiment", scale=0.75, first_epoch=100)
    assert (reds.width, reds.slack, reds.model.ridge) == (Constant(1.0), 0, 0.2)
    assert (bpe.width, bpe.slack, bpe.model.ridge, bpe.first_epoch) == (Constant(0.75), 0, 0.2, 100)
    assert (type(reds.design), type(bpe.design)) == (RandomDesign, MaxVarianceDesign)


def test_bpe_divides_delta_by_twice_its_epochs():
    """T = 1000 holds epochs of 32, 179, 424 and, cut, 652: delta' = 0.1 / 8."""
    bpe = algorithms.bpe(KERNEL, norm=1, noise=0.5, horizon=1000)
    expected = math.sqrt(1 + 2 * math.log(60 * 8 / 0.1))
    assert bpe.width(bpe.model.prior(LINE)) == pytest.approx(expected)


def test_gp_threds_width_allows_for_as_many_cells_as_rounds():
    tree = algorithms.gp_threds(KERNEL, norm=1, noise=0.5, delta=0.1, horizon=100)
    assert tree.width(tree.model.prior(LINE)) == pytest.approx(1 + math.sqrt(2 * math.log(1000)))
    assert tree.interval == (-1, 1)


# Theorems


# Heavy tails


# Errors


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: algorithms.reds(KERNEL, first_epoch=0), "first_epoch must be a whole number from 1, got 0"),
        (lambda: algorithms.bpe(KERNEL, first_epoch=0), "first_epoch must be a whole number from 1, got 0"),
        (lambda: algorithms.reds(KERNEL, first_epoch=2.5), "first_epoch must be a whole number from 1, got 2.5"),
        (lambda: algorithms.reds(KERNEL, slack=-1), "slack must be at least 0, got -1"),
        (lambda: algorithms.reds(KERNEL, keep="best"), "keep must be 'upper' or 'mean', got 'best'"),
        (lambda: algorithms.reds(KERNEL, first_level=1.0), r"first_level must be in \(0, 1\), or None, got 1.0"),
        (lambda: algorithms.reds(KERNEL, constants="paper"), "constants must be 'theory' or 'experiment', got 'paper'"),
        (lambda: algorithms.reds(KERNEL, noise=-1), "noise must be finite and at least 0, got -1"),
        (lambda: algorithms.reds(KERNEL, norm=0), "norm must be positive, got 0"),
        (lambda: algorithms.reds(KERNEL, ridge=-1, horizon=9), "ridge must be positive, or 0 for noise-free"),
        (lambda: algorithms.bpe(KERNEL, delta=0), r"delta must be in \(0, 1\), got 0"),
        (lambda: algorithms.bpe(KERNEL, horizon=0), "horizon must be a whole number from 1, or None, got 0"),
        (lambda: algorithms.gp_threds(KERNEL, bounds=(1, 0)), "bounds must be two numbers a < b"),
        (lambda: algorithms.gp_threds(KERNEL, patience=0), "patience must be a whole number from 1, got 0"),
        (lambda: algorithms.gp_threds(KERNEL, points_per_cell=0), "points_per_cell must be a whole number from 1"),
    ],
)
def test_errors_say_what_must_hold(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_the_width_on_a_box_needs_a_horizon():
    with pytest.raises(ValueError, match="needs the horizon"):
        EpochWidth(1.0, 0.1, 0.1).on(Box([[0, 1]]), KERNEL)


# Other measures (Remark 3.5)


def right(points):
    """Density 1 on the left half of [0, 1], 4 on the right one."""
    return 1.0 + 3.0 * (points[:, 0] > 0.5)


def test_arms_are_drawn_by_their_weights():
    design, rng = RandomDesign(right), np.random.default_rng(0)
    chosen = LINE[design(ExactGP(KERNEL, 0.1), LINE, 5000, rng), 0]
    assert (chosen > 0.5).mean() == pytest.approx(0.8, abs=5 * math.sqrt(0.16 / 5000))
    uniform = RandomDesign()(ExactGP(KERNEL, 0.1), LINE, 10, np.random.default_rng(1))
    assert (uniform == np.random.default_rng(1).integers(60, size=10)).all()


def test_points_of_a_box_are_drawn_by_their_weights():
    """Density e^(5x): the mean is 1/(1 - e^-5) - 1/5, and the largest density seen grows from block to block."""
    box, rng = Box([[0, 1]]), np.random.default_rng(0)
    design = RandomDesign(lambda points: np.exp(5 * points[:, 0]))
    points = design.points(ExactGP(KERNEL, 0.1), lambda count: box.sample(count, rng), 20_000, rng)
    assert points.shape == (20_000, 1)
    assert points.mean() == pytest.approx(1 / (1 - math.exp(-5)) - 0.2, abs=5 * 0.2 / math.sqrt(20_000))


@pytest.mark.parametrize("arms", [LINE, Box([[0, 1]])], ids=["arms", "box"])
def test_reds_takes_a_measure(arms):
    policy = Policy(algorithms.reds(KERNEL, horizon=400, weights=right), arms, rng=0)
    asked = policy.ask()
    points = LINE[asked] if asked.ndim == 1 else asked
    assert (points[:, 0] > 0.5).sum() > 30  # 40 of 50 on average
    policy.tell(asked, np.sin(3 * points[:, 0]))
    assert len(policy.ask()) == 100


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda points: points, r"one finite number, at least 0, for each of 60 points"),
        (lambda points: -points[:, 0], "at least 0"),
        (lambda points: np.zeros(len(points)), "positive at some of the arms in play"),
    ],
)
def test_weights_must_be_densities(weights, message):
    with pytest.raises(ValueError, match=message):
        RandomDesign(weights)(ExactGP(KERNEL, 0.1), LINE, 5, np.random.default_rng(0))
