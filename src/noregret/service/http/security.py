"""Access, size and rate of requests, checked before anything else."""

from __future__ import annotations

import hmac
import json
import math
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from starlette.exceptions import HTTPException

from noregret.studies.page.serving import is_here

LARGEST_REQUEST = 1 << 20
"""The largest request in bytes."""
ADDRESSES = 10_000
"""Number of addresses that are remembered for the rate; the oldest are forgotten."""
OPEN_PATH = "/healthz"
"""The only path that needs no token."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass
class Rate:
    """Limit of requests a second from each address, and of as many at once (at least 1)."""

    per_second: float
    _seen: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, address: str, now: float) -> float:
        """Count a request; return the seconds to wait before it is accepted, 0 if it is."""
        most = max(self.per_second, 1.0)
        left, last = self._seen.pop(address, (most, now))
        left = min(left + (now - last) * self.per_second, most)
        is_welcome = left >= 1.0
        self._seen[address] = (left - is_welcome, now)
        while len(self._seen) > ADDRESSES:
            self._seen.popitem(last=False)
        return 0.0 if is_welcome else (1.0 - left) / self.per_second


class RequestGuard:
    """Refuses requests without the token, from pages of other sites, without JSON, too large, or too frequent.

    Without a ``token`` none is needed. ``rate`` is the number of requests a second from one address.
    """

    def __init__(self, app: App, token: str | None = None, rate: float | None = None) -> None:
        self._app, self._token = app, None if token is None else token.encode()
        self._rate = None if rate is None else Rate(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = dict(scope["headers"])
        if not self._token and not is_here(headers.get(b"host", b"").decode("latin-1")):
            return await _refuse(send, 400, "without a token, the Host header must be 127.0.0.1 or localhost")
        if scope["path"] == OPEN_PATH:
            return await self._app(scope, receive, send)
        if self._rate:
            wait = self._rate.wait((scope.get("client") or ("",))[0], monotonic())
            if wait:
                after = {"Retry-After": str(math.ceil(wait))}
                return await _refuse(send, 429, "too many requests: wait a moment", after)
        if self._token and not hmac.compare_digest(_bearer(headers), self._token):
            needed = {"WWW-Authenticate": "Bearer"}
            return await _refuse(
                send, 401, "a token is needed, and it is missing or wrong: Authorization: Bearer TOKEN", needed
            )
        elif not self._token and _is_foreign(scope["method"], headers):
            return await _refuse(send, 403, "pages of other sites may not use a server without a token")
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] == "POST" and media_type != b"application/json":
            return await _refuse(send, 415, "a POST must be JSON: Content-Type: application/json")
        said = headers.get(b"content-length", b"0")
        if not said.isdigit() or int(said[:20]) > LARGEST_REQUEST:
            return await _refuse(send, 413, _too_large())
        try:
            await self._app(scope, _limited(receive), send)
        except CancelledError:  # the server ends, and this took too long
            again = {"Retry-After": "1"}
            await _refuse(send, 503, "the server is stopping: send the request again later", again)


def _bearer(headers: Mapping[bytes, bytes]) -> bytes:
    """The token that a request has, empty if it has none."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _is_foreign(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return True if a browser says that a page of another origin sends this request; following a link is allowed."""
    if headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site"):
        return method != "GET" or headers.get(b"sec-fetch-mode") != b"navigate"
    origin = headers.get(b"origin")
    return origin is not None and origin != b"http://" + headers.get(b"host", b"")


def _limited(receive: Receive) -> Receive:
    """Body of a request, up to the limit, whatever its stated length."""
    came = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal came
        message = await receive()
        came += len(message.get("body", b""))
        if came > LARGEST_REQUEST:
            raise HTTPException(413, _too_large())
        return message

    return limited


def _too_large() -> str:
    return f"a request has at most {LARGEST_REQUEST} bytes"


async def _refuse(send: Send, status: int, why: str, headers: dict[str, str] | None = None) -> None:
    body = json.dumps({"detail": why}).encode()
    all_headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    listed = [(name.lower().encode(), value.encode()) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
