"""A strategy of Kernel Tuner, in its simulation mode: results come from a cache file, so no GPU is needed."""

import json
import random
from itertools import product

import numpy as np
import pytest
from benchmarks.judges.methods import kernel_cache
from benchmarks.judges.problems import Kernel
from tests.conftest import needs

kernel_tuner = needs("kernel_tuner")
strategies = needs("noregret.integrations.kernel_tuner")

SPACE = {
    "block_size_x": [16, 32, 64, 128, 256],
    "tile": [1, 2, 3, 4, 5, 6],
    "layout": ["rows", "columns"],
    "block_size_y": [1],
}
RESTRICTIONS = ["block_size_x * tile <= 768"]
COSTS = {"compile_time": 100.0, "verification_time": 0.0, "benchmark_time": 50.0}


def milliseconds(block, tile, layout, _):
    """Time of a configuration, the least at (128, 4, "columns"); None if it does not run."""
    if tile == 6 and layout == "rows":
        return None
    return 1 + abs(block / 128 - 1) + 0.2 * abs(tile - 4) + 0.5 * (layout == "rows")


@pytest.fixture
def cache(tmp_path):
    measured = {}
    for config in product(*SPACE.values()):
        time = milliseconds(*config)
        outcome = {"time": "RuntimeFailedConfig"} if time is None else {"time": time, "speed": 1 / time}
        measured[",".join(map(str, config))] = dict(zip(SPACE, config, strict=True)) | COSTS | outcome
    path = tmp_path / "cache.json"
    about = {"device_name": "none", "kernel_name": "kernel", "problem_size": [1], "objective": "time"}
    path.write_text(json.dumps(about | {"tune_params_keys": list(SPACE), "tune_params": SPACE, "cache": measured}))
    return path


@pytest.fixture
def tune(cache):
    def run(strategy, seed=0, restrictions=RESTRICTIONS, space=SPACE, objective="time", **options):
        two = isinstance(objective, list)
        return kernel_tuner.tune_kernel(
            "kernel",
            "",
            1,
            [],
            space,
            restrictions=restrictions,
            strategy=strategy,
            strategy_options=options,
            cache=str(cache),
            simulation_mode=True,
            lang="C",
            quiet=True,
            objective=objective,
            objective_higher_is_better=[False, True] if two else objective == "speed",
            seed=seed,
        )

    return run


def configs(results):
    return [tuple(result[name] for name in SPACE) for result in results]


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["time", "speed"])
def test_the_best_configuration_is_found_and_recommended(tune, objective):
    strategy = strategies.NoRegretStrategy()
    results, env = tune(strategy, max_fevals=30, objective=objective)
    best = {"block_size_x": 128, "tile": 4, "layout": "columns", "block_size_y": 1}
    assert {name: env["best_config"][name] for name in SPACE} == best == strategy.best().params
    measured = configs(results)
    assert len(measured) == len(set(measured)) == 30  # no configuration twice
    assert all(block * tile <= 768 for block, tile, *_ in measured)
    failed = [result for result in results if "__error__" in result]
    assert [m.value for m in strategy.optimizer.measurements] == [r[objective] for r in results if r not in failed]
    assert len(failed) <= 5  # of nine


@pytest.mark.slow
def test_all_configurations_are_measured_once(tune):
    strategy = strategies.NoRegretStrategy()
    results, _ = tune(strategy)
    allowed = [config for config in product(*SPACE.values()) if config[0] * config[1] <= 768]
    assert sorted(configs(results)) == sorted(allowed)


@pytest.mark.slow
def test_the_seed_decides(tune):
    runs = [configs(tune(strategies.NoRegretStrategy(), seed, max_fevals=14)[0]) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.slow
def test_a_time_limit_ends_the_run(tune):
    strategy = strategies.NoRegretStrategy()
    results, _ = tune(strategy, time_limit=2)  # a measurement takes 0.15 simulated seconds
    assert 5 <= len(results) <= 14
    assert len(strategy.optimizer.measurements) == sum("__error__" not in result for result in results)


def test_a_single_configuration(tune):
    results, _ = tune(strategies.NoRegretStrategy(), space={name: values[:1] for name, values in SPACE.items()})
    assert configs(results) == [(16, 1, "rows", 1)]


def test_what_it_does_not_take_is_refused(tune):
    with pytest.raises(ValueError, match="max_fevals and time_limit, got"):
        tune(strategies.NoRegretStrategy(), popsize=20)
    with pytest.raises(ValueError, match="needs one objective"):
        tune(strategies.NoRegretStrategy(), objective=["time", "speed"])
    with pytest.raises(ValueError, match="pass this strategy to tune_kernel first"):
        strategies.NoRegretStrategy().best()


def measured_times(strategy, seed, path):
    """Times in the order in which a strategy measured 25 of the 4,362 configurations of a table."""
    table = Kernel("convolution_a100")
    arguments = kernel_cache(table.space, table.means, path)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # Kernel Tuner's strategies draw from it
    results, _ = kernel_tuner.tune_kernel(
        **arguments, strategy=strategy, strategy_options={"max_fevals": 25}, seed=seed
    )
    first = {tuple(result[name] for name in arguments["tune_params"]): result for result in reversed(results)}
    return [np.inf if "__error__" in result else result["time"] for result in first.values()]


@pytest.mark.slow
def test_a_table_of_measured_kernels(tmp_path):
    times = measured_times(strategies.NoRegretStrategy(), 0, tmp_path / "ours.json")
    assert len(times) == 25
    at_random = [min(measured_times("random_sample", seed, tmp_path / f"{seed}.json")) for seed in range(2)]
    assert min(times) < 1.3 * np.mean(at_random)  # hardly more than the initial design
