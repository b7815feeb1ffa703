"""The requests and their answers. FastAPI checks requests and describes them as OpenAPI."""

from __future__ import annotations

import json
from asyncio import wrap_future
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

from noregret.optimizer import StopRule
from noregret.service import answers, models
from noregret.service.answers import Contradiction, Unknown
from noregret.service.http import pages
from noregret.service.http.metrics import CONTENT_TYPE, Metrics
from noregret.service.http.security import Access, claim_of
from noregret.service.live import Deleted, LiveStudy
from noregret.service.models import BadField
from noregret.service.studies import Studies
from noregret.studies.page.page import served
from noregret.studies.store.records import Record, agree
from noregret.studies.study.forms import MANY

Responses = dict[int | str, dict[str, Any]]
NO_STUDY: Responses = {404: {"model": models.FaultForm, "description": "There is no such study or trial"}}
OTHER: Responses = {
    409: {"model": models.FaultForm, "description": "It contradicts what is stored, or comes too early"}
}
STORING: dict[str, Any] = {"tags": ["trials"], "responses": NO_STUDY | OTHER, "response_model_exclude_unset": True}
CONCLUDING: dict[str, Any] = {"tags": ["conclusions"], "responses": NO_STUDY | OTHER}
PAGE: Responses = {200: {"description": "The page", "content": {"text/html": {"schema": {"type": "string"}}}}}
METRICS: Responses = {200: {"description": "The counts", "content": {"text/plain": {"schema": {"type": "string"}}}}}


def all_studies(request: Request) -> Studies:
    """The studies of the application."""
    studies: Studies = request.app.state.studies
    return studies


All = Annotated[Studies, Depends(all_studies)]
Name = Annotated[str, Path(max_length=100)]
After = Annotated[str, Query(max_length=100, description="The name that the list starts after")]


async def live(request: Request, name: Name) -> LiveStudy:
    """The study that a path names."""
    studies = all_studies(request)
    study = studies.opened(name)
    return await run_in_threadpool(studies.__getitem__, name) if study is None else study


Live = Annotated[LiveStudy, Depends(live)]
Id = Annotated[int, Path(ge=0, le=2**31 - 1)]

EXAMPLES = {
    "context": '{"load": 0.5}',
    "limits": '{"cost": ["<=", 0.3]}',
    "weights": '{"latency": 1, "cost": 10}',
    "reference": '{"latency": 10, "cost": 1}',
}
"""JSON in the query of an address, by parameter."""


def _json(description: str) -> Any:
    return Query(max_length=10_000, description=description)


ContextText = Annotated[str | None, _json("The context as JSON, if the study has contexts")]
ReferenceText = Annotated[str | None, _json("The reference point of the hypervolume as JSON")]
LimitsText = Annotated[str | None, _json("Limits on objectives as JSON, if the study has several")]
WeightsText = Annotated[str | None, _json("Weights of objectives as JSON, if the study has several")]


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


@health.head("/healthz", include_in_schema=False)
@health.get("/healthz")
async def healthz() -> models.HealthForm:
    """Report that the server runs; needs no token."""
    return models.HealthForm()


@router.get("/", tags=["server"], response_class=Response, responses=PAGE)
def home(studies: All, after: After = "") -> HTMLResponse:
    """Return a page that lists the studies."""
    listed = list_studies(studies, after)
    text, headers = pages.index(listed.studies, listed.next)
    return HTMLResponse(text, headers=headers)


@router.get("/docs", tags=["server"], response_class=Response, responses=PAGE)
def docs() -> HTMLResponse:
    """Return a page that describes all requests."""
    text, headers = pages.reference()
    return HTMLResponse(text, headers=headers)


@router.get("/metrics", tags=["server"], response_class=Response, responses=METRICS)
def metrics(request: Request) -> Response:
    """Return counts of requests, studies and trials, latencies and memory in the text format of Prometheus."""
    counts: Metrics = request.app.state.metrics
    return Response(counts.text(), media_type=CONTENT_TYPE)


@router.get("/studies", tags=["studies"])
def list_studies(
    studies: All, after: After = "", limit: Annotated[int, Query(ge=1, le=MANY)] = MANY
) -> models.StudiesForm:
    """Return the studies by name, without conclusions."""
    return answers.listed(studies, after, limit)


@router.post(
    "/studies",
    status_code=201,
    tags=["studies"],
    responses={200: {"model": models.StudyForm, "description": "The same study exists"}, **OTHER},
)
async def create(form: models.StudyForm, response: Response, studies: All) -> models.StudyForm:
    """Create a study."""
    response.status_code = 201 if await wrap_future(studies.create(form)) else 200
    return form


@router.get("/studies/{name}", tags=["studies"], responses=NO_STUDY)
def describe(study: Live, context: ContextText = None) -> models.StudyState:
    """Return a study with the number of its trials and the recommended params."""
    return answers.described(study, _read(context))


@router.delete("/studies/{name}", status_code=204, tags=["studies"], responses=NO_STUDY, response_model=None)
def delete(name: Name, studies: All) -> None:
    """Delete a study and all its trials, for good."""
    studies.delete(name)


@router.post("/studies/{name}/ask", tags=["trials"], responses=NO_STUDY, response_model_exclude_none=True)
async def ask(study: Live, form: models.AskForm | None = None) -> models.AskedForm:
    """Return trials to measure next. The same client key gets its pending trials again."""
    request = answers.ask_request(study, form or models.AskForm())
    return answers.asked(await wrap_future(study.ask(request)))


@router.post("/studies/{name}/trials/{id}/tell", **STORING)
async def tell(study: Live, id: Id, form: models.TellForm) -> models.TrialState:
    """Store the observation of a trial. The same one twice counts once."""
    if form.is_empty:
        raise BadField(("value",), ValueError("must be a number; or give at_least, at_most or readings instead"))
    if study.study.levels is None:
        return await _told(study, answers.outcome(study, id, form))
    return await _told(study, await run_in_threadpool(answers.outcome, study, id, form))


@router.post("/studies/{name}/trials/{id}/report", tags=["trials"], responses={**NO_STUDY, **OTHER})
def report(study: Live, id: Id, form: models.ReportForm) -> models.VerdictForm:
    """Keep an intermediate value of a running trial, and return whether to stop it.

    It is a sign that the client is alive. 409 if the trial has an outcome, or the study no fidelity.
    """
    return answers.reported(study, id, form)


@router.post("/studies/{name}/tell", **STORING)
def tell_many(study: Live, form: models.OutcomesForm) -> models.TrialStates:
    """Store observations, all or none: of trials by their ids, and of params that were measured in the past.

    The same request twice counts once. Params of the past get an id.
    """
    return answers.told(study, form)


@router.post("/studies/{name}/trials/{id}/fail", **STORING)
async def fail(study: Live, id: Id, form: models.FailForm | None = None) -> models.TrialState:
    """Report that a trial failed. The body has its cost and the reason if they are known, or there is none."""
    form = form or models.FailForm()
    return await _told(study, answers.failed(study, id, form.cost, form.reason))


async def _told(study: LiveStudy, outcome: Record) -> models.TrialState:
    """State of a trial once its outcome is stored; Contradiction if it has another one."""
    stands = await wrap_future(study.tell(outcome))
    if stands is None:
        await run_in_threadpool(study.records)  # Deleted, if the study is gone
        raise Unknown(f"there is no trial {outcome.number}")
    if not agree(stands, outcome):
        said = answers.in_words(study, stands, outcome)
        raise Contradiction(f"trial {outcome.number} {said} already, which stays")
    return answers.state_of(study, outcome)


@router.put("/studies/{name}/trials/{id}", **STORING)
def correct(study: Live, id: Id, form: models.CorrectionForm) -> models.RecordForm:
    """Correct a trial that has an outcome: the numbers that are given take the place of those that are stored.

    The trial as it was stays listed, as an earlier one. 409 if the trial has no outcome yet.
    """
    return answers.corrected(study, id, form)


@router.delete("/studies/{name}/trials/{id}", **STORING)
def withdraw(
    study: Live,
    id: Id,
    form: models.WithdrawalForm | None = None,
    because: Annotated[str, Query(max_length=1000, description="Reason, which is kept; or in the body")] = "",
) -> models.RecordForm:
    """Take a trial that has an outcome out of all conclusions. It stays listed, with the reason; PUT counts it again.

    409 if the trial has no outcome yet.
    """
    return answers.withdrawn(study, id, because or (form.because if form else ""))


@router.get("/studies/{name}/trials", tags=["trials"], responses=NO_STUDY, response_model_exclude_unset=True)
def trials(study: Live) -> models.RecordsForm:
    """Return all trials, with all that is stored of them."""
    return answers.trials(study)


@router.get("/studies/{name}/front", **CONCLUDING)
def front(study: Live, context: ContextText = None, reference: ReferenceText = None) -> models.FrontForm:
    """Return the params to choose from with several objectives; 409 with one, or before there are values enough."""
    return answers.front(study, _read(context), _read(reference, "reference"))


@router.get("/studies/{name}/best", **CONCLUDING)
def best(
    study: Live, context: ContextText = None, limits: LimitsText = None, weights: WeightsText = None
) -> models.BestForm | models.FrontEstimateForm:
    """Return the recommended params, not those of the luckiest observation; 409 before the first value.

    With several objectives, ``limits`` or ``weights`` say which params of the front are wanted.
    """
    return answers.best(study, _read(context), _read(limits, "limits"), _read(weights, "weights"))


@router.post("/studies/{name}/predict", **CONCLUDING)
def predict(study: Live, form: models.PredictForm) -> models.EstimateForm | models.FrontEstimateForm:
    """Return the estimate for params of your own; 409 before there are two values."""
    return answers.predicted(study, form)


@router.get("/studies/{name}/gain", **CONCLUDING)
def gain(
    study: Live, context: ContextText = None, limits: LimitsText = None, weights: WeightsText = None
) -> models.GainForm | models.GainsForm:
    """Return the gain of the best over the baseline; 409 without one, or before it and one more have a value.

    With several objectives it is that of each, for the params of the front that ``limits`` or ``weights`` name.
    """
    return answers.gain(study, _read(context), _read(limits, "limits"), _read(weights, "weights"))


@router.get("/studies/{name}/done", **CONCLUDING)
def done(
    study: Live,
    within: Annotated[str, Query(max_length=100, description="A number, or a part of the best estimate: 2%")],
    confidence: Annotated[float, Query(description="Level of the statement")] = 0.95,
    by: Annotated[StopRule, Query(description="The statement it rests on")] = "model",
    context: ContextText = None,
) -> models.DoneForm:
    """Return whether no other params are likely to be better than the best by more than ``within``."""
    return answers.done(study, _tolerance(within), confidence, by, _read(context))


@router.get("/studies/{name}/", tags=["conclusions"], response_class=Response, responses={**PAGE, **NO_STUDY})
def show(study: Live) -> HTMLResponse:
    """Return the report page."""
    text, headers = served(study.findings())
    return HTMLResponse(text, headers=headers)


@router.get("/studies/{name}/link", tags=["conclusions"], responses=NO_STUDY)
def link(
    request: Request, study: Live, days: Annotated[float, Query(gt=0, le=3660, description="Until it ends")] = 30
) -> models.LinkForm:
    """Return a link to the report page of this study, for people who have no token: they see this page only.

    It is relative to the server's root. All links end at once when the server's token changes.
    """
    access: Access | None = request.app.state.access
    name = study.study.name
    key = f"?key={access.proof(claim_of(name), 86400 * days)}" if access else ""
    return models.LinkForm(link=f"studies/{quote(name)}/{key}")


def _tolerance(within: str) -> float | str:
    try:
        return float(within)
    except ValueError:
        return within


def _read(given: str | None, name: str = "context") -> Any:
    """JSON out of the query of an address."""
    try:
        return None if given is None else json.loads(given)
    except (ValueError, RecursionError):
        raise BadField((name,), ValueError(f"must be JSON like {EXAMPLES[name]}")) from None
