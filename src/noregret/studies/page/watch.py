"""The report as a live page, for this machine's own browser only.

It answers GET and HEAD, on the loopback address, and is read-only. Requests under another host name than this machine's
own are refused, so that no page of another site can read it through the browser.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any, NamedTuple

from noregret.optimizer import dump
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import believed, replay_of
from noregret.studies.page.page import content, served
from noregret.studies.page.serving import headers, is_here, policy
from noregret.studies.store.records import Record
from noregret.studies.store.store import Store
from noregret.studies.study.study import NotYet, Study, StudyError
from noregret.terminal import printable

HOST, PORT = "127.0.0.1", 8765
MOST_PORTS_TRIED = 100
"""Number of ports that are tried, from the first one on, before any free one is taken."""
IDLE_SECONDS = 10
"""Time after which a silent connection is closed."""
REST = 4.0
"""Least pause before a page is drawn again, per second of drawing: measurements run on this machine."""
CONNECTIONS = 32
"""Largest number of open connections; further ones are closed at once."""
GUARDING = headers(policy("", ""))
"""Headers of answers that are no page."""

SCRIPT = """
const note = document.getElementById("live"), main = document.querySelector("main");
let mark = "";
async function look() {
  try {
    const answer = await fetch("/content", {headers: mark ? {"If-None-Match": mark} : {}, cache: "no-store"});
    if (answer.status === 200) {
      const open = [...main.querySelectorAll("details")].map(found => found.open);
      main.innerHTML = await answer.text();
      main.querySelectorAll("details").forEach((found, i) => { found.open = open[i] || false; });
      equipped();
      drawn();
      mark = answer.headers.get("ETag") || "";
    } else if (answer.status !== 304) throw new Error(await answer.text());
    note.textContent = "live, updated " + new Date().toLocaleTimeString(); note.className = "";
  } catch (error) {
    note.textContent = "not live: " + (error.message || "noregret watch has ended"); note.className = "lost";
  }
  setTimeout(look, 2000);
}
look();
"""


class Shown(NamedTuple):
    """A state of a study: its findings, the part of the page that changes, and a unique mark."""

    findings: Findings
    content: str
    mark: str


class Watch:
    """Present page of a study; drawn again only if something has changed, and not too often."""

    def __init__(self, study: Study) -> None:
        self._study, self._lock = study, Lock()
        self._seen: tuple[list[Record], str | None] | None = None
        self._findings: Findings | None = None
        self._shown: Shown | None = None
        self._begun = self._rested_at = 0.0
        self._replay = replay_of(study)
        self.waiting = ""
        """Reason why there is nothing to see yet; empty once the study has started."""

    def findings(self) -> Findings:
        """Present findings."""
        with self._lock:
            records, stopped = self._records()
            if self._findings is None or ((records, stopped) != self._seen and monotonic() >= self._rested_at):
                self._seen, self._begun = (records, stopped), monotonic()
                optimizer = believed(self._study, records, self._replay)
                self._findings = Findings(self._study, records, optimizer, stopped)
            return self._findings

    def shown(self) -> Shown:
        """Present page, drawn once for each state, for any number of browsers."""
        findings = self.findings()
        with self._lock:
            if self._shown is None or self._shown.findings is not findings:
                trials = [dump(record) for record in findings.records]
                mark = sha256(repr((trials, findings.stopped)).encode()).hexdigest()[:32]
                self._shown = Shown(findings, content(findings), f'"{mark}"')
                self._rested_at = monotonic() + REST * (monotonic() - self._begun)
            return self._shown

    def _records(self) -> tuple[list[Record], str | None]:
        """All trials, none before the study has started; and the reason why it has ended, None if it has not."""
        try:
            with Store(self._study, readonly=True) as store:
                self.waiting = ""
                return store.records(), store.stopped()
        except NotYet as error:
            if self._seen and self._seen[0]:
                raise
            self.waiting = str(error)
            return [], None


class PageServer(ThreadingHTTPServer):
    """A server for a study's page, on loopback; port 0 for any that is free."""

    daemon_threads = True

    def __init__(self, study: Study, port: int) -> None:
        self.watch, self._free = Watch(study), BoundedSemaphore(CONNECTIONS)
        super().__init__((HOST, port), _handler(self.watch))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; a connection too many is closed."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that have closed the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def server(study: Study, port: int | None = None) -> PageServer:
    """A server for a study's page; StudyError if its port is taken. Without a port, the first free one from PORT on."""
    for number in [port] if port is not None else [*range(PORT, PORT + MOST_PORTS_TRIED), 0]:
        try:
            return PageServer(study, number)
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                reason = f"--port {number} cannot be used: {error.strerror}: choose another one"
                raise StudyError(reason) from error
    raise AssertionError("port 0 is any free one")


def _handler(watch: Watch) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "noregret", ""
        timeout = IDLE_SECONDS

        def do_GET(self) -> None:
            if not is_here(self.headers.get("Host", "")):
                return self._answer(HTTPStatus.FORBIDDEN, "this page is for this machine only", "text/plain")
            if self.path not in ("/", "/content"):
                return self._answer(HTTPStatus.NOT_FOUND, "there is only /", "text/plain")
            try:
                self._show(watch.shown())
            except StudyError as error:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error), "text/plain")
            except ConnectionError:
                raise  # the browser has closed the connection
            except Exception as error:
                said = f"this page cannot be drawn, which is noregret's fault: {type(error).__name__}: {error}"
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, said, "text/plain")

        do_HEAD = do_GET

        def _show(self, shown: Shown) -> None:
            if self.path == "/":
                text, guarding = served(shown.findings, shown.content, SCRIPT)
                return self._answer(HTTPStatus.OK, text, "text/html", guarding)
            mark = {**GUARDING, "ETag": shown.mark}
            if self.headers.get("If-None-Match") == shown.mark:
                return self._answer(HTTPStatus.NOT_MODIFIED, "", "text/html", mark)
            self._answer(HTTPStatus.OK, shown.content, "text/html", mark)

        def _answer(self, status: HTTPStatus, text: str, kind: str, more: Mapping[str, str] = GUARDING) -> None:
            body = text.encode()
            self.send_response(status)
            about = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
            for name, value in {**about, **more}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def serve(study: Study, port: int | None, say: Callable[[str], None]) -> None:
    """Serve the page until interrupted; ``say`` is called with its address, and then with why there is no study yet."""
    with server(study, port) as web_server:
        say(f"http://{HOST}:{web_server.server_address[1]}/  (end with Ctrl-C)")
        web_server.watch.findings()  # what cannot be shown is refused here, not in the browser
        if web_server.watch.waiting:
            say(f"waiting for the study: {printable(web_server.watch.waiting)}")
        web_server.serve_forever(poll_interval=0.2)
