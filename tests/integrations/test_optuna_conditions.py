"""NoRegretSampler with objectives that suggest parameters in some trials only."""

import copy
import pickle
import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from noregret.integrations.optuna import NoRegretSampler
from noregret.integrations.structure import Structure, params_of

optuna.logging.set_verbosity(optuna.logging.WARNING)


def study_of(objective, count, seed=0):
    """A study of an objective; random suggestions of the sampler are errors."""
    study = optuna.create_study(sampler=NoRegretSampler(seed=seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "parameter .* is drawn at random")
        study.optimize(objective, n_trials=count, catch=())
    return study


def structure_of(objective, count=30, seed=0):
    """Inference from random trials."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    study.optimize(objective, n_trials=count)
    return Structure()(study.trials), study


def branches(trial):
    """Branch b is the right one, but only near its best point; x says nothing there."""
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        return 0.2 + 0.3 * (trial.suggest_float("x", 0, 1) - 0.3) ** 2
    return 2 * ((trial.suggest_float("y", 0, 1) - 0.8) ** 2 + (trial.suggest_float("z", 0, 1) - 0.2) ** 2)


def layers(trial):
    count = trial.suggest_int("layers", 1, 4)
    units = [trial.suggest_int(f"units{i}", 4, 64, log=True) for i in range(count)]
    return abs(count - 3) + sum(abs(np.log2(its) - 4) for its in units) / count


def nested(trial):
    value = trial.suggest_float("rate", 1e-4, 1, log=True)
    match trial.suggest_categorical("model", ["line", "forest", "net"]):
        case "forest":
            value += trial.suggest_int("depth", 1, 9) + trial.suggest_int("fixed", 3, 3)
        case "net":
            if trial.suggest_categorical("solver", ["adam", "sgd"]) == "sgd":
                value += trial.suggest_float("momentum", 0, 1)
    return value


def both(trial):
    """Warm needs two flags."""
    first, second = (trial.suggest_categorical(name, [False, True]) for name in ("first", "second"))
    return trial.suggest_float("warm", 0, 1) if first and second else 1.0


def ranges(trial):
    """One name, two ranges."""
    large = trial.suggest_categorical("large", [False, True])
    return abs(trial.suggest_float("x", 0, 10 if large else 1) - 5)


@pytest.mark.parametrize(
    ("objective", "conditions"),
    [
        (branches, {"x": {"kind": (0,)}, "y": {"kind": (1,)}, "z": {"kind": (1,)}}),
        (layers, {f"units{i}": {"layers": tuple(range(i + 1, 5))} for i in (1, 2, 3)}),
        (
            nested,
            {
                "depth": {"model": (1,)},
                "fixed": {"model": (1,)},
                "solver": {"model": (2,)},
                "momentum": {"solver": (1,)},
            },
        ),
        (both, {"warm": {"first": (1,), "second": (1,)}}),
    ],
)
def test_what_decides_is_found_out(objective, conditions):
    columns, study = structure_of(objective)
    assert {label: dict(column.when) for label, column in columns.items() if column.when} == conditions
    assert {column.name for column in columns.values()} == {name for trial in study.trials for name in trial.params}
    for trial in study.trials:
        assert params_of(columns, trial).keys() == trial.params.keys()


@pytest.mark.slow
def test_a_name_with_two_ranges_is_learnt_where_a_choice_decides_which():
    columns, study = structure_of(ranges)
    assert sorted(column.distribution.high for column in columns.values() if column.name == "x") == [1, 10]
    study.sampler = NoRegretSampler(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(ranges, n_trials=15)
    best = study.sampler.best(study).params
    assert best["large"]
    assert abs(best["x"] - 5) < 1


def test_numbers_between_those_seen_are_as_their_neighbours():
    study = optuna.create_study()
    whole = {"n": IntDistribution(1, 9), "x": FloatDistribution(0, 1)}
    for n in (2, 3, 6, 8):
        its = whole if n > 3 else {"n": whole["n"]}
        params = {name: {"n": n, "x": 0.5}[name] for name in its}
        study.add_trial(optuna.create_trial(params=params, distributions=its, value=0.0))
    assert Structure()(study.trials)["x"].when == {"n": (5, 6, 7, 8, 9)}


@pytest.mark.slow
def test_suggestions_and_recommendations_are_as_the_objective_asks():
    """Only parameters that no completed trial has had are suggested at random."""
    check_asked(both)


def check_asked(objective):
    """Raise AssertionError unless the best of a study of this objective has the parameters that it asks for."""
    study = study_of(objective, 30)
    best = study.sampler.best(study)
    complete = optuna.trial.FixedTrial(best.params)
    assert objective(complete) <= np.median([trial.value for trial in study.trials])
    assert complete.params == best.params, "nothing is missing, and nothing is too much"


@pytest.mark.slow
def test_a_trial_that_ends_in_the_middle_does_no_harm():
    """As when it fails, is pruned or is still running before it has suggested everything."""
    study, _ = structure_of(branches)[::-1]
    study.sampler = NoRegretSampler(seed=0)
    for state in (TrialState.FAIL, TrialState.PRUNED):
        trial = study.ask()
        trial.suggest_categorical("kind", ["a", "b"])
        study.tell(trial, state=state)
    running = study.ask()
    running.suggest_categorical("kind", ["a", "b"])
    study.optimize(branches, n_trials=3)
    best = study.sampler.best(study).params
    assert set(best) == ({"kind", "x"} if best["kind"] == "a" else {"kind", "y", "z"})


@pytest.mark.slow
def test_a_trial_of_ones_own_may_go_to_another_branch():
    study, _ = structure_of(branches)[::-1]
    study.sampler = NoRegretSampler(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in "abab":
            study.enqueue_trial({"kind": kind})
        study.optimize(branches, n_trials=4)
    assert [trial.params["kind"] for trial in study.trials[-4:]] == list("abab")


@pytest.mark.slow
def test_a_structure_that_shows_late_is_taken_in():
    """The first trials are all of one branch, so its parameters look as if they were always there."""
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    for _ in range(5):
        study.enqueue_trial({"kind": "a"})
    study.optimize(branches, n_trials=12)
    columns = Structure()(study.trials)
    assert columns["x"].when == {"kind": (0,)}
    assert columns["y"].when == {"kind": (1,)}


@pytest.mark.slow
def test_one_sampler_for_two_studies_and_copies_of_it():
    sampler = NoRegretSampler(seed=0)
    for objective, names in ((branches, {"kind"}), (layers, {"layers", "units0"})):
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=10)
        for its in (sampler, copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
            assert its.best(study).params.keys() >= names


def test_the_structure_does_not_depend_on_the_order_in_which_trials_were_seen():
    _, study = structure_of(ranges, 12)
    live = Structure()
    for some in (study.trials[5:6], [study.trials[1], study.trials[5]], study.trials):
        columns = live(some)
    assert columns == Structure()(study.trials)
    assert list(columns) == list(Structure()(study.trials))
    assert live(study.trials[7:8]) == Structure()(study.trials[7:8]), "another study"


def test_parameters_that_nothing_decides_about_are_no_part_of_it():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    rng = np.random.default_rng(0)

    def objective(trial):
        trial.suggest_categorical("kind", ["a", "b"])
        if rng.random() < 0.5:
            trial.suggest_float("by chance", 0, 1)
        return 0.0

    study.optimize(objective, n_trials=30)
    assert set(Structure()(study.trials)) == {"kind"}
    assert CategoricalDistribution(["a", "b"]) == Structure()(study.trials)["kind"].distribution
