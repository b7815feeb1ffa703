"""The application: its requests behind a guard, its errors as answers, and the server that runs it."""

from __future__ import annotations

import gc
import logging
import resource
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles

from noregret.extra import version
from noregret.gp.threads import one_thread
from noregret.service import models
from noregret.service.answers import Contradiction, Unknown, faults
from noregret.service.choosers import Chooser
from noregret.service.http import routes
from noregret.service.http.metrics import Measured, Metrics
from noregret.service.http.security import Access, RequestGuard
from noregret.service.live import NoStudy
from noregret.service.models import BadField
from noregret.service.studies import AnotherStudy, Studies
from noregret.studies.page.serving import is_loopback
from noregret.studies.store.storage import Storage
from noregret.studies.store.trials import Overtaken
from noregret.studies.study.study import StudyError, without_password
from noregret.terminal import printable, say

LOG = logging.getLogger("uvicorn.error")
TOKEN = HTTPBearer(auto_error=False, description="The token, where the server has one")
"""For the OpenAPI description; `RequestGuard` checks it."""
RETRY = {"Retry-After": {"description": "Seconds after which to send the request again", "schema": {"type": "integer"}}}
FAULTS: dict[int | str, dict[str, Any]] = {
    400: {
        "model": models.FaultForm,
        "description": "The server has no token, and the Host header is another machine's",
    },
    401: {"model": models.FaultForm, "description": "The token is missing or wrong"},
    403: {"model": models.FaultForm, "description": "A page of another site sent it to a server without a token"},
    413: {"model": models.FaultForm, "description": "The request is too large"},
    415: {"model": models.FaultForm, "description": "A POST is not application/json"},
    422: {"model": models.FieldFaults, "description": "A field is invalid"},
    429: {"model": models.FaultForm, "description": "Too many requests", "headers": RETRY},
    503: {
        "model": models.FaultForm,
        "description": "The storage cannot be used now, other servers keep changing the study, or the server is "
        "stopping",
        "headers": RETRY,
    },
}


CONNECTIONS = 1000
"""The largest number of open connections and of requests in work; beyond it the answer is 503."""
HEADER_BYTES = 64 << 10
"""The longest header of a request, with its URL, which may have contexts, limits and weights."""
KEEP_ALIVE_SECONDS = 10
"""Time after an answer until the next request of a connection must have begun to arrive."""
SHUTDOWN_SECONDS = 5
"""Time limit after a signal to stop: for requests that have arrived, and for everything else."""
CHOOSING = 2
"""Number of processes that choose trials: with the second one, half of the studies do not wait for a long fit."""


def application(studies: Studies, token: str | None = None, rate: float | None = None) -> FastAPI:
    """The service on some studies.

    ``token`` is the one that every request must have; without one, the service answers under this machine's own names
    only. ``rate`` limits the requests a second from one address. The studies are closed when the service ends.
    """

    @asynccontextmanager
    async def closing(app: FastAPI) -> AsyncIterator[None]:
        yield
        studies.close()

    app = FastAPI(
        title="noregret",
        summary="Find the best of many options from noisy measurements.",
        version=version(),
        docs_url=None,
        redoc_url=None,
        lifespan=closing,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.access = None if token is None else Access(token)
    app.add_middleware(RequestGuard, access=app.state.access, rate=rate)
    app.state.studies, app.state.metrics = studies, Metrics(studies)
    app.add_middleware(Measured, metrics=app.state.metrics)
    _explain_faults(app)
    app.include_router(routes.health)
    app.include_router(routes.router, dependencies=[Depends(TOKEN)], responses=FAULTS)
    app.mount("/docs/assets", StaticFiles(packages=[("fastapi_swagger", "resources")]))
    return app


def _explain_faults(app: FastAPI) -> None:
    def answer(status: int) -> Any:
        return lambda request, error: JSONResponse({"detail": str(error.args[0])}, status)

    for kind, status in ((NoStudy, 404), (Unknown, 404), (AnotherStudy, 409), (Contradiction, 409)):
        app.add_exception_handler(kind, answer(status))

    @app.exception_handler(RequestValidationError)
    def bad_fields(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = error.errors()
        for fault in errors:
            if fault["type"] == "json_invalid":
                fault["msg"] = f"is no JSON: {fault['ctx']['error']}, at character {fault['loc'][-1]}"
        return _fields(faults(errors))

    @app.exception_handler(400)
    def unreadable(request: Request, error: Exception) -> JSONResponse:
        return _fields([(["body"], "must be JSON in UTF-8, and not nested deeply", "json_invalid")])

    @app.exception_handler(BadField)
    def bad_field(request: Request, error: BadField) -> JSONResponse:
        part = "query" if request.method == "GET" else "body"
        return _fields([([part, *error.place], str(error), "value_error")])

    @app.exception_handler(StudyError)
    def bad_storage(request: Request, error: StudyError) -> JSONResponse:
        LOG.error("%s", error)
        detail = "the storage cannot be used now; the server's own output says why"
        return JSONResponse({"detail": detail}, 503, {"Retry-After": "1"})

    @app.exception_handler(Overtaken)
    def overtaken(request: Request, error: Overtaken) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "1"})

    @app.exception_handler(Exception)
    def bug(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": "this is a fault of the server; its own output says more"}, 500)


def _fields(found: list[tuple[list[str | int], str, str]]) -> JSONResponse:
    detail = [{"loc": place, "msg": said, "type": kind} for place, said, kind in found]
    return JSONResponse({"detail": detail}, 422)


class Server(uvicorn.Server):
    """Server that ends in bounded time after a signal, even if a thread hangs. Acknowledged requests are stored."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        signal.alarm(2 * SHUTDOWN_SECONDS)


def configuration(app: FastAPI) -> uvicorn.Config:
    """Settings of a server.

    Half of the file descriptors are for connections. uvicorn has no limit on the time until a request has arrived:
    where clients are not trusted, that is for a proxy (`docs/nginx.conf`).
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = soft if soft != resource.RLIM_INFINITY else 1 << 20
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        log_level="error",  # a warning for each malformed request would fill a disk
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=min(1024, files // 16),
        limit_concurrency=min(CONNECTIONS, files // 2),
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def serve(url: str, host: str, port: int, token: str | None, rate: float | None, lease: float) -> None:
    """Serve the studies of a storage until interrupted.

    Raises
    ------
    StudyError
        If the storage cannot be used, the address is taken, or it can be reached by others and there is no token.
    """
    if token is None and not is_loopback(host):
        raise StudyError(
            f"--host {host} can be reached from other machines, so a token is needed: --token-file FILE, or the "
            "environment variable NOREGRET_TOKEN"
        )
    with ExitStack() as ending:
        choosers = [ending.enter_context(closing(Chooser())) for _ in range(CHOOSING)]  # first: they inherit nothing
        fitter = ending.enter_context(closing(Chooser()))
        door = ending.enter_context(_listening(host, port))
        app = application(Studies(Storage(url, Path.cwd()), lease, choosers, fitter), token, rate)
        say(
            f"{_address(host, door)}  (end with Ctrl-C)",
            f"storage: {printable(without_password(url))}; {_who(host, token)}",
        )
        gc.freeze()  # objects made so far stay: the collector need not visit them
        with one_thread():  # studies share the machine; products of their size are no faster on more
            Server(configuration(app)).run(sockets=[door])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise StudyError(f"--host {host} --port {port} cannot be used: {error.strerror}: choose another one") from error


def _address(host: str, door: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{door.getsockname()[1]}"


def _who(host: str, token: str | None) -> str:
    if token is None:
        return "no token is set: any local program can connect"
    machines = "local programs" if is_loopback(host) else "other machines"
    return f"{machines} can connect with the token; the connection is not encrypted"
