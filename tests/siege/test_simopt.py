"""A solver of SimOpt, run by SimOpt's own experiments on small problems."""

from itertools import pairwise

import joblib
import numpy as np
import pytest
from tests.conftest import needs

simopt_base = needs("simopt.base")
single = needs("simopt.experiment.single")
post_normalize = needs("simopt.experiment").post_normalize
NoRegretSolver = needs("noregret.integrations.simopt").NoRegretSolver


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.setattr(single, "EXPERIMENT_DIR", tmp_path)  # made where a test starts, otherwise

    def run(problem, budget, macroreplications=1, solver=None, **factors):
        made = single.ProblemSolver(
            solver=solver or NoRegretSolver(fixed_factors=factors),
            problem_name=problem,
            problem_fixed_factors={"budget": budget},
            create_pickle=False,
        )
        assert made.check_compatibility() == ""
        made.run(macroreplications, n_jobs=1)
        return made

    return run


@pytest.mark.slow
def test_a_newsvendor_orders_about_what_is_best(experiment):
    """Maximised, one variable without an upper bound; the best order is known in closed form."""
    found = experiment("CNTNEWS-1", 300, 2)
    assert [len(budgets) for budgets in found.all_intermediate_budgets] == [len(xs) for xs in found.all_recommended_xs]
    for budgets, solutions in zip(found.all_intermediate_budgets, found.all_recommended_xs, strict=True):
        assert (budgets[0], solutions[0]) == (0, (0,))  # SimOpt's initial solution
        assert budgets == sorted(budgets)
        assert budgets[-1] == 300
        assert all(one != another for one, another in pairwise(solutions[:-1]))
    # one order per macroreplication, with random numbers of its own
    orders = [solutions[-1][0] for solutions in found.all_recommended_xs]
    assert orders[0] != orders[1]
    # P(demand <= x) = 1 - (1 + x^2)^-20; a unit is bought for 5, sold for 9, and what is left over for 1
    best = ((1 - (9 - 5) / (9 - 1)) ** (-1 / 20) - 1) ** 0.5
    assert best == pytest.approx(0.1878, abs=1e-3)
    assert np.abs(np.array(orders) - best).max() < 0.07


@pytest.mark.slow
def test_simopt_compares_it_with_a_solver_of_its_own(experiment):
    ours = experiment("CNTNEWS-1", 60, 2)
    theirs = experiment("CNTNEWS-1", 60, 2, solver=single.solver_directory["RNDSRCH"]())
    with joblib.parallel_config(backend="threading"):
        for each in (ours, theirs):
            each.post_replicate(20)
        post_normalize([ours, theirs], n_postreps_init_opt=20)
    assert all(curve.x_vals[-1] == 1.0 for curve in ours.progress_curves)  # the whole budget


@pytest.mark.slow
def test_whole_numbers_are_minimised(experiment):
    found = experiment("DUALSOURCING-1", 24, sample_size=2)
    assert all(isinstance(x, int) for solution in found.all_recommended_xs[0] for x in solution)
    assert found.all_intermediate_budgets[0][-1] == 24
    again = experiment("DUALSOURCING-1", 24, sample_size=2)
    assert again.all_recommended_xs == found.all_recommended_xs


def test_a_box_replaces_the_bounds(experiment):
    found = experiment("CNTNEWS-1", 8, box=[(0.0, 0.01)])
    assert all(0 <= x <= 0.01 for (x,) in found.all_recommended_xs[0])
    with pytest.raises(ValueError, match="a range for each of the 1 variables, got 2"):
        experiment("CNTNEWS-1", 8, box=[(0, 1), (0, 1)])


def test_mixed_variables_are_refused(experiment):
    with pytest.raises(ValueError, match="all continuous or all discrete"):
        experiment("IRONORE-1", 8)
