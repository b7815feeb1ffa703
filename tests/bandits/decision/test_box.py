"""REDS on a continuous box: regions, their uniform points and pieces, and the whole loop."""

import math

import numpy as np
import pytest

from noregret import (
    Box,
    Linear,
    Matern,
    Nystrom,
    Policy,
    Sequential,
    SparseGP,
    SquaredExponential,
    Thompson,
    algorithms,
    run,
)
from noregret.bandits.decision.region import Region, climb, tops
from noregret.problems import MAXIMA, Continuous, Gaussian, branin

SQUARE = Box([[0, 1], [0, 1]])
KERNEL = SquaredExponential(0.2)


def disc(centre, radius):
    """The test that a point lies in a disc."""
    return lambda points: ((points - np.array(centre)) ** 2).sum(axis=1) <= radius**2


def shrunk(test, witnesses, box=SQUARE, seed=0):
    rng = np.random.default_rng(seed)
    return Region(box).surveyed(rng).shrunk(test, np.atleast_2d(witnesses), rng)


def sine(points):
    """Three equal hills on [0, 3]."""
    return np.sin(6 * points[:, 0])


# The box


def test_a_box_knows_its_points():
    box = Box([[0, 2], [-1, 1]])
    assert (box.dimension, box.centre.tolist(), box.sides.tolist()) == (2, [1, 0], [2, 2])
    assert box.contains([[0, -1], [2, 1], [2.1, 0]]).tolist() == [True, True, False]
    points = box.sample(4000, np.random.default_rng(0))
    assert box.contains(points).all()
    assert points.mean(axis=0) == pytest.approx([1, 0], abs=0.05)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([0, 1], r"bounds must be \(d, 2\), .* got shape \(2,\)"),
        ([[1, 0]], "each lower one below its upper one"),
        ([[0, math.inf]], "bounds must be finite"),
    ],
)
def test_bad_bounds(bounds, message):
    with pytest.raises(ValueError, match=message):
        Box(bounds)


@pytest.mark.parametrize("kernel", [KERNEL, Matern(1.5, 0.3)], ids=str)
def test_the_grid_is_fine_enough(kernel):
    """|f(x) - f(nearest)| <= |f| / n: the kernel's distance to the nearest grid point is at most 1 / n."""
    box, n = Box([[0, 1], [0, 3]]), 50
    per_side = round(math.exp(box.log_discretization(kernel, n) / 2))
    axes = [low + (high - low) * (np.arange(per_side) + 0.5) / per_side for low, high in box.bounds]
    points = box.sample(200, np.random.default_rng(0))
    nearest = np.column_stack([a[np.abs(points[:, [j]] - a).argmin(axis=1)] for j, a in enumerate(axes)])
    squared = [2 - 2 * kernel(p[None], q[None])[0, 0] for p, q in zip(points, nearest, strict=True)]
    assert math.sqrt(max(squared)) <= 1 / n
    assert per_side < 2 * n * 3 / 0.2 * 2


@pytest.mark.slow
def test_the_grid_of_many_dimensions_is_counted_in_logarithms():
    few, many = (Box([[0, 1]] * d).log_discretization(SquaredExponential(0.2 * math.sqrt(d)), 1e6) for d in (1, 100))
    assert many == pytest.approx(100 * few)
    assert many > math.log(1e308)
    policy = Policy(
        algorithms.reds(SquaredExponential(1.0), horizon=1_000_000, first_epoch=20), Box([[0, 1]] * 50), rng=0
    )
    policy.tell(policy.ask(), np.zeros(20))
    assert np.isfinite(policy.ask()).all()


# Regions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "witness", "box"),
    [
        (disc([0.3, 0.6], 0.25), [0.3, 0.6], SQUARE),
        (disc([0.3, 0.6], 0.01), [0.3, 0.6], SQUARE),
        (disc([0.5] * 5, 0.2), [0.5] * 5, Box([[0, 1]] * 5)),
        (lambda p: np.abs(p[:, 0] - 0.5) < 1e-3, [0.5, 0.5], SQUARE),
    ],
    ids=["large", "0.03% of the square", "in 5 dimensions", "a strip"],
)
def test_points_are_uniform_on_a_region(test, witness, box):
    """Every point passes, and each half of the region gets half of 2000 points, to 5 standard deviations."""
    region = shrunk(test, witness, box)
    points = region.sample(2000, np.random.default_rng(1))
    assert region.contains(points).all()
    assert len(np.unique(points, axis=0)) == 2000
    halves = (points > np.array(witness)).sum(axis=0)
    assert np.abs(halves - 1000).max() < 5 * math.sqrt(500)


def test_the_radius_of_points_in_a_small_disc_has_the_right_law():
    points = shrunk(disc([0.3, 0.6], 0.02), [0.3, 0.6]).sample(4000, np.random.default_rng(2))
    inner = (np.hypot(*(points - [0.3, 0.6]).T) < 0.01).mean()
    assert inner == pytest.approx(0.25, abs=5 * math.sqrt(0.25 * 0.75 / 4000))


def test_a_region_of_one_point_gives_that_point():
    points = shrunk(lambda p: (p == 0.5).all(axis=1), [0.5, 0.5]).sample(5, np.random.default_rng(0))
    assert (points == 0.5).all()


def test_pieces_are_told_apart():
    two = shrunk(lambda p: disc([0.2, 0.2], 0.1)(p) | disc([0.8, 0.7], 0.2)(p), [[0.2, 0.2], [0.8, 0.7]])
    pieces = two.pieces()
    assert len(pieces) == 2
    for piece in pieces:
        points = piece.sample(300, np.random.default_rng(0))
        small, large = disc([0.2, 0.2], 0.1)(points), disc([0.8, 0.7], 0.2)(points)
        assert small.all() or large.all()
        assert piece.contains(points).all()


@pytest.mark.parametrize(
    "test",
    [
        lambda p: np.ones(len(p), dtype=bool),
        lambda p: np.abs(np.hypot(p[:, 0] - 0.5, p[:, 1] - 0.5) - 0.4) < 0.02,
        lambda p: (p[:, 0] < 0.1) | (p[:, 1] < 0.1) | (p[:, 0] > 0.9),
    ],
    ids=["all", "ring", "U"],
)
def test_one_piece_stays_one(test):
    assert [len(shrunk(test, [0.05, 0.5], seed=seed).pieces()) for seed in range(3)] == [1, 1, 1]


def test_an_interval_is_one_piece():
    assert [len(Region(Box([[0, 3]])).surveyed(np.random.default_rng(s)).pieces()) for s in range(5)] == [1] * 5


def test_climbing_finds_the_tops():
    rng = np.random.default_rng(0)
    points = SQUARE.sample(500, rng)

    def value(at):
        hills = ((0.2, 0.3, 1.0), (0.7, 0.8, 1.2))
        return sum(h * np.exp(-30 * ((at[:, 0] - x) ** 2 + (at[:, 1] - y) ** 2)) for x, y, h in hills)

    starts = points[tops(points, value(points), SQUARE, 20)]
    found, heights = climb(value, starts, value(starts), SQUARE, np.array([0.05, 0.05]))
    assert found[np.argmax(heights)] == pytest.approx([0.7, 0.8], abs=1e-3)
    assert np.abs(found - [0.2, 0.3]).max(axis=1).min() < 1e-3


# The loop


def play(policy, function, rounds, sd=0.0, seed=1):
    """Tell whole epochs until this number of rewards is reached; return the region of each epoch."""
    world, regions, done = np.random.default_rng(seed), [], 0
    while done < rounds:
        points = policy.ask()
        regions.append(policy.active)
        policy.tell(points, function(points) + sd * world.standard_normal(len(points)))
        done += len(points)
    return regions


def test_every_piece_gets_the_epochs_points():
    """The pieces are those that a fine grid shows, but for the smallest."""
    policy = Policy(algorithms.reds(Matern(2.5, 0.3), norm=4, noise=0, first_epoch=50), Box([[0, 3]]), rng=1)
    play(policy, sine, 50)
    inside = policy.active.contains(np.linspace(0, 3, 6001)[:, None]).astype(int)
    starts, ends = (np.flatnonzero(np.diff(np.concatenate([[0], inside, [0]])) == sign) for sign in (1, -1))
    points, pieces = policy.ask(), policy.active.pieces()
    assert len(pieces) == (ends - starts > 0.03 * inside.sum()).sum() >= 3
    assert all(piece.contains(points).sum() == 100 for piece in pieces)
    assert len(points) == 100 * len(pieces)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [{"keep": "mean"}, {"first_level": 0.5, "first_epoch": 10}], ids=["D.1", "D.2"])
def test_the_variants_on_a_box(extra):
    policy = Policy(algorithms.reds(Matern(2.5, 0.3), norm=4, noise=0, **extra), Box([[0, 3]]), rng=0)
    regions = play(policy, sine, 300)
    peaks = np.array([[0.5], [2.5], [4.5]]) * np.pi / 6
    assert all(region.contains(peaks).all() for region in regions[:3])
    assert not policy.active.contains([[0.8], [1.8], [2.8]]).any()
    assert policy.best().lower == pytest.approx(1, abs=1e-4)


@pytest.mark.slow
def test_bpe_on_a_box():
    policy = Policy(algorithms.bpe(KERNEL, constants="experiment", first_epoch=40), SQUARE, rng=0)
    play(policy, branin, 200, sd=0.1)
    assert branin(policy.best().arm[None])[0] > 0.9


@pytest.mark.slow
def test_a_run_on_a_box():
    """Regret against the maximum over the box, below half of what uniform points get, over 3 seeds."""
    problem = Continuous("branin", SQUARE, branin, MAXIMA[branin], KERNEL, Gaussian(0.2))
    reds = algorithms.reds(KERNEL, constants="experiment", first_epoch=50)
    chance = problem.regret(SQUARE.sample(5000, np.random.default_rng(0))).mean()
    regret = []
    for seed in range(3):
        trace = run(reds, problem, 400, rng=seed)
        regret.append(trace.regret.mean())
        assert trace.arms.shape == (400, 2)
        assert (trace.regret >= 0).all()
    assert np.mean(regret) < 0.5 * chance


# Asking and telling points


def test_points_may_be_told_in_pieces_and_any_order():
    problem = Continuous("branin", SQUARE, branin, MAXIMA[branin], KERNEL, Gaussian(0.0))
    whole, pieces = (
        Policy(algorithms.reds(KERNEL, constants="experiment", first_epoch=20), SQUARE, rng=5) for _ in "ab"
    )
    points = whole.ask()
    whole.tell(points, branin(points))
    order = np.random.default_rng(0).permutation(20)
    pieces.ask()
    for part in np.array_split(order, 6):
        assert len(pieces.ask()) + (20 - len(pieces.ask())) == 20
        pieces.tell(points[part], branin(points[part]))
    assert len(pieces.ask()) == len(whole.ask()) >= 40
    probe = SQUARE.sample(500, np.random.default_rng(1))
    assert (pieces.active.contains(probe) == whole.active.contains(probe)).mean() > 0.99
    assert problem.rewards(points, np.random.default_rng(0)) == pytest.approx(branin(points))


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "inside"])
def test_rewards_beyond_the_plan_do_not_shrink_the_region(when):
    alone, helped = (
        Policy(algorithms.reds(KERNEL, constants="experiment", first_epoch=20), SQUARE, rng=5) for _ in range(2)
    )
    beyond = SQUARE.sample(15, np.random.default_rng(0))
    if when == "before":
        helped.tell(beyond, np.full(15, 9.0))
        assert helped.belief.rounds == 0
    points = alone.ask()
    assert (helped.ask() == points).all()
    if when == "inside":
        helped.tell(beyond, np.full(15, -9.0))
    for policy in (alone, helped):
        policy.tell(points, branin(points))
        assert policy.belief.rounds == 20
    probe = SQUARE.sample(500, np.random.default_rng(1))
    assert (alone.active.contains(probe) == helped.active.contains(probe)).mean() > 0.99
    assert not alone.active.contains(probe).all()


def test_a_saved_run_on_a_box_goes_on_identically(tmp_path):
    policy = Policy(algorithms.reds(KERNEL, constants="experiment", first_epoch=20), SQUARE, rng=5)
    play(policy, branin, 20)
    points = policy.ask()
    policy.tell(points[:7], branin(points[:7]))
    policy.save(tmp_path / "run.npz")
    again = Policy.load(tmp_path / "run.npz")
    assert again.arms == SQUARE
    assert (again.ask() == policy.ask()).all()
    for one in (policy, again):
        rest = one.ask()
        one.tell(rest, branin(rest))
    assert (again.ask() == policy.ask()).all()
    assert (again.best().arm == policy.best().arm).all()


def test_errors_on_a_box():
    policy = Policy(algorithms.reds(KERNEL, constants="experiment"), SQUARE, rng=0)
    with pytest.raises(ValueError, match=r"on a box arms are \(n, 2\) points, got shape \(3,\)"):
        policy.tell([0.1, 0.2, 0.3], [1.0])
    with pytest.raises(ValueError, match=r"point must lie in Box.*, got \[2.0, 0.0\]"):
        policy.tell([[2.0, 0.0]], [1.0])
    with pytest.raises(ValueError, match="nan: drop it"):
        policy.tell([[0.5, 0.5]], [np.nan])
    with pytest.raises(ValueError, match=r"this needs finitely many arms, got a Box: pass box\.sample"):
        Policy(algorithms.bbkb(oversampling=2.0, kernel=KERNEL), SQUARE)
    with pytest.raises(ValueError, match="this needs finitely many arms"):
        Policy(algorithms.gp_threds(KERNEL), SQUARE)
    with pytest.raises(ValueError, match="needs the horizon"):
        Policy(algorithms.reds(KERNEL), SQUARE)
    with pytest.raises(ValueError, match="cannot change its arms"):
        policy.change_arms(SQUARE.sample(5, np.random.default_rng(0)))


# One point at a time: IGP-UCB, GP-TS and BKB

LINE = Box([[0, 3]])
ONE_AT_A_TIME = {
    "igp_ucb": algorithms.igp_ucb(SquaredExponential(0.4), norm=2, noise=0.1, ridge=0.01),
    "gp_ts": algorithms.gp_ts(SquaredExponential(0.4), norm=2, noise=0.1, ridge=0.01, scale=0.2),
    "bkb": algorithms.bkb(SquaredExponential(0.4), norm=2, noise=0.1, oversampling=3.0),
    "mini_gp_ucb": algorithms.mini_gp_ucb(SquaredExponential(0.4), norm=2, noise=0.1),
}


def bump(points):
    """One hill at 1.3 on [0, 3]."""
    return np.exp(-((points[:, 0] - 1.3) ** 2) / 0.5)


def played(policy, rounds, seed=1):
    """Play until at least this number of rewards; the rewards have noise of sd 0.1."""
    world = np.random.default_rng(seed)
    while policy.belief.rounds < rounds:
        asked = policy.ask()
        policy.tell(asked, bump(asked) + 0.1 * world.standard_normal(len(asked)))
    return policy


@pytest.mark.slow
@pytest.mark.parametrize("name", ["igp_ucb", "bkb"])
def test_the_score_of_the_chosen_point_is_the_highest_on_a_fine_grid(name):
    """Up to the twentieth of width * std by which a point that was pulled before may be lower."""
    algorithm = ONE_AT_A_TIME[name]
    policy, grid = Policy(algorithm, LINE, rng=0), np.linspace(0, 3, 3001)[:, None]
    for _ in range(20):
        point, width = policy.ask(), algorithm.rule.width(policy.belief)
        mean, std = policy.belief.predict(np.vstack([point, grid]))
        assert mean[0] + 1.05 * width * std[0] >= (mean + width * std)[1:].max() - 1e-9
        policy.tell(point, bump(point))


@pytest.mark.slow
def test_a_point_is_pulled_again_while_its_score_is_near_the_highest():
    policy = played(Policy(ONE_AT_A_TIME["igp_ucb"], LINE, rng=0), 60)
    assert policy.belief.rank < 40
    assert len(policy.belief.arms) == 1000 + policy.belief.rank - 1  # the first point was an arm


def test_thompson_sampling_chooses_from_a_grid_that_grows():
    """x_t is on the grid whose points are within 1/t^2 of any other, for functions of norm 2."""
    policy, kernel = Policy(ONE_AT_A_TIME["gp_ts"], LINE, rng=0), SquaredExponential(0.4)
    for t in range(1, 6):
        point = policy.ask()
        cells = math.exp(LINE.log_discretization(kernel, 2 * t**2))
        place = point[0, 0] / 3 * cells - 0.5
        assert place == pytest.approx(round(place), abs=1e-6)
        assert math.sqrt(2 - 2 * kernel(np.zeros((1, 1)), np.array([[1.5 / cells]]))[0, 0]) <= 1 / (2 * t**2)
        policy.tell(point, bump(point))


def test_rewards_of_other_points_are_learnt_and_may_be_the_best():
    policy = Policy(ONE_AT_A_TIME["igp_ucb"], LINE, rng=0)
    policy.tell([[1.3]] * 30, [1.0] * 30)
    policy.tell(policy.ask(), [0.0])
    assert policy.belief.rounds == 31
    assert policy.best().arm == pytest.approx([1.3], abs=1e-3)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (algorithms.gp_ei(KERNEL), "on a Box the rule must be UCB or Thompson"),
        (algorithms.bbkb(KERNEL, oversampling=2.0), "this needs finitely many arms, got a Box"),
        (Sequential(SparseGP(Nystrom(KERNEL, 2.0), 0.1), Thompson(1.0)), "Thompson sampling on a Box needs ExactGP"),
        (algorithms.gp_ts(Linear()), "kernel with a spectral density is needed to draw a function"),
    ],
)
def test_an_algorithm_that_cannot_play_on_a_box_says_so(algorithm, message):
    with pytest.raises(ValueError, match=message):
        Policy(algorithm, SQUARE, rng=0)


@pytest.mark.slow
def test_a_run_on_a_box_learns_its_last_reward():
    problem = Continuous("bump", LINE, bump, 1.0, SquaredExponential(0.4), Gaussian(0.1))
    trace = run(ONE_AT_A_TIME["igp_ucb"], problem, 40, rng=0)
    assert trace.arms.shape == (40, 1)
    assert trace.regret[:10].mean() > 2 * trace.regret[-10:].mean()
    assert trace.simple_regret[-1] < 0.05
