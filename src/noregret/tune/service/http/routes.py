"""The requests and their answers. FastAPI checks requests and describes them as OpenAPI."""

from __future__ import annotations

import json
from asyncio import wrap_future
from math import isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse

from noregret.optimizer import Estimate, FixedContext, checked_confidence, checked_numbers, checked_tolerance
from noregret.tune.learning.findings import finite
from noregret.tune.measuring import Outcome
from noregret.tune.page.page import page
from noregret.tune.service import models
from noregret.tune.service.live import AskRequest, LiveStudy
from noregret.tune.service.studies import Studies
from noregret.tune.store.records import Record

FAILED = "reported as a failure"
"""Reason of a failure that a client reports."""
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

    def __init__(self, place: tuple[str, ...], error: ValueError) -> None:
        super().__init__(str(error))
        self.place = place


def all_studies(request: Request) -> Studies:
    """The studies of the application."""
    found: Studies = request.app.state.studies
    return found


async def live(request: Request, name: Annotated[str, Path(max_length=100)]) -> LiveStudy:
    """The study that a path names."""
    studies = all_studies(request)
    found = studies.opened(name)
    return await run_in_threadpool(studies.__getitem__, name) if found is None else found


Live = Annotated[LiveStudy, Depends(live)]
Id = Annotated[int, Path(ge=0, le=2**31 - 1)]

ContextText = Annotated[
    str | None, Query(max_length=10_000, description="The context as JSON, if the study has contexts")
]

server, router = APIRouter(tags=["server"]), APIRouter()


@server.get("/healthz")
async def healthz() -> models.HealthForm:
    """Report that the server runs; needs no token."""
    return models.HealthForm()


@router.post(
    "/studies",
    status_code=201,
    tags=["studies"],
    responses={200: {"model": models.StudyForm, "description": "The same study exists"}, **OTHER},
)
def create(
    form: models.StudyForm, response: Response, studies: Annotated[Studies, Depends(all_studies)]
) -> models.StudyForm:
    """Create a study."""
    response.status_code = 201 if studies.create(form) else 200
    return form


@router.post("/studies/{name}/ask", tags=["trials"], responses=NO_STUDY)
async def ask(study: Live, form: models.AskForm | None = None) -> models.AskedForm:
    """Return trials to measure next. The same client key gets its pending trials again."""
    form = form or models.AskForm()
    context = _context(study, form.context, ("body", "context"))
    trials = await wrap_future(study.ask(AskRequest(form.count, form.client, context)))
    return models.AskedForm(trials=[models.TrialForm(id=number, params=params) for number, params in trials])


@router.post("/studies/{name}/trials/{id}/tell", tags=["trials"], responses={**NO_STUDY, **OTHER})
async def tell(study: Live, id: Id, form: models.TellForm) -> models.TrialState:
    """Store the observation of a trial. The same one twice counts once."""
    try:
        checked_numbers(study.constraints, form.constraints)
    except ValueError as error:
        raise BadField(("body", "constraints"), error) from None
    numbers = {name: number for name, number in (form.constraints or {}).items() if number is not None}
    await _told(study, id, Outcome(form.value, noise=form.noise, constraints=numbers))
    return models.TrialState(id=id, state="done", value=form.value)


@router.post("/studies/{name}/trials/{id}/fail", tags=["trials"], responses={**NO_STUDY, **OTHER})
async def fail(study: Live, id: Id, form: models.FailForm | None = None) -> models.TrialState:
    """Report that a trial failed. The body is an empty object, or nothing."""
    await _told(study, id, Outcome(None, FAILED))
    return models.TrialState(id=id, state="failed", value=None)


async def _told(study: LiveStudy, id: int, outcome: Outcome) -> None:
    stands = await wrap_future(study.tell(id, outcome))
    if stands is None:
        raise Unknown(f"there is no trial {id}")
    if stands != outcome:
        raise Contradiction(f"trial {id} {_in_words(stands)} already, which stays")


@router.get("/studies/{name}/trials", tags=["trials"], responses=NO_STUDY)
def trials(study: Live) -> models.RecordsForm:
    """Return all trials."""
    return models.RecordsForm(trials=[_record(record) for record in study.records()])


@router.get("/studies/{name}/best", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def best(study: Live, context: ContextText = None) -> models.BestForm:
    """Return the recommended params, not those of the luckiest observation; 409 before the first value."""
    known = study.best(_context(study, _read(context), ("query", "context")))
    if known is None:
        raise Contradiction("the study has no value yet: tell one first")
    found, half_life = known
    return models.BestForm(**_estimate(found), gap=finite(found.gap), half_life=finite(half_life))


@router.post("/studies/{name}/predict", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def predict(study: Live, form: models.PredictForm) -> models.EstimateForm:
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
    return models.EstimateForm(**_estimate(found))


@router.get("/studies/{name}/gain", tags=["conclusions"], responses={**NO_STUDY, **OTHER})
def gain(study: Live, context: ContextText = None) -> models.GainForm:
    """Return the gain of the best over the baseline; 409 without one, or before it and one more have a value."""
    part = _context(study, _read(context), ("query", "context"))
    try:
        found = study.gain(part)
    except ValueError as error:
        raise Contradiction(str(error)) from None
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


@router.get("/studies/{name}/done", tags=["conclusions"], responses=NO_STUDY)
def done(
    study: Live,
    within: Annotated[str, Query(max_length=100, description="A number, or a part of the best estimate: 2%")],
    confidence: Annotated[float, Query(description="The probability of being right")] = 0.95,
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
    stop, gap, level = study.done(tolerance, confidence, _context(study, _read(context), ("query", "context")))
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


def _record(record: Record) -> models.RecordForm:
    return models.RecordForm(
        id=record.number,
        params=record.params,
        value=record.value,
        state="running" if not record.finished else "failed" if record.value is None else "done",
        context=record.context,
    )


def _in_words(outcome: Outcome) -> str:
    return f"has failed ({outcome.failure})" if outcome.value is None else f"has the value {outcome.value!r}"


def _tolerance(within: str) -> float | str:
    try:
        return float(within)
    except ValueError:
        return within


def _context(study: LiveStudy, given: Any, place: tuple[str, ...]) -> dict[str, Any] | None:
    """A context of the study, None if it has none; BadField if it is missing or bad."""
    try:
        part = study.study.contexts.within(given)
    except ValueError as error:
        raise BadField(place, error) from None
    return dict(part.context) if isinstance(part, FixedContext) else None


def _read(context: str | None) -> Any:
    """A context out of the query of an address."""
    try:
        return None if context is None else json.loads(context)
    except (ValueError, RecursionError):
        raise BadField(("query", "context"), ValueError('must be JSON like {"load": 0.5}')) from None
