"""Access, size and rate of requests, checked before anything else."""

from __future__ import annotations

import hmac
import json
import math
import re
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from hashlib import pbkdf2_hmac, sha256
from time import monotonic, time
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.exceptions import HTTPException

from noregret.service.http import pages
from noregret.studies.page.serving import is_here

LARGEST_REQUEST = 1 << 20
"""The largest request in bytes."""
ADDRESSES = 10_000
"""Number of addresses that are remembered for the rate; the oldest are forgotten."""
OPEN_PATH = "/healthz"
"""The only path that needs no token."""
SESSION, SESSION_SECONDS = "session", 7 * 86400
"""Claim of the cookie of a browser, and its duration."""
LARGEST_LOGIN = 4096
"""The largest login form in bytes."""
DERIVATIONS = 200_000
"""Rounds of the key of signatures: a link must not help to guess a short token. They take 0.1 s at the start."""

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


class Access:
    """The token, and signed proofs for browsers in its place: a session's, and a link's to the page of one study.

    A proof is the time at which it ends, and a signature of that time and of what is proved. Nothing is stored: all of
    them end when the token changes.
    """

    def __init__(self, token: str) -> None:
        self._token, self._key = token.encode(), pbkdf2_hmac("sha256", token.encode(), b"noregret", DERIVATIONS)
        self.cookie = f"noregret_{self._signature('cookie')[:8]}"
        """Name of the cookie, another one for each token: cookies do not differ by port."""

    def is_token(self, given: bytes) -> bool:
        """Return True if it is the token."""
        return hmac.compare_digest(given, self._token)

    def proof(self, claim: str, seconds: float) -> str:
        """Proof of a claim that ends after these seconds."""
        ends = math.ceil(time() + seconds)
        return f"{ends}.{self._signature(f'{claim} {ends}')}"

    def proves(self, given: str, claim: str) -> bool:
        """Return True if it is a proof of a claim that has not ended."""
        ends, _, signature = given.partition(".")
        is_signed = hmac.compare_digest(signature.encode(), self._signature(f"{claim} {ends}").encode())
        return is_signed and time() < int(ends)

    def allows(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Return True if a request has the token, or only reads and has a proof."""
        if self.is_token(_bearer(headers)):
            return True
        if scope["method"] not in ("GET", "HEAD"):
            return False
        cookies = re.findall(rf"{self.cookie}=([\w.]+)", headers.get(b"cookie", b"").decode("latin-1"))
        if any(self.proves(cookie, SESSION) for cookie in cookies):
            return True
        page = re.fullmatch(r"/studies/([^/]+)/", scope["path"])
        keys = parse_qs(scope["query_string"].decode("latin-1")).get("key", ()) if page else ()
        return any(self.proves(key, claim_of(page[1])) for key in keys) if page else False

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode(errors="replace"), sha256).hexdigest()


def claim_of(study: str) -> str:
    """Claim of a link to the page of a study."""
    return f"page {study}"


class RequestGuard:
    """Refuses requests without the token, from pages of other sites, without JSON, too large, or too frequent.

    Without an ``access`` no token is needed. ``rate`` is the number of requests a second from one address. A browser
    that asks for a page without the token gets a form for it, on any path, and with the token a cookie for reading.
    """

    def __init__(self, app: App, access: Access | None = None, rate: float | None = None) -> None:
        self._app, self._access = app, access
        self._rate = None if rate is None else Rate(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = dict(scope["headers"])
        if not self._access and not is_here(headers.get(b"host", b"").decode("latin-1")):
            return await _refuse(send, 400, "without a token, the Host header must be 127.0.0.1 or localhost")
        if scope["path"] == OPEN_PATH:
            return await self._app(scope, receive, send)
        if self._rate:
            wait = self._rate.wait((scope.get("client") or ("",))[0], monotonic())
            if wait:
                after = {"Retry-After": str(math.ceil(wait))}
                return await _refuse(send, 429, "too many requests: wait a moment", after)
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if self._access and scope["method"] == "POST" and media_type == b"application/x-www-form-urlencoded":
            return await self._login(scope, headers, receive, send)
        if self._access and not self._access.allows(scope, headers):
            needed = {"WWW-Authenticate": "Bearer"}
            if scope["method"] in ("GET", "HEAD") and b"text/html" in headers.get(b"accept", b""):
                return await _answer(send, 401, *pages.login(), needed)
            return await _refuse(
                send, 401, "a token is needed, and it is missing or wrong: Authorization: Bearer TOKEN", needed
            )
        elif not self._access and _is_foreign(scope["method"], headers):
            return await _refuse(send, 403, "pages of other sites may not use a server without a token")
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

    async def _login(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Answer a form with the token by a cookie, and the page that was asked for at first."""
        assert self._access
        body, is_more = b"", True
        while is_more and len(body) <= LARGEST_LOGIN:
            message = await receive()
            body, is_more = body + message.get("body", b""), bool(message.get("more_body"))
        if len(body) > LARGEST_LOGIN:
            return await _refuse(send, 413, f"a login form has at most {LARGEST_LOGIN} bytes")
        if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
            return await _refuse(send, 403, "pages of other sites may not log in")
        (given,) = parse_qs(body.decode("latin-1")).get("token", [""])[:1]
        if not self._access.is_token(given.strip().encode()):
            return await _answer(send, 401, *pages.login("This is not the token."), {"WWW-Authenticate": "Bearer"})
        proof = self._access.proof(SESSION, SESSION_SECONDS)
        cookie = f"{self._access.cookie}={proof}; Path=/; Max-Age={SESSION_SECONDS}; HttpOnly; SameSite=Strict"
        if scope.get("scheme") == "https" or headers.get(b"x-forwarded-proto") == b"https":
            cookie += "; Secure"
        query = scope["query_string"].decode("latin-1")
        back = f"./{quote(scope['path'].rpartition('/')[2])}{f'?{query}' if query else ''}"
        await _answer(send, 303, "", {"Location": back, "Set-Cookie": cookie, "Cache-Control": "no-store"})


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
    await _answer(send, status, json.dumps({"detail": why}), {"Content-Type": "application/json"}, headers)


async def _answer(
    send: Send, status: int, text: str, headers: Mapping[str, str], more: Mapping[str, str] | None = None
) -> None:
    body = text.encode()
    all_headers = {"Content-Length": str(len(body)), **headers, **(more or {})}
    listed = [(name.lower().encode(), value.encode()) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
