"""The sentences of a report, for readers without statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from noregret.optimizer import Estimate, change_in_words, is_same_setting
from noregret.studies import words
from noregret.studies.learning.findings import MOST_DOTS, Effect, Findings, Surface
from noregret.studies.study.results import JsonField, MaxRss, Pattern, Result, UserTime, WallTime

FEWEST_FOR_NOISE = 5
"""With fewer measurements than this nothing is said about noise."""


def progress(findings: Findings) -> str:
    """Numbers of measurements made, failed and running."""
    rounds = findings.study.budget.rounds
    parts = [f"{_count(len(findings.done), 'measurement')}{f' of {rounds} planned' if rounds else ''}"]
    if findings.cut:
        parts.append(f"{len(findings.cut)} cut short")
    if findings.failed:
        parts.append(f"{_count(len(findings.failed), 'failed run')}")
    if findings.early:
        stopped = sum(record.is_stopped for record in findings.done)
        at = f"{len(findings.early)} at lower {' '.join(findings.study.fidelity or ())}"
        parts.append(f"{at} ({stopped} stopped early)" if stopped else at)
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
    """Evidence for the recommendation."""
    best = findings.best
    assert best
    if findings.study.constraints:
        yield words.sentence(feasibility(best) if best.is_likeliest else f"it {feasibility(best)}")
    here = [record for record in findings.done if record.context == findings.context]
    times = sum(is_same_setting(record.params, best.params) for record in here)
    often = {1: "once", 2: "twice"}.get(times, f"{times} times")
    there = " in this context" if findings.context else ""
    yield (
        f"This setting was measured {often}{there}; similar settings count too. It has the best worst-case "
        "estimate, rather than the single luckiest measurement."
        if times
        else f"This exact setting has not been measured{there}; the prediction comes from nearby ones."
    )
    if best.has_gap:
        yield words.sentence(best.remaining_in_words(findings.unit))
    half_life, shift = findings.optimizer.half_life, findings.optimizer.shift
    if half_life < math.inf:
        yield words.sentence(change_in_words(half_life)) + " All findings are about the present."
    if shift:
        yield words.sentence(str(shift))
    for doubt in findings.optimizer.doubts:
        by = "'noregret correct'" if findings.study.command else "'correct'"
        yield words.sentence(f"{doubt} {by} replaces a value")
    worse, close = findings.rivals
    if worse + close:
        yield _against_rivals(worse, close, best.level, bool(findings.study.constraints))
    yield from why_over(findings)


def feasibility(best: Estimate) -> str:
    """Probability that the recommended setting meets all constraints."""
    if best.is_likeliest:
        chance = words.percent(best.feasible)
        return f"no measured setting is likely to meet all constraints: this one is the most likely ({chance})"
    chance = f"over {words.percent(0.99)}" if best.feasible > 0.99 else words.percent(best.feasible)
    return f"meets all constraints (probability {chance})"


def why_over(findings: Findings) -> Iterator[str]:
    """Reason why the study has ended, and how to continue."""
    study, reason = findings.study, findings.stopped
    if reason == "within" and study.stop:
        within = study.stop.within if isinstance(study.stop.within, str) else words.number(study.stop.within)
        yield (
            f"Precise enough: no other setting is better by more than {within} "
            f"({words.percent(study.stop.confidence)}). Lower within, or leave [stop] out, to continue."
        )
    elif reason == "budget":
        rounds, made = study.budget.rounds, findings.made
        if rounds and made >= rounds:
            is_broken = findings.failed and not findings.done
            how = "Raise [budget] evaluations to continue."
            fix = "Fix the command in the study file and run it again, or give it another name."
            yield f"Budget of {rounds:,} evaluations used. {fix if is_broken else how}"
        else:
            done = f" ({made:,} of {rounds:,} evaluations)" if rounds else ""
            yield f"Time limit reached{done}. Run the same command to continue."


def _against_rivals(worse: int, close: int, level: float, bounded: bool) -> str:
    others = "settings measured that likely meet the constraints" if bounded else "settings measured"
    at = f"at {words.percent(level)} each"
    if not close:
        return f"All {worse:,} other {others} are clearly worse: their intervals, {at}, do not overlap with it."
    if not worse:
        return f"All {close:,} other {others} may be just as good ({at}): more evaluations would help."
    are = "is" if worse == 1 else "are"
    return f"Of the other {others}, {worse:,} {are} clearly worse ({at}); {close:,} may be just as good."


def against(findings: Findings, other: Findings) -> Iterator[str]:
    """Comparison of the best settings of two studies."""
    mine, theirs = findings.best, other.best
    assert mine
    assert theirs
    sign = 1 if findings.study.goal == "minimize" else -1
    better, worse = (findings, other) if sign * mine.estimate <= sign * theirs.estimate else (other, findings)
    size = abs(mine.estimate - theirs.estimate)
    percent = (
        f" ({words.number(100 * size / abs(worse.best.estimate), 2)}%)" if worse.best and worse.best.estimate else ""
    )
    clear = mine.upper < theirs.lower or theirs.upper < mine.lower
    level = words.percent(mine.level)
    sure = (
        f"clearly so: the intervals ({level} each) do not overlap"
        if clear
        else f"not certain: the intervals ({level} each) overlap"
    )
    yield (
        f"By the estimates, the best setting of {better.study.name} is better by {words.number(size, 2)}"
        f"{findings.unit}{percent}; {sure}."
    )
    if findings.label != other.label:
        yield f"The studies measure different results: {findings.label} and {other.label}."


def front(findings: Findings) -> Iterator[str]:
    """Meaning of the front, and its size."""
    count = len(findings.front)
    level = words.percent(findings.front[0].level)
    yield (
        f"{count} setting{'s' * (count != 1)}: each is best at some trade-off. The bars are the intervals of each "
        f"value ({level}). A setting is here because of the model of all measurements, not because of one lucky one. "
        "The probability is that of belonging to the true front."
    )
    if findings.gains and findings.gains.is_better and not findings.picked:
        yield f"Compared with your settings, one of the front is {findings.gains}."
    if volume := findings.hypervolume:
        size = words.with_interval(volume.estimate, volume.lower, volume.upper)
        yield f"Hypervolume: {size}. It grows as the front gets better in any objective."


def picked(findings: Findings) -> Iterator[str]:
    """Gain of the setting that was picked, and whether it meets the wish."""
    if findings.picked and findings.picked.is_likeliest:
        yield "No setting of the front is likely to meet it: this one comes nearest."
    if findings.gains:
        yield words.sentence(str(findings.gains))


def timeline(findings: Findings) -> str:
    """Number of workers, and the share of the time in which they ran something."""
    spans = findings.spans.values()
    workers, total = 1 + max(span.worker for span in spans), max(span.end for span in spans)
    busy = sum(span.end - span.start for span in spans) / (workers * total)
    return f"{_count(workers, 'worker')} in {words.duration(total)}, busy for {words.percent(busy)} of that time."


def costs(findings: Findings, is_weighed: bool) -> Iterator[str]:
    """Range of the costs of trials, and their part in the choice of trials."""

    def shown(cost: float) -> str:
        return words.duration(cost) if findings.timed else words.number(cost)

    if findings.usual_costs is not None:
        low, high = findings.usual_costs
        yield f"Eight of ten trials cost between {shown(low)} and {shown(high)}."
    if findings.best is not None and is_weighed:
        cost = findings.optimizer.predict(findings.best.params, findings.context).cost
        expected = "" if cost is None else f" One of the best setting costs about {shown(cost)}."
        yield f"Improvement was weighed by the expected cost of a trial.{expected}"
    elif findings.study.command:
        yield (
            "The budget counts evaluations, so costs did not matter. With [budget] seconds and no evaluations, "
            "improvement is weighed by the time that a trial takes."
        )


def contexts(findings: Findings) -> str:
    """Selection of the listed contexts."""
    met, shown = len(findings.contexts), len(findings.recommended)
    if shown == met:
        return "The best setting in every measured context."
    return f"Of the {met:,} measured contexts, the last one and those that differ most, each with its best setting."


def elsewhere(findings: Findings) -> Iterator[str]:
    """Contexts of curves and dots."""
    if findings.context:
        there = words.params(findings.context)
        yield f"Estimates are for {there}; measurements are from all contexts, so they may lie far off."


def cut_short(findings: Findings) -> Iterator[str]:
    """Runs that were stopped."""
    count, cap = len(findings.cut), findings.study.cap
    if count:
        were = "run was" if count == 1 else "runs were"
        reason = f": slower than {'' if cap == 1 else f'{cap:g} times '}the best setting may be" if cap else ""
        yield f"{count} {were} cut short{reason}. Of these only a bound is known, and the model counts it as one."


def thinned(findings: Findings) -> Iterator[str]:
    """Measurements that charts leave out."""
    if len(findings.done) > MOST_DOTS:
        count = f"{len(findings.done):,}"
        yield f"Charts show at most {MOST_DOTS} measurements of a kind, evenly spread over the {count} there are."


def importance(findings: Findings) -> Iterator[str]:
    """Meaning of the shares, which may be those of several objectives."""
    shares = [share for whole, _ in findings.shares.values() for share in whole.values()]
    level = shares[0].level
    yield (
        "Share of the variation between settings that depends on this parameter. "
        f"The thin line is its interval ({words.percent(level)}). Among the better half, all settings worse than the "
        "median count as equal, so a value that spoils everything does not hide the other parameters."
    )
    if not any(share.lower for share in shares):
        yield "Noise alone may explain all results so far: the settings may not differ at all."
    if sum(share.estimate for share in shares) > 1 and findings.is_single:
        yield "Shares may add up to more than 100%: joint effects of two parameters count for both."


def left_out(count: int, shown: int) -> Iterator[str]:
    """Number of parameters without a chart."""
    if shown < count:
        yield f"These are the {shown} parameters that matter most, of {count}."


def ends(findings: Findings, surface: Surface) -> tuple[str, str]:
    """The worst and the best estimate of a surface."""
    low, high = words.between(float(surface.estimate.min()), float(surface.estimate.max()))
    worst, best = (high, low) if findings.study.goal == "minimize" else (low, high)
    return f"{worst}{findings.unit}", f"{best}{findings.unit}"


def effect(findings: Findings, found: Effect) -> str:
    """Effect of one parameter."""
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
        return f"Best at {chosen}; {there} by the estimate, but the intervals ({each} each) overlap: not certain yet."
    return f"No effect larger than the noise: {chosen} was chosen, but any value may be as good."


def noise(findings: Findings) -> Iterator[str]:
    """Size and tails of the noise."""
    best = findings.best
    if best is None or len(findings.done) < FEWEST_FOR_NOISE:
        yield "There are too few measurements to say."
        return
    share = (
        f" ({words.number(100 * findings.noise_std / abs(best.estimate), 2)}% of the best result)"
        if findings.noise_std < abs(best.estimate)
        else ""
    )
    yield (
        f"About two out of three measurements lie within {words.number(findings.noise_std, 2)}{findings.unit}{share} "
        "of the average of their setting."
    )
    yield _tails(findings)


def _tails(findings: Findings) -> str:
    if findings.optimizer.calibrated.noise.heavy or (findings.diagnosis and findings.diagnosis.heavy):
        return (
            "The noise has heavy tails: outliers are far more frequent than in a normal distribution. Measurements "
            "therefore count for less the further off they are."
        )
    source = "Repeated measurements show" if findings.diagnosis else "The measurements show"
    return f"{source} no heavy tails: all measurements count equally."


def candidates(findings: Findings) -> str:
    """Selection of the shown candidates."""
    shown = min(len(findings.candidates), 10)
    return f"Of {len(findings.candidates):,} candidates, the {shown} with the best estimates."


def outliers(findings: Findings) -> str:
    """Number of outliers, and their weight."""
    share = 100 * len(findings.outliers) / len(findings.done)
    verb = "disagrees" if len(findings.outliers) == 1 else "disagree"
    return (
        f"{_count(len(findings.outliers), 'measurement')} ({share:.2g}%) {verb} with all others. None is "
        "discarded: each counts with the weight given here."
    )


def measured(result: Result) -> str:
    """The study's result, as the object of 'minimize'."""
    if isinstance(result, JsonField):
        return f"{result.field} in the JSON that it prints"
    return {
        WallTime: "the time it takes",
        UserTime: "the processor time it takes",
        MaxRss: "its peak memory",
        Pattern: "a number found in its output",
    }.get(type(result), "the last number it prints")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
