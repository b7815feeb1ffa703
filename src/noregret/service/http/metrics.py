"""Metrics of the server, for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, MutableMapping
from multiprocessing import active_children
from pathlib import Path
from time import monotonic
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from noregret.extra import version
from noregret.service import answers
from noregret.service.http.security import App, Receive, Scope, Send
from noregret.service.studies import Studies

CONTENT_TYPE = "text/plain; version=0.0.4"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the classes of latencies."""
METHODS = ("GET", "POST", "PUT", "DELETE")
OTHER = "other"
"""Label of a route that does not exist, and of another method: clients choose both, and labels must be few."""


class Metrics:
    """Requests since the start of the server, and the present state of its studies, storage and memory."""

    def __init__(self, studies: Studies) -> None:
        # one series for each count, without a second one for the time of its first request
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        Info("noregret", "Version of the server.", registry=self._registry).info({"version": version()})
        self._requests = Counter(
            "noregret_requests", "Answered requests.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "noregret_request_seconds",
            "Time from the header of a request to the end of its answer.",
            ("method", "route"),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._registry.register(_State(studies))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        """All metrics, in the text format."""
        return generate_latest(self._registry)


class _State(Collector):
    """Gauges that are read when they are collected."""

    def __init__(self, studies: Studies) -> None:
        self._studies = studies

    def collect(self) -> Iterator[Metric]:
        open_studies, fits = self._studies.counted_open()
        stored = self._studies.counted()
        yield GaugeMetricFamily("noregret_open_studies", "Studies in memory.", open_studies)
        yield GaugeMetricFamily("noregret_pending_fits", "Fits that are made now.", fits)
        yield GaugeMetricFamily("noregret_storage_up", "1 if the storage can be read.", stored is not None)
        if stored is not None:
            yield GaugeMetricFamily("noregret_studies", "Stored studies.", stored[0])
            trials = GaugeMetricFamily("noregret_trials", "Trials of all stored studies.", labels=["state"])
            for state, number in answers.states(stored[1]):
                trials.add_metric([state], number)
            yield trials
        helpers = [process.pid for process in active_children() if process.pid]
        memory = _resident_bytes([os.getpid()]), _resident_bytes(helpers)
        if memory[0]:
            yield GaugeMetricFamily("process_resident_memory_bytes", "Memory of the server.", memory[0])
            about = "Memory of the processes that choose trials and make fits."
            yield GaugeMetricFamily("noregret_helpers_resident_memory_bytes", about, memory[1])


class Measured:
    """Counts the requests of an application, refused ones too."""

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
