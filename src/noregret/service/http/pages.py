"""Pages of the server: the list of studies, and the description of all requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from urllib.parse import quote

from fastapi.openapi.docs import get_swagger_ui_html

from noregret.extra import version
from noregret.service.models import ListedStudy
from noregret.studies.page.serving import allowed, headers, policy

HEADER = ("study", "done", "running", "failed")
STYLE = (
    ".list :is(th, td):first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; } "
    ".list td:first-child { min-width: 12rem; } "
)


def index(studies: Sequence[ListedStudy], following: str | None) -> tuple[str, dict[str, str]]:
    """Page that lists studies, and the headers of its answer.

    ``following`` is the name that the next page starts after, None if this is the last.
    """
    rows = [
        [
            f'<a href="studies/{quote(study.name)}/">{escape(study.name)}</a><br><span class="soft">{_goal(study)}'
            f"{_moment(study.last)}</span>",
            *(f"{count:,}" for count in (study.states.done, study.states.running, study.states.failed)),
        ]
        for study in studies
    ]
    none = "<p>There are no studies yet. <code>POST /studies</code> makes one: see <a href='docs'>the requests</a>.</p>"
    more = "" if following is None else f'<p><a href="?after={quote(following)}">more studies</a></p>'
    table = _table(rows) if rows else none
    style = files("noregret.studies.page").joinpath("page.css").read_text("utf-8") + STYLE
    links = '<a href="./">studies</a> · <a href="docs">requests</a> · <a href="metrics">metrics</a>'
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>Studies - noregret</title><style>{style}</style></head>\n"
        f"<body><main><header><h1>Studies</h1></header>{table}{more}"
        f"<footer>{links} · noregret {escape(version())}</footer></main></body></html>\n"
    )
    return text, headers(policy(style, ""))


def login(said: str = "") -> tuple[str, dict[str, str]]:
    """Page that asks for the token, and the headers of its answer; ``said`` is what was wrong with the last one.

    The form goes to the address of the page itself, which may have a prefix of a proxy.
    """
    style = files("noregret.studies.page").joinpath("page.css").read_text("utf-8")
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>Log in - noregret</title><style>{style}</style></head>\n"
        f"<body><main><header><h1>Log in</h1></header><p>{escape(said)}</p>"
        '<form method="post"><label>Token <input type="password" name="token" required autofocus '
        'autocomplete="current-password"></label> <button>Log in</button></form>'
        '<p class="soft">This browser can then read all studies for a week, and change none.</p>'
        "</main></body></html>\n"
    )
    return text, headers(policy(style, ""), has_form=True) | {"Content-Type": "text/html; charset=utf-8"}


def reference() -> tuple[str, dict[str, str]]:
    """FastAPI's page of all requests, with this server's own copy of Swagger UI, and the headers of its answer."""
    answer = get_swagger_ui_html(
        openapi_url="openapi.json",
        title="Requests - noregret",
        swagger_js_url="docs/assets/swagger-ui-bundle.js",
        swagger_css_url="docs/assets/swagger-ui.css",
        swagger_favicon_url="data:,",
        swagger_ui_parameters={"validatorUrl": None},  # the default sends the description to another site
    )
    text = bytes(answer.body).decode()
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    sources = f"style-src 'self'; script-src 'self' {allowed(script)}; img-src data:; connect-src 'self'"
    return text, headers(f"default-src 'none'; {sources}")


def _goal(study: ListedStudy) -> str:
    several = ", ".join(f"{goal} {escape(name)}" for name, goal in (study.goals or {}).items())
    return several or str(study.goal)


def _moment(time: str | None) -> str:
    """Time of the last outcome, by the server's clock."""
    if time is None:
        return ""
    return f', last result <time datetime="{escape(time)}">{escape(time[:16].replace("T", " "))}</time>'


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Table of cells that are HTML."""
    head = "".join(f"<th>{cell}</th>" for cell in HEADER)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table class="list"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
