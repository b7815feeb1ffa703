"""NoRegretSampler: Optuna's own conformance tests, and further guarantees."""

import math
import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from noregret import report
from noregret.integrations.optuna import NoRegretSampler, Parameter
from noregret.integrations.structure import Structure, nearest, union
from noregret.optimizer import axis_of

optuna.logging.set_verbosity(optuna.logging.WARNING)


SPACE = {
    "x": FloatDistribution(-1, 1),
    "rate": FloatDistribution(1e-5, 1, log=True),
    "n": IntDistribution(1, 1000, log=True),
    "even": IntDistribution(0, 20, step=2),
    "kind": CategoricalDistribution(["a", "b", None]),
}


def value(params):
    far = abs(params["x"] - 0.3) + abs(np.log10(params["rate"]) + 3) / 3 + abs(params["even"] - 10) / 20
    return far + 0.5 * (params["kind"] != "b") + 0.1 * np.log10(params["n"])


@pytest.mark.slow
def test_suggestions_depend_on_the_trials_and_the_seed_alone(tmp_path):
    """A study in memory, and one in a file that is opened again for each trial, after the opening of 13 trials."""
    url, drawn = f"sqlite:///{tmp_path / 's.db'}", optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(14):
        trial = drawn.ask(SPACE)
        drawn.tell(trial, value(trial.params))
    whole = optuna.create_study(sampler=NoRegretSampler(seed=3))
    whole.add_trials(drawn.trials)
    optuna.create_study(study_name="s", storage=url).add_trials(drawn.trials)
    for _ in range(3):
        trial = whole.ask(SPACE)
        whole.tell(trial, value(trial.params))
        storage = optuna.storages.RDBStorage(url)
        pieces = optuna.create_study(
            study_name="s", storage=storage, load_if_exists=True, sampler=NoRegretSampler(seed=3)
        )
        again = pieces.ask(SPACE)
        assert again.params == trial.params
        pieces.tell(again, value(again.params))
        storage.engine.dispose()


@pytest.mark.slow
def test_parallel_threads_and_processes(tmp_path):
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=12, n_jobs=3)
    assert len(study.trials) == 12
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 's.db'}")
    first = optuna.create_study(study_name="s", storage=storage, sampler=NoRegretSampler(seed=0))
    second = optuna.load_study(study_name="s", storage=storage, sampler=NoRegretSampler(seed=1))
    for _ in range(4):
        trials = [first.ask(SPACE), second.ask(SPACE)]
        for study, trial in zip((first, second), reversed(trials), strict=True):
            study.tell(trial.number, value(trial.params))
    assert [trial.state for trial in first.trials] == [TrialState.COMPLETE] * 8
    storage.engine.dispose()


def test_trials_under_way_are_taken_into_account():
    """Otherwise all suggestions would be the same, since they depend on nothing else."""
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    space = {"x": FloatDistribution(0, 1)}
    for x in np.linspace(0, 1, 8):
        study.add_trial(optuna.create_trial(params={"x": float(x)}, distributions=space, value=(x - 0.4) ** 2))
    several = [study.ask(space).params["x"] for _ in range(4)]
    assert len(set(several)) > 1


def test_trials_asked_for_at_once_are_those_asked_for_one_after_another():
    """As with n_jobs: a trial's params are in the storage only once its objective has asked for them."""
    space, studies = {"x": FloatDistribution(0, 1)}, []
    for _ in range(2):
        studies.append(optuna.create_study(sampler=NoRegretSampler(seed=0)))
        for x in np.linspace(0, 1, 8):
            trial = optuna.create_trial(params={"x": float(x)}, distributions=space, value=(x - 0.4) ** 2)
            studies[-1].add_trial(trial)
    together = [studies[0].ask() for _ in range(4)]
    assert [trial.suggest_float("x", 0, 1) for trial in together] == [
        studies[1].ask(space).params["x"] for _ in range(4)
    ]


def test_failures_pruned_trials_and_absurd_values_do_no_harm():
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    space = {"x": FloatDistribution(0, 1)}
    states = [TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE, TrialState.COMPLETE, TrialState.COMPLETE]
    for state, told in zip(states, [None, None, 1e300, float("inf"), 0.5], strict=True):
        study.add_trial(optuna.create_trial(state=state, params={"x": 0.5}, distributions=space, value=told))
    for _ in range(5):
        trial = study.ask(space)
        study.tell(trial, trial.params["x"])
    assert study.sampler.best(study).params["x"] < 0.3


def test_best_before_anything_was_measured():
    study = optuna.create_study(sampler=NoRegretSampler())
    with pytest.raises(ValueError, match="must have a finished trial"):
        study.sampler.best(study)


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-10.2, 10.2, step=0.1),
        FloatDistribution(0, 0.9, step=0.3),
        IntDistribution(3, 9, step=2),
        IntDistribution(1, 100, log=True),
        CategoricalDistribution([1, "1", None, 2.5]),
        FloatDistribution(2.0, 2.0),
    ],
)
def test_values_go_to_the_optimizer_and_back(distribution):
    parameter = Parameter(distribution)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(30):
        found = study.ask({"x": distribution}).params["x"]
        back = parameter.value(axis_of(parameter.parameter).checked("x", parameter.ours(found)))
        assert back == found
        assert type(back) is type(found)


def edited(*spaces, counts=(14, 14), pick=lambda params: sum((x - 0.7) ** 2 for x in params.values())):
    """A study whose objective was edited: each of these spaces for this number of trials. Warnings are errors."""
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for space, count in zip(spaces, counts, strict=True):
            for _ in range(count):
                trial = study.ask(space)
                study.tell(trial, pick(trial.params))
        return study, study.sampler.best(study)


def test_a_widened_range_is_learnt_from_all_trials():
    """The best value, 0.7, is outside of the first range."""
    narrow, wide = FloatDistribution(0, 0.5), FloatDistribution(0, 1)
    study, best = edited({"x": narrow}, {"x": wide})
    assert abs(best.params["x"] - 0.7) < 0.05
    assert study.sampler._learner.known == 28
    late = [abs(trial.params["x"] - 0.7) for trial in study.trials[-6:]]
    assert np.median(late) < 0.1  # at random it is 0.25
    assert "x (2)" not in report(study).html


def test_a_narrowed_range_is_kept_and_earlier_trials_count():
    study, best = edited({"x": FloatDistribution(0, 2)}, {"x": FloatDistribution(0.6, 1)})
    assert abs(best.params["x"] - 0.7) < 0.1
    late = [trial.params["x"] for trial in study.trials[14:]]
    assert min(late) >= 0.6
    assert np.median(np.abs(np.array(late) - 0.7)) < 0.1
    outside, _ = edited({"n": IntDistribution(0, 9)}, {"n": IntDistribution(2, 8, step=3)}, pick=lambda its: its["n"])
    assert {trial.params["n"] for trial in outside.trials[14:]} == {2}  # 0, which is best, is outside


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        ([FloatDistribution(1, 2, log=True), FloatDistribution(0.5, 1, log=True)], FloatDistribution(0.5, 2, log=True)),
        (
            [FloatDistribution(0, 1, step=0.25), FloatDistribution(0.5, 2, step=0.25)],
            FloatDistribution(0, 2, step=0.25),
        ),
        ([FloatDistribution(0, 1, step=0.25), FloatDistribution(0.1, 2.1, step=0.25)], FloatDistribution(0, 2.1)),
        ([FloatDistribution(0, 1, step=0.25), FloatDistribution(0, 2)], FloatDistribution(0, 2)),
        ([IntDistribution(0, 6, step=6), IntDistribution(4, 12, step=4)], IntDistribution(0, 12, step=2)),
        ([IntDistribution(1, 6, log=True), IntDistribution(4, 9, log=True)], IntDistribution(1, 9, log=True)),
        ([IntDistribution(1, 6, log=True), IntDistribution(4, 9)], None),
        ([CategoricalDistribution("ab"), CategoricalDistribution("abc")], None),
    ],
)
def test_a_union_has_all_values_of_its_ranges(ranges, found):
    assert union(ranges) == found
    for each in ranges if found is not None else ():
        assert all(each._contains(nearest(each, x)) for x in (-1, 0.3, 0.6, 5, 70))
        assert found._contains(each.low)
        assert found._contains(each.high)


def test_a_condition_on_a_number_whose_range_was_widened():
    def objective(trial, most):
        count = trial.suggest_int("count", 1, most)
        return sum((trial.suggest_float(f"x{i}", 0, 1) - 0.7) ** 2 for i in range(count))

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: objective(trial, 2), n_trials=15)
    study.optimize(lambda trial: objective(trial, 3), n_trials=15)
    columns = Structure()(study.trials)
    assert columns["count"].distribution == IntDistribution(1, 3)
    when = {name: columns[name].when.get("count") for name in ("x0", "x1", "x2")}
    assert when == {"x0": None, "x1": (2, 3), "x2": (3,)}


@pytest.mark.filterwarnings("ignore:parameter 'y' is drawn at random")
def test_a_new_parameter_is_named_by_best_and_then_learnt():
    study, rng = optuna.create_study(sampler=NoRegretSampler(seed=0)), np.random.default_rng(0)
    x, y = FloatDistribution(0, 1), FloatDistribution(0, 1)
    for i in range(44):
        trial = study.ask({"x": x} if i < 12 else {"x": x, "y": y})
        distance = (trial.params["x"] - 0.4) ** 2 + (trial.params.get("y", 0) - 0.7) ** 2
        study.tell(trial, distance + 0.01 * rng.standard_normal())
        if i == 20:
            with pytest.warns(UserWarning, match=r"leaves out parameter 'y' of 9 of 21 trials$"):
                assert study.sampler.best(study).params.keys() == {"x"}
    with pytest.warns(UserWarning, match="leaves out 12 of 44 trials, which lack a parameter of the others"):
        best = study.sampler.best(study).params
    assert abs(best["x"] - 0.4) < 0.1
    assert abs(best["y"] - 0.7) < 0.1
    assert np.median([abs(trial.params["y"] - 0.7) for trial in study.trials[-6:]]) < 0.1


def test_a_parameter_of_the_first_trials_is_no_reason_to_warn():
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    space = {"x": FloatDistribution(0, 1), "fixed": IntDistribution(3, 3)}
    first, second = study.ask(space), study.ask(space)
    study.tell(first, 1.0)
    study.tell(second, state=TrialState.FAIL)
    for _ in range(3):
        study.tell(study.ask(space), 1.0)
    assert study.sampler.best(study).params.keys() == space.keys()


CONSTRAINTS_FUNC_IS_OLD = pytest.mark.filterwarnings("ignore:.*constraints_func.*", "ignore::FutureWarning")


def constrained(sampler, count, excess=lambda x, y: x + y - 1):
    """A study of a bowl whose minimum, (0.7, 0.7), violates x + y <= 1."""
    study, rng = optuna.create_study(sampler=sampler), np.random.default_rng(0)

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_user_attr("excess", [excess(x, y) + 0.02 * rng.standard_normal()])
        return (x - 0.7) ** 2 + (y - 0.7) ** 2 + 0.02 * rng.standard_normal()

    study.optimize(objective, n_trials=count)
    return study


@pytest.mark.slow
@CONSTRAINTS_FUNC_IS_OLD
def test_constraints_are_optunas():
    sampler = NoRegretSampler(seed=0, constraints_func=lambda trial: trial.user_attrs["excess"])
    study = constrained(sampler, 35)
    best = sampler.best(study)
    assert best.params["x"] + best.params["y"] < 1.05
    assert best.feasible >= 0.95
    assert all(trial.system_attrs["constraints"] == tuple(trial.user_attrs["excess"]) for trial in study.trials)
    later = [trial.params["x"] + trial.params["y"] for trial in study.trials[12:]]
    assert np.mean(np.array(later) > 1.2) < 0.15, "what is surely infeasible is left alone"


@CONSTRAINTS_FUNC_IS_OLD
def test_constraints_that_others_have_stored_count():
    study = constrained(optuna.samplers.TPESampler(seed=0, constraints_func=lambda t: t.user_attrs["excess"]), 30)
    best = NoRegretSampler(seed=0).best(study)
    assert best.feasible < 1
    assert best.params["x"] + best.params["y"] < 1.1


def test_trials_without_constraints_say_nothing_about_them():
    space = {"x": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    for x in np.linspace(0, 1, 12):
        attrs = {"constraints": (x - 0.5,)} if x > 0.2 else {}
        study.add_trial(optuna.trial.create_trial(params={"x": x}, distributions=space, value=-x, system_attrs=attrs))
    assert study.ask(space).params
    assert study.sampler.best(study).params["x"] < 0.55


@CONSTRAINTS_FUNC_IS_OLD
def test_a_bad_constraint_is_refused_as_optuna_does_and_the_study_goes_on():
    values = iter([[0.1], [float("nan")]])
    study = optuna.create_study(sampler=NoRegretSampler(seed=0, constraints_func=lambda trial: next(values)))
    study.tell(study.ask({"x": FloatDistribution(0, 1)}), 1.0)
    with pytest.raises(ValueError, match="NaN"):
        study.tell(study.ask({"x": FloatDistribution(0, 1)}), 1.0)
    assert study.ask({"x": FloatDistribution(0, 1)}).params


def test_the_sampler_says_what_it_is_and_where_it_stands():
    sampler = NoRegretSampler(seed=3)
    assert repr(sampler) == "<NoRegretSampler(seed=3): knows no trial yet>"
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    sampler.best(study)
    assert repr(sampler) == "<NoRegretSampler(seed=3): knows 4 finished trials>"


@pytest.mark.slow
def test_whole_numbers_beyond_those_of_floating_point_are_suggested():
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    for _ in range(14):
        trial = study.ask()
        shifted = trial.suggest_int("shifted", 10**18, 10**18 + 1000)
        trial.suggest_int("wide", 0, 2**62, step=2)
        study.tell(trial, abs(shifted - 10**18 - 300) / 1000)
    assert abs(study.best_params["shifted"] - 10**18 - 300) < 200


@pytest.mark.slow
def test_several_directions_are_sampled_together():
    rng = np.random.default_rng(0)

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if trial.number == 3:
            raise optuna.TrialPruned
        noise = 0.02 * rng.standard_normal(2)
        return x**2 + y + noise[0], math.inf if trial.number == 4 else 1 - (1 - x) ** 2 - y + noise[1]

    sampler = NoRegretSampler(seed=0)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.optimize(objective, n_trials=24)
    front = sampler.front(study)
    assert np.mean([member.params["y"] for member in front]) < 0.1  # y is bad for both
    assert np.mean([trial.params["y"] for trial in study.trials[-8:]]) < 0.2
    costs, gains = ([member.values[name] for member in front] for name in ("0", "1"))
    assert costs == sorted(costs)
    assert gains == sorted(gains)
    assert sampler.best(study, limits={"1": (">=", 0.6)}).params in [member.params for member in front]
    with pytest.raises(ValueError, match="what matters"):
        sampler.best(study)
    with pytest.raises(ValueError, match=r"use best\(\)"):
        sampler.front(optuna.create_study(sampler=sampler))
