"""The public interface of the optimizer: observations in any order, failures, bad input, and results."""

import copy
import math
import pickle
import sys
import threading

import numpy as np
import pytest
from tests.optimizer.configs import with_rule

from noregret import UCB, Choice, Constant, Float, Int, Optimizer, Trial
from noregret.optimizer import OptimizerConfig
from noregret.optimizer.model.noise import GaussianNoise
from noregret.optimizer.model.transforms import ValueScale

SQUARE = {"x": Float(0, 1), "y": Float(0, 1)}


def bowl(params):
    """0 at (0.3, 0.6), up to 0.85 elsewhere."""
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2


def gaussian(rng):
    return 0.05 * rng.standard_normal()


def spikes(rng):
    return 0.02 * rng.standard_normal() + (rng.random() < 0.05) * rng.choice([-17, 17])


def student(rng):
    return 0.03 * rng.standard_t(1.5)


def played(opt, rounds, function=bowl, noise=gaussian, seed=0):
    rng, trials = np.random.default_rng(seed), []
    for _ in range(rounds):
        trials.append(opt.ask())
        opt.tell(trials[-1], function(trials[-1].params) + noise(rng))
    return trials


def params(trials):
    return [trial.params for trial in trials]


# --- results -----------------------------------------------------------------------------------------------------


def test_best_is_not_the_luckiest_draw():
    rows = [{"i": i} for i in range(4)]
    opt = Optimizer(rows, goal="maximize", rng=0)
    noise = 0.1 * np.random.default_rng(0).standard_normal((30, 4))
    for draw in noise:
        for row in rows:
            opt.tell(row, row["i"] / 4 + draw[row["i"]])
    opt.tell(rows[0], 100.0)
    best = opt.best()
    assert best.params == {"i": 3}
    assert best.lower < 0.75 + noise[:, 3].mean() < best.upper
    assert best.upper - best.lower < 0.3


@pytest.mark.slow
def test_minimising_is_maximising_the_negative():
    low, high = Optimizer(SQUARE, goal="minimize", rng=3), Optimizer(SQUARE, goal="maximize", rng=3)
    first = played(low, 15, noise=lambda rng: 0.0)
    second = played(high, 15, lambda p: -bowl(p), noise=lambda rng: 0.0)
    assert params(first) == params(second)
    assert low.best().estimate == -high.best().estimate
    assert (low.best().lower, low.best().upper) == (-high.best().upper, -high.best().lower)


@pytest.mark.slow
def test_every_step_can_be_replaced():
    calibration = with_rule(
        UCB(2.0),
        noise_models=(GaussianNoise(),),
        local_noise=None,
        scale=lambda evidence: ValueScale(0.0, 1.0),
        initial=5,
    )
    opt = Optimizer(SQUARE, rng=0, calibration=calibration)
    played(opt, 30)
    assert bowl(opt.best().params) < 0.05
    assert opt.calibrated.scale == ValueScale(0.0, 1.0)
    assert {m.trust for m in opt.measurements} == {1.0}


@pytest.mark.slow
def test_the_interval_has_a_width_of_its_own():
    def best(**steps):
        opt = Optimizer(SQUARE, rng=0, calibration=OptimizerConfig(**steps))
        played(opt, 15)
        return opt.best()

    narrow, wide, usual = best(interval=Constant(1.0)), best(interval=Constant(3.0)), best()
    assert wide.params == narrow.params == usual.params
    assert narrow.upper < wide.upper
    assert narrow.upper < usual.upper
    assert narrow.lower > wide.lower


# --- the same again ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run():
    runs = [played(Optimizer(SQUARE, rng=seed), 25, noise=spikes) for seed in (1, 1, 2)]
    assert params(runs[0]) == params(runs[1])
    assert params(runs[0]) != params(runs[2])


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [2, 7, 20, 33])
def test_a_history_told_anew_leads_to_the_same_question(rounds):
    """After a crash: the observations in their order, then the pending trials."""
    lived = Optimizer(SQUARE, rng=5)
    trials = played(lived, rounds, noise=spikes)
    out = lived.ask(2)
    told = Optimizer(SQUARE, rng=5)
    for params_of, value, _ in lived.measurements:
        told.tell(params_of, value)
    for trial in out:
        told.expect(trial.params)
    assert len(trials) == rounds
    first, second = lived.ask().params, told.ask().params
    assert first == pytest.approx(second, abs=1e-6)
    assert lived.best().estimate == pytest.approx(told.best().estimate, abs=1e-6)


@pytest.mark.slow
def test_looking_changes_nothing():
    quiet, curious = Optimizer(SQUARE, rng=0), Optimizer(SQUARE, rng=0)
    rng = [np.random.default_rng(0), np.random.default_rng(0)]
    for _ in range(20):
        first, second = quiet.ask(), curious.ask()
        quiet.tell(first, bowl(first.params) + gaussian(rng[0]))
        curious.tell(second, bowl(second.params) + gaussian(rng[1]))
        curious.best()
        curious.measurements  # noqa: B018
    assert quiet.ask().params == curious.ask().params


@pytest.mark.slow
def test_params_given_away_may_be_changed():
    one, other = Optimizer(SQUARE, rng=0), Optimizer(SQUARE, rng=0)
    for _ in range(10):
        first, second = one.ask(), other.ask()
        value = bowl(first.params)
        first.params["x"] = 99.0
        one.tell(first, value)
        other.tell(second, value)
        one.best().params.clear()
        one.measurements[0].params.clear()
    assert one.ask().params == other.ask().params


def test_an_optimizer_can_be_copied():
    opt = Optimizer(SQUARE, rng=0)
    played(opt, 12)
    assert copy.deepcopy(opt).ask().params == opt.ask().params


@pytest.mark.slow
def test_a_copy_goes_its_own_way():
    opt = Optimizer(SQUARE, rng=0)
    played(opt, 15)
    twin, asked = copy.copy(opt), opt.ask().params
    assert twin.ask().params == asked
    played(twin, 5)
    assert (len(opt.measurements), len(twin.measurements)) == (15, 20)
    undisturbed = Optimizer(SQUARE, rng=0)
    played(undisturbed, 15)
    undisturbed.ask()
    assert opt.ask().params == undisturbed.ask().params


# --- long histories ----------------------------------------------------------------------------------------------

FEW = OptimizerConfig(exact=40, longest=15)


def told_at_random(opt, count, seed=0):
    rng = np.random.default_rng(seed)
    for x, y in rng.random((count, 2)):
        opt.tell({"x": x, "y": y}, bowl({"x": x, "y": y}) + student(rng))


@pytest.mark.slow
def test_a_point_that_is_left_out_may_be_measured_and_be_under_way():
    opt = Optimizer(SQUARE, rng=0, calibration=FEW)
    told_at_random(opt, 200)
    trials = [opt.expect(m.params) for m in opt.measurements[::10]]
    opt.ask()
    for trial in trials:
        opt.tell(trial, bowl(trial.params))
        opt.ask()
    assert len(opt.measurements) == 220


@pytest.mark.slow
def test_what_is_left_out_is_trusted_as_far_as_it_agrees():
    opt = Optimizer(SQUARE, rng=0, calibration=FEW)
    opt.tell({"x": 0.9, "y": 0.9}, 50.0)
    told_at_random(opt, 200)
    trust = np.array([m.trust for m in opt.measurements])
    assert np.isfinite(trust).all()
    assert trust[0] < 0.05
    assert np.median(trust) > 0.5


def test_no_row_of_a_short_table_is_left_out():
    """Observations of other names say nothing about a name."""
    opt = Optimizer([{"name": str(i)} for i in range(100)], goal="maximize", rng=0, calibration=FEW)
    for i in range(100):
        opt.tell({"name": str(i)}, float(i))
    assert opt._any_state().belief.rank == 100


# --- many at once ------------------------------------------------------------------------------------------------


def test_trials_that_are_out_are_taken_into_account():
    opt = Optimizer(SQUARE, rng=0)
    played(opt, 12, noise=lambda rng: 0.0)
    trials = opt.ask(6)
    points = np.array([[t.params["x"], t.params["y"]] for t in trials])
    assert len({t.id for t in trials}) == 6
    assert len(np.unique(points.round(6), axis=0)) >= 4, "six identical questions would be five wasted answers"


@pytest.mark.slow
def test_a_trial_that_never_comes_back_is_forgotten():
    """Of two arms, the better is lost: it must be asked for again."""
    opt = Optimizer([{"i": 0}, {"i": 1}], goal="maximize", rng=0)
    for value in (0.0, 0.1, -0.1, 0.05):
        opt.tell({"i": 0}, value)
        opt.tell({"i": 1}, 1 + value)
    opt.expect({"i": 1})
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, trial.params["i"] + 0.05)
    assert opt.ask().params == {"i": 1}


def test_a_whole_design_can_be_out_before_the_first_answer():
    opt = Optimizer(SQUARE, rng=0)
    trials = opt.ask(20)
    assert len({tuple(t.params.values()) for t in trials}) == 20
    for trial in reversed(trials):
        opt.tell(trial, bowl(trial.params))
    assert bowl(opt.best().params) < 0.1


# --- repeats, the past, given noise -----------------------------------------------------------------------------


def test_repeated_measurements_are_pooled():
    opt = Optimizer([{"i": i} for i in range(3)], goal="maximize", rng=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        for i in range(3):
            opt.tell({"i": i}, i + rng.standard_normal())
    best = opt.best()
    assert best.params == {"i": 2}
    assert 0.05 < (best.upper - best.lower) / 2 < 0.3, "200 measurements of noise 1: std about 0.07"


def test_the_past_counts():
    rng = np.random.default_rng(0)
    opt = Optimizer(SQUARE, rng=0)
    for _ in range(40):
        x, y = rng.random(2)
        opt.tell({"x": x, "y": y}, bowl({"x": x, "y": y}))
    assert bowl(opt.ask().params) < 0.05, "no need for a design"
    assert len(opt.measurements) == 40


@pytest.mark.slow
def test_the_params_of_a_trial_answer_it():
    one, other = Optimizer(SQUARE, rng=0), Optimizer(SQUARE, rng=0)
    for _ in range(15):
        first, second = one.ask(), other.ask()
        one.tell(first, bowl(first.params))
        other.tell(second.params, bowl(second.params))
    assert one.ask().params == other.ask().params


def test_a_sharp_measurement_counts_for_more():
    opt = Optimizer([{"i": 0}, {"i": 1}], goal="maximize", rng=0)
    for value in (-1.0, 1.0, -0.5, 0.5):
        opt.tell({"i": 0}, value, noise=1.0)
        opt.tell({"i": 1}, value, noise=1.0)
    opt.tell({"i": 0}, 0.8, noise=0.01)
    assert opt.predict({"i": 0}).estimate == pytest.approx(0.8, abs=0.05)
    assert opt.predict({"i": 1}).upper - opt.predict({"i": 1}).lower > 10 * (
        opt.predict({"i": 0}).upper - opt.predict({"i": 0}).lower
    )


@pytest.mark.slow
def test_trust_tells_the_outliers():
    opt = Optimizer(SQUARE, rng=0)
    played(opt, 30)
    trial = opt.ask()
    opt.tell(trial, 50.0)
    trust = [m.trust for m in opt.measurements]
    assert trust[-1] < 0.05
    assert opt.measurements[-1].value == 50.0
    assert min(trust[:-1]) > 0.2


def test_an_unbelievably_good_value_is_measured_again():
    opt = Optimizer(SQUARE, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        point = dict(zip("xy", rng.random(2), strict=True))
        opt.tell(point, bowl(point) + 0.01 * rng.standard_normal())
    opt.tell({"x": 0.9, "y": 0.1}, -20.0)
    trial = opt.ask()
    assert trial.params == {"x": 0.9, "y": 0.1}
    opt.tell(trial, bowl(trial.params))
    assert opt.ask().params != trial.params
    assert bowl(opt.best().params) < 0.02


# --- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_fails_is_not_asked_for_again():
    opt = Optimizer([{"i": i} for i in range(10)], goal="maximize", rng=0)
    asked = []
    for _ in range(40):
        trial = opt.ask()
        asked.append(trial.params["i"])
        opt.fail(trial) if trial.params["i"] >= 7 else opt.tell(trial, float(trial.params["i"]))
    assert all(asked.count(i) <= 1 for i in (7, 8, 9))
    assert opt.best().params == {"i": 6}


def test_everything_may_fail():
    opt = Optimizer(SQUARE, rng=0)
    for _ in range(80):
        opt.fail(opt.ask())
    with pytest.raises(ValueError, match="tell one first"):
        opt.best()
    table = Optimizer([{"i": 0}, {"i": 1}], rng=0)
    for _ in range(10):
        table.fail(table.ask())
    table.tell({"i": 1}, 1.0)
    table.tell({"i": 1}, 1.1)
    assert table.ask().params == {"i": 1}


def test_a_late_answer_is_welcome():
    opt = Optimizer([{"i": 0}, {"i": 1}], goal="maximize", rng=0)
    trials = opt.ask(2)
    opt.fail(trials[1])
    opt.fail(trials[1])
    opt.tell(trials[0], 0.0)
    opt.tell(trials[1], 1.0)
    assert opt.best().params == trials[1].params


@pytest.mark.parametrize("seed", range(5))
def test_what_fails_is_not_asked_for_again_for_want_of_other_points(seed):
    opt = Optimizer([{"i": i} for i in range(4)], rng=seed)
    for i in (0, 1, 2):
        opt.fail({"i": i})
    assert {opt.ask().params["i"] for _ in range(6)} == {3}
    opt.tell({"i": 3}, 1.0)
    assert {opt.ask().params["i"] for _ in range(6)} == {3}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_table_shorter_than_the_design_is_measured_once_before_anything_twice(seed):
    opt = Optimizer([{"i": i} for i in range(5)], goal="maximize", rng=seed)
    asked = []
    for _ in range(30):
        trial = opt.ask()
        asked.append(trial.params["i"])
        opt.tell(trial, float(trial.params["i"] == 2))
    assert sorted(asked[:5]) == [0, 1, 2, 3, 4]
    assert opt.best().params == {"i": 2}


SPACES = [
    [{"a": 2**i} for i in range(13)],  # most of the good rows are nearest to hardly any point of the cube
    {"a": Int(0, 9), "b": Choice(["x", "y", "z"])},
    {"a": Int(0, 50), "b": Int(0, 50)},  # too many to be taken whole
    {"a": Float(0, 10), "b": Float(0, 1)},  # the best is at an edge
]


def check_failures_are_left(space, seed):
    """Raise AssertionError if params that failed are asked for again or recommended."""
    opt, failed = Optimizer(space, goal="maximize", rng=seed), []
    for _ in range(50):
        trial = opt.ask()
        if trial.params["a"] > 4:
            failed.append(tuple(trial.params.values()))
            opt.fail(trial)
        else:
            opt.tell(trial, 1.0)
    assert len(failed) == len(set(failed))
    assert tuple(opt.best().params.values()) not in failed


def test_past_failures_may_be_told():
    opt = Optimizer([{"i": 0}, {"i": 1}], rng=0)
    opt.fail({"i": 0})
    opt.tell({"i": 1}, 1.0)
    opt.tell({"i": 1}, 2.0)
    assert {opt.ask().params["i"] for _ in range(3)} == {1}


# --- nonsense ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "value is nan: pass a finite number, or fail"),
        (math.inf, "value is inf"),
        (-math.inf, "value is -inf"),
        (np.float64("nan"), "value is nan"),
        ("12", "value must be a number, got '12'"),
        (None, "value must be a number, got None"),
        (True, "value must be a number, got True"),
        ([1.0], "value must be a number"),
        (1 + 2j, "value must be a number"),
        (10**400, "pass a finite number, or fail"),
    ],
)
def test_a_bad_value_changes_nothing(value, message):
    opt, twin = Optimizer(SQUARE, rng=0), Optimizer(SQUARE, rng=0)
    played(opt, 10)
    played(twin, 10)
    trial, same = opt.ask(), twin.ask()
    with pytest.raises(ValueError, match=message):
        opt.tell(trial, value)
    with pytest.raises(ValueError, match=message):
        opt.tell({"x": 0.9, "y": 0.9}, value)
    opt.tell(trial, 0.3)
    twin.tell(same, 0.3)
    assert opt.ask().params == twin.ask().params
    assert len(opt.measurements) == 11


@pytest.mark.parametrize("noise", [0, -1.0, math.nan, math.inf, 10**400, "a", True])
def test_a_bad_noise_is_refused(noise):
    opt = Optimizer(SQUARE, rng=0)
    with pytest.raises(ValueError, match="noise must be the value's standard deviation"):
        opt.tell(opt.ask(), 1.0, noise=noise)
    assert not opt.measurements


@pytest.mark.parametrize("value", [np.float32(0.5), np.int64(2), np.array(0.5), 3])
def test_any_real_number_is_a_value(value):
    opt = Optimizer(SQUARE, rng=0)
    opt.tell(opt.ask(), value)
    assert opt.best().estimate == float(value)


def test_answers_to_nothing_are_refused():
    opt = Optimizer(SQUARE, rng=0)
    trial = opt.ask()
    opt.tell(trial, 1.0)
    with pytest.raises(ValueError, match=r"trial 0 has a value already: tell\(trial.params, value\)"):
        opt.tell(trial, 2.0)
    with pytest.raises(ValueError, match="trial 0 has a value already"):
        opt.fail(trial)
    with pytest.raises(ValueError, match="trial 99 is not one of this optimizer's"):
        opt.tell(Trial(99, trial.params), 2.0)
    with pytest.raises(ValueError, match="y must be from 0 to 1, got 7"):
        opt.tell({"x": 0.5, "y": 7}, 2.0)
    assert len(opt.measurements) == 1


def test_a_trial_of_another_optimizer_is_refused():
    """Its id is one of ours too, and its value would count for other params."""
    opt, other = Optimizer(SQUARE, rng=0), Optimizer(SQUARE, rng=1)
    mine, foreign = opt.ask(), other.ask()
    for answer in (lambda: opt.tell(foreign, 1.0), lambda: opt.fail(foreign)):
        with pytest.raises(
            ValueError, match="trial 0 is not one of this optimizer's, or it was forgotten: tell its params instead"
        ):
            answer()
    assert not opt.measurements
    opt.tell(foreign.params, 1.0)
    opt.tell(mine, 2.0)
    assert params(opt.measurements) == [foreign.params, mine.params]
    opt.fail(opt.ask())
    with pytest.raises(ValueError, match="trial 1 is not one of this optimizer's"):
        opt.fail(Trial(1, foreign.params))


def test_a_trial_may_travel():
    """To a process that evaluates it and back; and a copy of the optimizer knows the pending trials."""
    opt = Optimizer(SQUARE, rng=0)
    trial = opt.ask()
    twin = pickle.loads(pickle.dumps(opt))
    opt.tell(pickle.loads(pickle.dumps(trial)), 1.0)
    twin.tell(trial, 1.0)
    assert twin.best() == opt.best()
    assert "token" not in repr(trial)
    opt.ask()
    with pytest.raises(ValueError, match="trial 1 is not one of this optimizer's"):
        opt.tell(twin.ask(), 1.0)


@pytest.mark.slow
def test_threads_may_share_an_optimizer():
    """With concurrent calls, points had two numbers, arms were missing, and values were lost."""
    opt, failures, usual = Optimizer(SQUARE, rng=0), [], sys.getswitchinterval()

    def work():
        try:
            for _ in range(12):
                trial = opt.ask()
                opt.tell(trial, bowl(trial.params))
                opt.best()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert not failures
    assert len(opt.measurements) == 48
    assert bowl(opt.best().params) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-320, 1e-200, 1e160, 1.7e308])
@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_extreme_noise_is_survived_in_silence(noise, unit):
    opt = Optimizer(SQUARE, rng=0)
    for t in range(12):
        trial = opt.ask()
        opt.tell(trial, unit * bowl(trial.params), noise=noise if t % 2 else None)
    best = opt.best()
    assert best.lower <= best.estimate <= best.upper


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="goal must be 'minimize' or 'maximize', got 'min'"):
        Optimizer(SQUARE, goal="min")
    with pytest.raises(ValueError, match="calibration must be an OptimizerConfig, got 5"):
        Optimizer(SQUARE, calibration=5)
    with pytest.raises(ValueError, match="rng must be"):
        Optimizer(SQUARE, rng="seed")
    opt = Optimizer(SQUARE, rng=0)
    for count in (0, -1, 1.5, 2.0, True, "a", math.nan, [1]):
        with pytest.raises(ValueError, match="count must be a whole number from 1"):
            opt.ask(count)
    with pytest.raises(ValueError, match=r"best\(\) needs a value"):
        opt.best()
    opt.tell(opt.ask(), 1.0)
    with pytest.raises(ValueError, match="at least 2 values"):
        opt.predict({"x": 0.5, "y": 0.5})


@pytest.mark.slow
def test_one_absurd_value_does_not_destroy_it():
    check_absurd(-1.7e308, seeds=1)


def check_absurd(absurd, seeds=2):
    """Raise AssertionError if one outlier keeps an optimizer from finding the minimum of a bowl."""
    regrets = []
    for seed in range(seeds):
        opt, rng = Optimizer(SQUARE, rng=seed), np.random.default_rng(seed)
        for t in range(25):
            trial = opt.ask()
            opt.tell(trial, absurd if t == 4 else bowl(trial.params) + 0.01 * rng.standard_normal())
        best = opt.best()
        assert math.isfinite(best.estimate)
        regrets.append(bowl(best.params))
    assert np.mean(regrets) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("values", [(0.0,), (5.0,), (1e300,), (1e300, -1e300), (1e-300, 0.0), (0.0, 0.0, 0.0, 1.0)])
def test_strange_values_are_survived(values):
    opt = Optimizer(SQUARE, rng=0)
    for t in range(20):
        opt.tell(opt.ask(), values[t % len(values)])
    best = opt.best()
    assert best.lower <= best.estimate <= best.upper


def test_one_value_is_little_but_something():
    opt = Optimizer(SQUARE, rng=0)
    trial = opt.ask()
    opt.tell(trial, 2.5)
    best = opt.best()
    assert (best.params, best.estimate, best.lower, best.upper) == (trial.params, 2.5, -math.inf, math.inf)
    opt.tell(opt.ask(), 2.0)
    assert opt.best().lower <= 2.0 + 0.5


@pytest.mark.slow
def test_a_table_of_one_row():
    opt = Optimizer([[3.0, 4.0]], rng=0)
    for t in range(20):
        trial = opt.ask()
        assert trial.params.tolist() == [3.0, 4.0]
        opt.tell(trial, float(t % 3))
    assert opt.best().params.tolist() == [3.0, 4.0]
    assert opt.best().estimate == pytest.approx(0.95, abs=0.3)


def test_a_constant_0_is_not_said_to_be_minus_0():
    opt = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0)
    for _ in range(4):
        opt.tell(opt.ask(), 0.0)
    assert str(opt.best().estimate) == "0.0"
    assert "best 0 (between" in repr(opt)
