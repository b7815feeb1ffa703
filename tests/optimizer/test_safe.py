"""Safe questions: every one meets the constraints with the stated probability, from a baseline on."""

import copy

import numpy as np
import pytest
from scipy.special import ndtri
from tests.optimizer.configs import answer_of

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer import OptimizerConfig, Replay
from noregret.optimizer.model.evidence import FEWEST_OBSERVATIONS, Evidence
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import ModelConfig
from noregret.optimizer.model.learning import learn
from noregret.optimizer.model.noise import StudentNoise
from noregret.optimizer.model.safety import MOST_DUE, guard
from noregret.optimizer.model.transforms import Logarithms, RobustScale
from noregret.optimizer.questions.questions import Improve
from noregret.optimizer.space.table import as_space

LINE = {"x": Float(0, 1)}
BOUND, START = {"limit": ("<=", 0.0)}, {"x": 0.2}


def limit(x):
    """Met up to 0.6; the best value, at 0.8, breaks it."""
    return x**2 - 0.36


def made(**options):
    return Optimizer(LINE, **({"constraints": BOUND, "baseline": START, "safe": 0.95, "rng": 0} | options))


def play(opt, count, seed=0, noise=0.02):
    """Ask and tell, and return what was asked."""
    rng, asked = np.random.default_rng(seed), []
    for _ in range(count):
        trial = opt.ask()
        asked.append(trial.params["x"])
        numbers = {"limit": limit(asked[-1]) + noise * rng.standard_normal()}
        opt.tell(trial, (asked[-1] - 0.8) ** 2 + noise * rng.standard_normal(), constraints=numbers)
    return asked


@pytest.fixture(scope="module")
def run():
    """An optimizer after 20 questions, to be copied before use, and these questions."""
    opt = made()
    return opt, play(opt, 20)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"constraints": None}, "safe needs constraints"),
        ({"baseline": None}, "safe needs a setting to start from"),
        ({"drift": 20.0}, "leave out drift, or safe"),
        ({"safe": 1.0}, "safe must be a probability from 0.5 to below 1, like 0.99, got 1.0"),
        ({"safe": 0.3}, "got 0.3"),
        ({"safe": "0.9"}, "got '0.9'"),
        ({"safe": True}, "got True"),
        ({"safe": {"memory": 0.9}}, r"safe must name some of the constraints \['limit'\], got \['memory'\]"),
        ({"safe": {}}, "safe must name some"),
        ({"safe": {"limit": 2}}, "got 2"),
    ],
)
def test_bad_arguments(options, said):
    with pytest.raises(ValueError, match=said):
        made(**options)


def test_the_first_questions_are_the_baseline_a_batch_too():
    opt = made()
    trials = opt.ask(FEWEST_OBSERVATIONS)
    assert [trial.params for trial in trials] == [START] * FEWEST_OBSERVATIONS


@pytest.mark.slow
def test_questions_grow_from_the_baseline_and_stay_where_the_constraint_is_met(run):
    _, asked = run
    steps = [min(abs(x - before) for before in asked[:i]) for i, x in enumerate(asked) if i]
    assert max(steps) < 0.2, "from what has been measured, in small steps"
    assert max(asked) > 0.45, "and towards the best value"
    assert sum(limit(x) > 0 for x in asked) <= 1, "0.95 of 20"


@pytest.mark.slow
def test_without_safe_the_same_questions_break_it():
    asked = play(made(safe=None), 20)
    assert sum(limit(x) > 0 for x in asked) >= 3


@pytest.mark.slow
def test_safe_settings_have_all_lower_bounds_above_the_constraint(run):
    opt, points = copy.copy(run[0]), np.linspace(0, 1, 101)[:, None]
    opt.ask()
    (its,) = opt._last.safety.guards
    lower = []
    for model in its.tenable:
        process = model.process
        rows = process.rows
        prior = process.prior_covariance(rows.points, rows.points) + np.diag(rows.noise)
        shared = process.prior_covariance(rows.points, points)
        mean = shared.T @ np.linalg.solve(prior, rows.values)
        variance = process.prior(points) - np.einsum("ij,ij->j", shared, np.linalg.solve(prior, shared))
        lower.append(mean - its.width * np.sqrt(np.maximum(variance, 0)))
    assert len(lower) > 3, "the fit is doubted"
    expected = np.min(lower, axis=0) >= its.least
    assert 0 < expected.sum() < 101
    assert (opt._last.safety.holds(points) == expected).mean() > 0.98, "but for rounding at the ends"


class Wild:
    """A question that wants what is not safe: an arm, or coordinates."""

    def __init__(self, asked):
        self.asked, self.wanted = asked, 0

    def __call__(self, state, rng):
        self.wanted += 1
        return np.array([0.9]) if self.asked is None else int(np.argmax(state.belief.arms[:, 0]))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [None, "arm"])
def test_no_question_gets_around_it(asked):
    wild = Wild(asked)
    opt = made(calibration=OptimizerConfig(questions=(wild, Improve())))
    assert max(play(opt, 12)) < 0.6
    assert wild.wanted, "it was tried"


@pytest.mark.slow
def test_a_batch_is_safe_before_its_answers_come(run):
    batch = [trial.params["x"] for trial in copy.copy(run[0]).ask(4)]
    assert all(limit(x) <= 0 for x in batch)


@pytest.mark.slow
def test_where_the_baseline_breaks_the_constraint_nothing_else_is_asked():
    opt = made(constraints={"limit": ("<=", -0.5)})
    assert set(play(opt, 8)) == {START["x"]}


def test_nothing_but_the_baseline_is_known_while_no_reading_is_told():
    opt = made()
    for _ in range(5):
        trial = opt.ask()
        assert trial.params == START
        opt.tell(trial, 1.0, constraints={"limit": None})


@pytest.mark.slow
def test_only_the_named_constraints_must_be_met():
    """The other one is broken everywhere, and the named one nowhere."""
    opt = made(constraints={"limit": ("<=", 0.0), "free": ("<=", -9.0)}, safe={"limit": 0.9})
    for _ in range(8):
        trial = opt.ask()
        x = trial.params["x"]
        opt.tell(trial, (x - 0.8) ** 2, constraints={"limit": limit(x), "free": 1.0})
    assert opt.ask().params != START


@pytest.mark.slow
def test_copies_files_and_replays_ask_the_same(run, tmp_path):
    opt = run[0]
    expected = copy.copy(opt).ask().params["x"]
    opt.save(tmp_path / "o.json")
    loaded = Optimizer.load(tmp_path / "o.json")
    assert (loaded.safe, loaded.ask().params["x"]) == (0.95, pytest.approx(expected, abs=1e-6))
    replay = Replay(LINE, "minimize", 0, constraints=BOUND, baseline=START, safe=0.95)
    assert replay(opt.trials).ask().params["x"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_in_a_new_context_questions_are_safe_too():
    opt = made(context={"load": Choice(["low", "high"])})
    rng, asked = np.random.default_rng(0), []
    for i in range(16):
        trial = opt.ask(context={"load": "low" if i < 12 else "high"})
        x = trial.params["x"]
        asked.append(x)
        opt.tell(trial, (x - 0.8) ** 2, constraints={"limit": limit(x) + 0.02 * rng.standard_normal()})
    assert max(map(limit, asked)) <= 0
    assert asked[12] == START["x"], "nothing is known about a context that nobody has seen"


def guarded(numbers, risk=0.05):
    """Guard of a constraint >= 0 with these (point, number) readings, the baseline at 0.2."""
    history = History(as_space(LINE), START)
    for x, number in numbers:
        history.add(answer_of(history.intern({"x": x}), value=0.0, limit=number))
    readings = history.numbers("limit", len(numbers))
    config = ModelConfig(logarithms=Logarithms(gaps=()), scale=RobustScale(bend=np.inf))
    return guard(history, readings, 0.0, risk, config.calibrated(readings))


SAFE_READINGS = [(0.2, 1.0), (0.2, 1.05), (0.2, 0.95), (0.25, 1.02), (0.15, 0.97), (0.3, 1.0)]


def test_a_violation_widens_the_bounds_until_it_is_paid_back():
    usual = -float(ndtri(0.05))
    assert guarded(SAFE_READINGS).width == pytest.approx(usual, rel=1e-6), "nothing is due"
    once = guarded([*SAFE_READINGS, (0.5, -1.0)])
    assert once.width == pytest.approx(usual * 2**0.95, rel=0.05), "one violation less 0.05"
    later = guarded([*SAFE_READINGS, (0.5, -1.0), *[(0.2, 1.0)] * 10])
    assert later.width == pytest.approx(usual * 2**0.45, rel=0.05), "less 0.05 for each answer"
    often = guarded([*SAFE_READINGS, *[(0.5, -1.0), (0.6, -1.1)] * 4])
    assert often.width == pytest.approx(usual * 2**MOST_DUE, rel=0.01)


def test_readings_of_the_baseline_are_no_violations():
    assert guarded([*SAFE_READINGS, (0.2, -0.1)]).width == pytest.approx(-float(ndtri(0.05)), rel=0.02)


def test_what_is_certain_is_no_outlier():
    points, values = np.linspace(0, 1, 8)[:, None], np.array([0.0, 0.1, -0.1, 9.0, 0.0, 0.1, 0.0, -0.1])
    evidence = Evidence(points, np.arange(8), values, np.full(8, np.nan), np.zeros(1, dtype=np.intp))
    found = ModelConfig(noise_models=(StudentNoise(),), local_noise=None).calibrated(evidence)
    evidence = found.scale.standardised(evidence)
    doubted, certain = learn(found, evidence), learn(found, evidence, evidence.values > 3)
    assert doubted.trust[3] < 0.3
    assert certain.trust[3] == 1.0
    assert np.delete(certain.trust, 3) == pytest.approx(np.delete(doubted.trust, 3))


def test_questions_about_several_objectives_are_as_safe_and_explore():
    """One objective is best where the constraint is broken, the other at the baseline."""
    rng, opt = np.random.default_rng(0), made(goal=None, goals={"a": "minimize", "b": "minimize"})
    broken, asked = 0, []
    for _ in range(30):
        x = (trial := opt.ask()).params["x"]
        asked.append(x)
        values = {"a": (x - 0.8) ** 2, "b": (x - 0.2) ** 2}
        told = {name: value + 0.02 * rng.standard_normal() for name, value in values.items()}
        opt.tell(trial, told, constraints={"limit": limit(x) + 0.02 * rng.standard_normal()})
        broken += limit(x) > 0
    assert broken <= 0.05 * 30
    assert asked[:3] == [0.2] * 3
    assert max(asked) > 0.4  # it grows towards the objective that is not at the baseline
    assert len(set(asked)) > 8
    front = opt.front()
    assert len(front) > 1
    assert all(limit(its.params["x"]) <= 0 for its in front)
    assert max(its.params["x"] for its in front) > 0.4
    with pytest.raises(ValueError, match="fidelity or safe, not both: a cheaper run may break a constraint"):
        made(fidelity={"epochs": Int(1, 9)})
