"""Metrics of the server, in the text format of Prometheus."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping
from importlib.metadata import version
from itertools import accumulate
from multiprocessing import active_children
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from noregret.tune.service.http.security import App, Receive, Scope, Send

CONTENT_TYPE = "text/plain; version=0.0.4"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the classes of latencies."""
METHODS = ("GET", "POST", "PUT", "DELETE")
OTHER = "other"
"""Label of a route that does not exist, and of another method: clients choose both, and labels must be few."""


class Metrics:
    """Requests by method, route and status, and their latencies, since the start of the server."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._classes: dict[tuple[str, str], list[int]] = {}
        self._sums: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._requests[method, route, status] += 1
            classes = self._classes.setdefault((method, route), [0] * (len(SECONDS) + 1))
            classes[bisect_left(SECONDS, seconds)] += 1
            self._sums[method, route] += seconds  # type: ignore[assignment]

    def text(self, open_studies: int, fits: int, stored: tuple[int, Mapping[str, int]] | None) -> str:
        """All metrics.

        Parameters
        ----------
        open_studies, fits : int
            Number of open studies, and of fits that are made now.
        stored : (int, mapping), optional
            Number of stored studies, and of their trials by state; None if the storage cannot be used.
        """
        with self._lock:
            requests, sums = dict(self._requests), dict(self._sums)
            classes = {key: list(counts) for key, counts in self._classes.items()}
        lines = [
            *_metric("noregret_info", "gauge", "Version of the server.", [({"version": version("noregret")}, 1)]),
            *_metric(
                "noregret_requests_total",
                "counter",
                "Answered requests.",
                [
                    ({"method": method, "route": route, "status": status}, number)
                    for (method, route, status), number in sorted(requests.items())
                ],
            ),
            "# HELP noregret_request_seconds Time from the header of a request to the end of its answer.",
            "# TYPE noregret_request_seconds histogram",
        ]
        for (method, route), counts in sorted(classes.items()):
            labels = {"method": method, "route": route}
            for bound, number in zip((*SECONDS, "+Inf"), accumulate(counts), strict=True):
                lines.append(_line("noregret_request_seconds_bucket", {**labels, "le": bound}, number))
            lines.append(_line("noregret_request_seconds_sum", labels, sums[method, route]))
            lines.append(_line("noregret_request_seconds_count", labels, sum(counts)))
        lines += _metric("noregret_open_studies", "gauge", "Studies in memory.", [({}, open_studies)])
        lines += _metric("noregret_pending_fits", "gauge", "Fits that are made now.", [({}, fits)])
        lines += _metric(
            "noregret_storage_up", "gauge", "1 if the storage can be read.", [({}, int(stored is not None))]
        )
        if stored is not None:
            studies, trials = stored
            by_state = [({"state": state}, number) for state, number in trials.items()]
            lines += _metric("noregret_studies", "gauge", "Stored studies.", [({}, studies)])
            lines += _metric("noregret_trials", "gauge", "Trials of all stored studies.", by_state)
        helpers = [process.pid for process in active_children() if process.pid]
        memory = _resident_bytes([os.getpid()]), _resident_bytes(helpers)
        if memory[0]:
            lines += _metric("process_resident_memory_bytes", "gauge", "Memory of the server.", [({}, memory[0])])
            about = "Memory of the processes that choose trials and make fits."
            lines += _metric("noregret_helpers_resident_memory_bytes", "gauge", about, [({}, memory[1])])
        return "\n".join([*lines, ""])


class Measured:
    """Counts the requests of an application, refused ones too.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
        What counts them.
    """

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        start, status = monotonic(), 0

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:
            status = status or 500  # the answer is made outside of this
            raise
        finally:
            if status:
                method = scope["method"] if scope["method"] in METHODS else OTHER
                route = getattr(scope.get("route"), "path", OTHER)
                self._metrics.count(method, route, status, monotonic() - start)


def _metric(name: str, kind: str, about: str, values: Iterable[tuple[Mapping[str, Any], float]]) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *(_line(name, *its) for its in values)]


def _line(name: str, labels: Mapping[str, Any], number: float) -> str:
    said = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{said}}} {number}" if said else f"{name} {number}"


def _resident_bytes(processes: Iterable[int]) -> int:
    """Memory of some processes; 0 where it cannot be known (without Linux's /proc)."""
    total = 0
    for process in processes:
        try:
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue  # it has ended
        total += pages * os.sysconf("SC_PAGE_SIZE")
    return total
