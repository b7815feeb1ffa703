"""More of `tests.bandits.problems.test_rewards`, nightly."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from tests.bandits.problems.test_rewards import MEANS

from noregret.problems import Gaussian, Payoff, StudentT


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(
    ("model", "law"), [(Gaussian(0.5), stats.norm(scale=0.5)), (StudentT(3), stats.t(3)), (StudentT(2.2), stats.t(2.2))]
)
def test_moment_bounds_hold_and_are_not_slack(model: Payoff, law: stats.rv_continuous, alpha: float) -> None:
    """Against quadrature: E|noise|^p exactly; E|f + noise|^p between 2/3 of the bound and the bound, equal at p = 2."""
    p = 1 + alpha
    assert model.absolute_moment(p) == pytest.approx(2 * quad(lambda z: z**p * law.pdf(z), 0, np.inf)[0], rel=1e-5)
    halves = ((-np.inf, -1), (-1, 5), (5, np.inf))
    true = sum(quad(lambda z: abs(1 + z) ** p * law.pdf(z), *half)[0] for half in halves)
    assert (
        (2 / 3 if alpha < 1 else 1 - 1e-5) * model.moment(MEANS, alpha)
        < true
        <= model.moment(MEANS, alpha) * (1 + 1e-6)
    )
