"""The inverse root that follows rank-one terms, against an eigendecomposition at every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noregret import Matern, Nystrom, SparseGP, TruncatedDirections
from noregret.bandits.belief.sparse import FEW_ROWS, FULL, InverseRoot, _quadrature


def exactly(matrix, right):
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ ((vectors.T @ right) / np.sqrt(values).reshape(-1, *[1] * (right.ndim - 1)))


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.5), (0.01, 3.0), (1.0, 4e4), (1e-3, 900.0)])
def test_the_quadrature_is_the_inverse_root_on_its_range(low, high):
    nodes, weights = _quadrature(low, high)
    x = np.geomspace(low, high, 500)
    np.testing.assert_allclose((weights / (x[:, None] + nodes)).sum(axis=1), x**-0.5, rtol=1e-10)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.integers(0, 2**32 - 1), st.integers(FEW_ROWS, FEW_ROWS + 40), st.floats(0, 4), st.sampled_from([0.01, 1.0, 30.0])
)
def test_follows_terms_until_it_is_full(seed, size, decades, ridge):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((size, size)) * 10 ** (decades * (rng.random(size) - 1) / 2)
    matrix = ridge * (np.eye(size) + factor @ factor.T)
    root, right, added = InverseRoot(matrix), rng.standard_normal((size, 5)), 0
    while root.add(term := np.sqrt(ridge) * rng.standard_normal(size)):
        matrix, added = matrix + np.outer(term, term), added + 1
        for x in (right, right[:, 0]):
            expected = exactly(matrix, x)
            np.testing.assert_allclose(root @ x, expected, atol=1e-9 * np.abs(expected).max())
    assert 0 < added <= FULL


def test_a_refused_term_changes_nothing():
    matrix = 2 * np.eye(FEW_ROWS)
    root, right = InverseRoot(matrix), np.arange(FEW_ROWS, dtype=float)
    assert not root.add(np.full(FEW_ROWS, 100.0))  # beyond the range
    np.testing.assert_allclose(root @ right, right / np.sqrt(2))
    assert not InverseRoot(np.eye(3)).add(np.ones(3))  # so small that a new one is as fast
    assert not InverseRoot(np.diag(np.geomspace(1, 1e9, FEW_ROWS))).add(
        np.ones(FEW_ROWS)
    )  # so steep that it would be inexact


@pytest.mark.slow
def test_a_belief_that_asks_every_round_agrees_with_one_that_asks_at_the_end():
    """One at a time: V changes by one term a round, while the dictionary keeps all of 80 arms."""
    model = SparseGP(Nystrom(Matern(0.5, 0.2), np.inf), 0.7, TruncatedDirections(lambda belief: 0.3))
    arms, rng = np.linspace(0, 1, 80)[:, None], np.random.default_rng(0)
    often, once = model.prior(arms), model.prior(arms)
    for t in range(300):
        arm, reward = (t if t < 80 else rng.integers(80)), rng.standard_t(2)
        for belief in (often, once):
            belief.update(arm, reward)
        assert np.isfinite(often.mean).all()
    np.testing.assert_allclose(often.mean, once.mean, rtol=1e-9, atol=1e-10)
