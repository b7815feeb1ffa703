"""AdaptivePartition, the loop of Ada-BKB: its cells, its indices, and its regret."""

import math

import numpy as np
import pytest

from noregret import Box, Matern, Policy, SquaredExponential, algorithms
from noregret.bandits.decision.trees import _ArmCell, _BoxCells, _Leaves

KERNEL, BOX = SquaredExponential(0.4), Box([[0, 1], [0, 3]])


def hills(points):
    """A function of norm at most 2.2 under KERNEL: two of its kernels."""
    return KERNEL(points, np.array([[0.3, 0.5], [0.7, 2.2]])) @ np.array([1.0, 1.2])


def leaves_of(cell, depth):
    """All cells ``depth`` divisions below a cell."""
    cells = [cell]
    for _ in range(depth):
        cells = [part for each in cells for part in each.parts()]
    return cells


@pytest.mark.parametrize("kernel", [KERNEL, Matern(1.5, (0.5, 0.2))], ids=str)
def test_cells_of_a_box_tile_it_and_their_radius_bounds_f(kernel):
    """27 cells: every point is nearest to the centre of a cell that contains it, at most its radius away."""
    cells = _BoxCells(BOX, kernel, 2.0)
    leaves = leaves_of(cells.whole, 3)
    centres, halves = np.array([leaf.centre for leaf in leaves]), cells._halves[3]
    assert len(np.unique(centres, axis=0)) == 27
    assert 27 * np.prod(2 * halves) == pytest.approx(3.0)
    points = BOX.sample(300, np.random.default_rng(0))
    inside = (np.abs(points[:, None] - centres) <= halves + 1e-12).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    home = centres[inside.argmax(axis=1)]
    distances = [math.sqrt(2 - 2 * kernel(p[None], c[None])[0, 0]) for p, c in zip(points, home, strict=True)]
    assert 0.8 * leaves[0].radius < 2.0 * max(distances) <= leaves[0].radius
    assert any((leaf.centre == BOX.centre).all() for leaf in leaves)  # the middle part keeps the centre


def test_cells_of_arms_are_sets_of_arms_down_to_single_ones():
    arms = np.vstack([np.random.default_rng(0).random((40, 2)), [[0.5, 0.5]] * 3])
    whole = _ArmCell(np.arange(43), arms, KERNEL, 2.0)
    cells, single = [whole], []
    while cells:
        cell = cells.pop()
        own = arms[cell.members]
        away = 2.0 * np.sqrt(np.maximum(2 - 2 * KERNEL(arms[[cell.centre]], own)[0], 0))
        assert cell.centre in cell.members
        assert cell.radius == pytest.approx(away.max(), abs=1e-7)
        parts = cell.parts()
        if parts:
            assert sorted(np.concatenate([part.members for part in parts])) == sorted(cell.members)
            cells += parts
        else:
            single.append(cell.centre)
            assert cell.radius == 0
    assert sorted(single) == list(range(43))


def test_indices_only_fall_and_only_those_at_the_top_are_renewed():
    leaves, asked = _Leaves(_BoxCells(Box([[0, 1]]), SquaredExponential(0.1), 1.0).whole), []

    def believed(centres):
        asked.extend(float(centre[0]) for centre in centres)
        return np.array([centre[0] for centre in centres]), np.full(len(centres), 0.02)

    for width in (5.0, 50.0):  # a wider band does not raise an index
        best = leaves.highest(believed, width)
        before, asked[:] = len(asked), []
        assert best.centre[0] > 0.8
        assert best.radius < width * 0.02
        assert all(-leaf.below <= 1 + 0.1 + 1.5 for leaf in leaves._heap)
    assert len(asked) <= 16 < before + 16


@pytest.mark.parametrize("space", ["box", "arms"])
@pytest.mark.slow
def test_the_regret_of_a_round_is_at_most_three_half_widths(space):
    """Where the band holds, f* - f(x) <= 3 width std(x) in every round; f* lies below the highest index."""
    algorithm = algorithms.ada_bkb(KERNEL, norm=2.2, noise=0.1, oversampling=5.0, scale=0.5)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 41), np.linspace(0, 3, 61)), axis=-1).reshape(-1, 2)
    arms, world, top = (BOX if space == "box" else grid), np.random.default_rng(1), float(hills(grid).max())
    policy = Policy(algorithm, arms, rng=0)
    for _ in range(60):
        asked = policy.ask()
        point = asked if space == "box" else grid[asked]
        std = policy.belief.predict(point)[1][0]
        regret = top - hills(point)[0]
        assert regret <= 3 * algorithm.rule.width(policy.belief) * std + 1e-3
        policy.tell(asked, hills(point) + 0.1 * world.standard_normal(1))
    lower, upper = algorithm.bounds(policy.belief)
    truth = hills(policy.belief.arms)
    assert ((lower <= truth) & (truth <= upper)).all()
    best = policy.best()
    found = best.arm[None] if space == "box" else grid[[best.arm]]
    assert hills(found)[0] > top - 0.25


@pytest.mark.slow
def test_a_saved_run_goes_on_identically_and_other_points_are_learnt(tmp_path):
    algorithm, world = algorithms.ada_bkb(KERNEL, norm=2.2, noise=0.1, oversampling=2.0), np.random.default_rng(1)
    policy = Policy(algorithm, BOX, rng=0)
    policy.tell([[0.31, 0.52]] * 3, [1.0, 1.1, 0.9])
    for _ in range(20):
        asked = policy.ask()
        policy.tell(asked, hills(asked) + 0.1 * world.standard_normal(1))
    assert policy.belief.rounds == 23
    policy.save(tmp_path / "policy.npz")
    loaded = Policy.load(tmp_path / "policy.npz")
    for _ in range(3):
        asked = policy.ask()
        assert (loaded.ask() == asked).all()
        for each in (policy, loaded):
            each.tell(asked, hills(asked))
