"""The sentences of a report, for people who know neither kernels nor constants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from noregret.tune.learning.findings import Effect, Findings
from noregret.tune.page import words
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
    return f"Best setting, {'lowest' if findings.study.goal == 'minimize' else 'highest'} expected result"


def how_sure(findings: Findings) -> Iterator[str]:
    """What stands behind the recommendation."""
    best = findings.best
    assert best
    times = sum(len(point.records) for point in findings.points if point.params == best.params)
    yield (
        f"This setting was measured {_times(times)}; what was measured at similar settings counts too. It is the one "
        "that is good even if noise has been kind to it, not the one with the luckiest single measurement."
        if times
        else "This setting was not measured itself: those around it were, and say that it is the best choice."
    )
    worse, close = findings.rivals
    if worse + close:
        yield _against_rivals(worse, close)
    typical = float(np.median([np.median(point.values) for point in findings.points]))
    gain = (typical - best.estimate) if findings.study.goal == "minimize" else (best.estimate - typical)
    if gain > 0 and typical:
        side = "lower" if findings.study.goal == "minimize" else "higher"
        share = words.number(100 * gain / abs(typical), 2)
        yield (
            f"It is about {words.number(gain, 2)}{findings.unit} ({share} %) {side} than the middle of all "
            f"settings measured, {words.number(typical, 3)}{findings.unit}."
        )


def _against_rivals(worse: int, close: int) -> str:
    if not close:
        return f"All {worse} other settings measured are clearly worse: their likely values do not overlap with it."
    if not worse:
        return f"None of the {close} other settings measured can be told apart from it yet: more rounds would help."
    return (
        f"Of the other settings measured, {worse} are clearly worse; {close} cannot be told apart from it yet, and may "
        "be as good."
    )


def effect(findings: Findings, found: Effect) -> str:
    """What one parameter does."""
    best = findings.best
    assert best
    chosen = words.value(best.params[found.name])
    worst = int(np.argmax(found.estimate if findings.study.goal == "minimize" else -found.estimate))
    if _overlap(best.lower, best.upper, found.lower[worst], found.upper[worst]):
        return f"No clear effect: {chosen} was chosen, but even the worst value may be as good."
    return (
        f"Best at {chosen}; at {words.value(found.values[worst])} the result would be about "
        f"{words.number(found.span, 2)}{findings.unit} worse."
    )


def _overlap(low: float, high: float, other_low: float, other_high: float) -> bool:
    return low <= other_high and other_low <= high


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
    return (
        "Measuring a good setting again tells luck from quality. Bars show where each setting’s true value probably "
        "lies."
    )


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
    return "A run that failed gave no number. The search treats its setting as a bad one and looks elsewhere."


def measured(result: Result) -> str:
    """What the study's result is, as the object of 'minimize'."""
    if isinstance(result, JsonField):
        return f"{result.field} in the JSON that it prints"
    return {WallTime: "the time it takes", Pattern: "a number found in its output"}.get(
        type(result), "the last number it prints"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
