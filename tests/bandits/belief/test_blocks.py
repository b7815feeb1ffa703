"""Arms on a cluster: the same choices as NumPy's, workers that die, no implicit copies, clear errors."""

import math

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from tests.choices import ARMS, MEANS, SE, build, played
from tests.conftest import needs

from noregret import (
    UCB,
    Batched,
    Constant,
    ExactGP,
    ExpectedImprovement,
    Linear,
    Matern,
    MaxVariance,
    Nystrom,
    Policy,
    Repeated,
    Sequential,
    SparseGP,
    Thompson,
    Uniform,
    run,
)
from noregret.algorithms import NAMES
from noregret.bandits.belief.cluster import Blocks
from noregret.bandits.decision.rules import ProbabilityOfImprovement

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:the rewards contradict", "ignore:no function fits"),
]
EXACT = ExactGP(SE, 0.01)


@pytest.fixture(scope="module", autouse=True)
def client():
    """Two workers, as threads of this process."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def blocks(arms=ARMS, rows=20):
    return da.from_array(arms, chunks=(rows, -1))


@pytest.fixture
def counted(monkeypatch):
    """Requests that were sent to all arms."""
    asked, ask = [], Blocks.ask

    def counting(self, numbers, *given):
        asked.append(numbers)
        return ask(self, numbers, *given)

    monkeypatch.setattr(Blocks, "ask", counting)
    return asked


def check_same(algorithm, rounds=20):
    asked, policy = played(algorithm, ARMS, rounds)
    there, twin = played(algorithm, blocks(), rounds)
    assert there == asked
    assert tuple(twin.best()) == pytest.approx(tuple(policy.best()), abs=1e-8)
    np.testing.assert_allclose(np.asarray(twin.belief.mean), policy.belief.mean, atol=1e-8)
    np.testing.assert_array_equal(twin.active, policy.active)


def test_a_tree_of_cells_says_that_it_needs_all_arms_in_one_place():
    with pytest.raises(ValueError, match=r"needs all arms in one place, .* on a cluster: pass arms\.compute\(\) if"):
        Policy(build("gp-threds"), blocks())
    Policy(build("gp-threds"), blocks().compute()).ask()


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [ExpectedImprovement(0.01), ProbabilityOfImprovement(), MaxVariance(), Uniform()], ids=str
)
def test_rules_do_not_know_where_arms_live(rule):
    check_same(Sequential(EXACT, rule), 15)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [UCB(Constant(2.0)), ExpectedImprovement(0.01), ProbabilityOfImprovement(), MaxVariance()], ids=str
)
def test_blocks_may_be_tensors_where_their_workers_are(rule):
    tensor = dask.delayed(needs("torch").from_numpy)
    parts = [da.from_delayed(tensor(ARMS[start : start + 20]), (20, 2), float) for start in (0, 20, 40)]
    algorithm = Sequential(EXACT, rule)
    asked, policy = played(algorithm, ARMS, 15)
    there, twin = played(algorithm, da.concatenate(parts), 15)
    assert there == asked
    assert tuple(twin.best()) == pytest.approx(tuple(policy.best()), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [UCB(Constant(2.0)), Thompson(Constant(1.0))], ids=str)
def test_loops_do_not_know_where_arms_live(rule):
    for algorithm in (Sequential(EXACT, rule), Repeated(EXACT, rule, 1.5), Batched(EXACT, rule, 1.5, size=4)):
        check_same(algorithm, 15)


def test_a_sketch_shares_its_coins_with_whatever_else_is_random():
    check_same(Sequential(SparseGP(Nystrom(SE, 5.0), 0.01), Uniform()))
    check_same(Sequential(SparseGP(Nystrom(SE, 5.0), 0.01), Thompson(Constant(1.0))))


def test_draws_on_many_arms_are_the_same(monkeypatch):
    """Arms are pulled again and again, so that rows are pooled here and not there."""
    for name in ("exact.FEW_ARMS", "cluster.ROOT_ARMS", "draws.ROOT_ARMS"):
        monkeypatch.setattr(f"noregret.bandits.belief.{name}", 10)
    check_same(Sequential(ExactGP(Matern(1.5, 0.3), 0.01), Thompson(Constant(1.0)), times=2))
    belief = ExactGP(Linear(1.0), 0.01).prior(blocks())
    with pytest.raises(ValueError, match=r"spectral density is needed to draw on \d+ arms .* or another rule"):
        belief.sample(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"draws on \d+ arms of a cluster need ExactGP, got SparseGP"):
        SparseGP(Nystrom(SE, 5.0), 0.01).prior(blocks()).sample(np.random.default_rng(0))


def test_a_round_is_one_question(counted):
    asked, _ = played(Sequential(EXACT, UCB(Constant(2.0))), blocks(), 20)
    rounds = [numbers for numbers in counted if numbers is not None]
    assert len(rounds) == len(asked) + 2  # one before the first, and one for the reward known at the start


def learnt(arms):
    """A belief that has seen single pulls, repeats, a block, a plan, points that are not arms, and a refactoring."""
    belief, rng = ExactGP(Matern(2.5, 0.3), 0.01).prior(arms), np.random.default_rng(2)
    for arm in (3, 3, 5, 3, *rng.integers(8, size=60)):
        belief.update(arm, MEANS[arm])
    belief.update([7, 58, 9, 7], MEANS[[7, 58, 9, 7]], noise=[1.0, 2.0, 3.0, 4.0])
    belief.update([20, 21])
    belief.learn(np.array([[0.1, 0.2], [0.3, 0.4], [0.1, 0.2]]), [0.5, 0.6, 0.7])
    belief.learn(np.array([[0.9, 0.8]]))
    belief.learn(ARMS[11], 0.3)
    return belief


def check_alike(there, here):
    np.testing.assert_allclose(np.asarray(there.mean), np.asarray(here.mean), atol=1e-8)
    np.testing.assert_allclose(np.asarray(there.std), np.asarray(here.std), atol=1e-8)
    for name in ("rounds", "rank", "information_gain", "effective_dimension", "misfit", "claimed_gain", "ridge"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-7)


def test_a_round_is_a_message_and_no_task(client, monkeypatch):
    policy = Policy(build("igp-ucb"), blocks(), rng=0)
    policy.tell(policy.ask(), [0.0])
    monkeypatch.setattr(client, "submit", None)
    for _ in range(5):
        policy.tell(policy.ask(), [0.0])


def test_a_section_that_is_not_where_it_was_is_found_again(monkeypatch):
    made, init = [], Blocks.__init__

    def noted(self, *given):
        init(self, *given)
        made.append(self)

    def astray(done):
        if done == 6:
            made[0]._workers.reverse()

    monkeypatch.setattr(Blocks, "__init__", noted)
    asked, _ = played(build("igp-ucb"), ARMS, 12)
    there, _ = played(build("igp-ucb"), blocks(rows=30), 12, astray)
    assert there == asked
    assert len(made[0]._workers) == 2


def test_a_posterior_knows_the_same():
    here, there = learnt(ARMS), learnt(blocks())
    points = np.concatenate([np.random.default_rng(3).random((7, 2)), ARMS[:5]])
    check_alike(there, here)
    check_alike(there.copy(), here)
    assert there.pulled.tolist() == here.pulled.tolist()
    moved = here.at(points)
    for other in (there.at(points), there.at(blocks(points, 5)), here.at(blocks(points, 5))):
        check_alike(other, moved)
        assert sorted(other.pulled) == sorted(moved.pulled)
    assert isinstance(there.at(points).mean, np.ndarray)
    some = np.array([58, 3, 17])
    np.testing.assert_allclose(there.covariance(some, np.arange(60)), here.covariance(some, np.arange(60)), atol=1e-9)
    for found, expected in zip(there.predict(points), here.predict(points), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_copy_learns_by_itself():
    belief = learnt(blocks())
    twin, before = belief.copy(), np.asarray(belief.mean)
    twin.update(40, 5.0)
    assert abs(float(twin.mean[40]) - before[40]) > 1
    np.testing.assert_array_equal(np.asarray(belief.mean), before)


def test_numbers_of_all_arms_answer_like_an_array():
    here, there = learnt(ARMS), learnt(blocks())
    mean, std, noise = there.mean, there.std, np.random.default_rng(0).random(60)
    scores, expected = 2 * mean - std * noise + np.log(std), 2 * here.mean - here.std * noise + np.log(here.std)
    np.testing.assert_allclose(np.asarray(scores), expected, atol=1e-7)
    assert (scores.argmax(), scores.shape, len(scores)) == (expected.argmax(), (60,), 60)
    assert (scores.max(), scores.min()) == pytest.approx((expected.max(), expected.min()), abs=1e-7)
    np.testing.assert_allclose(scores[[41, 3, 41, 20]], expected[[41, 3, 41, 20]], atol=1e-7)
    np.testing.assert_allclose(scores[18:23], expected[18:23], atol=1e-7)
    assert scores[-1] == pytest.approx(expected[-1], abs=1e-7)
    assert scores[:60] is scores
    assert (mean > 10).any() is False
    assert [place.tolist() for place in (scores.largest(5)[0],)] == [np.argsort(-expected)[:5].tolist()]
    assert (0 * mean).argmax() == 0
    assert np.log(-mean).argmax() == int(np.argmax(here.mean > 0))  # the first nan
    with pytest.raises(ValueError, match="different arms"):
        mean + learnt(blocks()).mean
    there.update(3, 1.0)
    with pytest.raises(ValueError, match="was updated since: read its mean and std before the next update"):
        scores.max()


def test_answers_out_of_order_lead_to_the_same_arms():
    algorithm, asked = Batched(EXACT, UCB(Constant(2.0)), size=3), []
    for arms in (ARMS, blocks()):
        policy = Policy(algorithm, arms, rng=0)
        policy.tell([7, 30], [0.3, 0.1], noise_factor=[1.0, 0.25])
        first = policy.ask(4)
        policy.tell(first[[2, 0]], MEANS[first[[2, 0]]])
        policy.forget(first[1])
        second = policy.ask(2)
        policy.tell(second, MEANS[second])
        asked.append([*first, *second, *policy.ask(), policy.best().arm])
    assert asked[0] == asked[1]


def test_arms_that_change_choose_the_same():
    here, there = (Policy(NAMES["igp-ucb"](SE, noise=0.1), arms, rng=0) for arms in (ARMS, blocks()))
    rng = np.random.default_rng(4)
    for _ in range(3):
        arms = np.concatenate([rng.random((20, 2)), ARMS[:5]])
        here.change_arms(arms)
        there.change_arms(blocks(arms, 10))
        assert here.ask().tolist() == there.ask().tolist()
        for policy in (here, there):
            policy.tell(policy.ask(), SE(arms[policy.ask()], ARMS[:1])[:, 0])


def test_a_saved_policy_goes_on_the_same_on_arms_that_are_given_again(tmp_path):
    path, algorithm = tmp_path / "run.npz", NAMES["igp-ucb"](SE, noise=0.1)
    _, policy = played(algorithm, blocks(), 10)
    policy.save(path)
    for arms in (blocks(rows=7), ARMS):
        loaded = Policy.load(path, arms=arms)
        assert loaded.ask().tolist() == policy.ask().tolist()
        assert loaded.best().arm == policy.best().arm
    with pytest.raises(ValueError, match=r"were on a cluster: pass Policy\.load\(path, arms=arms\)"):
        Policy.load(path)
    with pytest.raises(ValueError, match=r"was saved with arms of shape \(60, 2\), got \(59, 2\)"):
        Policy.load(path, arms=blocks(ARMS[1:]))
    policy.change_arms(blocks(ARMS[::-1]))
    with pytest.raises(ValueError, match="changed to others on a cluster cannot be saved"):
        policy.save(path)
    _, policy = played(algorithm, ARMS, 10)
    policy.save(path)
    assert Policy.load(path, arms=blocks()).ask().tolist() == policy.ask().tolist()


def test_a_run_is_the_same():
    class World:
        means = MEANS

        def __init__(self, arms):
            self.arms = arms

        def rewards(self, arms, rng):
            return MEANS[arms] + 0.1 * rng.standard_normal(len(arms))

    here, there = (run(build("reds"), World(arms), 60, rng=0) for arms in (ARMS, blocks()))
    assert there.arms.tolist() == here.arms.tolist()
    np.testing.assert_array_equal(there.simple_regret, here.simple_regret)


def test_blocks_of_any_making_will_do():
    """Delayed blocks, separate columns, whole numbers, float32, an empty block: only the rows matter."""
    parts = [da.from_delayed(dask.delayed(ARMS[i : i + 15]), (15, 2), float) for i in range(0, 60, 15)]
    empty = da.zeros((0, 2), chunks=(1, 2))
    for arms in (da.concatenate([*parts, empty]), da.from_array(ARMS, chunks=(13, 1))):
        assert played(build("igp-ucb"), arms, 5)[0] == played(build("igp-ucb"), ARMS, 5)[0]
    for dtype in (np.float32, np.int64):
        arms = (ARMS * 100).astype(dtype)
        policy = Policy(build("igp-ucb"), blocks(arms))
        np.testing.assert_array_equal(policy.arms.rows(np.array([59, 0, 31])), arms[[59, 0, 31]].astype(float))


def without_a_number(row):
    arms = ARMS.copy()
    arms[row, 1] = math.nan
    return blocks(arms)


def narrow_in_one_block():
    return da.concatenate([blocks(ARMS[:20]), da.from_delayed(dask.delayed(ARMS[:20, :1]), (20, 2), float)])


@pytest.mark.parametrize(
    ("arms", "message", "mended"),
    [
        (lambda: without_a_number(43), r"^arm 43 is not finite: drop it or fill its missing values", None),
        (
            narrow_in_one_block,
            r"from row 20 on has shape \(20, 1\), but was declared as \(20, 2\): fix",
            None,
        ),
        (
            lambda: blocks()[blocks()[:, 0] > 0.5],
            r"blocks of known sizes: pass arms\.compute_chunk_sizes\(\), or, of a data frame",
            lambda arms: arms.compute_chunk_sizes(),
        ),
        (
            lambda: blocks().astype(np.float16),
            r"float32 or whole numbers, got float16: pass arms\.astype\(float\) if",
            lambda arms: arms.astype(float),
        ),
        (lambda: blocks().astype(complex), "got complex128", None),
        (lambda: blocks()[:, 0], r"must be an \(N, d\) array, got shape \(60,\): .*\[:, None\]", lambda a: a[:, None]),
        (lambda: blocks()[:0], r"must be an \(N, d\) array, got shape \(0, 2\)", None),
    ],
    ids=["nan", "width", "unknown", "float16", "complex", "shape", "none"],
)
def test_bad_arms_are_refused_before_the_first_round(arms, message, mended):
    algorithm = build("igp-ucb")
    with pytest.raises(ValueError, match=message):
        Policy(algorithm, arms())
    if mended:
        Policy(algorithm, mended(arms())).ask()


def test_bad_arms_and_rewards_change_nothing():
    _, policy = played(build("igp-ucb"), blocks(), 5)
    before = policy.ask().tolist()
    with pytest.raises(ValueError, match="arm 43 is not finite"):
        policy.change_arms(without_a_number(43))
    with pytest.raises(ValueError, match="reward of arm 3 is nan"):
        policy.tell([5, 3], [0.1, math.nan])
    with pytest.raises(ValueError, match=r"arms must be in 0\.\.59, got 60"):
        policy.belief.update(60, 1.0)
    assert policy.ask().tolist() == before
    assert policy.belief.rounds == 6


class Brittle:
    """A kernel that fails for one pair of points, the second of which is on the second worker."""

    broken = False

    def __call__(self, X, Y):
        if Brittle.broken and len(X) == 1 and (ARMS[50] == Y).all(axis=1).any():
            raise ZeroDivisionError("no kernel today")
        return SE(X, Y)


def test_a_worker_that_fails_leaves_the_policy_as_it_was(monkeypatch):
    policy = Policy(Sequential(ExactGP(Brittle(), 0.01), UCB(Constant(2.0))), blocks(rows=30), rng=0)
    policy.tell([7, 20], [0.3, 0.1])
    before = policy.ask().tolist()
    monkeypatch.setattr(Brittle, "broken", True)
    with pytest.raises(ZeroDivisionError, match="no kernel today"):
        policy.tell(before, [0.5])
    monkeypatch.undo()
    assert policy.ask().tolist() == before
    policy.tell(before, [0.5])
    assert policy.belief.rounds == 3


def test_a_cluster_without_workers_is_refused():
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Client(empty, set_as_default=False) as client,
        client.as_current(),
    ):
        with pytest.raises(ValueError, match=r"has no workers: start some, and client\.wait_for_workers\(1\)"):
            Policy(build("igp-ucb"), blocks())
        empty.scale(1)
        client.wait_for_workers(1)
        Policy(build("igp-ucb"), blocks()).ask()
