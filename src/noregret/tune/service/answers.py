"""Requests to studies and their answers, for any protocol: each function takes a checked form and returns one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from noregret.optimizer import (
    Bound,
    Estimate,
    FixedContext,
    Gain,
    Gains,
    JointEstimate,
    StopRule,
    checked_confidence,
    checked_tolerance,
)
from noregret.tune.learning.findings import finite
from noregret.tune.learning.fronts import member_json
from noregret.tune.measuring import Outcome
from noregret.tune.service import models
from noregret.tune.service.live import AskRequest, Assignment, LiveStudy, Refused, TrialOutcome
from noregret.tune.service.models import BadField, Place
from noregret.tune.service.studies import Studies
from noregret.tune.store.identity import SERVICE
from noregret.tune.store.records import Record, State
from noregret.tune.store.storage import Listed
from noregret.tune.study.importing import ImportedRow
from noregret.tune.study.results import first_measured

FAILED = "reported as a failure"
"""Reason of a failure that a client reports."""
DETAILS = ("noise", "constraints", "fidelity")
"""Fields of an observation beside its value."""
WAITING: tuple[State, ...] = ("waiting", "running")
WITHOUT_VALUE: tuple[State, ...] = ("failed", "pruned")


class Unknown(LookupError):
    """There is no trial with this id."""


class Contradiction(ValueError):
    """The request contradicts what is stored, or comes too early."""


def faults(errors: Iterable[Any]) -> list[tuple[list[str | int], str, str]]:
    """Fields at fault from errors of pydantic: the place, what must hold, and the kind of the fault."""
    return [
        (
            [part for part in its["loc"] if part not in models.KINDS],
            its["msg"].removeprefix("Value error, "),
            its["type"],
        )
        for its in errors
    ]


def listed(studies: Studies, after: str, limit: int) -> models.StudiesForm:
    """Studies by name, without conclusions."""
    found = studies.listed(after, limit + 1)
    more = found[limit - 1].name if len(found) > limit else None
    return models.StudiesForm(studies=[_listed(study) for study in found[:limit]], next=more)


def described(study: LiveStudy, context: Any) -> models.StudyState:
    """A study with the number of its trials and the recommended params."""
    is_known = study.study.context is None or context is not None
    here = context_of(study, context) if is_known else None
    known = study.best(here) if is_known and not study.study.objectives else None
    counts = counted(study)
    return models.StudyState(
        **study.study.description,
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
    outcomes = [_outcome(study, its, ("trials", place)) for place, its in enumerate(form.trials)]
    try:
        numbers = study.tell_many(outcomes)
    except Refused as error:
        number = form.trials[error.place].id
        if error.stands is None:
            place = ("trials", error.place, "id")
            raise BadField(place, ValueError(f"there is no trial {number}: nothing was stored")) from None
        item = outcomes[error.place]
        sent = item.outcome if isinstance(item, TrialOutcome) else None
        said = f"trials[{error.place}]: trial {number} {in_words(error.stands, sent)} already, which stays"
        raise Contradiction(f"{said}: nothing was stored") from None
    stored = [its.outcome if isinstance(its, TrialOutcome) else its for its in outcomes]
    return models.TrialStates(
        trials=[
            models.TrialState(
                id=number,
                state="failed" if its.value is None else "done",
                value=dict(its.values) or its.value,
                **if_bound(its.bound),
            )
            for number, its in zip(numbers, stored, strict=True)
        ]
    )


def _outcome(study: LiveStudy, form: models.OutcomeForm, place: Place) -> TrialOutcome | ImportedRow:
    """An observation of a request as a study stores it; BadField if it is bad."""
    failure = FAILED if form.failed else ""
    told, bound = form.number()
    value, several = values(study, told, (*place, bound or "value"))
    measured = {} if form.failed else numbers(study, form.constraints, (*place, "constraints"), bound is not None)
    if form.id is not None:
        at, stopped = (None, False) if form.failed else level(study, form.id, form.fidelity, (*place, "fidelity"))
        said: dict[str, Any] = {"noise": form.noise, "constraints": measured, "bound": bound, "cost": form.cost}
        said |= {"values": several, "fidelity": at, "is_stopped": stopped}
        return TrialOutcome(form.id, Outcome(value, failure, **said))
    at = study.study.levels.highest if study.study.levels else None
    at = at if form.fidelity is None else checked_level(study, form.fidelity, (*place, "fidelity"))
    context = context_of(study, form.context, (*place, "context"))
    try:
        params = dict(study.study.settings.checked(form.params))
    except ValueError as error:
        raise BadField((*place, "params"), error) from None
    more: dict[str, Any] = {"bound": bound, "cost": form.cost, "values": several, "fidelity": at}
    return ImportedRow(params, value, form.noise, measured, form.key or "", context, failure, **more)


def values(
    study: LiveStudy, told: float | Mapping[str, float | None] | None, place: Place
) -> tuple[float | None, dict[str, float | None]]:
    """The value of one objective, or those of several; BadField if a study has the other, or none was measured."""
    names = list(study.study.objectives)
    if told is None:
        return None, {}
    if not isinstance(told, Mapping):
        if names:
            wanted = f"this study has several objectives: give an object with {', '.join(names)}"
            raise BadField(place, ValueError(f"{wanted}, got {told!r}"))
        return told, {}
    if unknown := [name for name in told if name not in names]:
        known = f"they are {', '.join(names)}" if names else "this study has one: give a number"
        raise BadField((*place, unknown[0]), ValueError(f"is no objective of this study: {known}"))
    if first_measured(told) is None:
        raise BadField(place, ValueError(f"must have a number of one of {', '.join(names)} at least"))
    several = {name: told.get(name) for name in names}
    return first_measured(several), several


def numbers(
    study: LiveStudy, told: Mapping[str, float | None] | None, place: Place, is_bound: bool = False
) -> dict[str, float]:
    """The numbers of constraints that were measured; BadField if one is bad or missing, but for those of a bound."""
    told, names = told or {}, list(study.constraints)
    if unknown := [name for name in told if name not in names]:
        raise BadField(place, ValueError(f"unknown constraint {unknown[0]!r}: this study has {names or 'none'}"))
    if not is_bound and (missing := [name for name in names if name not in told]):
        wanted = f"must have a number for each of {names}: {missing[0]!r} is missing; null for what was not measured"
        raise BadField(place, ValueError(wanted))
    return {name: number for name, number in told.items() if number is not None}


def checked_level(study: LiveStudy, given: Any, place: Place) -> dict[str, Any]:
    """A fidelity of the study; BadField if it is bad."""
    try:
        if study.study.levels is None:
            raise ValueError("the study has no fidelity: leave it out")
        return study.study.levels.checked(given)
    except ValueError as error:
        raise BadField(place, error) from None


def level(study: LiveStudy, id: int, given: Any, place: Place) -> tuple[Mapping[str, Any] | None, bool]:
    """Fidelity of the value of a trial, and whether the trial was stopped; BadField if the given one is bad."""
    try:
        return study.level(id, given)
    except ValueError as error:
        raise BadField(place, error) from None


def reported(study: LiveStudy, id: int, form: models.ReportForm) -> models.VerdictForm:
    """Decision about a running trial after an intermediate value; Contradiction if it has an outcome."""
    if study.study.levels is not None:
        checked_level(study, form.fidelity, ("fidelity",))
    try:
        stop = study.report(id, form.fidelity, form.value)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    if stop is None:
        raise Unknown(f"there is no trial {id}")
    return models.VerdictForm(stop=stop)


def trials(study: LiveStudy) -> models.RecordsForm:
    """All trials."""
    return models.RecordsForm(trials=[_record(record) for record in study.records()])


def front(study: LiveStudy, context: Any, reference: Any = None) -> models.FrontForm:
    """The params to choose from with several objectives; Contradiction with one, or before there are values enough."""
    if not study.study.objectives:
        raise Contradiction("the study has one objective, and no front: see its best")
    here = context_of(study, context)
    try:
        members = study.front(here)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    try:
        volume = study.hypervolume(here, reference)
    except ValueError as error:
        raise BadField(("reference",), error) from None
    found = [models.FrontEstimateForm(**member_json(member)) for member in members]
    return models.FrontForm(front=found, hypervolume=models.HypervolumeForm(**vars(volume)))


def best(
    study: LiveStudy, context: Any, limits: Any = None, weights: Any = None
) -> models.BestForm | models.FrontEstimateForm:
    """The recommended params, not those of the luckiest observation; Contradiction before the first value.

    With several objectives, ``limits`` or ``weights`` say which params of the front are wanted.
    """
    here = context_of(study, context)
    if limits is not None or weights is not None:
        return models.FrontEstimateForm(**member_json(_picked(study, here, limits, weights)))
    if study.study.objectives:
        wanted = 'is needed with several objectives, or weights: {"cost": ["<=", 0.3]}, or see the front'
        raise BadField(("limits",), ValueError(wanted))
    known = study.best(here)
    if known is None:
        raise Contradiction("the study has no value yet: tell one first")
    return best_form(*known)


def _picked(study: LiveStudy, context: dict[str, Any] | None, limits: Any, weights: Any) -> JointEstimate:
    """The params of the front that limits or weights name; BadField if these are bad, Contradiction too early."""
    place = ("limits" if limits is not None else "weights",)
    if not study.study.objectives:
        raise BadField(place, ValueError("is for several objectives: this study has one"))
    try:
        study.front(context)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    try:
        return study.picked(context, limits, weights)
    except ValueError as error:
        raise BadField(place, error) from None


def predicted(study: LiveStudy, form: models.PredictForm) -> models.EstimateForm | models.FrontEstimateForm:
    """Estimate for params of a request; Contradiction before there are two values."""
    context = context_of(study, form.context)
    try:
        params = study.study.settings.checked(form.params)
    except ValueError as error:
        raise BadField(("params",), error) from None
    try:
        found = study.predict(params, context)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    if isinstance(found, JointEstimate):
        return models.FrontEstimateForm(**member_json(found))
    return estimated(found)


def gain(study: LiveStudy, context: Any, limits: Any = None, weights: Any = None) -> models.GainForm | models.GainsForm:
    """The gain of the best over the baseline; Contradiction without one, or before it and one more have a value.

    With several objectives it is that of each, for the params of the front that ``limits`` or ``weights`` name.
    """
    here = context_of(study, context)
    if limits is not None or weights is not None:
        _picked(study, here, limits, weights)
    try:
        found = study.gain(here, limits, weights)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    if isinstance(found, Gains):
        return models.GainsForm(gains={name: _gain(its) for name, its in found.items()}, text=str(found))
    return _gain(found)


def done(
    study: LiveStudy, within: float | str, confidence: float, by: StopRule = "model", context: Any = None
) -> models.DoneForm:
    """Decision whether no other params are likely to be better than the best by more than ``within``."""
    for name, check, value in (("within", checked_tolerance, within), ("confidence", checked_confidence, confidence)):
        try:
            check(value)
        except ValueError as error:
            raise BadField((name,), error) from None
    if study.study.objectives:
        raise Contradiction("done is about one objective, and this study has several: see its front")
    stop, gap, level = study.done(within, confidence, context_of(study, context), by)
    return models.DoneForm(done=stop, gap=finite(gap), level=level)


def context_of(study: LiveStudy, given: Any, place: Place = ("context",)) -> dict[str, Any] | None:
    """A context of the study, None if it has none; BadField if it is missing or bad."""
    try:
        if given is not None and study.study.context is None:
            raise ValueError("the study has no context: leave it out")
        if given is None and study.study.context is not None:
            raise ValueError(f"is needed in this study: an object with {', '.join(study.study.context)}")
        part = study.study.contexts.within(given)
    except ValueError as error:
        raise BadField(place, error) from None
    return dict(part.context) if isinstance(part, FixedContext) else None


def counted(study: LiveStudy) -> Counter[State]:
    """Number of trials by their states in the storage."""
    return Counter(record.state for record in study.records())


def states(counts: Mapping[State, int]) -> models.StateCounts:
    """Number of trials by the states that requests have, from those of the storage."""
    running, failed = (sum(counts.get(its, 0) for its in both) for both in (WAITING, WITHOUT_VALUE))
    return models.StateCounts(running=running, done=counts.get("done", 0), failed=failed)


def in_words(outcome: Outcome, other: Outcome | None = None) -> str:
    """The outcome that a trial has, and in which details another one with the same value differs from it."""
    if outcome.value is None:
        return f"has failed ({outcome.failure})"
    value = dict(outcome.values) or outcome.value
    said = f"has the {f'bound {outcome.bound}' if outcome.bound else 'value'} {value!r}"
    if other is None or (outcome.value, outcome.values, outcome.bound) != (other.value, other.values, other.bound):
        return said
    details = " and ".join(name for name in DETAILS if getattr(outcome, name) != getattr(other, name))
    return f"{said} with other {details}" if details else said


def if_bound(bound: Bound | None) -> dict[str, Any]:
    """The field of a bound; answers about values have none."""
    return {} if bound is None else {"bound": bound}


def best_form(found: Estimate, half_life: float) -> models.BestForm:
    """The recommended params, and the half-life of observations."""
    fields = ("name", "from", "to", "gain", "lower", "upper")
    return models.BestForm(
        **dict(estimated(found)),
        gap=finite(found.gap),
        remaining=finite(found.remaining),
        changes=[
            models.ChangeForm(**dict(zip(fields, (*its[:3], *map(finite, its[3:])), strict=True)))
            for its in found.changes
        ],
        half_life=finite(half_life),
    )


def estimated(found: Estimate) -> models.EstimateForm:
    """An estimate; what is not known is null."""
    return models.EstimateForm(
        params=found.params,
        estimate=found.estimate,
        lower=finite(found.lower),
        upper=finite(found.upper),
        level=found.level,
        feasible=found.feasible,
    )


def _gain(found: Gain) -> models.GainForm:
    return models.GainForm(
        estimate=found.estimate,
        lower=finite(found.lower),
        upper=finite(found.upper),
        level=found.level,
        relative=found.relative if found.relative and all(map(isfinite, found.relative)) else None,
        best=estimated(found.best),
        baseline=estimated(found.baseline),
        goal=found.goal,
        text=str(found),
    )


def _listed(study: Listed) -> models.ListedStudy:
    return models.ListedStudy(
        name=study.name,
        goal=study.identity[SERVICE]["goal"],
        goals=study.identity[SERVICE].get("goals"),
        trials=sum(study.states.values()),
        states=states(study.states),
        last=study.last.astimezone().isoformat(timespec="seconds") if study.last else None,
    )


def _record(record: Record) -> models.RecordForm:
    level: dict[str, Any] = {} if record.fidelity is None else {"fidelity": dict(record.fidelity)}
    return models.RecordForm(
        id=record.number,
        params=record.params,
        value=dict(record.values) or record.value,
        state="running" if not record.finished else "failed" if record.value is None else "done",
        context=record.context,
        **if_bound(record.bound),
        **level,
    )
