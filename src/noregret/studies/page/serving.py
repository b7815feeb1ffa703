"""Protection of pages in a browser: their security policy, and who may ask for them."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from ipaddress import ip_address


def allowed(code: str) -> str:
    """Source of an inline style or script, as a security policy names it; none if it is empty."""
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" if code else "'none'"


def policy(style: str, script: str, is_live: bool = False) -> str:
    """Security policy of a page: a browser may load this style and run this script only.

    A live page may also send requests to its own server.
    """
    live = "; connect-src 'self'" if is_live else ""
    return f"default-src 'none'; style-src {allowed(style)}; script-src {allowed(script)}; img-src data:{live}"


def headers(policy: str, has_form: bool = False) -> dict[str, str]:
    """Headers of an answer with this security policy, and with a form for its own server only, or none."""
    target = "'self'" if has_form else "'none'"
    return {
        "Content-Security-Policy": f"{policy}; base-uri 'none'; form-action {target}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_here(host: str) -> bool:
    """Return True if a Host header is a name of this machine: a page of another site has another name."""
    match = re.fullmatch(r"(\[[^]]*\]|[^][:]*)(:\d*)?", host.lower())
    return match is not None and is_loopback(match[1].strip("[]"))
