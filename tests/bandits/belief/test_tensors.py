"""Arms that are a torch tensor: the same choices as NumPy's, no implicit copies to the host, clear errors."""

import math

import numpy as np
import pytest
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
    Policy,
    QuadratureFourier,
    RandomFourier,
    RationalQuadratic,
    Repeated,
    Sequential,
    SparseGP,
    SquaredExponential,
    Tabular,
    Thompson,
    TruncatedDirections,
    Uniform,
)
from noregret.algorithms import NAMES
from noregret.bandits.decision.rules import ProbabilityOfImprovement
from noregret.gp import arrays
from noregret.gp.arrays import numpy_of

torch = needs("torch")
ON_NYSTROM = {"ata-gp-ucb", "mom-gp-ucb", "hvt-ucb", "bkb", "bbkb", "mini-bkb", "ada-bkb"}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """CPU tensors that behave like those of another device: no implicit conversion to an array."""

    def refuse(self, *given):
        raise TypeError("a tensor was copied to the host unasked")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)


def check_same(algorithm, arms=ARMS):
    asked, policy = played(algorithm, arms)
    there, twin = played(algorithm, torch.tensor(arms))
    assert there == asked
    assert torch.is_tensor(twin.arms)
    assert tuple(twin.best()) == pytest.approx(tuple(policy.best()), abs=1e-8)
    np.testing.assert_allclose(numpy_of(twin.belief.mean), policy.belief.mean, atol=1e-8)
    np.testing.assert_array_equal(twin.active, policy.active)


@pytest.mark.parametrize("name", sorted(ON_NYSTROM))
def test_algorithms_on_nystrom_features_say_that_they_cannot(name):
    with pytest.raises(ValueError, match=r"^Nystrom features need NumPy arms, got a tensor: pass arms\.cpu\(\)"):
        Policy(build(name), torch.tensor(ARMS), rng=0)
    Policy(build(name), torch.tensor(ARMS).cpu().numpy(), rng=0)


@pytest.mark.parametrize("name", ["catoni-reds", "catoni-bpe"])
def test_catonis_mean_says_that_it_cannot(name):
    with pytest.raises(ValueError, match=r"^arms must be a NumPy array for Catoni's mean, got a tensor"):
        Policy(build(name), torch.tensor(ARMS), rng=0).ask()


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        UCB(Constant(2.0)),
        Thompson(Constant(1.0)),
        ExpectedImprovement(0.01),
        ProbabilityOfImprovement(),
        MaxVariance(),
        Uniform(),
    ],
    ids=str,
)
def test_rules_and_loops_do_not_know_where_arms_live(rule):
    model = ExactGP(SE, 0.01)
    check_same(Sequential(model, rule))
    check_same(Repeated(model, rule, 1.5))
    check_same(Batched(model, rule, 1.5))


@pytest.mark.slow
@pytest.mark.parametrize("features", [RandomFourier(SE, 30), QuadratureFourier(SE, 16)], ids=str)
def test_fourier_features_choose_the_same(features):
    check_same(Sequential(SparseGP(features, 0.01), UCB(Constant(2.0))))
    check_same(Sequential(SparseGP(features, 0.01, TruncatedDirections(Constant(2.0))), UCB(Constant(2.0))))
    check_same(Batched(SparseGP(features, 0.01), Thompson(Constant(1.0)), 1.5))
    here, there = (SparseGP(features, 0.01).prior(arms) for arms in (ARMS, torch.tensor(ARMS)))
    for belief in (here, there):
        belief.update([1, 2, 3, 1], [0.1, 0.2, 0.3, 0.4])
        belief.learn(np.array([[0.25, 0.5], [0.125, 0.5]]), [0.5, 1.0])
    moved = [belief.at(points) for belief, points in ((here, ARMS[::4] / 2), (there, torch.tensor(ARMS[::4] / 2)))]
    for one, other in ((here, there), moved):
        np.testing.assert_allclose(numpy_of(other.mean), one.mean, atol=1e-8)
        np.testing.assert_allclose(numpy_of(other.std), one.std, atol=1e-6)
    np.testing.assert_allclose(numpy_of(there.predict(torch.tensor(ARMS))[0]), here.predict(ARMS)[0], atol=1e-8)


def test_draws_on_many_arms_are_the_same(monkeypatch):
    monkeypatch.setattr("noregret.bandits.belief.exact.FEW_ARMS", 10)
    check_same(Sequential(ExactGP(Matern(1.5, 0.3), 0.01), Thompson(Constant(1.0))))


@pytest.mark.parametrize(
    "kernel",
    [
        SE,
        SquaredExponential((0.3, 0.5)),
        Matern(0.5, 0.3),
        Matern(1.5, (0.3, 0.6)),
        2.0 * Matern(2.5, 0.3) + Linear(0.5) * SE,
        RationalQuadratic(1.5, 0.3),
    ],
    ids=str,
)
def test_kernels_are_the_same(kernel):
    there = torch.tensor(ARMS)
    np.testing.assert_allclose(numpy_of(kernel(ARMS[:9], there)), kernel(ARMS[:9], ARMS), rtol=1e-13)
    np.testing.assert_allclose(numpy_of(kernel(there[:9], there)), kernel(ARMS[:9], ARMS), rtol=1e-13)
    np.testing.assert_allclose(numpy_of(kernel.diag(there)), kernel.diag(ARMS), rtol=1e-13)


@pytest.mark.parametrize(
    "kernel", [Matern(2.0, 0.3), Tabular(np.eye(60)), lambda X, Y: SE(X, Y), SE + Matern(2.0, 1.0)]
)
def test_kernels_that_need_numpy_say_so_before_the_first_round(kernel):
    message = r"works on NumPy arms only, got a tensor: .*pass arms\.cpu\(\)\.numpy\(\)$"
    with pytest.raises(ValueError, match=message):
        ExactGP(kernel, 0.01).prior(torch.arange(60.0)[:, None])
    ExactGP(kernel, 0.01).prior(torch.arange(60.0)[:, None].cpu().numpy())


def learnt(arms):
    """A belief that has seen single pulls, repeats, a block, a plan, points that are not arms, and a refactoring."""
    belief, rng = ExactGP(Matern(2.5, 0.3), 0.01).prior(arms), np.random.default_rng(2)
    for arm in (3, 3, 5, 3, *rng.integers(8, size=60)):
        belief.update(arm, MEANS[arm])
    belief.update([7, 8, 9, 7], MEANS[[7, 8, 9, 7]], noise=[1.0, 2.0, 3.0, 4.0])
    belief.update([20, 21])
    belief.learn(np.array([[0.1, 0.2], [0.3, 0.4], [0.1, 0.2]]), [0.5, 0.6, 0.7])
    belief.learn(ARMS[11], 0.3)
    return belief


def test_a_posterior_knows_the_same():
    here, there = learnt(ARMS), learnt(torch.tensor(ARMS))
    points = np.random.default_rng(3).random((7, 2))
    moved = [here.at(points), there.at(torch.tensor(points)), there.at(points)]
    for one, other in [(here, there), (here, there.copy()), (moved[0], moved[1]), (moved[0], moved[2])]:
        np.testing.assert_allclose(numpy_of(other.mean), one.mean, atol=1e-9)
        np.testing.assert_allclose(numpy_of(other.std), one.std, atol=1e-9)
        for name in ("rounds", "rank", "information_gain", "effective_dimension", "misfit", "claimed_gain", "ridge"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-8)
    assert there.pulled.tolist() == here.pulled.tolist()
    assert isinstance(moved[2].mean, np.ndarray)
    np.testing.assert_allclose(
        there.covariance(np.arange(3), np.arange(60)), here.covariance(np.arange(3), np.arange(60)), atol=1e-9
    )
    for given in (points, torch.tensor(points)):
        mean, std = there.predict(given)
        assert torch.is_tensor(mean) == torch.is_tensor(given)
        np.testing.assert_allclose(numpy_of(mean), here.predict(points)[0], atol=1e-9)
        np.testing.assert_allclose(numpy_of(std), here.predict(points)[1], atol=1e-7)


def test_arms_that_change_every_round_choose_the_same():
    algorithm, rng = NAMES["igp-ucb"](SE, noise=0.1), np.random.default_rng(4)
    here, there = (Policy(algorithm, arms, rng=0) for arms in (ARMS, torch.tensor(ARMS)))
    for _ in range(20):
        arms = np.concatenate([rng.random((20, 2)), ARMS[:5]])
        here.change_arms(arms)
        there.change_arms(torch.tensor(arms))
        assert here.ask().tolist() == there.ask().tolist()
        for policy in (here, there):
            policy.tell(policy.ask(), SE(arms[policy.ask()], ARMS[:1])[:, 0])


def test_a_saved_policy_comes_back_with_numpy_arms_and_goes_on_the_same(tmp_path):
    _, policy = played(NAMES["igp-ucb"](SE, noise=0.1), torch.tensor(ARMS), 20)
    policy.save(tmp_path / "run.npz")
    loaded = Policy.load(tmp_path / "run.npz")
    assert isinstance(loaded.arms, np.ndarray)
    assert loaded.ask().tolist() == policy.ask().tolist()
    loaded.change_arms(torch.tensor(loaded.arms))
    assert torch.is_tensor(loaded.belief.mean)
    assert loaded.ask().tolist() == policy.ask().tolist()


def test_float32_is_taken_as_float64_and_the_tensor_given_stays_as_it_was():
    given = torch.tensor(ARMS, dtype=torch.float32)
    policy = Policy(NAMES["igp-ucb"](SE, noise=0.1), given, rng=0)
    assert (policy.arms.dtype, policy.belief.mean.dtype) == (torch.float64, torch.float64)
    given[:] = 0
    assert policy.arms.abs().sum() > 1


@pytest.mark.parametrize(
    ("tensor", "message", "mended"),
    [
        (
            torch.tensor(ARMS, dtype=torch.float16),
            r"float32 or whole numbers, got torch\.float16: pass arms\.double\(\)",
            lambda x: x.double(),
        ),
        (torch.tensor(ARMS, dtype=torch.complex128), r"got torch\.complex128", None),
        (
            torch.tensor(ARMS, requires_grad=True),
            r"must not require grad, .*: pass arms\.detach\(\)$",
            lambda x: x.detach(),
        ),
        (torch.tensor([[0.1], [math.nan]]), r"^arm 1 is not finite: drop it or fill", None),
        (
            torch.tensor([0.1, 0.2]),
            r"must be an \(N, d\) array, got shape \(2,\): .*numbers\[:, None\]",
            lambda x: x[:, None],
        ),
    ],
    ids=["float16", "complex", "grad", "nan", "shape"],
)
def test_bad_tensors_are_refused_before_the_first_round(tensor, message, mended):
    algorithm = NAMES["igp-ucb"](SE, noise=0.1)
    with pytest.raises(ValueError, match=message):
        Policy(algorithm, tensor, rng=0)
    if mended:
        Policy(algorithm, mended(tensor), rng=0).ask()


class OutOfMemoryError(RuntimeError):
    """Errors of torch, by name."""


def test_a_device_without_room_says_how_many_arms_fit(monkeypatch):
    belief = ExactGP(SE, 0.01).prior(torch.tensor(ARMS))
    for arm in range(40):
        belief.update(arm, 1.0)
    monkeypatch.setattr(arrays, "device_memory", lambda device: 84 * 8 * 1000)

    def full(*given):
        raise OutOfMemoryError("no room")

    monkeypatch.setattr("noregret.bandits.belief.factor.KernelColumns.of_one", full)
    with pytest.raises(MemoryError, match=r"^60 arms with 72 rows do not fit on cpu: about 1,000 arms would"):
        belief.update(50, 1.0)
    assert (belief.rounds, belief.rank) == (40, 40)
    monkeypatch.undo()
    belief.update(50, 1.0)
    monkeypatch.setattr("noregret.bandits.belief.exact.Conditioning", full)
    monkeypatch.setattr(arrays, "device_memory", lambda device: 44 * 8 * 7)
    with pytest.raises(MemoryError, match=r"^60 arms with 32 rows do not fit on cpu: about 7 arms would"):
        ExactGP(SE, 0.01).prior(torch.tensor(ARMS))
