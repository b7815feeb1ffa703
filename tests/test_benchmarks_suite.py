import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the benchmarks are no part of the package

from benchmarks.development.noises import NOISES, named  # noqa: E402
from benchmarks.development.playing import Reading, Run, play  # noqa: E402
from benchmarks.development.problems import GROUPS, problem, random_params  # noqa: E402
from benchmarks.development.tables import table  # noqa: E402
from benchmarks.development.trees import Kept, Tree  # noqa: E402

QUICK = [name for names in GROUPS.values() for name in names if not name.startswith(("random", "bumps", "hidden30"))]


@pytest.mark.parametrize("name", QUICK)
def test_random_params_have_a_mean_regret_of_one_and_none_is_better_than_the_best(name):
    place = problem(name)
    regrets = np.array([place.regret(params) for params in random_params(place.space, 2000, np.random.default_rng(5))])
    assert regrets.min() > -1e-9
    assert abs(regrets.mean() - 1) < 5 * regrets.std() / np.sqrt(2000)


def test_at_least_ten_problems_have_many_hills_in_few_dimensions():
    assert len(GROUPS["hills"]) >= 10
    assert {len(problem(name).space) for name in GROUPS["hills"] if name in QUICK} == {2, 3, 4, 5}


@pytest.mark.parametrize("noise", [noise for noise in NOISES if noise != "student-1.5"])
def test_measurements_have_the_expected_mean(noise):
    place, rng = problem("waves3"), np.random.default_rng(0)
    drawn = [NOISES[noise].measured(place, 0.3, rng) for _ in range(20_000)]
    values = np.array([value for value in drawn if value is not None])
    error = values.std() / np.sqrt(len(values)) + 1e-9
    assert abs(values.mean() - NOISES[noise].expected(place, 0.3)) < 4 * error


def test_timings_are_positive_and_never_shorter_than_they_are():
    place, rng = problem("waves3"), np.random.default_rng(0)
    assert min(NOISES["timings"].measured(place, 0.0, rng) for _ in range(1000)) >= 0.25


def test_noises_are_named_by_their_beginnings():
    assert named(["student", "none"]) == ["none", "student-3", "student-1.5"]
    with pytest.raises(ValueError, match=r"begin like one of none, gaussian-0.02.*got heavy"):
        named(["heavy"])


@pytest.mark.parametrize("name", ["waves3", "training", "pairs"])
def test_a_run_is_read_at_every_budget(name):
    early, late = play(Run(name, "failures", 0), [4, 12])
    assert (early.evaluations, late.evaluations) == (4, 12)
    assert min(early.recommended, late.recommended) >= 0
    assert play(Run(name, "failures", 0), [12])[0][1:4] == late[1:4]


def test_two_trees_are_told_apart_and_what_was_run_is_kept(tmp_path):
    other = tmp_path / "src"
    shutil.copytree(ROOT / "src" / "noregret", other / "noregret")
    with (other / "noregret" / "optimizer" / "optimizer.py").open("a", encoding="utf-8") as file:
        file.write("\n\nOptimizer.best = lambda self: self.predict({'x0': 0.0, 'x1': 0.0})\n")
    kept, runs = Kept(tmp_path / "kept", (15,)), [Run("camel", "gaussian-0.02", seed) for seed in (0, 1)]
    ours, theirs = (kept.of(Tree(source), runs, processes=1) for source in (ROOT / "src", other))
    assert all(ours[run][0].recommended < theirs[run][0].recommended for run in runs)
    (file,) = (tmp_path / "kept").glob(f"{Tree(other).digest}/15/camel.gaussian-0.02.1.json")
    file.write_text(json.dumps([[15, 0.7, 0.8, True, 1.0]]))
    assert kept.of(Tree(other), runs, processes=1)[runs[1]] == [Reading(15, 0.7, 0.8, True, 1.0)]


def test_a_folder_without_the_package_is_no_tree(tmp_path):
    with pytest.raises(ValueError, match="name its src folder"):
        Tree(tmp_path)


def test_differences_are_paired():
    runs = [Run("camel", "spikes", seed) for seed in range(3)]
    other = {run: [Reading(50, 0.1 * run.seed, 0.5, True, 1.0)] for run in runs}
    this = {run: [Reading(50, 0.1 * run.seed - 0.02, 0.5, True, 1.0)] for run in runs}
    row = table(this, other, lambda run: run.noise, "noise").splitlines()[2]
    assert row.startswith(
        "| spikes | 50 | 3 | 0.080, 0.100, -0.020 ± 0.000 | 0.500, 0.500, +0.000 ± 0.000 | 0.667, 0.667"
    )
