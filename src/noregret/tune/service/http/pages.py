"""Pages of the server: the list of studies, and the description of all requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from noregret.tune.service.models import ListedStudy

Schema = Mapping[str, Any]

HEADER = ("study", "done", "running", "failed")
TAGS = ("studies", "trials", "conclusions", "server")
"""Groups of requests, in the order of the page."""
STYLE = (
    "h3 { margin-top: 1.8rem; } h3 code { font-weight: 650; } "
    ".list :is(th, td):first-child, .words :is(th, td) "
    "{ text-align: left; white-space: normal; overflow-wrap: anywhere; } "
    ".list td:first-child { min-width: 12rem; } .words td { vertical-align: top; min-width: 4rem; } "
    ".words :is(th, td:first-child, td:first-child code) { white-space: nowrap; } "
)


def index(studies: Sequence[ListedStudy], following: str | None) -> str:
    """Page that lists studies; ``following`` is the name that the next page starts after, None if this is the last."""
    rows = [
        [
            f'<a href="studies/{quote(its.name)}/">{escape(its.name)}</a><br><span class="soft">{_goal(its)}'
            f"{_moment(its.last)}</span>",
            *(f"{count:,}" for count in (its.states.done, its.states.running, its.states.failed)),
        ]
        for its in studies
    ]
    none = "<p>There are no studies yet. <code>POST /studies</code> makes one: see <a href='docs'>the requests</a>.</p>"
    more = "" if following is None else f'<p><a href="?after={quote(following)}">more studies</a></p>'
    return _page("Studies", f"<header><h1>Studies</h1></header>{_table('list', HEADER, rows) if rows else none}{more}")


def reference(openapi: Schema) -> str:
    """Page that describes all requests of an OpenAPI description."""
    forms, groups = openapi["components"]["schemas"], dict[str, list[str]]()
    for path, methods in openapi["paths"].items():
        for method, its in methods.items():
            groups.setdefault(its["tags"][0], []).append(_request(method, path, its))
    requests = "".join(
        f"<section><h2>{escape(tag)}</h2>{''.join(found)}</section>"
        for tag, found in sorted(groups.items(), key=lambda group: TAGS.index(group[0]))
    )
    described = "".join(_form(name, schema) for name, schema in sorted(forms.items()))
    intro = (
        "<p>Requests and answers are JSON; every POST needs <code>Content-Type: application/json</code>. If the server "
        "has a token, send <code>Authorization: Bearer TOKEN</code>. The same as OpenAPI: "
        '<a href="openapi.json">openapi.json</a>.</p>'
    )
    return _page(
        "Requests",
        f"<header><h1>Requests</h1></header>{intro}{requests}<section><h2>forms</h2>{described}</section>",
    )


def _request(method: str, path: str, its: Schema) -> str:
    parameters = [
        [
            f"<code>{escape(found['name'])}</code>",
            found["in"],
            _kind(found["schema"]),
            _prose(found.get("description", "")),
        ]
        for found in its.get("parameters", ())
    ]
    answers = [
        [escape(status), " or ".join(_content(found)), _prose(found["description"])]
        for status, found in its["responses"].items()
    ]
    body = " or ".join(_content(its.get("requestBody", {})))
    return (
        f"<h3><code>{method.upper()} {escape(path)}</code></h3><p>{_prose(its.get('description', ''))}</p>"
        + (f"<p>Body: {body}</p>" if body else "")
        + (_table("words", ("parameter", "in", "type", ""), parameters) if parameters else "")
        + f"<details><summary>answers</summary>{_table('words', ('status', 'form', ''), answers)}</details>"
    )


def _content(part: Schema) -> list[str]:
    """Types of the content of a body or an answer."""
    found = part.get("content", {}).items()
    return [
        _kind(its["schema"]) if its.get("schema", {}) not in ({}, {"type": "string"}) else kind for kind, its in found
    ]


def _form(name: str, schema: Schema) -> str:
    needed = schema.get("required", ())
    rows = [
        [
            f"<code>{escape(field)}</code>",
            _kind(its),
            "needed"
            if field in needed
            else f"<code>{escape(json.dumps(its['default']))}</code>"
            if "default" in its
            else "",
            _prose(its.get("description", "")),
        ]
        for field, its in schema.get("properties", {}).items()
    ]
    table = _table("words", ("field", "type", "default", ""), rows) if rows else ""
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{_prose(schema.get("description", ""))}</p>{table}'


def _kind(schema: Schema) -> str:
    """Type that a schema allows, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{escape(name)}">{escape(name)}</a>'
    for several in ("anyOf", "oneOf", "prefixItems"):
        if several in schema:
            joint = ", " if several == "prefixItems" else " or "
            return joint.join(dict.fromkeys(map(_kind, schema[several])))
    if "enum" in schema or "const" in schema:
        return " or ".join(
            f"<code>{escape(json.dumps(value))}</code>" for value in schema.get("enum", [schema.get("const")])
        )
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if isinstance(its := schema.get("additionalProperties"), Mapping) and its:
        return f"object of {_kind(its)}"
    bounds = [f"{word} {schema[key]}" for key, word in BOUNDS.items() if key in schema]
    return " ".join([str(schema.get("type", "any")), *([f"({', '.join(bounds)})"] if bounds else [])])


BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "maxLength": "length at most",
}
"""Keys of a schema that bound a value, in words."""


def _prose(text: str) -> str:
    return re.sub(r"``(.+?)``", r"<code>\1</code>", escape(text, quote=False))


def _goal(study: ListedStudy) -> str:
    several = ", ".join(f"{goal} {escape(name)}" for name, goal in (study.goals or {}).items())
    return several or str(study.goal)


def _moment(time: str | None) -> str:
    """Time of the last outcome, by the server's clock."""
    if time is None:
        return ""
    return f', last result <time datetime="{escape(time)}">{escape(time[:16].replace("T", " "))}</time>'


def _table(kind: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table of cells that are HTML, of a kind that `STYLE` has."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _page(title: str, main: str) -> str:
    style = files("noregret.tune.page").joinpath("page.css").read_text("utf-8") + STYLE
    links = '<a href="./">studies</a> · <a href="docs">requests</a> · <a href="metrics">metrics</a>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)} - noregret</title><style>{style}</style></head>\n"
        f"<body><main>{main}<footer>{links} · noregret {escape(version('noregret'))}</footer></main></body></html>\n"
    )
