"""The requests and their answers. FastAPI checks requests and describes them as OpenAPI."""

from __future__ import annotations

import json
from asyncio import wrap_future
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from math import isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.routing import APIRoute

from noregret.optimizer import Estimate, FixedContext, StopRule, checked_confidence, checked_numbers, checked_tolerance
from noregret.tune.learning.findings import finite
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
    known = study.best(here) if is_known else None
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


@router.post("/studies/{name}/trials/{id}/tell", tags=["trials"], responses={**NO_STUDY, **OTHER})
async def tell(study: Live, id: Id, form: models.TellForm) -> models.TrialState:
    """Store the observation of a trial. The same one twice counts once."""
    numbers = _numbers(study, form.constraints, ("body", "constraints"))
    level, is_stopped = None, False
    if study.study.levels is not None or form.fidelity is not None:
        level, is_stopped = await run_in_threadpool(_level, study, id, form.fidelity, ("body", "fidelity"))
    its: dict[str, Any] = {"noise": form.noise, "constraints": numbers, "fidelity": level, "is_stopped": is_stopped}
    await _told(study, id, Outcome(form.value, **its))
    return models.TrialState(id=id, state="done", value=form.value)


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


@router.post("/studies/{name}/tell", tags=["trials"], responses={**NO_STUDY, **OTHER})
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
    return models.TrialStates(
        trials=[
            models.TrialState(id=number, state="failed" if its.failed else "done", value=its.value)
            for number, its in zip(numbers, form.trials, strict=True)
        ]
    )


def _outcome(study: LiveStudy, form: models.OutcomeForm, place: tuple[str | int, ...]) -> TrialOutcome | ImportedRow:
    """An observation of a request as a study stores it; BadField if it is bad."""
    failure = FAILED if form.failed else ""
    numbers = {} if form.failed else _numbers(study, form.constraints, (*place, "constraints"))
    if form.id is not None:
        level, stopped = (None, False) if form.failed else _level(study, form.id, form.fidelity, (*place, "fidelity"))
        its: dict[str, Any] = {"noise": form.noise, "constraints": numbers, "fidelity": level, "is_stopped": stopped}
        return TrialOutcome(form.id, Outcome(form.value, failure, **its))
    level = study.study.levels.highest if study.study.levels else None
    level = level if form.fidelity is None else _checked_level(study, form.fidelity, (*place, "fidelity"))
    context = _context(study, form.context, (*place, "context"))
    try:
        params = dict(study.study.settings.checked(form.params))
    except ValueError as error:
        raise BadField((*place, "params"), error) from None
    return ImportedRow(params, form.value, form.noise, numbers, form.key or "", context, failure, level)


def _numbers(
    study: LiveStudy, told: Mapping[str, float | None] | None, place: tuple[str | int, ...]
) -> dict[str, float]:
    """The numbers of constraints that were measured; BadField if one is bad or missing."""
    try:
        checked_numbers(study.constraints, told)
    except ValueError as error:
        raise BadField(place, error) from None
    return {name: number for name, number in (told or {}).items() if number is not None}


@router.post("/studies/{name}/trials/{id}/fail", tags=["trials"], responses={**NO_STUDY, **OTHER})
async def fail(study: Live, id: Id, form: models.FailForm | None = None) -> models.TrialState:
    """Report that a trial failed. The body is an empty object, or nothing."""
    await _told(study, id, Outcome(None, FAILED))
    return models.TrialState(id=id, state="failed", value=None)


async def _told(study: LiveStudy, id: int, outcome: Outcome) -> None:
    stands = await wrap_future(study.tell(id, outcome))
    if stands is None:
        await run_in_threadpool(study.records)  # Deleted, if the study is gone
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
    return _best(*known)


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
        trials=sum(study.states.values()),
        states=_states(study.states),
        last=study.last.astimezone().isoformat(timespec="seconds") if study.last else None,
    )


def _states(counts: Mapping[State, int]) -> models.StateCounts:
    """Number of trials by the states that requests have, from those of the storage."""
    running, failed = (sum(counts.get(its, 0) for its in both) for both in (WAITING, WITHOUT_VALUE))
    return models.StateCounts(running=running, done=counts.get("done", 0), failed=failed)


def _record(record: Record) -> models.RecordForm:
    return models.RecordForm(
        id=record.number,
        params=record.params,
        value=record.value,
        state="running" if not record.finished else "failed" if record.value is None else "done",
        context=record.context,
        fidelity=None if record.fidelity is None else dict(record.fidelity),
    )


def _in_words(outcome: Outcome) -> str:
    return f"has failed ({outcome.failure})" if outcome.value is None else f"has the value {outcome.value!r}"


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


def _read(context: str | None) -> Any:
    """A context out of the query of an address."""
    try:
        return None if context is None else json.loads(context)
    except (ValueError, RecursionError):
        raise BadField(("query", "context"), ValueError('must be JSON like {"load": 0.5}')) from None
