"""Connections: how many may be open, and how long a request may take to arrive.

uvicorn closes a connection that is silent after an answer, and nothing else: one that never sends a request, or half of
one, stays open for as long as the client likes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import resource
import signal
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 1000
"""The largest number of open connections."""
HEADER_SECONDS = 10.0
"""From the opening of a connection, or the end of an answer, until the next request's header must have arrived."""
BODY_SECONDS = 30.0
"""From the header until the body must have arrived, which is 1 MiB at most."""
READ_SECONDS = 60.0
"""Time limit for a client to read an answer."""
SHUTDOWN_SECONDS = 5
"""Time limit after a signal to stop: for requests that have arrived, and for everything else."""
LOG_SECONDS = 60.0
"""The least time between two lines about too many connections."""

LOG = logging.getLogger("uvicorn.error")
QUIET = logging.getLogger("uvicorn.error.connections")
QUIET.setLevel(logging.ERROR)  # one line for each malformed request would fill a disk


class Connection(H11Protocol):
    """HTTP connection with time limits, which gives way to newer ones when too many are open."""

    _last_logged = -LOG_SECONDS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger = QUIET
        self._limit = 0.0
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._start_clock(0.0)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def shutdown(self) -> None:
        """Close the connection once its request is answered; at once if the request has not arrived as a whole."""
        request = self._unanswered()
        if request and request.more_body:
            self.transport.abort()
        else:
            super().shutdown()

    def _unanswered(self) -> Any:
        """The request that has no complete answer yet, None if there is none."""
        request: Any = self.cycle
        return None if request is None or request.response_complete else request

    def _watch(self) -> None:
        """Start the clock of what the client must do next, unless it runs already; stop it while the client waits."""
        request = self._unanswered()
        if self.flow.write_paused:
            limit = READ_SECONDS
        elif request is None:
            limit = HEADER_SECONDS
        else:
            limit = BODY_SECONDS if request.more_body else 0.0
        if limit != self._limit:
            self._start_clock(limit)

    def _start_clock(self, limit: float) -> None:
        if self._clock:
            self._clock.cancel()
        self._limit = limit
        self._clock = self.loop.call_later(limit, self.transport.abort) if limit else None

    def _waiting_since(self) -> float:
        """The time since when the server waits for the client, infinite while the client waits for the server."""
        return self._clock.when() - self._limit if self._clock else math.inf

    def _make_room(self) -> None:
        """Close the connection that the server has waited for longest: this one, if all others wait for the server."""
        oldest = min(
            (other for other in self.connections if isinstance(other, Connection)), key=Connection._waiting_since
        )
        self.connections.discard(oldest)
        oldest.transport.abort()
        if self.loop.time() - Connection._last_logged > LOG_SECONDS:
            Connection._last_logged = self.loop.time()
            LOG.warning("%d connections are open, which is the limit: idle ones are closed", len(self.connections))


class Server(uvicorn.Server):
    """Server that ends in bounded time after a signal, even if a thread hangs. Acknowledged requests are stored."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        signal.alarm(2 * SHUTDOWN_SECONDS)


def configuration(app: Any) -> uvicorn.Config:
    """Settings of a server with bounds on connections, on time, and on the end.

    Half of the file descriptors are for connections. asyncio accepts up to ``backlog`` connections at once, and several
    times that before the first of them can be closed.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = soft if soft != resource.RLIM_INFINITY else 1 << 20
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=min(1024, files // 16),
        limit_concurrency=min(CONNECTIONS, files // 2) + 1,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
