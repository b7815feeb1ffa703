"""``noregret serve`` and ``noregret mcp``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from noregret.extra import extra
from noregret.studies.command import port
from noregret.studies.errors import StudyError, check_system
from noregret.terminal import complain

PORT = 8420
STORAGE = "sqlite:///studies.db"
LEASE = 3600.0
TOKEN = "NOREGRET_TOKEN"
"""The environment variable with the token, for the server and for its clients."""


def add_serve(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("serve", help="studies over HTTP and JSON, for callers in any language")
    parser.set_defaults(command=_serve)
    _add_storage(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default 127.0.0.1); any other needs a token"
    )
    parser.add_argument("--port", type=port, default=PORT, metavar="N", help=f"default {PORT}; 0 for any free one")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file whose first line is the token (default: {TOKEN}, if set)",
    )
    parser.add_argument(
        "--rate", type=_positive, metavar="N", help="requests a second from one address (default: any number)"
    )


def add_mcp(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "mcp",
        help="studies for agents, over the Model Context Protocol",
        description="Serve studies to an agent over standard input and output. Its client starts this: see "
        "the page 'For agents' for how to configure it.",
    )
    parser.set_defaults(command=_mcp)
    _add_storage(parser)


def _add_storage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--storage", default=STORAGE, metavar="URL", help=f"where studies are stored (default {STORAGE})"
    )
    parser.add_argument(
        "--lease",
        type=_positive,
        default=LEASE,
        metavar="SECONDS",
        help=f"time without a sign of its client after which a trial goes to another one (default {LEASE:g})",
    )


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return number


def _serve(args: argparse.Namespace) -> None:
    check_system("serve")
    for package in ("fastapi", "uvicorn", "prometheus_client", "fastapi_swagger"):
        extra(package, "serve")
    from noregret.service.http.app import serve

    serve(args.storage, args.host, args.port, _token(args.token_file), args.rate, args.lease)


def _mcp(args: argparse.Namespace) -> None:
    check_system("mcp")
    extra("mcp", "mcp")
    from noregret.service.mcp import serve

    if sys.stdin.isatty():
        complain("noregret mcp: an agent's client starts this, and talks to it on standard input. End with Ctrl-C.")
    serve(args.storage, args.lease)


def _token(path: Path | None) -> str | None:
    """The token of a file or of the environment; None if there is none."""
    if path is None:
        given, place = os.environ.get(TOKEN), TOKEN
    else:
        try:
            given, place = path.read_text("utf-8").partition("\n")[0].strip(), f"--token-file {path}"
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(f"--token-file {path} cannot be read: {error}") from None
    if path is None and not given:
        return None
    if not given or not given.isascii() or not given.isprintable() or " " in given:
        raise StudyError(f"{place}: a token must be ASCII letters, digits and signs without a space, and not empty")
    return given
