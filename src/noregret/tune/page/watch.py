"""The report as a live page, for this machine's own browser only.

It answers GET and HEAD, on the loopback address, and nothing it does changes anything. Requests that came under
another name than this machine's own are turned away, so that no page from elsewhere can read it through the browser.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from noregret.tune.learning.findings import Findings
from noregret.tune.learning.suggest import believed
from noregret.tune.page.page import content, page
from noregret.tune.store.records import Record
from noregret.tune.store.store import Store
from noregret.tune.study.study import Study, StudyError

HOST = "127.0.0.1"

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
      mark = answer.headers.get("ETag") || "";
    } else if (answer.status !== 304) throw new Error(await answer.text());
    note.textContent = "live, looked at " + new Date().toLocaleTimeString(); note.className = "";
  } catch (error) {
    note.textContent = "not live: " + (error.message || "noregret watch has ended"); note.className = "lost";
  }
  setTimeout(look, 2000);
}
look();
"""


class Watch:
    """What a study looks like now; computed again only if something has changed."""

    def __init__(self, study: Study) -> None:
        self._study, self._lock = study, Lock()
        self._seen: list[Record] | None = None
        self._findings: Findings | None = None

    def findings(self) -> Findings:
        """What is known now."""
        with self._lock:
            with Store(self._study, readonly=True) as store:
                records = store.records()
            if self._findings is None or records != self._seen:
                self._seen = records
                self._findings = Findings(self._study, records, believed(self._study, records))
            return self._findings


def server(study: Study, port: int) -> ThreadingHTTPServer:
    """A server for a study's page, on loopback; port 0 for any that is free."""
    watch = Watch(study)
    watch.findings()  # what cannot be shown is refused here, not in the browser
    try:
        found = ThreadingHTTPServer((HOST, port), _handler(watch))
    except OSError as error:
        raise StudyError(f"--port {port} cannot be used: {error.strerror}: choose another one") from error
    found.daemon_threads = True
    return found


def _handler(watch: Watch) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "noregret", ""

        def do_GET(self) -> None:
            if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
                return self._answer(HTTPStatus.FORBIDDEN, "this page is for this machine only", "text/plain")
            if self.path not in ("/", "/content"):
                return self._answer(HTTPStatus.NOT_FOUND, "there is only /", "text/plain")
            try:
                self._show(watch.findings())
            except StudyError as error:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error), "text/plain")
            except ConnectionError:
                raise  # the browser has gone, and wants no answer
            except Exception as error:
                said = f"this page cannot be drawn, which is noregret's fault: {type(error).__name__}: {error}"
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, said, "text/plain")

        do_HEAD = do_GET

        def _show(self, findings: Findings) -> None:
            if self.path == "/":
                nonce = secrets.token_urlsafe(16)
                return self._answer(HTTPStatus.OK, page(findings, script=SCRIPT, nonce=nonce), "text/html", nonce=nonce)
            mark = f'"{sha256(repr(findings.records).encode()).hexdigest()[:32]}"'
            if self.headers.get("If-None-Match") == mark:
                return self._answer(HTTPStatus.NOT_MODIFIED, "", "text/html", mark)
            self._answer(HTTPStatus.OK, content(findings), "text/html", mark)

        def _answer(self, status: HTTPStatus, text: str, kind: str, mark: str = "", nonce: str = "") -> None:
            body = text.encode()
            self.send_response(status)
            for name, value in _headers(kind, len(body), mark, nonce).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _headers(kind: str, length: int, mark: str, nonce: str) -> dict[str, str]:
    source = f"'nonce-{nonce}'" if nonce else "'none'"
    policy = f"default-src 'none'; script-src {source}; style-src {source}; img-src data:; connect-src 'self'"
    headers = {
        "Content-Type": f"{kind}; charset=utf-8",
        "Content-Length": str(length),
        "Content-Security-Policy": f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return {**headers, "ETag": mark} if mark else headers


def serve(study: Study, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until interrupted; ``ready`` is told its address."""
    with server(study, port) as found:
        ready(f"http://{HOST}:{found.server_address[1]}/")
        found.serve_forever(poll_interval=0.2)
