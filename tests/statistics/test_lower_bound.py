"""More of `tests.bandits.problems.test_lower_bound`, nightly."""

import numpy as np
import pytest
from tests.bandits.problems.test_lower_bound import cells_of, instance

from noregret.gp.kernels import Kernel, Matern, SquaredExponential


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(2.5, 0.2)], ids=repr)
def test_no_arm_is_good_for_two_bumps(kernel: Kernel) -> None:
    """Over all seeds the good bump visits all cells, and an arm within Delta of the best serves one of them only."""
    problems = [instance(kernel, 0.2, rng=seed, points_per_cell=21) for seed in range(60)]
    functions = {int(np.argmax(p.means)): p.means for p in problems}
    assert len(functions) == cells_of(problems[0], 21)
    good = np.array([means > means.max() / 2 + 1e-12 for means in functions.values()])
    assert good.sum(axis=0).max() == 1
    assert (good.sum(axis=1) == 21).all()  # the whole of its cell: twice the half radius is just enough
