"""Problems: the contract of Problem, optima of the test functions, settings of the papers, and measured data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from noregret import problems
from noregret.bandits.problems import tables
from noregret.gp.kernels import Matern, SquaredExponential
from noregret.problems import Gaussian, Pareto, Problem, Resampled, StudentT, rkhs_norm

SE, MATERN = SquaredExponential(0.2), Matern(2.5, 0.2)
MEASURED = {"light", "light-located", "light-snapshot", "intel", "stocks", "latency", "cloud"}


# The contract


def two_arms(**changes) -> Problem:
    settings = {"name": "two", "arms": [[0.0], [1.0]], "means": [0.2, 0.7], "kernel": SE, "payoff": Gaussian(0.1)}
    return Problem(**settings | changes)


def test_rewards_and_facts() -> None:
    problem = two_arms(norm=2.0)
    y = problem.rewards(np.array([0, 1, 1]), np.random.default_rng(0))
    assert y.shape == (3,)
    np.testing.assert_array_equal(y, problem.rewards(np.array([0, 1, 1]), np.random.default_rng(0)))
    assert problem.facts == pytest.approx({"norm": 2.0, "noise": 0.1, "alpha": 1.0, "moment": 0.7**2 + 0.1**2})


def test_facts_leave_out_what_is_not_known_or_not_finite() -> None:
    assert set(two_arms(payoff=Pareto(2)).facts) == {"alpha", "moment"}
    assert set(two_arms(payoff=StudentT(3)).facts) == {"noise", "alpha", "moment"}


def test_arms_and_means_cannot_be_changed() -> None:
    means = np.array([0.2, 0.7])
    problem = two_arms(means=means)
    means[0] = 9.0
    assert problem.means[0] == 0.2
    with pytest.raises(ValueError, match="read-only"):
        problem.means[0] = 1.0


def test_any_callable_is_a_kernel() -> None:
    assert two_arms(kernel=lambda X, Y: X @ Y.T).kernel.diag(np.array([[2.0]])) == [4.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": [0.0, 1.0]}, r"arms must have shape \(N, d\), got \(2,\)"),
        ({"means": [[0.2], [0.7]]}, r"means must have shape \(N,\), got \(2, 1\)"),
        ({"means": [0.2]}, "got 2 arms and 1 means"),
        ({"arms": np.empty((0, 1)), "means": []}, "got 0 arms and 0 means"),
        ({"means": [0.2, math.nan]}, "means must be finite"),
        ({"norm": 0.0}, "norm must be positive, or None if not known, got 0.0"),
        ({"payoff": 0.1}, "payoff must be a reward model such as"),
        ({"payoff": Pareto(2), "means": [-1.0, 1.0]}, "must be positive, got -1.0"),
        ({"payoff": Resampled([[1.0, 2.0]])}, "payoff.means"),
        ({"kernel": 3}, "kernel must be"),
    ],
)
def test_errors(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        two_arms(**changes)


def test_rkhs_norm_against_a_known_function() -> None:
    """f = sum of 5 kernels has norm sqrt(a'K a), and any grid that holds the centres shows it."""
    grid = np.linspace(0, 1, 21)[:, None]
    weights = np.zeros(21)
    weights[[1, 5, 9, 14, 20]] = [1.0, -2.0, 0.5, 1.0, 3.0]
    matrix = MATERN(grid, grid)
    assert rkhs_norm(matrix, matrix @ weights) == pytest.approx(math.sqrt(weights @ matrix @ weights))


# Test functions

FUNCTIONS = [
    (problems.branin, 2, 1.04739),
    (problems.rosenbrock, 2, 0.0),
    (problems.hartmann3, 3, 3.86278),
    (problems.hartmann4, 4, 3.72984),
    (problems.hartmann6, 6, 3.32237),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "dimension", "maximum"), FUNCTIONS)
def test_maximum_by_search(function, dimension: int, maximum: float) -> None:
    """The best of 8 local searches from the best of 3000 random points, to 5e-6; nothing found lies above it."""
    starts = np.random.default_rng(0).random((3000, dimension))
    starts = starts[np.argsort(-function(starts))[:8]]
    found = [minimize(lambda x: -function(x[None])[0], s, bounds=[(0, 1)] * dimension, tol=1e-14) for s in starts]
    assert max(-result.fun for result in found) == pytest.approx(maximum, abs=6e-6)
    assert max(-result.fun for result in found) == pytest.approx(problems.MAXIMA[function], abs=2e-6)


def test_known_values() -> None:
    """The three optima of Branin, its textbook value 0.397887 there, and published optima of the others."""
    optima = np.array([[-math.pi, 12.275], [math.pi, 2.275], [3 * math.pi, 2.475]])
    textbook = 0.397887  # minimum of the unscaled function; its constant term is 10, not -44.81
    scaled = -(textbook - 10 - 44.81) / 51.95
    np.testing.assert_allclose(problems.branin((optima - [-5, 0]) / 15), scaled, atol=1e-6)
    np.testing.assert_allclose(problems.rosenbrock([[0.4, 0.4], [1 / 3, 1 / 3], [1, 0]]), [0, -1, -1102581], atol=1e-9)
    assert problems.hartmann3([[0.114614, 0.555649, 0.852547]]) == pytest.approx(3.86278, abs=1e-5)
    best = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]
    assert problems.hartmann6([best]) == pytest.approx(3.32237, abs=1e-5)
    assert problems.hartmann4([[0.1873, 0.1936, 0.5576, 0.2647]]) == pytest.approx(3.72984, abs=1e-4)


def test_hartmann4_by_hand() -> None:
    """At the third centre the third term is its weight, 3; the others by the printed sums."""
    x = np.array([0.2348, 0.1451, 0.3522, 0.2883])
    first = (
        10 * (x[0] - 0.1312) ** 2 + 3 * (x[1] - 0.1696) ** 2 + 17 * (x[2] - 0.5569) ** 2 + 3.5 * (x[3] - 0.0124) ** 2
    )
    second = 0.05 * (x[0] - 0.2329) ** 2 + 10 * (x[1] - 0.4135) ** 2 + 17 * (x[2] - 0.8307) ** 2
    second += 0.1 * (x[3] - 0.3736) ** 2
    fourth = 17 * (x[0] - 0.4047) ** 2 + 8 * (x[1] - 0.8828) ** 2 + 0.05 * (x[2] - 0.8732) ** 2
    fourth += 10 * (x[3] - 0.5743) ** 2
    value = math.exp(-first) + 1.2 * math.exp(-second) + 3 + 3.2 * math.exp(-fourth)
    assert problems.hartmann4(x[None]) == pytest.approx(value)


@pytest.mark.parametrize(("function", "dimension", "maximum"), FUNCTIONS)
def test_functions_refuse_other_dimensions(function, dimension: int, maximum: float) -> None:
    with pytest.raises(ValueError, match=rf"points must have shape \(n, {dimension}\), got \(4, {dimension + 1}\)"):
        function(np.zeros((4, dimension + 1)))
    with pytest.raises(ValueError, match="points must have shape"):
        function(np.zeros(dimension))


@pytest.mark.parametrize(
    ("function", "gap"), [(problems.branin, 0.0004), (problems.hartmann4, 0.06), (problems.hartmann6, 0.25)]
)
def test_best_arm_falls_short_of_the_box(function, gap: float) -> None:
    """The mean gap over 20 draws of the arms, within 40%: regret against the best arm and the box's maximum differ."""
    gaps = [problems.MAXIMA[function] - problems.standard(function, rng=seed).means.max() for seed in range(20)]
    assert min(gaps) > 0
    assert np.mean(gaps) == pytest.approx(gap, rel=0.4)


# Synthetic problems


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kernel", [SE, MATERN], ids=repr)
def test_rkhs(kernel, seed: int) -> None:
    """B is the norm of f, which is not the printed sqrt(f'K f); the noise variance is 1% of the range."""
    problem = problems.rkhs(kernel, rng=seed)
    matrix = kernel(problem.arms, problem.arms)
    assert problem.arms.shape == (100, 1)
    assert problem.norm == pytest.approx(rkhs_norm(matrix, problem.means), rel=1e-5)
    assert math.sqrt(problem.means @ matrix @ problem.means) > 3 * problem.norm
    assert problem.payoff == Gaussian(math.sqrt(0.01 * np.ptp(problem.means)))
    assert problem.facts["noise"] == problem.payoff.sd


def test_gp_draws_have_the_kernel_s_covariance() -> None:
    """600 draws on 6 points: every entry of the covariance within 5 standard errors; B^2 has 6 degrees of freedom."""
    means, norms, moments = [], [], []
    for seed in range(600):
        problem = problems.gp_draw(MATERN, points=6, rng=seed)
        means.append(problem.means)
        norms.append(problem.norm**2)
        moments.append(np.outer(problem.means, problem.means) - MATERN(problem.arms, problem.arms))
    error = math.sqrt(2 / 600)
    assert np.abs(np.mean(moments, axis=0)).max() < 5 * error
    assert np.abs(np.mean(means, axis=0)).max() < 5 / math.sqrt(600)
    assert np.mean(norms) == pytest.approx(6, abs=5 * math.sqrt(12 / 600))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SE, MATERN], ids=repr)
def test_gp_draw_norm(kernel) -> None:
    for seed in range(3):
        problem = problems.gp_draw(kernel, rng=seed)
        assert problem.norm == pytest.approx(rkhs_norm(kernel(problem.arms, problem.arms), problem.means), rel=0.05)
        assert problem.payoff.sd**2 == pytest.approx(0.01 * np.ptp(problem.means))


@pytest.mark.parametrize("name", ["student-t", "pareto", "student-t-matern"])
def test_sums_of_kernels(name: str) -> None:
    """The largest |f| is 1, which the paper takes for B; the true norm is larger, 1.1 to 1.5 times on average."""
    norms = []
    for seed in range(40):
        problem = problems.NAMES[name](rng=seed)
        np.testing.assert_allclose(problem.arms[:, 0], np.arange(1, 101) / 100)
        assert np.abs(problem.means).max() == pytest.approx(1.0)
        norms.append(problem.norm)
    matrix = problem.kernel(problem.arms, problem.arms)
    assert problem.norm == pytest.approx(rkhs_norm(matrix, problem.means), rel=1e-4)
    assert min(norms) > 1
    assert 1.1 < np.mean(norms) < 1.5
    assert problem.paper == {"norm": 1.0}


def test_settings_of_the_heavy_tails_paper() -> None:
    student, pareto = problems.NAMES["student-t"](rng=0), problems.NAMES["pareto"](rng=0)
    assert student.facts["moment"] == pytest.approx(1 + 3)
    assert student.facts["alpha"] == 1.0
    assert (pareto.means > 0).all()
    assert pareto.facts["alpha"] == pytest.approx(0.9)
    assert pareto.facts["moment"] == pytest.approx(1 / (2**0.9 * 0.1))


@pytest.mark.parametrize(
    ("name", "shape", "lengthscale", "sd"),
    [
        ("branin", (2000, 2), 0.2, 0.2),
        ("hartmann4", (7000, 4), 1.0, 0.2),
        ("hartmann6", (20000, 6), 1.0, 0.2),
        ("rosenbrock", (200, 2), 0.2, None),
        ("hartmann3", (300, 3), 0.2, None),
    ],
)
def test_settings_of_the_test_functions(name: str, shape: tuple, lengthscale: float, sd: float | None) -> None:
    problem = problems.NAMES[name](rng=1)
    assert problem.arms.shape == shape
    assert problem.kernel == SquaredExponential(lengthscale)
    assert problem.payoff.sd == pytest.approx(sd or math.sqrt(0.01 * np.ptp(problem.means)))
    unit = 1102581 if name == "rosenbrock" else 1
    np.testing.assert_allclose(problem.means, getattr(problems, name)(problem.arms) / unit)
    assert (problem.norm is None) == (shape[0] > 1000)


def test_any_function_on_random_points() -> None:
    problem = problems.standard(lambda X: X.sum(axis=1), dimension=3, points=50, payoff=StudentT(3), rng=0)
    np.testing.assert_allclose(problem.means, problem.arms.sum(axis=1))
    assert problem.arms.shape == (50, 3)
    with pytest.raises(ValueError, match="dimension must be given"):
        problems.standard(lambda X: X.sum(axis=1))
    with pytest.raises(ValueError, match="points and dimension must be at least 1"):
        problems.rkhs(SE, points=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(problems.NAMES))
def test_every_name_builds_the_same_problem_from_the_same_seed(name: str) -> None:
    one, two, *others = (problems.NAMES[name](rng=seed) for seed in (3, np.random.default_rng(3), 4, 5, 6))
    assert isinstance(one, Problem | problems.Changing)
    np.testing.assert_array_equal(one.means, two.means)
    np.testing.assert_array_equal(one.arms, two.arms)
    fixed = name in MEASURED - {"light-snapshot", "intel"}
    assert all(np.array_equal(one.means, other.means) for other in others) == fixed
    assert {"alpha", "moment"} <= set(one.facts) <= {"norm", "noise", "alpha", "moment"}
    one = one.at(0) if isinstance(one, problems.Changing) else one
    arms = np.arange(min(200, len(one.arms)))
    assert one.rewards(arms, np.random.default_rng(0)).shape == arms.shape
    assert one.kernel(one.arms[:3], one.arms[:2]).shape == (3, 2)


# Measured data


def test_light_sensors() -> None:
    problem = problems.light_sensors()
    assert problem.means.argmax() == 3
    assert problem.means.max() == pytest.approx(945.54, abs=0.01)
    assert problem.paper == pytest.approx({"norm": 945.54, "moment": 377_421}, rel=1e-5)
    assert problem.facts["moment"] > problem.paper["moment"]
    assert problem.payoff.table.shape == (192, 41)
    eigenvalues = np.linalg.eigvalsh(problem.kernel.matrix)
    assert eigenvalues[[0, -1]] == pytest.approx([5.7e-5, 26.9], rel=0.01)
    np.testing.assert_allclose(problem.kernel.diag(problem.arms), 1.0)
    y = problem.rewards(np.full(4000, 3), np.random.default_rng(0))
    assert abs(y.mean() - 945.54) < 5 * y.std() / math.sqrt(4000)


def test_light_sensors_by_their_places() -> None:
    problem = problems.light_sensors(located=True)
    assert problem.arms.shape == (41, 2)
    np.testing.assert_allclose([problem.arms.min(axis=0), problem.arms.max(axis=0)], [[0, 0], [1, 1]])
    assert problem.kernel.lengthscale**2 == pytest.approx(0.1)
    np.testing.assert_array_equal(problem.means, problems.light_sensors().means)


def test_light_snapshot() -> None:
    problem = problems.light_snapshot(row=0)
    assert problem.means[:4] == pytest.approx([420, 1282, 1063, 1363])
    variance = np.diag(problem.kernel.matrix).mean()
    assert problem.payoff.sd**2 == pytest.approx(0.05 * variance)
    rows = {problems.light_snapshot(rng=seed).name for seed in range(5)}
    assert len(rows) > 1
    with pytest.raises(ValueError, match=r"row must be in 0\.\.191, got 192"):
        problems.light_snapshot(row=192)


@pytest.mark.slow
def test_intel_temperature() -> None:
    problem = problems.intel_temperature(row=0)
    assert len(problem.means) == 52
    assert problem.means[0] == 24.0592
    assert np.diag(problem.kernel.matrix).mean() == pytest.approx(5.90, abs=0.005)
    assert problem.payoff.sd**2 == pytest.approx(0.295, abs=0.0005)
    assert np.linalg.eigvalsh(problem.kernel.matrix)[[0, -1]] == pytest.approx([3.3e-5, 294], rel=0.01)
    rows = np.array([problems.intel_temperature(row=row).means for row in range(5, 240, 10)])
    assert rows.mean(axis=0).argmax() == 18  # m21: m5 and m15 are missing
    assert rows.mean(axis=0).max() == pytest.approx(32.59, abs=0.1)
    with pytest.raises(ValueError, match=r"row must be in 0\.\.239, got -1"):
        problems.intel_temperature(row=-1)


def test_stocks() -> None:
    problem = problems.stocks()
    assert problem.means.argmax() == 2  # BA
    assert problem.paper == pytest.approx({"norm": 237.33, "moment": 14_437.9}, rel=1e-5)
    assert problem.payoff.table.shape == (823, 29)
    assert np.linalg.eigvalsh(problem.kernel.matrix)[[0, -1]] == pytest.approx([2.2e-3, 21.4], rel=0.02)


@pytest.mark.parametrize(("node", "longest", "median"), [(29, 24.5, 0.33), (54, 52.5, 0.23)])
def test_latency(node: int, longest: float, median: float) -> None:
    problem = problems.latency(node=node)
    table = problem.payoff.table
    assert table.shape == (688, 98)
    assert -table.min() == longest
    assert -np.median(table) == pytest.approx(median)
    assert (problem.means < 0).all()
    assert problem.means.max() == pytest.approx(table.mean(axis=0).max())
    with pytest.raises(ValueError, match="node must be 29 or 54"):
        problems.latency(node=1)


def test_cloud() -> None:
    problem = problems.cloud()
    assert problem.arms.shape == (69, 3)
    assert len(np.unique(problem.arms, axis=0)) == 69
    assert np.median(problem.means) == pytest.approx(-1)
    assert len(problems.cloud(workload="regression", framework="spark1.5", size="bigdata").arms) == 47
    with pytest.raises(ValueError, match="must be one of"):
        problems.cloud(workload="chess")


def test_a_folder_of_one_s_own_comes_before_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stocks_dow29.csv").write_text("Date,A,B\n2020-01-01,1,5\n2020-01-02,3,8\n2020-01-03,2,2\n")
    np.testing.assert_allclose(problems.stocks(tmp_path).means, [2, 5])
    monkeypatch.setenv("NOREGRET_DATA", str(tmp_path))
    np.testing.assert_allclose(problems.stocks().means, [2, 5])
    monkeypatch.setenv("NOREGRET_DATA", "")
    assert len(problems.stocks().means) == 29


def test_missing_data_says_which_file_and_how_to_name_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match=r"light_test\.csv is not in .*NOREGRET_DATA"):
        problems.light_sensors(tmp_path)
    monkeypatch.setenv("NOREGRET_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"cloud_runtimes\.csv is not in .* or leave both out"):
        problems.cloud()


def test_the_page_on_the_data_names_every_file() -> None:
    folder = Path(tables.__file__).parent / "data"
    page = (folder / "README.md").read_text()
    files = sorted(path.name for path in folder.glob("*.csv.gz"))
    assert len(files) == 8
    assert all(f"`{name}`" in page for name in files)
