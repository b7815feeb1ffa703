"""BKB, BBKB, mini-GP-UCB: the loops, the widths, and the theorems."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import noregret
from noregret import (
    UCB,
    Constant,
    ExactGP,
    Linear,
    Matern,
    Nystrom,
    Policy,
    SparseGP,
    SquaredExponential,
    Tabular,
    Thompson,
    algorithms,
)
from noregret.bandits.algorithms.sketching import (
    BBKBWidth,
    BKBWidth,
    CertifiedWidth,
    PlainBKBWidth,
    accuracy,
    ada_bkb,
    bbkb,
    bkb,
    distortion,
    mini_bkb,
    mini_gp_ucb,
    oversampling_for,
)
from noregret.bandits.algorithms.tighter_widths import AYWidth
from noregret.bandits.decision.loops import Batched, Repeated, _Ahead, afresh, lazily
from noregret.bandits.decision.policy import _noises

KERNEL = SquaredExponential(0.2)
RIDGE = 0.01


def world(seed: int, arms: int = 300, dimension: int = 2) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    points = rng.random((arms, dimension))
    centres, weights = rng.random((20, dimension)), rng.uniform(-1, 1, 20)
    means = KERNEL(points, centres) @ weights
    norm = math.sqrt(weights @ KERNEL(centres, centres) @ weights)
    draw = lambda chosen, stream: means[chosen] / norm + 0.1 * stream.standard_normal(len(chosen))  # noqa: E731
    return SimpleNamespace(arms=points, means=means / norm, norm=1.0, rewards=draw, name=f"world {seed}")


def learnt(model, problem, pulls: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    belief = model.prior(problem.arms, rng)
    arms = rng.integers(0, len(problem.arms), pulls)
    if pulls:
        belief.update(arms, problem.rewards(arms, rng))
    return belief


@pytest.mark.slow
@pytest.mark.parametrize("pulls", [0, 3, 40, 400])
@pytest.mark.parametrize(
    "model", [ExactGP(KERNEL, RIDGE), SparseGP(Nystrom(KERNEL, 8.0), RIDGE)], ids=["exact", "sketch"]
)
def test_lazy_refresh_picks_what_dense_conditioning_picks(model, pulls):
    belief, width = learnt(model, world(0), pulls), 3.0
    everything = np.arange(300)
    covariance, picks = belief.covariance(everything, everything), []
    for _ in range(30):
        picks.append(int(np.argmax(belief.mean + width * np.sqrt(np.maximum(covariance.diagonal(), 0)))))
        column = covariance[picks[-1]]
        covariance = covariance - np.outer(column, column) / (column[picks[-1]] + RIDGE)
    assert list(itertools.islice(lazily(UCB(Constant(width)), belief), 30)) == picks


@pytest.mark.parametrize("listed", [1000, 3])
@pytest.mark.parametrize("pulls", [0, 3, 40, 400])
def test_lazy_and_full_refresh_agree(pulls, listed, monkeypatch):
    monkeypatch.setattr("noregret.bandits.decision.loops.LISTED", listed)
    belief, width = learnt(ExactGP(KERNEL, RIDGE), world(0), pulls), AYWidth(1.0, 0.1, 0.1)
    lazy = list(itertools.islice(lazily(UCB(width), belief), 30))
    assert lazy == list(itertools.islice(afresh(UCB(Constant(width(belief))), belief, np.random.default_rng(0)), 30))


def test_a_batch_looks_at_few_arms():
    """6 picks of 2,000 arms with a wide band: more than half of them have old scores above the new one of a pick."""
    problem, looked = world(0, 2000), set()
    belief = learnt(SparseGP(Nystrom(KERNEL, math.inf, root="cholesky"), RIDGE), problem, 60)
    covariance = belief.covariance
    belief.covariance = lambda first, second: (looked.update([*first, *second]), covariance(first, second))[1]
    picks = list(itertools.islice(lazily(UCB(Constant(50.0)), belief), 6))
    assert set(picks[:-1]) <= looked
    assert len(looked) < 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [ExactGP(KERNEL, RIDGE), SparseGP(Nystrom(KERNEL, 8.0), RIDGE)], ids=["exact", "sketch"]
)
def test_a_batch_ends_when_its_variances_have_added_up(model):
    problem = world(1)
    growth = 3.0
    policy = Policy(Batched(model, UCB(Constant(2.0)), growth), problem.arms, rng=0)
    stream, sizes = np.random.default_rng(1), []
    while policy.belief.rounds < 3_000:
        batch = policy.ask()
        cost = policy.belief.std[batch] ** 2 / RIDGE
        assert 1 + cost[:-1].sum() <= growth < 1 + cost.sum()
        policy.tell(batch, problem.rewards(batch, stream))
        sizes.append(len(batch))
    assert sizes[0] == 1
    assert max(sizes) > 10


@pytest.mark.parametrize("rule", [UCB(Constant(2.0)), Thompson(Constant(1.0))], ids=["lazily", "afresh"])
def test_a_batch_of_a_given_size(rule):
    model, problem, stream = ExactGP(KERNEL, RIDGE), world(1), np.random.default_rng(1)
    for loop, sizes in (
        (Batched(model, rule, size=8), {8}),
        (Batched(model, rule, growth=1e6, size=8), {8}),
        (Batched(model, rule, growth=1.0001, size=8), {1}),
    ):
        policy, asked = Policy(loop, problem.arms, rng=0), []
        for _ in range(4):
            asked.append(policy.ask())
            policy.tell(asked[-1], problem.rewards(asked[-1], stream))
        assert set(map(len, asked)) == sizes
    assert len({*asked[0].tolist()}) == len(asked[0])


@pytest.mark.slow
def test_of_growth_and_size_whichever_comes_first():
    problem, stream, algorithm = world(1), np.random.default_rng(1), bbkb(KERNEL, horizon=3_000, oversampling=5, size=6)
    policy, sizes = Policy(algorithm, problem.arms, rng=0), []
    for _ in range(300):
        batch = policy.ask()
        cost = policy.belief.std[batch] ** 2 / RIDGE
        assert 1 + cost[:-1].sum() <= 2.0
        assert len(batch) == 6 or 1 + cost.sum() > 2.0
        policy.tell(batch, problem.rewards(batch, stream))
        sizes.append(len(batch))
    assert sizes[0] == 1
    assert max(sizes) == 6


def test_a_batch_must_end():
    model, rule = ExactGP(KERNEL, RIDGE), UCB(Constant(2.0))
    with pytest.raises(ValueError, match=r"^growth or size must be given, got neither: pass growth=2, or size="):
        Batched(model, rule)
    for size in (0, -1, 2.0, True, "8"):
        with pytest.raises(ValueError, match=r"^size must be a whole number from 1, the arms of a batch, got"):
            Batched(model, rule, 2.0, size)
    assert Batched(model, rule, growth=2).growth == Batched(model, rule, 2, size=np.int64(3)).growth == 2


@pytest.mark.parametrize("out", [[], [5], [5, 5, 250], list(range(0, 300, 9))], ids=len)
@pytest.mark.parametrize("pulls", [0, 40])
@pytest.mark.parametrize(
    "model", [ExactGP(KERNEL, RIDGE), SparseGP(Nystrom(KERNEL, math.inf), RIDGE)], ids=["exact", "features"]
)
def test_arms_that_are_out_count_as_if_they_had_returned_their_mean(model, pulls, out):
    belief, width = learnt(model, world(0), pulls), UCB(Constant(3.0))
    before, rounds = belief.mean.copy(), belief.rounds
    told = belief.copy()
    if out:
        told.update(out)
    if isinstance(model, SparseGP):  # as with every arm in the dictionary, which a prior does not have yet
        told = learnt(ExactGP(KERNEL, RIDGE), world(0), pulls)
        told.update(out)
    picks, expected = list(itertools.islice(lazily(width, belief, out), 10)), []
    for _ in range(10):
        expected.append(int(np.argmax(width(told, None))))
        told.update(expected[-1])
    assert picks == expected
    assert belief.rounds == rounds
    assert (belief.mean == before).all()


def test_variances_shrink_by_at_most_the_growth_within_a_batch():
    problem = world(2)
    belief = learnt(ExactGP(KERNEL, RIDGE), problem, 300)
    batch = next(Batched(ExactGP(KERNEL, RIDGE), UCB(Constant(2.0)), 2.0).play(problem.arms, None, belief)).arms
    before, ahead = belief.std**2, belief.copy()
    ahead.update(batch[:-1])
    assert (before / ahead.std**2).max() <= 2.0 + 1e-9


@pytest.mark.parametrize("growth", [1.2, 1.5, 3.0])
def test_an_arm_is_repeated_until_its_variance_has_shrunk(growth):
    problem = world(3)
    policy = Policy(Repeated(ExactGP(KERNEL, RIDGE), UCB(Constant(2.0)), growth), problem.arms, rng=0)
    stream = np.random.default_rng(1)
    while policy.belief.rounds < 20_000:
        asked, belief = policy.ask(), policy.belief
        variance = float(belief.std[asked[0]] ** 2)
        wanted = max(1, math.floor((growth**2 - 1) * RIDGE / variance))
        assert (asked == asked[0]).all()
        assert len(asked) == min(wanted, belief.rounds + 1)
        before = belief.std**2
        policy.tell(asked, problem.rewards(asked, stream))
        if len(asked) > 1:
            assert (before / policy.belief.std**2).max() <= growth**2 * (1 + 1e-6)


def test_theory_width_is_the_theorems():
    belief = learnt(SparseGP(Nystrom(KERNEL, math.inf), RIDGE), world(4, 60), 25)
    chosen = np.random.default_rng(0).integers(0, 60, 25)
    K = KERNEL(belief.arms[chosen], belief.arms[chosen])
    effective = np.trace(K @ np.linalg.inv(K + RIDGE * np.eye(25)))
    a = (1 + 0.5) / (1 - 0.5)
    log_det = a * min(effective * (1 + math.log(1 + 25 / RIDGE)), 2 * belief.claimed_gain)
    by_hand = (1 + 1 / math.sqrt(0.5)) * 2.0 + 0.3 * math.sqrt((log_det + 2 * math.log(1 / 0.1)) / RIDGE)
    assert np.linalg.slogdet(np.eye(25) + K / RIDGE)[1] <= 2 * belief.claimed_gain + 1e-9
    assert BKBWidth(2.0, 0.3, 0.1, 0.5)(belief) == pytest.approx(by_hand, rel=1e-6)
    plain = 2.0 + 0.3 / math.sqrt(RIDGE) * math.sqrt(math.log(25) * effective + math.log(10))
    assert PlainBKBWidth(2.0, 0.3, 0.1)(belief) == pytest.approx(plain, rel=1e-6)
    half = BKBWidth(2.0, 0.3, 0.1, 0.5, scale=0.5)(belief)
    bias = (1 + 1 / math.sqrt(0.5)) * 2.0
    assert half - bias == pytest.approx(0.5 * (by_hand - bias))


def test_the_printed_logarithm_does_not_bound_the_determinant_and_ours_does():
    for t in (1, 2, 3, 20):
        K = np.ones((t, t)) * 0.5 + 0.5 * np.eye(t)
        gain = np.linalg.slogdet(np.eye(t) + K / RIDGE)[1]
        effective = np.trace(K @ np.linalg.inv(K + RIDGE * np.eye(t)))
        assert effective * (1 + math.log(1 + t / RIDGE)) >= gain
        if t < 3:
            assert effective * 2 * max(math.log(t), 0) < gain


def test_batch_width_counts_the_variances_before_each_batch():
    problem = world(5)
    belief = SparseGP(Nystrom(KERNEL, 10.0), RIDGE).prior(problem.arms, np.random.default_rng(0))
    total, rng = 0.0, np.random.default_rng(1)
    for size in (1, 4, 20):
        arms = rng.integers(0, 300, size)
        total += np.log(1 + belief.std[arms] ** 2 / RIDGE).sum()
        belief.update(arms, problem.rewards(arms, rng))
    by_hand = 1.0 + 0.1 / math.sqrt(RIDGE) * math.sqrt(2.0 * total + math.log(10))
    assert BBKBWidth(1.0, 0.1, 0.1, 2.0)(belief) == pytest.approx(by_hand)
    start = (1 + 1 / math.sqrt(0.5)) + 0.1 / math.sqrt(RIDGE) * math.sqrt(3 * total + 2 * math.log(10))
    assert BBKBWidth(1.0, 0.1, 0.1, 2.0, 0.5)(belief) == pytest.approx(math.sqrt(2) * start)


def test_theorems_oversampling_and_ridge():
    assert oversampling_for(1000) == pytest.approx(6 * 3 * math.log(4 * 1000 / 0.1) / 0.25)
    assert bkb(KERNEL, noise=0.2, horizon=1000).model.ridge == pytest.approx(0.04)
    assert accuracy(0.5) == 3
    with pytest.raises(ValueError, match="pass horizon=, or oversampling="):
        bkb(KERNEL)
    with pytest.raises(ValueError, match="growth must be above 1, got 1"):
        mini_gp_ucb(KERNEL, growth=1.0)
    with pytest.raises(ValueError, match=r"epsilon must be in \(0, 1\), got 1"):
        bkb(KERNEL, epsilon=1.0, horizon=10)


LINE = np.linspace(0, 1, 40)[:, None]


def on_dictionary(members, pulls, rewards, kernel=KERNEL, ridge=RIDGE):
    """Posterior on Nystrom features of exactly these arms, whatever is pulled."""
    belief = SparseGP(Nystrom(kernel, 1.0, root="cholesky"), ridge).prior(LINE, np.random.default_rng(0))
    belief._map._embed(np.array(members, np.intp))
    belief._map.redraw = lambda *_: len(belief._map.table)
    belief._rebuild()
    belief.update(pulls, rewards)
    return belief


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("kernel", [KERNEL, Matern(0.5, 0.3)], ids=["SE", "Matern"])
def test_every_inequality_of_the_certified_band_holds_for_every_dictionary(kernel, ridge):
    """Unexplained variance, log-determinant, noise, bias of the worst f of norm 1, and variances: by direct solves.

    The mean is linear in the rewards; its weights are the means for unit vectors of rewards.
    """
    rng, tightest = np.random.default_rng(0), 0.0
    dictionaries = ([], [7], [0, 1, 2], [3, 3, 39], [5, 15, 25, 35], range(0, 40, 3), range(40))
    for members, distinct in itertools.product(dictionaries, (1, 3, 8)):
        pulls = rng.choice(rng.integers(40, size=distinct), 8)
        beliefs = [on_dictionary(members, pulls, row, kernel, ridge) for row in np.eye(8)]
        belief, weights = beliefs[0], np.array([each.mean for each in beliefs]).T
        columns, K = kernel(LINE, LINE[pulls]), kernel(LINE[pulls], LINE[pulls])
        A, part = K + ridge * np.eye(8), kernel(LINE[pulls], LINE[list(members)])
        if part.size:
            among = kernel(LINE[list(members)], LINE[list(members)])
            part = part @ np.linalg.pinv(among, rcond=1e-13, hermitian=True) @ part.T
        E = max(8.0 - float(np.trace(part)), 0.0) if part.size else 8.0
        assert belief.unexplained_sum == pytest.approx(E, abs=1e-4)
        kappa = distortion(E / ridge)
        assert np.linalg.slogdet(A / ridge)[1] <= 2 * belief.information_gain + E / ridge + 1e-6
        noise = rng.standard_normal((8, 50))
        size = np.sqrt((noise * np.linalg.solve(A, K @ noise)).sum(axis=0) / ridge)
        assert (np.abs(weights @ noise) <= np.outer(belief.std, size) + 1e-6).all()
        bias = np.sqrt(np.maximum(1 - 2 * (weights * columns).sum(axis=1) + ((weights @ K) * weights).sum(axis=1), 0))
        assert (bias <= math.sqrt(kappa) * belief.std + 1e-6).all()
        ratio = belief.std**2 / (1 - (columns.T * np.linalg.solve(A, columns.T)).sum(axis=0))
        assert 1 / kappa - 1e-6 <= ratio.min() <= ratio.max() <= kappa + 1e-6
        tightest = max(tightest, float((bias / belief.std).max() / math.sqrt(kappa)))
    assert tightest > 0.9


def test_certified_width_by_hand():
    pulls = np.array([0, 1, 2, 2, 30])
    belief = on_dictionary([0, 2], pulls, np.zeros(5))
    among, part = KERNEL(LINE[[0, 2]], LINE[[0, 2]]), KERNEL(LINE[[0, 2]], LINE[pulls])
    sketch = part.T @ np.linalg.solve(among, part)
    s2 = float(5 - np.trace(sketch)) / RIDGE
    bias = 2.0 * (math.sqrt(s2) / 2 + math.sqrt(1 + s2 / 4))
    log = np.linalg.slogdet(np.eye(5) + sketch / RIDGE)[1]
    noise = 0.3 / math.sqrt(RIDGE) * math.sqrt(log + s2 + 2 * math.log(10))
    width = CertifiedWidth(2.0, 0.3, 0.1)
    assert width(belief) == pytest.approx(bias + noise)
    complete = 2.0 + 0.3 / math.sqrt(RIDGE) * math.sqrt(log + 2 * math.log(10))
    assert width.excess(belief) == pytest.approx((bias + noise) / complete)
    assert CertifiedWidth(2.0, 0.3, 0.1, scale=0.5)(belief) == pytest.approx(bias + 0.5 * noise)
    before = belief.unexplained_sum
    belief.update(30, 0.0, noise=4.0)
    alone = 1 - part[:, 4] @ np.linalg.solve(among, part[:, 4])
    assert belief.unexplained_sum - before == pytest.approx(alone / 4)
    everything = on_dictionary(range(40), pulls, np.zeros(5))
    exact = ExactGP(KERNEL, RIDGE).prior(LINE)
    exact.update(pulls, np.zeros(5))
    assert width(everything) == pytest.approx(AYWidth(2.0, 0.3, 0.1)(exact), rel=1e-5)


@pytest.mark.parametrize("builder", [bkb, bbkb, mini_bkb, ada_bkb])
def test_the_certified_width_is_the_default_and_has_all_of_delta(builder):
    """At the theorem's q it is narrower than the paper's, which `width` and the words of other builders do not give."""
    belief = learnt(builder(KERNEL, horizon=1000).model, world(4, 60), 25)
    certified, paper = (builder(KERNEL, horizon=1000, **given).rule.width for given in ({}, {"width": "paper"}))
    batch = math.sqrt(2.0) if builder is bbkb else 1.0
    assert certified(belief) == pytest.approx(batch * CertifiedWidth(1.0, 0.1, 0.1)(belief))
    assert certified(belief) < 0.62 * paper(belief)
    with pytest.raises(ValueError, match="width must be 'certified' or 'paper', got 'tight'"):
        builder(KERNEL, horizon=1000, width="tight")


@pytest.mark.parametrize("kernel", [KERNEL, Matern(2.5, 0.5)], ids=["SE", "Matern"])
def test_a_greedy_dictionary_holds_what_is_left_below_its_limit(kernel):
    """Always E <= epsilon^2 ridge; the next arm is that of the largest pulls times unexplained variance; no coins."""
    belief = bkb(kernel, ridge=RIDGE, coins="greedy", epsilon=0.5).model.prior(LINE, np.random.default_rng(0))
    rng, counts, members = np.random.default_rng(1), np.zeros(40), []
    for size in [1] * 30 + [3, 500, 1]:
        pulls = rng.integers(40, size=size)
        counts += np.bincount(pulls, minlength=40)
        belief.update(pulls, rng.standard_normal(size))
        while True:
            among = kernel(LINE[members], LINE[members])
            part = kernel(LINE[members], LINE)
            left = kernel.diag(LINE) - ((part * np.linalg.solve(among, part)).sum(axis=0) if members else 0.0)
            if counts @ left <= 0.25 * RIDGE:
                break
            members.append(int(np.argmax(counts * left)))
        assert belief._map.members.tolist() == members
        assert belief.unexplained_sum == pytest.approx(counts @ left, abs=1e-6)
    assert belief.rank == len(members) < (counts > 0).sum()
    assert belief.generator.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_a_greedy_dictionary_is_as_it_was_when_an_arm_cannot_enter(monkeypatch):
    belief = bkb(KERNEL, ridge=RIDGE, coins="greedy").model.prior(LINE, np.random.default_rng(0))
    belief.update([0, 20], [1.0, 2.0])
    before, append, calls = belief.predict(LINE), belief._map._append, []

    def fails(arm):
        calls.append(arm)
        if len(calls) == 2:
            raise MemoryError
        return append(arm)

    monkeypatch.setattr(belief._map, "_append", fails)
    with pytest.raises(MemoryError):
        belief.update([10, 39], [1.0, 2.0])
    monkeypatch.undo()
    np.testing.assert_array_equal(belief.predict(LINE), before)
    belief.update([10, 39], [1.0, 2.0])
    again = bkb(KERNEL, ridge=RIDGE, coins="greedy").model.prior(LINE, np.random.default_rng(0))
    again.update([0, 20], [1.0, 2.0])
    again.update([10, 39], [1.0, 2.0])
    np.testing.assert_allclose(belief.mean, again.mean, rtol=1e-10)


def test_greedy_needs_a_cholesky_root():
    with pytest.raises(ValueError, match="coins='greedy' needs root='cholesky' and variance='full', got 'symmetric'"):
        Nystrom(KERNEL, 4.0, coins="greedy")
    assert bkb(KERNEL, coins="greedy", epsilon=0.1).model.features.oversampling == pytest.approx(100.0)


def test_variances_within_a_batch_are_right_up_to_the_factor_of_its_start():
    """Although no feature carries the pulls of the batch: what the features leave out is conditioned on them too."""
    start, picks = on_dictionary([0, 20], np.repeat([0, 20], 5), np.zeros(10), ridge=0.1), [10, 30, 10, 30, 10]
    start.ridge, exact, worst = 0.1, ExactGP(KERNEL, 0.1).prior(LINE), 0.0
    exact.update(np.repeat([0, 20], 5), np.zeros(10))
    thought = _Ahead(start)
    thought.look(np.arange(40))
    features = start.copy()
    for pick in picks:
        thought.pick(pick)
        exact.update(pick, 0.0)
        features.update(pick)
        factor = distortion(start.unexplained_sum / 0.1)
        assert (thought._variance <= factor * exact.std**2 + 1e-9).all()
        worst = max(worst, float((features.std**2 / exact.std**2).max()))
    assert worst > 2 * factor, "with the features alone they are not"


def test_best_warns_once_if_the_dictionary_is_too_small():
    problem, stream = world(0, 60), np.random.default_rng(0)
    for oversampling, warned in ((1e-6, True), (100.0, False)):
        policy = Policy(bkb(KERNEL, norm=1.0, noise=0.1, oversampling=oversampling), problem.arms, rng=0)
        arms = stream.integers(60, size=200)
        policy.tell(arms, problem.rewards(arms, stream))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            policy.best()
            policy.best()
        assert len(found) == warned
        if warned:
            said = r"the dictionary of the sketch is too small: the bounds hold, and are \d+\.\d times as wide"
            assert re.match(said, str(found[0].message))


def test_rewards_that_a_small_dictionary_cannot_explain_contradict_nothing():
    """A dictionary of one arm leaves out most of f: the misfit of its features is large with the right norm."""
    problem, stream = world(0, 60), np.random.default_rng(0)
    algorithm = bkb(KERNEL, norm=1.0, noise=0.02, oversampling=1e-6)
    policy, arms = Policy(algorithm, problem.arms, rng=0), stream.integers(60, size=200)
    policy.tell(arms, problem.means[arms])
    belief, width = policy.belief, algorithm.rule.width
    assert belief.misfit > 1 + 0.02**2 * _noises(belief, width.delta)
    with pytest.warns(UserWarning, match="the dictionary of the sketch is too small"):
        policy.best()


@pytest.mark.parametrize("builder", [bkb, bbkb, mini_bkb])
def test_the_dictionary_and_the_noise_have_half_of_delta_each(builder):
    """With a = 3 at epsilon = 0.5: q = 72 ln(8 T / delta), and ln(2 / delta) under the root of the width."""
    algorithm = builder(KERNEL, norm=2.0, noise=0.3, delta=0.1, horizon=1000, ridge=RIDGE, width="paper")
    assert algorithm.model.features.oversampling == pytest.approx(72 * math.log(8 * 1000 / 0.1))
    prior = algorithm.model.prior(world(4, 60).arms, np.random.default_rng(0))
    noise = 0.3 / math.sqrt(RIDGE) * math.sqrt(2 * math.log(2 / 0.1))
    batch = math.sqrt(2.0) if builder is bbkb else 1.0
    assert algorithm.rule.width(prior) == pytest.approx(batch * ((1 + math.sqrt(2)) * 2.0 + noise))


def test_beyond_the_horizon_q_is_that_of_a_horizon_twice_as_long_and_half_of_delta():
    features = bkb(KERNEL, delta=0.1, horizon=1000).model.features
    for doublings, redraws in enumerate([(1, 1000), (1001, 2000), (2001, 4000)]):
        longer = oversampling_for(1000 * 2**doublings, delta=0.05 / 2**doublings)
        assert [features.oversampling_at(redraw) for redraw in redraws] == pytest.approx([longer] * 2)
    shares = [2 ** (j - 1) * 1000 * 0.05 / (4**j * 1000) for j in range(1, 60)]  # redraws times their failure
    assert sum(shares) == pytest.approx(0.025)


def test_the_dictionary_grows_when_q_is_raised():
    """The same pulls with and without a horizon of 50: equal up to it, and more arms beyond."""
    arms, rng = np.linspace(0, 1, 60)[:, None], np.random.default_rng(0)
    pulls, sizes = rng.integers(60, size=200), {}
    for horizon in (50, None):
        features = Nystrom(KERNEL, 0.5, root="cholesky", horizon=horizon, rise=20.0)
        belief = SparseGP(features, RIDGE).prior(arms, np.random.default_rng(1))
        sizes[horizon] = []
        for t, arm in enumerate(pulls):
            belief.update(arm, 0.0)
            belief = belief.at(arms) if t == 100 else belief.copy()  # neither forgets how often it has drawn
            sizes[horizon].append(len(belief.dictionary))
    assert sizes[50][:50] == sizes[None][:50]
    assert np.mean(sizes[50][50:]) > 1.5 * np.mean(sizes[None][50:])


@pytest.mark.parametrize("builder", [bkb, bbkb, mini_bkb])
def test_the_authors_width_has_all_of_delta(builder):
    algorithm = builder(KERNEL, norm=2.0, noise=0.3, delta=0.1, ridge=RIDGE, constants="experiment")
    prior = algorithm.model.prior(world(4, 60).arms, np.random.default_rng(0))
    assert algorithm.rule.width(prior) == pytest.approx(2.0 + 0.3 / math.sqrt(RIDGE) * math.sqrt(math.log(10)))


@pytest.mark.parametrize("kernel", [Linear(), Tabular(np.diag([0.0, 1.0, 1.0]))], ids=str)
def test_a_batch_ends_although_the_arm_on_top_has_nothing_to_tell(kernel):
    """Arm 0 has a std of about 0 and the best mean: its pulls never use up the budget of a batch."""
    arms = np.array([[0.0], [1.0], [2.0]]) if isinstance(kernel, Tabular) else np.array([[1e-7], [-1.0], [-2.0]])
    for rule in (UCB(Constant(0.1)), Thompson(Constant(0.0))):
        policy = Policy(Batched(ExactGP(kernel, 0.01), rule, 2.0), arms, rng=0)
        policy.tell([1, 2, 1, 2], [-5.0, -10.0, -5.0, -10.0])
        assert 0 < len(policy.ask()) < 100


@pytest.mark.parametrize("name", ["bkb", "bbkb", "mini-gp-ucb", "mini-bkb"])
def test_arms_can_change_and_what_was_learnt_stays(name, tmp_path):
    problem, rng = world(7, 80), np.random.default_rng(0)
    builder = algorithms.NAMES[name]
    algorithm = builder(KERNEL) if name == "mini-gp-ucb" else builder(KERNEL, oversampling=20.0)
    policy = Policy(algorithm, problem.arms, rng=0)
    for _ in range(25):
        asked = policy.ask()
        policy.tell(asked, np.sin(6 * policy.arms[asked, 0]) + 0.1 * rng.standard_normal(len(asked)))
    other = np.vstack([problem.arms[:10], rng.random((50, 2))])
    rounds, (mean, std) = policy.belief.rounds, policy.belief.predict(other)
    policy.change_arms(other)
    assert policy.belief.rounds == rounds
    np.testing.assert_allclose(policy.belief.mean, mean, atol=1e-7)
    np.testing.assert_allclose(policy.belief.std, std, atol=1e-6)
    policy.save(tmp_path / "run.npz")
    again = Policy.load(tmp_path / "run.npz")
    for _ in range(5):
        asked = policy.ask()
        assert asked.max() < 60
        np.testing.assert_array_equal(again.ask(), asked)
        rewards = np.sin(6 * other[asked, 0])
        policy.tell(asked, rewards)
        again.tell(asked, rewards)


@pytest.mark.parametrize("coins", ["fresh", "kept"])
def test_a_sketch_stays_one_of_all_rewards_when_the_arms_change_in_every_round(coins):
    """New random arms in each of 50 rounds: variances within a factor 3 of the exact ones, f in the band."""
    rng = np.random.default_rng(1)
    algorithm = bkb(KERNEL, norm=2.0, noise=0.1, oversampling=8.0, coins=coins)
    arms, exact = rng.random((40, 1)), ExactGP(KERNEL, 0.01).prior(rng.random((1, 1)))
    policy = Policy(algorithm, arms, rng=0)
    centres, weights = rng.random((20, 1)), rng.standard_normal(20)
    weights *= 2.0 / math.sqrt(weights @ KERNEL(centres, centres) @ weights)
    for _ in range(50):
        arms = rng.random((40, 1))
        policy.change_arms(arms)
        (arm,) = policy.ask()
        reward = KERNEL(arms[[arm]], centres) @ weights + 0.1 * rng.standard_normal(1)
        policy.tell(arm, reward)
        exact.learn(arms[[arm]], reward)
        ratio = (policy.belief.std / exact.predict(arms)[1]) ** 2
        assert 1 / 3 <= ratio.min() <= ratio.max() <= 3
        lower, upper = algorithm.bounds(policy.belief)
        assert (lower <= KERNEL(arms, centres) @ weights).all()
        assert (KERNEL(arms, centres) @ weights <= upper).all()
    assert policy.belief.rounds == 50
    assert policy.belief.rank < 40  # of 50 distinct points


def test_new_arms_must_fit():
    policy = Policy(mini_gp_ucb(KERNEL), np.random.default_rng(0).random((5, 2)), rng=0)
    with pytest.raises(ValueError, match="new arms must have 2 columns like the old ones, got 1"):
        policy.change_arms([[0.0]])
    assert policy.arms.shape == (5, 2)


def test_arms_that_are_words():
    """A kernel on anything: points are numbers of words, and the kernel looks the words up."""
    words = ["cat", "cart", "car", "dog", "dig", "dug", "house", "mouse"]
    pairs = [{word[i : i + 2] for i in range(len(word) - 1)} for word in words]

    def shared_pairs(X, Y):
        overlap = [[len(pairs[int(i)] & pairs[int(j)]) for j in Y[:, 0]] for i in X[:, 0]]
        size = [[math.sqrt(len(pairs[int(i)]) * len(pairs[int(j)])) for j in Y[:, 0]] for i in X[:, 0]]
        return np.array(overlap) / np.array(size)

    means, rng = np.array([0.9, 0.8, 0.7, 0.1, 0.1, 0.1, 0.3, 0.3]), np.random.default_rng(0)
    for kernel in (shared_pairs, noregret.Tabular(shared_pairs(np.arange(8)[:, None], np.arange(8)[:, None]))):
        policy = Policy(mini_gp_ucb(kernel, norm=2.0), np.arange(8)[:, None], rng=0)
        while policy.belief.rounds < 400:
            asked = policy.ask()
            policy.tell(asked, means[asked] + 0.1 * rng.standard_normal(len(asked)))
        assert words[policy.best().arm] == "cat"


def test_a_batch_that_looks_at_many_arms_asks_for_the_covariance_of_its_picks_only():
    arms = np.random.default_rng(0).random((4000, 2))
    belief, asked = ExactGP(SquaredExponential(0.5), 0.04).prior(arms), []
    belief.update(np.arange(3), np.zeros(3))
    covariance = belief.covariance
    belief.covariance = lambda first, second: asked.append(len(first) * len(second)) or covariance(first, second)
    picks = list(itertools.islice(lazily(UCB(Constant(3.0)), belief), 20))
    assert sum(asked) <= 2 * len(set(picks)) * len(arms)
