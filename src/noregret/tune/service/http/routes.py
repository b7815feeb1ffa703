"""The requests and their answers. FastAPI checks requests and describes them as OpenAPI."""

from __future__ import annotations

import json
from asyncio import wrap_future
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.routing import APIRoute

from noregret.optimizer import (
    Bound,
    Estimate,
    FixedContext,
    Gain,
    Gains,
    JointEstimate,
    StopRule,
    checked_confidence,
    checked_numbers,
    checked_tolerance,
)
from noregret.tune.learning.findings import finite
from noregret.tune.learning.fronts import member_json
from noregret.tune.measuring import Outcome
from noregret.tune.page.page import page
from noregret.tune.service import models
from noregret.tune.service.http import pages
from noregret.tune.service.http.metrics import CONTENT_TYPE, Metrics
from noregret.tune.service.live import AskRequest, Deleted, LiveStudy, Refused, TrialOutcome
from noregret.tune.service.studies import Studies
from noregret.tune.store.records import Record, State
from noregret.tune.store.storage import Listed
from noregret.tune.study.importing import ImportedRow
from noregret.tune.study.results import first_measured

FAILED = "reported as a failure"
"""Reason of a failure that a client reports."""
WAITING: tuple[State, ...] = ("waiting", "running")
WITHOUT_VALUE: tuple[State, ...] = ("failed", "pruned")
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
Responses = dict[int | str, dict[str, Any]]
NO_STUDY: Responses = {404: {"model": models.FaultForm, "description": "There is no such study or trial"}}
OTHER: Responses = {409: {"model": models.FaultForm, "description": "It contradicts what is stored"}}


class Unknown(LookupError):
    """There is no trial with this id."""


class Contradiction(ValueError):
    """The trial has another answer."""


class BadField(ValueError):
    """A field of a request is at fault."""

    def __init__(self, place: tuple[str | int, ...], error: ValueError) -> None:
        super().__init__(str(error))
        self.place = place


def all_studies(request: Request) -> Studies:
    """The studies of the application."""
    found: Studies = request.app.state.studies
    return found


All = Annotated[Studies, Depends(all_studies)]
Name = Annotated[str, Path(max_length=100)]
After = Annotated[str, Query(max_length=100, description="The name that the list starts after")]


async def live(request: Request, name: Name) -> LiveStudy:
    """The study that a path names."""
    studies = all_studies(request)
    found = studies.opened(name)
    return await run_in_threadpool(studies.__getitem__, name) if found is None else found


Live = Annotated[LiveStudy, Depends(live)]
Id = Annotated[int, Path(ge=0, le=2**31 - 1)]

ContextText = Annotated[
    str | None, Query(max_length=10_000, description="The context as JSON, if the study has contexts")
]


EXAMPLES = {
    "context": '{"load": 0.5}',
    "limits": '{"cost": ["<=", 0.3]}',
    "weights": '{"latency": 1, "cost": 10}',
    "reference": '{"latency": 10, "cost": 1}',
}
"""JSON in the query of an address, by parameter."""
ReferenceText = Annotated[
    str | None, Query(max_length=10_000, description="The reference point of the hypervolume as JSON")
]
LimitsText = Annotated[
    str | None, Query(max_length=10_000, description="Limits on objectives as JSON, if the study has several")
]
WeightsText = Annotated[
    str | None, Query(max_length=10_000, description="Weights of objectives as JSON, if the study has several")
]


class StudyRoute(APIRoute):
    """Route that starts again once if its study was deleted meanwhile: another server may have made it again."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_again(request: Request) -> Response:
            try:
                return await handle(request)
            except Deleted:
                return await handle(request)

        return handle_again


health, router = APIRouter(tags=["server"]), APIRouter(route_class=StudyRoute)


@health.get("/healthz")
async def healthz() -> models.HealthForm:
    """Report that the server runs; needs no token."""
    return models.HealthForm()


@router.get("/", tags=["server"], response_class=HTMLResponse)
def home(studies: All, after: After = "") -> HTMLResponse:
    """Return a page that lists the studies."""
    found = list_studies(studies, after)
    return HTMLResponse(pages.index(found.studies, found.next), headers=PAGE_HEADERS)


@router.get("/docs", tags=["server"], response_class=HTMLResponse)
def docs(request: Request) -> HTMLResponse:
    """Return a page that describes all requests."""
    return HTMLResponse(pages.reference(request.app.openapi()), headers=PAGE_HEADERS)


@router.get("/metrics", tags=["server"], response_class=PlainTextResponse)
def metrics(request: Request, studies: All) -> PlainTextResponse:
    """Return counts of requests, studies and trials, latencies and memory in the text format of Prometheus."""
    counts: Metrics = request.app.state.metrics
    known = studies.counted()
    total = None if known is None else (known[0], _states(known[1]).model_dump())
    return PlainTextResponse(counts.text(*studies.counted_open(), total), media_type=CONTENT_TYPE)


@router.get("/studies", tags=["studies"])
def list_studies(
    studies: All, after: After = "", limit: Annotated[int, Query(ge=1, le=models.MANY)] = models.MANY
) -> models.StudiesForm:
    """Return the studies by name, without conclusions."""
    found = studies.listed(after, limit + 1)
    more = found[limit - 1].name if len(found) > limit else None
    return models.StudiesForm(studies=[_listed(study) for study in found[:limit]], next=more)


@router.post(
    "/studies",
    status_code=201,
    tags=["studies"],
    responses={200: {"model": models.StudyForm, "description": "The same study exists"}, **OTHER},
)
def create(form: models.StudyForm, response: Response, studies: All) -> models.StudyForm:
    """Create a study."""
    response.status_code = 201 if studies.create(form) else 200
    return form


@router.get("/studies/{name}", tags=["studies"], responses=NO_STUDY)
def describe(study: Live, context: ContextText = None) -> models.StudyState:
    """Return a study with the number of its trials and the recommended params."""
    is_known = study.study.context is None or context is not None
    here = _context(study, _read(context), ("query", "context")) if is_known else None
    known = study.best(here) if is_known and not study.study.objectives else None
    records = study.records()
    return models.StudyState(
        **study.study.description,
        trials=len(records),
        states=_states(Counter(record.state for record in records)),
        best=None if known is None else _best(*known),
    )


@router.delete("/studies/{name}", status_code=204, tags=["studies"], responses=NO_STUDY)
def delete(name: Name, studies: All) -> None:
    """Delete a study and all its trials, for good."""
    studies.delete(name)


@router.post("/studies/{name}/ask", tags=["trials"], responses=NO_STUDY, response_model_exclude_none=True)
async def ask(study: Live, form: models.AskForm | None = None) -> models.AskedForm:
    """Return trials to measure next. The same client key gets its pending trials again."""
    form = form or models.AskForm()
    context = _context(study, form.context, ("body", "context"))
    trials = await wrap_future(study.ask(AskRequest(form.count, form.client, context)))
    return models.AskedForm(
        trials=[
            models.TrialForm(id=number, params=params, fidelity=None if level is None else dict(level))
            for number, params, level in trials
        ]
    )


@router.post(
    "/studies/{name}/trials/{id}/tell",
    tags=["trials"],
    responses={**NO_STUDY, **OTHER},
    response_model_exclude_unset=True,
)
async def tell(study: Live, id: Id, form: models.TellForm) -> models.TrialState:
    """Store the observation of a trial. The same one twice counts once."""
    told, bound = form.number()
    if told is None:
        raise BadField(("body", "value"), ValueError("must be a number; or give at_least or at_most instead"))
    value, values = _values(study, told, ("body", bound or "value"))
    numbers = _numbers(study, form.constraints, ("body", "constraints"), bound is not None)
    level, is_stopped = None, False
    if study.study.levels is not None or form.fidelity is not None:
        level, is_stopped = await run_in_threadpool(_level, study, id, form.fidelity, ("body", "fidelity"))
    its: dict[str, Any] = {"noise": form.noise, "constraints": numbers, "fidelity": level, "is_stopped": is_stopped}
    its |= {"bound": bound, "cost": form.cost, "values": values}
    await _told(study, id, Outcome(value, **its))
    return models.TrialState(id=id, state="done", value=values or value, **_if_bound(bound))


@router.post("/studies/{name}/trials/{id}/report", tags=["trials"], responses={**NO_STUDY, **OTHER})
def report(study: Live, id: Id, form: models.ReportForm) -> models.VerdictForm:
    """Keep an intermediate value of a running trial, and return whether to stop it.

    It is a sign that the client is alive. 409 if the trial has an outcome, or the study no fidelity.
    """
    if study.study.levels is not None:
        _checked_level(study, form.fidelity, ("body", "fidelity"))
    try:
        stop = study.report(id, form.fidelity, form.value)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    if stop is None:
        raise Unknown(f"there is no trial {id}")
    return models.VerdictForm(stop=stop)


def _checked_level(study: LiveStudy, given: Any, place: tuple[str | int, ...]) -> dict[str, Any]:
    """A fidelity of the study; BadField if it is bad."""
    try:
        if study.study.levels is None:
            raise ValueError("the study has no fidelity: leave it out")
        return study.study.levels.checked(given)
    except ValueError as error:
        raise BadField(place, error) from None


def _level(
    study: LiveStudy, id: int, given: Any, place: tuple[str | int, ...]
) -> tuple[Mapping[str, Any] | None, bool]:
    """Fidelity of the value of a trial, and whether the trial was stopped; BadField if the given one is bad."""
    try:
        return study.level(id, given)
    except ValueError as error:
        raise BadField(place, error) from None


@router.post(
    "/studies/{name}/tell", tags=["trials"], responses={**NO_STUDY, **OTHER}, response_model_exclude_unset=True
)
def tell_many(study: Live, form: models.OutcomesForm) -> models.TrialStates:
    """Store observations, all or none: of trials by their ids, and of params that were measured in the past.

    The same request twice counts once. Params of the past get an id.
    """
    outcomes = [_outcome(study, its, ("body", "trials", place)) for place, its in enumerate(form.trials)]
    try:
        numbers = study.tell_many(outcomes)
    except Refused as error:
        number = form.trials[error.place].id
        if error.stands is None:
            place = ("body", "trials", error.place, "id")
            raise BadField(place, ValueError(f"there is no trial {number}: nothing was stored")) from None
        said = f"trials[{error.place}]: trial {number} {_in_words(error.stands)} already, which stays"
        raise Contradiction(f"{said}: nothing was stored") from None
    stored = [its.outcome if isinstance(its, TrialOutcome) else its for its in outcomes]
    return models.TrialStates(
        trials=[
            models.TrialState(
                id=number,
                state="failed" if its.value is None else "done",
                value=dict(its.values) or its.value,
                **_if_bound(its.bound),
            )
            for number, its in zip(numbers, stored, strict=True)
        ]
    )


def _outcome(study: LiveStudy, form: models.OutcomeForm, place: tuple[str | int, ...]) -> TrialOutcome | ImportedRow:
    """An observation of a request as a study stores it; BadField if it is bad."""
    failure = FAILED if form.failed else ""
    told, bound = form.number()
    value, values = _values(study, told, (*place, bound or "value"))
    numbers = {} if form.failed else _numbers(study, form.constraints, (*place, "constraints"), bound is not None)
    if form.id is not None:
        level, stopped = (None, False) if form.failed else _level(study, form.id, form.fidelity, (*place, "fidelity"))
        said: dict[str, Any] = {"noise": form.noise, "constraints": numbers, "bound": bound, "cost": form.cost}
        said |= {"values": values, "fidelity": level, "is_stopped": stopped}
        return TrialOutcome(form.id, Outcome(value, failure, **said))
    level = study.study.levels.highest if study.study.levels else None
    level = level if form.fidelity is None else _checked_level(study, form.fidelity, (*place, "fidelity"))
    context = _context(study, form.context, (*place, "context"))
    try:
        params = dict(study.study.settings.checked(form.params))
    except ValueError as error:
        raise BadField((*place, "params"), error) from None
    more: dict[str, Any] = {"bound": bound, "cost": form.cost, "values": values, "fidelity": level}
    return ImportedRow(params, value, form.noise, numbers, form.key or "", context, failure, **more)


def _values(
    study: LiveStudy, told: float | Mapping[str, float | None] | None, place: tuple[str | int, ...]
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
    values = {name: told.get(name) for name in names}
    return first_measured(values), values


def _numbers(
    study: LiveStudy, told: Mapping[str, float | None] | None, place: tuple[str | int, ...], is_bound: bool = False
) -> dict[str, float]:
    """The numbers of constraints that were measured; BadField if one is bad or missing, but for those of a bound."""
    told = dict.fromkeys(study.constraints) | dict(told or {}) if is_bound else told
    try:
        checked_numbers(study.constraints, told)
    except ValueError as error:
        raise BadField(place, error) from None
    return {name: number for name, number in (told or {}).items() if number is not None}


@router.post(
    "/studies/{name}/trials/{id}/fail",
    tags=["trials"],
    responses={**NO_STUDY, **OTHER},
    response_model_exclude_unset=True,
)
async def fail(study: Live, id: Id, form: models.FailForm | None = None) -> models.TrialState:
    """Report that a trial failed. The body is an object with its cost if that is known, empty, or nothing."""
    await _told(study, id, Outcome(None, FAILED, cost=form.cost if form else None))
    return models.TrialState(id=id, state="failed", value=None)


async def _told(study: LiveStudy, id: int, outcome: Outcome) -> None:
    stands = await wrap_future(study.tell(id, outcome))
    if stands is None:
        await run_in_threadpool(study.records)  # Deleted, if the study is gone
        raise Unknown(f"there is no trial {id}")
    if stands != outcome:
        raise Contradiction(f"trial {id} {_in_words(stands)} already, which stays")


@router.get("/studies/{name}/trials", tags=["trials"], responses=NO_STUDY, response_model_exclude_unset=True)
def trials(study: Live) -> models.RecordsForm:
    """Return all trials."""
    return models.RecordsForm(trials=[_record(record) for record in study.records()])


@router.get("/studies/{name}/front", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def front(study: Live, context: ContextText = None, reference: ReferenceText = None) -> models.FrontForm:
    """Return the params to choose from with several objectives; 409 with one, or before there are values enough."""
    if not study.study.objectives:
        raise Contradiction("the study has one objective: GET its best")
    here, point = _context(study, _read(context), ("query", "context")), _read(reference, "reference")
    try:
        members = study.front(here)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    try:
        volume = study.hypervolume(here, point)
    except ValueError as error:
        raise BadField(("query", "reference"), error) from None
    found = [models.FrontEstimateForm(**member_json(member)) for member in members]
    return models.FrontForm(front=found, hypervolume=models.HypervolumeForm(**vars(volume)))


@router.get("/studies/{name}/best", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def best(
    study: Live, context: ContextText = None, limits: LimitsText = None, weights: WeightsText = None
) -> models.BestForm | models.FrontEstimateForm:
    """Return the recommended params, not those of the luckiest observation; 409 before the first value.

    With several objectives, ``limits`` or ``weights`` say which params of the front are wanted.
    """
    if study.study.objectives:
        return _pick(study, _read(context), limits, weights)
    for name, given in (("limits", limits), ("weights", weights)):
        if given is not None:
            raise BadField(("query", name), ValueError("is for several objectives: this study has one"))
    known = study.best(_context(study, _read(context), ("query", "context")))
    if known is None:
        raise Contradiction("the study has no value yet: tell one first")
    return _best(*known)


def _pick(study: LiveStudy, context: Any, limits: str | None, weights: str | None) -> models.FrontEstimateForm:
    """The params of a front that a request wants."""
    here = _context(study, context, ("query", "context"))
    wish = _read(limits, "limits"), _read(weights, "weights")
    if wish == (None, None):
        raise BadField(
            ("query", "limits"),
            ValueError('is needed with several objectives, or weights: {"cost": ["<=", 0.3]}, or see the front'),
        )
    if not any(record.state == "done" for record in study.records()):
        raise Contradiction("the study has no value yet: tell one first")
    with _wished(wish):
        return models.FrontEstimateForm(**member_json(study.picked(here, *wish)))


@contextmanager
def _wished(wish: tuple[Any, Any]) -> Iterator[None]:
    """Name the field at fault where limits or weights are."""
    try:
        yield
    except ValueError as error:
        raise BadField(("query", "limits" if wish[0] is not None else "weights"), error) from None


@router.post("/studies/{name}/predict", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def predict(study: Live, form: models.PredictForm) -> models.EstimateForm | models.FrontEstimateForm:
    """Return the estimate for params of your own; 409 before there are two values."""
    context = _context(study, form.context, ("body", "context"))
    try:
        params = study.study.settings.checked(form.params)
    except ValueError as error:
        raise BadField(("body", "params"), error) from None
    try:
        found = study.predict(params, context)
    except ValueError as error:
        raise Contradiction(str(error)) from None
    if isinstance(found, JointEstimate):
        return models.FrontEstimateForm(**member_json(found))
    return models.EstimateForm(**_estimate(found))


@router.get("/studies/{name}/gain", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def gain(
    study: Live, context: ContextText = None, limits: LimitsText = None, weights: WeightsText = None
) -> models.GainForm | models.GainsForm:
    """Return the gain of the best over the baseline; 409 without one, or before it and one more have a value.

    With several objectives it is that of each, for the params of the front that ``limits`` or ``weights`` name.
    """
    part = _context(study, _read(context), ("query", "context"))
    try:
        found = study.gain(part, _read(limits, "limits"), _read(weights, "weights"))
    except ValueError as error:
        raise Contradiction(str(error)) from None
    if isinstance(found, Gains):
        return models.GainsForm(gains={name: _gain(its) for name, its in found.items()}, text=str(found))
    return _gain(found)


def _gain(found: Gain) -> models.GainForm:
    return models.GainForm(
        estimate=found.estimate,
        lower=finite(found.lower),
        upper=finite(found.upper),
        level=found.level,
        relative=found.relative if found.relative and all(map(isfinite, found.relative)) else None,
        best=models.EstimateForm(**_estimate(found.best)),
        baseline=models.EstimateForm(**_estimate(found.baseline)),
        goal=found.goal,
        text=str(found),
    )


@router.get("/studies/{name}/done", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def done(
    study: Live,
    within: Annotated[str, Query(max_length=100, description="A number, or a part of the best estimate: 2%")],
    confidence: Annotated[float, Query(description="The probability of being right")] = 0.95,
    by: Annotated[StopRule, Query(description="The statement it rests on")] = "model",
    context: ContextText = None,
) -> models.DoneForm:
    """Return whether no other params are likely to be better than the best by more than ``within``."""
    tolerance = _tolerance(within)
    for name, check, value in (
        ("within", checked_tolerance, tolerance),
        ("confidence", checked_confidence, confidence),
    ):
        try:
            check(value)
        except ValueError as error:
            raise BadField(("query", name), error) from None
    if study.study.objectives:
        raise Contradiction("done is about one objective, and this study has several: GET its front")
    stop, gap, level = study.done(tolerance, confidence, _context(study, _read(context), ("query", "context")), by)
    return models.DoneForm(done=stop, gap=finite(gap), level=level)


@router.get("/studies/{name}/", tags=["conclusions"], response_class=HTMLResponse, responses=NO_STUDY)
def show(study: Live) -> HTMLResponse:
    """Return the report page."""
    return HTMLResponse(page(study.findings()), headers=PAGE_HEADERS)


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "params": found.params,
        "estimate": found.estimate,
        "lower": finite(found.lower),
        "upper": finite(found.upper),
        "level": found.level,
        "feasible": found.feasible,
    }


def _best(found: Estimate, half_life: float) -> models.BestForm:
    fields = ("name", "from", "to", "gain", "lower", "upper")
    return models.BestForm(
        **_estimate(found),
        gap=finite(found.gap),
        remaining=finite(found.remaining),
        changes=[
            models.ChangeForm(**dict(zip(fields, (*its[:3], *map(finite, its[3:])), strict=True)))
            for its in found.changes
        ],
        half_life=finite(half_life),
    )


def _listed(study: Listed) -> models.ListedStudy:
    return models.ListedStudy(
        name=study.name,
        goal=study.identity[models.SERVICE]["goal"],
        goals=study.identity[models.SERVICE].get("goals"),
        trials=sum(study.states.values()),
        states=_states(study.states),
        last=study.last.astimezone().isoformat(timespec="seconds") if study.last else None,
    )


def _states(counts: Mapping[State, int]) -> models.StateCounts:
    """Number of trials by the states that requests have, from those of the storage."""
    running, failed = (sum(counts.get(its, 0) for its in both) for both in (WAITING, WITHOUT_VALUE))
    return models.StateCounts(running=running, done=counts.get("done", 0), failed=failed)


def _record(record: Record) -> models.RecordForm:
    level: dict[str, Any] = {} if record.fidelity is None else {"fidelity": dict(record.fidelity)}
    return models.RecordForm(
        id=record.number,
        params=record.params,
        value=dict(record.values) or record.value,
        state="running" if not record.finished else "failed" if record.value is None else "done",
        context=record.context,
        **_if_bound(record.bound),
        **level,
    )


def _if_bound(bound: Bound | None) -> dict[str, Any]:
    """The field of a bound; answers about values have none."""
    return {} if bound is None else {"bound": bound}


def _in_words(outcome: Outcome) -> str:
    if outcome.value is None:
        return f"has failed ({outcome.failure})"
    value = dict(outcome.values) or outcome.value
    return f"has the {f'bound {outcome.bound}' if outcome.bound else 'value'} {value!r}"


def _tolerance(within: str) -> float | str:
    try:
        return float(within)
    except ValueError:
        return within


def _context(study: LiveStudy, given: Any, place: tuple[str | int, ...]) -> dict[str, Any] | None:
    """A context of the study, None if it has none; BadField if it is missing or bad."""
    try:
        part = study.study.contexts.within(given)
    except ValueError as error:
        raise BadField(place, error) from None
    return dict(part.context) if isinstance(part, FixedContext) else None


def _read(given: str | None, name: str = "context") -> Any:
    """JSON out of the query of an address."""
    try:
        return None if given is None else json.loads(given)
    except (ValueError, RecursionError):
        raise BadField(("query", name), ValueError(f"must be JSON like {EXAMPLES[name]}")) from None
