"""The sentences of a report, for people who know neither kernels nor constants."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from noregret.optimizer.comparing.gain import Gain
from noregret.optimizer.estimate import Estimate
from noregret.optimizer.showing.words import change_in_words
from noregret.optimizer.spaces.parameters import is_same_setting
from noregret.tune.learning.findings import Effect, Findings, Surface
from noregret.tune.page import words
from noregret.tune.page.pictures import MOST_DOTS
from noregret.tune.study.results import JsonField, Pattern, Result, WallTime

FEW = 5
"""With fewer measurements than this nothing is said about noise."""


def progress(findings: Findings) -> str:
    """How many measurements have been made, have failed and are running."""
    rounds = findings.study.budget.rounds
    parts = [f"{_count(len(findings.done), 'measurement')}{f' of {rounds} planned' if rounds else ''}"]
    if findings.failed:
        parts.append(f"{_count(len(findings.failed), 'failed run')}")
    running = sum(record.state == "running" for record in findings.records)
    if running:
        parts.append(f"{running} running")
    return words.html(", ".join(parts))


def nothing(findings: Findings) -> str:
    """The sentence for a study without any result."""
    return "Every run so far has failed." if findings.failed else "Nothing has been measured yet."


def title(findings: Findings) -> str:
    """The title of the best estimate."""
    said = f"Best setting, {'lowest' if findings.study.goal == 'minimize' else 'highest'} expected result"
    return f"{said}, where {words.html(words.params(findings.context))}" if findings.context else said


def how_sure(findings: Findings) -> Iterator[str]:
    """What stands behind the recommendation."""
    best = findings.best
    assert best
    if findings.study.constraints:
        yield _sentence(feasibility(best) if best.is_likeliest else f"it {feasibility(best)}")
    here = [record for record in findings.done if record.context == findings.context]
    times = sum(is_same_setting(record.params, best.params) for record in here)
    there = " in this context" if findings.context else ""
    yield (
        f"This setting was measured {_times(times)}{there}; what was measured at similar settings counts too. It is "
        "the one that is good even if noise has been kind to it, not the one with the luckiest single measurement."
        if times
        else f"This setting was not measured itself{there}: those around it were, and say that it is the best choice."
    )
    if best.has_gap:
        yield _sentence(room_left(best, findings.unit))
    if findings.half_life < math.inf:
        yield _sentence(change_in_words(findings.half_life)) + " Everything here is about now."
    worse, close = findings.rivals
    if worse + close:
        yield _against_rivals(worse, close, best.level, bool(findings.study.constraints))
    yield from why_over(findings)


def headline(gain: Gain) -> str:
    """How much better the best setting is than the baseline."""
    return _sentence(str(gain))


def feasibility(best: Estimate) -> str:
    """How likely the recommended setting meets all constraints."""
    if best.is_likeliest:
        chance = words.percent(best.feasible)
        return f"nothing measured is likely to meet all constraints: this is the likeliest, with {chance}"
    chance = f"over {words.percent(0.99)}" if best.feasible > 0.99 else words.percent(best.feasible)
    return f"meets all constraints with a probability of {chance}"


def why_over(findings: Findings) -> Iterator[str]:
    """Why nothing more is measured, and what to do if more is wanted."""
    study, reason = findings.study, findings.stopped
    if reason == "within" and study.stop:
        within = study.stop.within if isinstance(study.stop.within, str) else words.number(study.stop.within)
        yield (
            f"Precise enough: no other setting is better by more than {within} "
            f"({words.percent(study.stop.confidence)}). Lower within, or leave [stop] out, to go on."
        )
    elif reason == "budget" and study.budget.rounds and study.budget.seconds:
        yield "Budget spent: raise rounds to go on, or run the same command again if only its seconds are over."
    elif reason == "budget":
        yield f"Budget spent: {'raise rounds' if study.budget.rounds else 'run the same command again'} to go on."


def room_left(best: Estimate, unit: str) -> str:
    """How much better another setting may be, if anything is known about that."""
    level = words.percent(best.level)
    if math.isinf(best.gap):
        return "parts of the space are still unmeasured, so a better setting cannot be ruled out"
    if best.gap <= 0:
        return f"no other setting is better ({level})"
    return f"another setting may be better by at most {words.number(best.gap)}{unit} ({level})"


def _against_rivals(worse: int, close: int, level: float, bounded: bool) -> str:
    others = "settings measured that likely meet the constraints" if bounded else "settings measured"
    at = f"at {words.percent(level)} each"
    if not close:
        return f"All {worse:,} other {others} are clearly worse: their intervals, {at}, do not overlap with it."
    if not worse:
        return f"None of the {close:,} other {others} can be told apart from it ({at}): more rounds would help."
    return (
        f"Of the other {others}, {worse:,} are clearly worse ({at}); {close:,} cannot be told apart from it "
        "yet, and may be as good."
    )


def contexts(findings: Findings) -> str:
    """Which contexts are listed."""
    met, shown = len(findings.contexts), len(findings.recommended)
    if shown == met:
        return "In every context that was measured in, the setting that is best there."
    return (
        f"Of the {met:,} contexts that were measured in, these are the last one and those that differ most: in each "
        "the setting that is best there."
    )


def elsewhere(findings: Findings) -> Iterator[str]:
    """Which contexts curves and dots are of."""
    if findings.context:
        there = words.params(findings.context)
        yield f"Estimates are those where {there}; measurements are those of all contexts, so they may lie far off."


def thinned(findings: Findings) -> Iterator[str]:
    """What charts leave out."""
    if len(findings.done) > MOST_DOTS:
        count = f"{len(findings.done):,}"
        yield f"Charts show at most {MOST_DOTS} measurements of a kind, evenly spread over the {count} there are."


def importance(findings: Findings) -> Iterator[str]:
    """What the shares mean."""
    shares = findings.importance.values()
    level = next(iter(shares)).level
    yield (
        "How much of the difference between all settings, as a share of its variance, is lost when a parameter stops "
        f"changing. The thin line is where that share probably lies ({words.percent(level)})."
    )
    if not any(share.lower for share in shares):
        yield "Noise alone may explain all results so far: the settings may not differ at all."
    if sum(share.estimate for share in shares) > 1:
        yield "Shares may add up to more than 100 %: what two parameters do together counts for both."


def left_out(count: int, shown: int) -> Iterator[str]:
    """How many parameters have no chart."""
    if shown < count:
        yield f"These are the {shown} parameters that matter most, of {count}."


def ends(findings: Findings, surface: Surface) -> tuple[str, str]:
    """The worst and the best estimate of a surface."""
    low, high = words.between(float(surface.estimate.min()), float(surface.estimate.max()))
    worst, best = (high, low) if findings.study.goal == "minimize" else (low, high)
    return f"{worst}{findings.unit}", f"{best}{findings.unit}"


def effect(findings: Findings, found: Effect) -> str:
    """What one parameter does."""
    best = findings.best
    assert best
    sign = 1 if findings.study.goal == "minimize" else -1
    loss = sign * found.estimate - sign * best.estimate
    chosen, each = words.value(best.params[found.name]), words.percent(best.level)
    clear = (found.lower > best.upper) | (found.upper < best.lower)
    worst = int(np.argmax(np.where(clear, loss, -np.inf) if clear.any() else loss))
    there = f"at {words.value(found.values[worst])} it is about {words.number(loss[worst], 2)}{findings.unit} worse"
    if clear.any():
        return f"Best at {chosen}; {there}, and clearly so: the intervals ({each} each) do not overlap."
    if loss[worst] > findings.noise_std:
        return (
            f"Best at {chosen}; {there} by the estimate, but the intervals ({each} each) overlap: it is not sure yet."
        )
    return f"No effect that is larger than the noise: {chosen} was chosen, but any value may be as good."


def noise(findings: Findings) -> Iterator[str]:
    """How far measurements of one setting lie apart, and how wildly."""
    best = findings.best
    if best is None or len(findings.done) < FEW:
        yield "There are too few measurements to say."
        return
    share = (
        f" ({words.number(100 * findings.noise_std / abs(best.estimate), 2)} % of the best result)"
        if findings.noise_std < abs(best.estimate)
        else ""
    )
    yield (
        f"About two out of three measurements lie within {words.number(findings.noise_std, 2)}{findings.unit}{share} "
        "of what their setting gives on average."
    )
    yield _tails(findings)


def _tails(findings: Findings) -> str:
    if findings.heavy or (findings.diagnosis and findings.diagnosis.heavy):
        return (
            "The noise has heavy tails: now and then a measurement is wildly off, far more often than the bell curve "
            "would have it. Averages would be led astray, so measurements count for less the further off they are."
        )
    source = "Repeated measurements show" if findings.diagnosis else "The measurements show"
    return f"{source} no heavy tails: the noise is well-behaved, and every measurement counts alike."


def repeats() -> str:
    """Why settings are measured again."""
    return "Measuring a good setting again tells luck from quality."


def candidates(findings: Findings) -> str:
    """Which candidates are shown."""
    shown = min(len(findings.candidates), 10)
    return f"Of {len(findings.candidates):,} candidates, the {shown} with the best estimates."


def outliers(findings: Findings) -> str:
    """Which measurements are outlying, and what became of them."""
    share = 100 * len(findings.outliers) / len(findings.done)
    verb = "disagrees" if len(findings.outliers) == 1 else "disagree"
    return (
        f"{_count(len(findings.outliers), 'measurement')} ({share:.2g} %) {verb} with what all others say. Nothing "
        "was thrown away: each still counts, but only for the share given here of a usual measurement."
    )


def failures() -> str:
    """What failed runs mean for the search."""
    return (
        "A run that failed gave no number. A setting that has only failed is treated as a bad one if it is more likely "
        "broken than unlucky, judging by how often it failed, how often others fail, and whether settings near it work."
    )


def measured(result: Result) -> str:
    """What the study's result is, as the object of 'minimize'."""
    if isinstance(result, JsonField):
        return f"{result.field} in the JSON that it prints"
    return {WallTime: "the time it takes", Pattern: "a number found in its output"}.get(
        type(result), "the last number it prints"
    )


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
