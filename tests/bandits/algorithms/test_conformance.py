"""Every algorithm by its name, on small problems: it keeps the contract (and beats random choice: tests/statistics)."""

import inspect
import json
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from noregret import Matern, SquaredExponential, Tabular
from noregret.algorithms import NAMES
from noregret.bandits.decision.saving import describe, rebuild
from noregret.testing import check_algorithm, check_problem

HORIZON = 300


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The problems are small, so one thread is fastest."""
    with threadpool_limits(1):
        yield


@dataclass(frozen=True, eq=False)
class Toy:
    """Gaussian rewards around a function of known norm."""

    kernel: object
    arms: np.ndarray
    means: np.ndarray
    norm: float
    noise: float = 0.1

    def rewards(self, arms, rng):
        return self.means[arms] + self.noise * rng.standard_normal(len(arms))

    @property
    def facts(self):
        """Known constants of the problem, by the keywords of the builders."""
        return {
            "norm": self.norm,
            "noise": self.noise,
            "delta": 0.1,
            "horizon": HORIZON,
            "alpha": 1.0,
            "moment": float((self.means**2).max() + self.noise**2),
            "bounds": (float(self.means.max()) - 0.5, float(self.means.max()) + 0.5),
            "constants": "experiment",
        } | ({"gain": 1.0} if isinstance(self.kernel, Tabular) else {})  # a table has no growth rate


def smooth():
    """f = sum of five SE kernels on 50 points of [0, 1]."""
    rng = np.random.default_rng(1)
    arms, kernel = np.sort(rng.random((50, 1)), axis=0), SquaredExponential(0.2)
    weights = np.zeros(50)
    weights[[3, 14, 25, 33, 46]] = [-0.5, 1.0, -1.0, 0.2, 0.8]
    means = kernel(arms, arms) @ weights
    return Toy(kernel, arms, means, math.sqrt(weights @ means))


def table():
    """A draw from a covariance matrix of 40 arms without coordinates."""
    rng = np.random.default_rng(2)
    places = rng.random((40, 3))
    matrix = Matern(2.5, 1.0)(places, places)
    weights = np.zeros(40)
    weights[rng.integers(40, size=6)] = 2 * rng.standard_normal(6)
    means = matrix @ weights
    kernel = Tabular(matrix)
    return Toy(kernel, kernel.arms, means, math.sqrt(weights @ means))


PROBLEMS = {"smooth": smooth(), "table": table()}
SPECIAL = {
    "gp-ucb": {"scale": 0.01},  # its constant of 300 leaves nothing to learn in a few hundred rounds
    "tv-gp-ucb": {"scale": 0.2},  # nor does a width for random walks, since these functions are constant in time
    # nor do widths that allow for heavy tails
    **{name: {"scale": 0.1} for name in ("tgp-ucb", "ata-gp-ucb", "mom-gp-ucb", "hvt-ucb")},
    **{name: {"scale": 0.03, "ridge": 0.01, "first_epoch": 20} for name in ("catoni-reds", "catoni-bpe")},
}


def build(name, problem):
    """Algorithm of this name with the facts of the problem that its builder takes."""
    builder = NAMES[name]
    facts = problem.facts | SPECIAL.get(name, {})
    return builder(problem.kernel, **{k: v for k, v in facts.items() if k in inspect.signature(builder).parameters})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_keeps_the_contract(name):
    check_algorithm(build(name, PROBLEMS["smooth"]), PROBLEMS["smooth"], rounds=40)


@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_comes_back_from_a_file_and_from_another_process(name):
    algorithm = build(name, PROBLEMS["smooth"])
    assert rebuild(json.loads(json.dumps(describe(algorithm)))) == algorithm
    assert pickle.loads(pickle.dumps(algorithm)) == algorithm


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_the_problems_themselves(problem):
    check_problem(problem)
