"""Runs in pairs with the baseline, and the gain that they show."""

import math
from dataclasses import replace

import numpy as np
import pytest

from noregret.optimizer import Float, Gain, MeasuredGain, Optimizer, Percent, Reading, Trial
from noregret.optimizer.answers.paired import Pairs

BASELINE, BETTER, OTHER = {"x": 0.9}, {"x": 0.3}, {"x": 0.4}


def key(params):
    return params["x"]


def half(number, params, name, value=None, state="done", bound=None):
    readings = {} if value is None else {"value": (Reading(value, bound=bound),)}
    return Trial(
        number, params, state=state if value is not None or state != "done" else "running", readings=readings, pair=name
    )


def pairs_of(rows):
    """Pairs of trials from rows (choice, name, value of the baseline, value of the choice); None is a failed run."""
    trials, digest = [], Pairs([], key, BASELINE).digest
    for place, (params, usual, chosen) in enumerate(rows):
        both = [(BASELINE, usual), (params, chosen)]
        for its, value in both if place % 2 else reversed(both):
            state = "failed" if value is None else "done"
            trials.append(half(len(trials), its, f"{place} {digest(params)}", value, state))
    return Pairs(trials, key, BASELINE)


USUAL = [10.0, 11.0, 9.0, 10.5, 9.5, 10.2, 9.8, 10.1]
CHOSEN = [7.0, 7.5, 6.0, 7.2, 6.6, 7.1, 6.9, 7.4]


def test_eight_pairs_have_an_interval_from_the_least_to_the_largest_change_and_seven_have_none():
    rows = [(BETTER, *both) for both in zip(USUAL, CHOSEN, strict=True)]
    assert pairs_of(rows[:7]).measured(BETTER, "minimize") is None
    assert pairs_of(rows[:7]).missing(BETTER) == 1
    pairs = pairs_of(rows)
    found, gains = pairs.measured(BETTER, "minimize"), np.array(USUAL) - CHOSEN
    assert (found.lower, found.upper, found.pairs, found.level) == (gains.min(), gains.max(), 8, 0.95)
    assert found.estimate == pytest.approx(np.median(gains))
    ratios = 100 * (1 - np.array(CHOSEN) / USUAL)
    assert found.percent == pytest.approx(
        (100 * (1 - np.exp(np.median(np.log(1 - ratios / 100)))), ratios.min(), ratios.max())
    )
    assert str(found) == "measured in 8 pairs: 26.7% to 33.3% lower"
    assert (pairs.missing(BETTER), pairs.measured(OTHER, "minimize")) == (0, None)
    worse = pairs.measured(BETTER, "maximize")
    assert (worse.lower, worse.upper) == (-found.upper, -found.lower)
    assert str(worse) == "measured in 8 pairs: 26.7% to 33.3% lower"


def test_a_later_choice_needs_more_pairs():
    rows = [(OTHER, 10.0, 9.0)] + [(BETTER, *both) for both in zip(USUAL, CHOSEN, strict=True)]
    pairs = pairs_of(rows)
    assert (pairs.measured(BETTER, "minimize"), pairs.missing(BETTER)) == (None, 2)
    pairs = pairs_of([*rows, (BETTER, 10.0, 7.0), (BETTER, 10.0, 7.0)])
    assert pairs.measured(BETTER, "minimize").pairs == 10
    assert pairs.missing({"x": 0.5}) == 11  # the third choice


def test_a_pair_that_was_not_completed_ends_the_bets_of_its_choice():
    rows = [(BETTER, *both) for both in zip(USUAL, CHOSEN, strict=True)]
    whole = [trial for name in pairs_of(rows).halves.values() for trial in name]
    assert Pairs(whole[:15], key, BASELINE).begun(BETTER).number == 14
    assert Pairs(whole[:15], key, BASELINE).begun(OTHER) is None
    assert len(Pairs(whole[:15], key, BASELINE).choices[0].pairs) == 7
    broken = Pairs([trial for trial in whole if trial.number != 2], key, BASELINE)  # the first half of the second pair
    assert [len(choice.pairs) for choice in broken.choices] == [1, 6]
    assert broken.measured(BETTER, "minimize") is None
    assert broken.missing(BETTER) == 4
    pending = [half(2, whole[2].params, whole[2].pair), *(trial for trial in whole if trial.number != 2)]
    waiting = Pairs(sorted(pending, key=lambda its: its.number), key, BASELINE)
    assert [len(choice.pairs) for choice in waiting.choices] == [1]  # later pairs wait for it
    assert waiting.missing(BETTER) == 0  # all eight were begun


def test_a_failed_run_loses_its_pair_and_a_bound_is_no_value():
    rows = [(BETTER, *both) for both in zip(USUAL, CHOSEN, strict=True)]
    found = pairs_of([(BETTER, 10.0, None), *rows[1:]]).measured(BETTER, "minimize")
    assert (found.lower, found.upper) == (-math.inf, max(np.array(USUAL[1:]) - CHOSEN[1:]))
    assert found.percent.lower == -math.inf
    assert str(found) == "measured in 8 pairs: 33.3% lower to no limit higher"
    found = pairs_of([(BETTER, None, 7.0), *rows[1:]]).measured(BETTER, "minimize")
    assert (found.lower > 0, found.upper) == (True, math.inf)
    both = pairs_of([(BETTER, None, None), *rows[1:]]).measured(BETTER, "minimize")
    assert both.lower == 0.0
    whole = [trial for halves in pairs_of(rows).halves.values() for trial in halves]
    place = next(i for i, trial in enumerate(whole) if trial.params == BASELINE)
    whole[place] = half(place, BASELINE, whole[place].pair, 9.0, bound="at_least")
    found = Pairs(whole, key, BASELINE).measured(BETTER, "minimize")
    assert (found.upper, found.percent.upper) == (math.inf, 100.0)
    assert found.lower >= 9.0 - max(CHOSEN)


def test_pairs_of_other_names_or_settings_are_no_evidence():
    assert Pairs([half(0, BASELINE, " ", 1.0), half(1, BETTER, " ", 2.0)], key, BASELINE).choices == []
    name = f"0 {Pairs([], key, BASELINE).digest(OTHER)}"
    assert Pairs([half(0, BASELINE, name, 1.0), half(1, BETTER, name, 2.0)], key, BASELINE).choices == []
    assert Pairs([half(0, BETTER, name, 1.0), half(1, BETTER, name, 2.0)], key, BASELINE).choices == []
    with pytest.raises(ValueError, match="baseline=params"):
        Optimizer({"x": Float(0, 1)}).pairs  # noqa: B018


def test_ends_that_differ_in_direction_come_in_order():
    for goal, lower, upper in (("minimize", -0.1, 0.4), ("maximize", -0.4, 0.1)):
        found = MeasuredGain(0.0, lower, upper, 8, goal)
        assert str(found) == "measured in 8 pairs: 0.4 lower to 0.1 higher"


def test_a_constant_shows_nothing():
    found = pairs_of([(BETTER, 3.0, 3.0)] * 8).measured(BETTER, "minimize")
    assert (found.lower, found.upper, found.percent) == (0.0, 0.0, Percent(0.0, 0.0, 0.0))
    assert str(found) == "measured in 8 pairs: 0% lower to 0% higher"


def paired_optimizer():
    opt, rng = Optimizer({"x": Float(0, 1)}, goal="minimize", baseline=BASELINE, rng=0), np.random.default_rng(0)

    def measured(params):
        return 1.0 + (params["x"] - 0.3) ** 2 + 0.01 * rng.standard_normal()

    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, measured(trial.params))
    best = opt.best().params
    while (pairs := opt.pairs).missing(best):
        name = f"{len(pairs.halves)} {pairs.digest(best)}"
        for params in (best, opt.baseline):
            opt.tell(opt.expect(params, pair=name), measured(params))
    return opt, best


def test_an_optimizer_keeps_pairs_through_saving_correcting_and_tables(tmp_path):
    opt, best = paired_optimizer()
    measured = opt.pairs.measured(best, "minimize")
    opt.save(tmp_path / "o.json")
    loaded = Optimizer.load(tmp_path / "o.json")
    assert loaded.pairs.measured(best, "minimize") == measured
    if opt.best().params == best:
        assert opt.gain().measured == loaded.gain().measured == measured
        assert str(opt.gain()).startswith(f"{measured} than your settings (at 95%); by the model ")
        assert str(measured) in repr(opt)
    first = next(trial for trial in opt.trials if trial.pair)
    loaded.correct(first.number, 5.0)
    assert loaded.pairs.measured(best, "minimize") != measured
    loaded.withdraw(first.number)
    assert len(loaded.pairs.choices[0].pairs) == 7
    other = Optimizer({"x": Float(0, 1)}, goal="minimize", baseline=BASELINE, rng=0)
    other.add(opt.trials)
    assert other.pairs.measured(best, "minimize") == measured


def test_pairs_decide_whether_a_gain_is_shown():
    opt, _ = paired_optimizer()
    gain = opt.gain()
    assert gain.lower > 0
    for lower, upper, is_shown in ((1.0, 2.0, True), (-1.0, 2.0, True), (-2.0, -1.0, False), (0.0, 1.0, True)):
        its = replace(gain, measured=MeasuredGain(0.5 * (lower + upper), lower, upper, 8, "minimize"))
        assert its.is_shown == is_shown
        assert str(its).startswith(
            "measured in 8 pairs" if is_shown else "not shown to be better than your settings: m"
        )
        unknown = replace(its, lower=-1.0, relative=None)
        assert unknown.is_shown == (lower > 0)


def test_a_setting_with_a_pair_stays_recommended_until_another_one_is_shown_to_be_better():
    """Three settings with means of 10, 5 and 4.3; the third is unlucky twice, before a pair of the second begins."""
    rng, table = np.random.default_rng(0), [{"x": x} for x in range(3)]
    for has_pair in (False, True):
        opt = Optimizer(table, goal="minimize", baseline=table[0], rng=0)
        name = f"0 {opt.pairs.digest(table[1])}" if has_pair else ""
        for x, mean, count in ((0, 10, 8), (1, 5, 12), (2, 5.5, 2)):
            for _ in range(count):
                opt.tell(table[x], mean + rng.standard_normal())
        assert opt.best().params == table[1]
        opt.tell(opt.expect(table[1], pair=name), 5.2)
        for _ in range(12):
            opt.tell(table[2], 4.3 + rng.standard_normal())
        assert opt.best().params == opt.gain().best.params == table[1 if has_pair else 2]
        for _ in range(60):
            opt.tell(table[1], 5 + rng.standard_normal())
            opt.tell(table[2], 3.5 + rng.standard_normal())
        assert opt.best().params == table[2]


def test_a_setting_whose_last_run_has_failed_does_not_stay():
    assert pairs_of([(BETTER, 10.0, 7.0)]).held == BETTER
    assert pairs_of([(BETTER, 10.0, 7.0), (OTHER, 10.0, None)]).held is None
    assert Pairs([], key, BASELINE).held is None


def test_the_gain_of_a_service_is_that_of_the_optimizer():
    pytest.importorskip("pydantic")
    from noregret.service import answers, client

    opt, best = paired_optimizer()
    measured = opt.pairs.measured(best, "minimize")
    gain = Gain(**vars(opt.gain()) | {"measured": measured})
    for its in (measured, None, MeasuredGain(1.0, -math.inf, math.inf, 9, "minimize")):
        sent = answers._gain(Gain(**vars(gain) | {"measured": its}))
        assert client._gain(sent.model_dump()).measured == its
        assert (str(its) in sent.text) == (its is not None)
