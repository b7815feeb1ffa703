"""Requests to studies and their answers, for any protocol: each function takes a checked form and returns one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from typing import Any

from noregret.formatting import finite
from noregret.optimizer import (
    LEVEL,
    VALUE,
    BadReading,
    Block,
    Estimate,
    FixedContext,
    Gain,
    Gains,
    JointEstimate,
    Reading,
    Readings,
    State,
    StopRule,
    checked_block,
    checked_confidence,
    checked_tolerance,
)
from noregret.service import models
from noregret.service.live import AskRequest, Assignment, LiveStudy, RefusedOutcome
from noregret.service.models import BadField, field_of
from noregret.service.studies import Studies
from noregret.studies.learning.findings import best_json, member_json
from noregret.studies.store.records import Record
from noregret.studies.store.storage import Listed
from noregret.studies.study.forms import Place
from noregret.studies.study.study import SERVICE, StudyError

FAILED = "reported as a failure"
"""Reason of a failure that a client reports."""
DETAILS = ("noise", "constraints", "fidelity")
"""Parts of a trial that are named where they differ; others are readings."""
WAITING: tuple[State, ...] = ("waiting", "running")
WITHOUT_VALUE: tuple[State, ...] = ("failed", "pruned", "withdrawn")


class Unknown(LookupError):
    """There is no trial with this id."""


class Contradiction(ValueError):
    """The request contradicts what is stored, or comes too early."""


@contextmanager
def _unless_contradicted() -> Iterator[None]:
    """Raise a ValueError of the block as Contradiction, unless it is about a field of the request or the storage."""
    try:
        yield
    except (BadField, StudyError):
        raise
    except ValueError as error:
        raise Contradiction(str(error)) from None


def faults(errors: Iterable[Any]) -> list[tuple[list[str | int], str, str]]:
    """Fields at fault from errors of pydantic: the place, what must hold, and the kind of the fault."""
    return [
        (
            [part for part in error["loc"] if part not in models.KINDS],
            error["msg"].removeprefix("Value error, "),
            error["type"],
        )
        for error in errors
    ]


def listed(studies: Studies, after: str, limit: int) -> models.StudiesForm:
    """Studies by name, without conclusions."""
    rows = studies.listed(after, limit + 1)
    more = rows[limit - 1].name if len(rows) > limit else None
    return models.StudiesForm(studies=[_listed(study) for study in rows[:limit]], next=more)


def described(study: LiveStudy, context: Any) -> models.StudyState:
    """A study with the number of its trials and the recommended params."""
    is_known = study.study.context is None or context is not None
    here = context_of(study, context) if is_known else None
    known = _best(study, here) if is_known and not study.study.goals else None
    counts = counted(study)
    return models.StudyState(
        **(study.study.description or {}),
        trials=sum(counts.values()),
        states=states(counts),
        best=None if known is None else best_form(*known),
    )


def ask_request(study: LiveStudy, form: models.AskForm) -> AskRequest:
    """The request for trials that a form describes."""
    return AskRequest(form.count, form.client, context_of(study, form.context))


def asked(trials: Assignment) -> models.AskedForm:
    """Trials to measure."""
    return models.AskedForm(
        trials=[
            models.TrialForm(id=number, params=params, fidelity=None if level is None else dict(level))
            for number, params, level in trials
        ]
    )


def told(study: LiveStudy, form: models.OutcomesForm) -> models.TrialStates:
    """States of trials after their observations are stored, all or none."""
    outcomes = [_outcome(study, trial, ("trials", place)) for place, trial in enumerate(form.trials)]
    try:
        numbers = study.tell_many(outcomes)
    except RefusedOutcome as error:
        number = form.trials[error.place].id
        if error.stands is None:
            place = ("trials", error.place, "id")
            raise BadField(place, ValueError(f"there is no trial {number}: nothing was stored")) from None
        said = in_words(study, error.stands, outcomes[error.place][0])
        text = f"trials[{error.place}]: trial {number} {said} already, which stays: nothing was stored"
        raise Contradiction(text) from None
    stored = zip(numbers, outcomes, strict=True)
    return models.TrialStates(trials=[state_of(study, replace(trial, id=number)) for number, (trial, _) in stored])


def _outcome(study: LiveStudy, form: models.OutcomeForm, place: Place) -> tuple[Record, str]:
    """An observation of a request and its origin, as a study stores it; BadField if it is bad."""
    if form.id is not None:
        return outcome(study, form.id, form, place, form.failed), ""
    levels, readings = study.study.levels, _readings(study, form, place, form.failed)
    with field_of(*place, "fidelity"):
        if form.fidelity is not None and levels is None:
            raise ValueError("the study has no fidelity: leave it out")
        at = levels and (levels.highest if form.fidelity is None else levels.checked(form.fidelity))
    context = context_of(study, form.context, (*place, "context"))
    with field_of(*place, "params"):
        params = dict(study.study.settings.checked(form.params))
    state: State = "failed" if form.failed else "done"
    block = _block(form, place)
    more: dict[str, Any] = {"context": context, "fidelity": at, "failure": FAILED * form.failed, "block": block}
    return Record(-1, params, state=state, readings=readings, **more), form.key or ""


def outcome(study: LiveStudy, id: int, form: models.ValueForm, place: Place = (), is_failed: bool = False) -> Record:
    """The outcome of a trial of a request; BadField if it is bad."""
    readings, block = _readings(study, form, place, is_failed), _block(form, place)
    with field_of(*place, "fidelity"):
        return study.outcome(id, readings, FAILED * is_failed, None if is_failed else form.fidelity, block)


def _block(form: models.ValueForm, place: Place) -> Block | None:
    with field_of(*place, "block"):
        return checked_block(form.block)


def failed(study: LiveStudy, id: int, cost: float | None, reason: str = "") -> Record:
    """The outcome of a trial that failed."""
    return study.outcome(id, _paid(study, cost), reason or FAILED)


def _readings(study: LiveStudy, form: models.ValueForm, place: Place, is_failed: bool) -> Readings:
    """Readings of a request; BadField if they are bad."""
    try:
        return _paid(study, form.cost) if is_failed else form.told(study.measures.readings)
    except BadField as error:
        raise BadField((*place, *error.place), error) from None


def _paid(study: LiveStudy, cost: float | None) -> Readings:
    return {} if cost is None else {study.measures.cost: (Reading(cost),)}


def state_of(study: LiveStudy, record: Record) -> models.TrialState:
    """State of a trial."""
    facts = study.measures.described(record)
    return models.TrialState(**{name: facts[name] for name in models.TrialState.model_fields if name in facts})


def corrected(study: LiveStudy, id: int, form: models.CorrectionForm) -> models.RecordForm:
    """A trial after a correction; BadField if it is bad."""
    measures = study.measures

    def new(old: Record) -> Readings:
        def tell(value: Any, noise: Any, constraints: Any, cost: Any, bound: Any) -> Readings:
            if not isinstance(value, Mapping | None):
                value = {VALUE: value if isinstance(value, Reading) else Reading(value, noise=noise, bound=bound)}
            elif noise is not None:
                raise BadReading("noise is for one number: give it with its number, in readings", "noise")
            if value and VALUE in value and VALUE not in measures:
                raise BadReading(f"value must be an object with some of {list(measures.objectives)}", VALUE)
            paid = {} if cost is None else {measures.cost: cost}
            return measures.corrected(old, {**(value or {}), **paid}, constraints)

        return form.told(tell)

    return _changed(study, id, lambda: study.correct(id, new, form.because))


def withdrawn(study: LiveStudy, id: int, because: str) -> models.RecordForm:
    """A trial that does not count any more."""
    return _changed(study, id, lambda: study.withdraw(id, because))


def _changed(study: LiveStudy, id: int, change: Callable[[], Record | None]) -> models.RecordForm:
    with _unless_contradicted():
        record = change()
    if record is None:
        raise Unknown(f"there is no trial {id}")
    return record_form(study, record)


def reported(study: LiveStudy, id: int, form: models.ReportForm) -> models.VerdictForm:
    """Decision about a running trial after an intermediate value; Contradiction if it has an outcome."""
    with field_of("fidelity"):
        if study.study.levels is not None:
            study.study.levels.checked(form.fidelity)
    with _unless_contradicted():
        stop = study.report(id, form.fidelity, form.value)
    if stop is None:
        raise Unknown(f"there is no trial {id}")
    return models.VerdictForm(stop=stop)


def trials(study: LiveStudy) -> models.RecordsForm:
    """All trials."""
    return models.RecordsForm(trials=[record_form(study, record) for record in study.records()])


def front(study: LiveStudy, context: Any, reference: Any = None) -> models.FrontForm:
    """The params to choose from with several objectives; Contradiction with one, or before there are values enough."""
    if not study.study.goals:
        raise Contradiction("the study has one objective, and no front: see its best")
    here, optimizer = context_of(study, context), study.known().optimizer
    with _unless_contradicted():
        members = optimizer.front(here)
    with field_of("reference"):
        volume = optimizer.hypervolume(reference, here)
    forms = [models.FrontEstimateForm(**member_json(member)) for member in members]
    return models.FrontForm(front=forms, hypervolume=models.HypervolumeForm(**vars(volume)))


def best(
    study: LiveStudy, context: Any, limits: Any = None, weights: Any = None
) -> models.BestForm | models.FrontEstimateForm:
    """The recommended params, not those of the luckiest observation; Contradiction before the first value.

    With several objectives, ``limits`` or ``weights`` say which params of the front are wanted.
    """
    here = context_of(study, context)
    if limits is not None or weights is not None:
        return models.FrontEstimateForm(**member_json(_picked(study, here, limits, weights)))
    if study.study.goals:
        wanted = 'is needed with several objectives, or weights: {"cost": ["<=", 0.3]}, or see the front'
        raise BadField(("limits",), ValueError(wanted))
    known = _best(study, here)
    if known is None:
        raise Contradiction("the study has no value yet: tell one first")
    return best_form(*known)


def _best(study: LiveStudy, context: dict[str, Any] | None) -> tuple[Estimate, float] | None:
    """Recommended params and the half-life of observations, None before the first value."""
    known = study.known()
    return (known.optimizer.best(context), known.optimizer.half_life) if known.has_value else None


def _picked(study: LiveStudy, context: dict[str, Any] | None, limits: Any, weights: Any) -> JointEstimate:
    """The params of the front that limits or weights name; BadField if these are bad, Contradiction too early."""
    place = ("limits" if limits is not None else "weights",)
    if not study.study.goals:
        raise BadField(place, ValueError("is for several objectives: this study has one"))
    optimizer = study.known().optimizer
    with _unless_contradicted():
        optimizer.front(context)
    with field_of(*place):
        picked: JointEstimate = optimizer.best(context, limits=limits, weights=weights)
        return picked


def predicted(study: LiveStudy, form: models.PredictForm) -> models.EstimateForm | models.FrontEstimateForm:
    """Estimate for params of a request; Contradiction before there are two values."""
    context = context_of(study, form.context)
    with field_of("params"):
        params = study.study.settings.checked(form.params)
    with _unless_contradicted():
        estimate = study.known().optimizer.predict(params, context)
    if isinstance(estimate, JointEstimate):
        return models.FrontEstimateForm(**member_json(estimate))
    return estimated(estimate)


def gain(study: LiveStudy, context: Any, limits: Any = None, weights: Any = None) -> models.GainForm | models.GainsForm:
    """The gain of the best over the baseline; Contradiction without one, or before it and one more have a value.

    With several objectives it is that of each, for the params of the front that ``limits`` or ``weights`` name.
    """
    here = context_of(study, context)
    if limits is not None or weights is not None:
        _picked(study, here, limits, weights)
    if study.study.baseline is None:
        raise Contradiction("there is nothing to compare with: make a study with a baseline")
    with _unless_contradicted():
        gains = study.known().optimizer.gain(here, limits=limits, weights=weights)
    if isinstance(gains, Gains):
        return models.GainsForm(gains={name: _gain(change) for name, change in gains.items()}, text=str(gains))
    return _gain(gains)


def done(
    study: LiveStudy, within: float | str, confidence: float, by: StopRule = "model", context: Any = None
) -> models.DoneForm:
    """Decision whether no other params are likely to be better than the best by more than ``within``."""
    with field_of("within"):
        checked_tolerance(within)
    with field_of("confidence"):
        checked_confidence(confidence)
    if study.study.goals:
        raise Contradiction("done is about one objective, and this study has several: see its front")
    here, known = context_of(study, context), study.known()
    if not known.has_value:
        return models.DoneForm(done=False, gap=None, remaining=None, level=LEVEL, text="there is no value yet")
    stop, estimate = known.optimizer.done(within, confidence, by, context=here), known.optimizer.best(here)
    text = estimate.remaining_in_words() if estimate.has_gap else "too few values to say what is left to gain"
    numbers = {"gap": finite(estimate.gap), "remaining": finite(estimate.remaining)}
    return models.DoneForm(done=stop, **numbers, level=estimate.level, text=text)


def context_of(study: LiveStudy, given: Any, place: Place = ("context",)) -> dict[str, Any] | None:
    """A context of the study, None if it has none; BadField if it is missing or bad."""
    with field_of(*place):
        if given is not None and study.study.context is None:
            raise ValueError("the study has no context: leave it out")
        if given is None and study.study.context is not None:
            raise ValueError(f"is needed in this study: an object with {', '.join(study.study.context)}")
        part = study.study.contexts.within(given)
    return dict(part.context) if isinstance(part, FixedContext) else None


def counted(study: LiveStudy) -> Counter[State]:
    """Number of trials by their states in the storage."""
    return Counter(record.state for record in study.records())


def states(counts: Mapping[State, int]) -> models.StateCounts:
    """Number of trials by the states that requests have, from those of the storage."""
    running, failed = (sum(counts.get(state, 0) for state in both) for both in (WAITING, WITHOUT_VALUE))
    return models.StateCounts(running=running, done=counts.get("done", 0), failed=failed)


def in_words(study: LiveStudy, record: Record, other: Record | None = None) -> str:
    """The outcome that a trial has, and in which details another one with the same value differs from it."""
    if record.state in WITHOUT_VALUE:
        return f"has failed ({record.failure})" if record.state == "failed" else f"is {record.state}"
    row, other_row = study.measures.described(record), study.measures.described(other or record)
    bound = row.get("bound")
    said = f"has the {f'bound {bound}' if bound else 'value'} {row['value']!r}"
    if any(row.get(name) != other_row.get(name) for name in ("value", "bound")):
        return said
    details = [name for name in DETAILS if row.get(name) != other_row.get(name)]
    details += ["readings"] * (not details and row["readings"] != other_row["readings"])
    return f"{said} with other {' and '.join(details)}" if details else said


def best_form(found: Estimate, half_life: float) -> models.BestForm:
    """The recommended params, and the half-life of observations."""
    document, names = best_json(found), ("name", "from", "to", "gain", "lower", "upper")
    changes = [dict(zip(names, change.values(), strict=True)) for change in document["changes"]]
    return models.BestForm(**document | {"changes": changes, "half_life": finite(half_life)})


def estimated(found: Estimate) -> models.EstimateForm:
    """An estimate; what is not known is null."""
    known = {name: getattr(found, name) for name in models.EstimateForm.model_fields}
    return models.EstimateForm(**known | {"lower": finite(found.lower), "upper": finite(found.upper)})


def _gain(found: Gain) -> models.GainForm:
    ends = {"lower": finite(found.lower), "upper": finite(found.upper)}
    relative = found.relative if found.relative and all(map(isfinite, found.relative)) else None
    both = {"best": estimated(found.best), "baseline": estimated(found.baseline)}
    paired, form = found.measured, None
    if paired:
        numbers = {name: finite(getattr(paired, name)) for name in ("estimate", "lower", "upper")}
        percent: Any = paired.percent and tuple(map(finite, paired.percent))
        form = models.PairedForm(**numbers, pairs=paired.pairs, level=paired.level, percent=percent, text=str(paired))
    more = {"relative": relative, "measured": form, "text": str(found)}
    return models.GainForm(**vars(found) | ends | both | more)


def _listed(study: Listed) -> models.ListedStudy:
    return models.ListedStudy(
        name=study.name,
        goal=study.identity[SERVICE]["goal"],
        goals=study.identity[SERVICE].get("goals"),
        trials=sum(study.states.values()),
        states=states(study.states),
        last=study.last.astimezone().isoformat(timespec="seconds") if study.last else None,
    )


def record_form(study: LiveStudy, record: Record) -> models.RecordForm:
    """A trial with all that is stored of it."""
    state = "running" if record.state in WAITING else "failed" if record.state == "pruned" else record.state
    return models.RecordForm(**{"context": None} | study.measures.described(record) | {"state": state})
