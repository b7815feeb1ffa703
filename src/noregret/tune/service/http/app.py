"""The application: its requests behind a guard, and what is answered where something is wrong."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.middleware.trustedhost import TrustedHostMiddleware

from noregret.tune.service import models
from noregret.tune.service.choosing.live import Overtaken
from noregret.tune.service.choosing.studies import AnotherStudy, NoStudy, Studies
from noregret.tune.service.http import routes
from noregret.tune.service.http.routes import BadField, Contradiction, Unknown
from noregret.tune.service.http.security import Guard
from noregret.tune.study.study import StudyError

LOG = logging.getLogger("uvicorn.error")
HERE = ["127.0.0.1", "localhost", "[::1]"]
"""The names under which a server without a token answers: no page from elsewhere can reach it through a browser."""
TOKEN = HTTPBearer(auto_error=False, description="The token, where the server has one")
"""For the description: the guard sees to it."""
FAULTS: dict[int | str, dict[str, Any]] = {
    401: {"model": models.FaultForm, "description": "The token is missing or wrong"},
    403: {"model": models.FaultForm, "description": "A page of another site sent it, and there is no token"},
    413: {"model": models.FaultForm, "description": "The request is too large"},
    415: {"model": models.FaultForm, "description": "A POST is not application/json"},
    422: {"model": models.FieldFaults, "description": "A field is at fault"},
    429: {"model": models.FaultForm, "description": "Too many requests"},
    503: {"model": models.FaultForm, "description": "The storage cannot be used now"},
}


def application(studies: Studies, token: str | None = None, rate: float | None = None) -> FastAPI:
    """The service on some studies.

    Parameters
    ----------
    studies : Studies
        They are closed when the service ends.
    token : str, optional
        The word that every request must bring; without one, the service answers under this machine's own names only.
    rate : float, optional
        Requests a second from one address.
    """

    @asynccontextmanager
    async def closing(app: FastAPI) -> AsyncIterator[None]:
        yield
        studies.close()

    app = FastAPI(
        title="noregret",
        summary="Find the best of many options from noisy measurements.",
        version=version("noregret"),
        docs_url=None,
        redoc_url=None,
        lifespan=closing,
    )
    if token is None:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=HERE)
    app.add_middleware(Guard, token=token, rate=rate)
    _explain_faults(app)
    app.state.studies = studies
    app.include_router(routes.server)
    app.include_router(routes.router, dependencies=[Depends(TOKEN)], responses=FAULTS)
    return app


def _explain_faults(app: FastAPI) -> None:
    def answer(status: int) -> Any:
        return lambda request, error: JSONResponse({"detail": str(error.args[0])}, status)

    for kind, status in ((NoStudy, 404), (Unknown, 404), (AnotherStudy, 409), (Contradiction, 409)):
        app.add_exception_handler(kind, answer(status))

    @app.exception_handler(RequestValidationError)
    def bad_fields(request: Request, error: RequestValidationError) -> JSONResponse:
        return _fields([(found["loc"], found["msg"], found["type"]) for found in error.errors()])

    @app.exception_handler(BadField)
    def bad_field(request: Request, error: BadField) -> JSONResponse:
        return _fields([(error.place, str(error), "value_error")])

    @app.exception_handler(StudyError)
    def bad_storage(request: Request, error: StudyError) -> JSONResponse:
        LOG.error("%s", error)
        return JSONResponse({"detail": "the storage cannot be used now; the server's own output says why"}, 503)

    @app.exception_handler(Overtaken)
    def overtaken(request: Request, error: Overtaken) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "1"})

    @app.exception_handler(Exception)
    def bug(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": "this is a fault of the server; its own output says more"}, 500)


def _fields(found: list[tuple[Any, str, str]]) -> JSONResponse:
    detail = [{"loc": list(place), "msg": said, "type": kind} for place, said, kind in found]
    return JSONResponse({"detail": detail}, 422)
