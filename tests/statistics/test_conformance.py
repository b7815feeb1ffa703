"""Every algorithm on every small problem: it keeps the contract and beats random choice."""

import pytest
from tests.bandits.algorithms import test_conformance
from tests.bandits.algorithms.test_conformance import HORIZON, PROBLEMS, build

from noregret.algorithms import NAMES
from noregret.testing import check_algorithm, check_beats_random

one_thread = test_conformance.one_thread


NEEDS_COORDINATES = {
    "gp-threds",
    "a-gp-ucb",
    "lb-gp-ucb",
}  # they cut the unit cube into cells, or shorten a lengthscale
PAIRS = [
    pytest.param(name, problem, id=f"{name} on {problem}")
    for name in NAMES
    for problem in PROBLEMS
    if not (problem == "table" and name in NEEDS_COORDINATES)
]
MARGINS = {"smooth": 0.3, "table": 0.6}


@pytest.mark.parametrize(("name", "problem"), [pair for pair in PAIRS if pair.values[1] == "table"])
def test_an_algorithm_keeps_the_contract_on_a_table(name, problem):
    check_algorithm(build(name, PROBLEMS[problem]), PROBLEMS[problem], rounds=120)


@pytest.mark.parametrize(("name", "problem"), [pair for pair in PAIRS if pair.values[0] != "random"])
def test_an_algorithm_beats_chance(name, problem):
    """Mean regret over 5 seeds below 0.3 (0.6 on the table) of that of random arms."""
    check_beats_random(build(name, PROBLEMS[problem]), PROBLEMS[problem], HORIZON, 5, MARGINS[problem])
