"""Coverage of what pairs of runs show, for choices that are made with a look at the results."""

import numpy as np
import pytest

from noregret.optimizer import Int, Reading, Trial
from noregret.optimizer.answers.paired import Pairs
from noregret.studies.function import minimize

BASELINE = {"x": 0}
STUDIES, MOST_PAIRS = 300, 20
TAIL = 0.05 + 3 * (0.05 * 0.95 / STUDIES) ** 0.5
"""Largest share of wrong statements of a level of 95% that chance explains, by three standard errors."""


def ever_wrong(seed, change, noise, drift):
    """True if a statement about the current choice was wrong at any look.

    Of several settings with the same change, each is left as soon as its pairs look bad.
    """
    rng, trials, current, wrong = np.random.default_rng(seed), [], 1, False
    for place in range(MOST_PAIRS):
        choice = {"x": current}
        name = f"{place} {Pairs([], params_key, BASELINE).digest(choice)}"
        both = [BASELINE, choice]
        for params in both if rng.random() < 0.5 else reversed(both):
            value = drift(len(trials)) + noise(rng) + change * (params is choice)
            trials.append(Trial(len(trials), params, state="done", readings={"value": (Reading(value),)}, pair=name))
        found = Pairs(trials, params_key, BASELINE)
        measured = found.measured(choice, "minimize")
        if measured is not None:
            wrong |= not measured.lower <= -change <= measured.upper
        recent = [its.value() for its in trials[-4:] if its.params == choice]
        if len(found.choices[-1].pairs) < 4 and np.median(recent) > drift(len(trials)) + change:
            current += 1
    return wrong


def params_key(params):
    return params["x"]


NOISES = {
    "normal": lambda rng: rng.standard_normal(),
    "cauchy": lambda rng: rng.standard_cauchy(),
    "ticks": lambda rng: round(rng.standard_normal()),
}
DRIFTS = {"still": lambda number: 0.0, "drift": lambda number: 0.1 * number, "jump": lambda number: 5.0 * (number > 20)}


@pytest.mark.parametrize("change", [0.0, -0.5])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("drift", DRIFTS)
def test_statements_about_the_current_choice_are_right_at_every_look(change, noise, drift):
    if change and noise == "ticks":
        change = -1.0  # half a tick is no difference of two values
    if change and drift != "still":
        pytest.skip("the interval is about one median; the verdict, change 0, needs no more than random order")
    wrong = sum(ever_wrong([seed, 1], change, NOISES[noise], DRIFTS[drift]) for seed in range(STUDIES))
    assert wrong / STUDIES <= TAIL


def test_this_coverage_can_fail():
    """Without the share of later choices, and with an interval that forgets the looks, it does."""
    wrong = 0
    for seed in range(STUDIES):
        values = np.random.default_rng(seed).standard_normal(MOST_PAIRS)
        signs = np.sign(values).cumsum()
        wrong += any(abs(signs[count - 1]) >= 1.96 * count**0.5 for count in range(6, MOST_PAIRS + 1))
    assert wrong / STUDIES > TAIL


@pytest.mark.slow
def test_a_study_of_a_constant_function_shows_no_difference():
    """With noise in few studies, and without noise never."""
    shown = 0
    for seed in range(8):
        rng, scale = np.random.default_rng(seed), 0.1 * (seed > 1)
        result = minimize(
            lambda x, rng=rng, scale=scale: 1.0 + scale * rng.standard_t(2),
            {"x": Int(0, 3)},
            evaluations=80,
            baseline={"x": 0},
            rng=seed,
        )
        measured = result.gain.measured
        is_shown = measured is not None and not measured.lower <= 0 <= measured.upper
        assert not (is_shown and scale == 0)
        shown += is_shown
    assert shown <= 1
