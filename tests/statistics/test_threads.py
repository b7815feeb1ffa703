"""More of `tests.bandits.belief.test_threads`, nightly."""

import numpy as np
import pytest
from tests.bandits.belief.test_threads import setting, two_threads

from noregret import Matern, Policy, SquaredExponential, algorithms
from noregret.bandits.belief import sparse
from noregret.bandits.belief.draws import CovarianceRoot
from noregret.bandits.belief.estimators import Estimator
from noregret.bandits.belief.factor import Factor
from noregret.bandits.belief.sparse import FeatureRegression


@pytest.mark.parametrize(
    ("algorithm", "count"),
    [
        (algorithms.gp_ts(Matern(1.5, 0.2), noise=0.1), 300),
        (algorithms.ay_ucb(SquaredExponential(0.2), noise=0.1), 2000),
        (algorithms.bkb(SquaredExponential(0.2), noise=0.1, oversampling=5.0), 2000),
        (algorithms.ata_gp_ucb(SquaredExponential(0.2), oversampling=5.0), 2000),
    ],
    ids=["gp_ts", "ay_ucb", "bkb", "ata"],
)
def test_no_round_of_100_to_2000_arms_uses_a_second_thread(algorithm, count, monkeypatch):
    """Products that are large enough for BLAS to use a second thread: the setting is read inside every product."""
    seen = []

    def watch(owner, name):
        method = getattr(owner, name)

        def watched(*given, **named):
            seen.append((name, *setting()))
            return method(*given, **named)

        monkeypatch.setattr(owner, name, watched)

    for owner, names in (
        (Factor, ("append", "append_one", "refactor", "explained", "explained_covariance", "explained_draw")),
        (CovarianceRoot, ("draw", "row", "condition")),
        (FeatureRegression, ("_refresh", "_pull")),
        (sparse, ("beside",)),
        (Estimator, ("theta",)),
    ):
        for name in names:
            watch(owner, name)
    arms, rng = np.random.default_rng(0).random((count, 1)), np.random.default_rng(0)
    policy = Policy(algorithm, arms, rng=0)
    for _ in range(60):
        asked = policy.ask()
        policy.tell(asked, np.sin(6 * arms[asked, 0]) + 0.1 * rng.standard_normal(asked.size))
    last = len(seen) // 2  # the first ones are too small to matter
    assert seen[last:]
    assert {entry for entry in seen[last:] if set(entry[1:]) != {1}} == set()
