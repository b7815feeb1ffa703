"""``noregret tune``, ``init``, ``report``, ``watch``, ``restore`` and ``serve``."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from noregret.extra import extra
from noregret.files import write_atomically
from noregret.terminal import printable, say
from noregret.tune.service.command import add_serve
from noregret.tune.study.reading import check_name, default_storage, load
from noregret.tune.study.study import Study, StudyError

PORT = 8765


def add_tune(commands: Any, count: Callable[[str], int]) -> None:
    """Add the commands; ``count`` reads numbers."""
    tune = _command(commands, "tune", _tune, "tune any command: measure, learn, suggest, until the budget is spent")
    tune.add_argument("--dry-run", action="store_true", help="show one command and run nothing")
    tune.add_argument("--workers", type=count, metavar="N", help="commands at a time (default: as the study says)")
    init = commands.add_parser("init", help="write a study file to start from")
    init.set_defaults(command=_init)
    init.add_argument("study", nargs="?", type=Path, default=Path("study.toml"), metavar="FILE")
    report = _command(commands, "report", _report, "write what a study has found as one HTML page")
    report.add_argument("--out", dest="page", type=Path, metavar="FILE", help="default: beside the study, as .html")
    watch = _command(commands, "watch", _watch, "show the report live, to this machine's browser only")
    watch.add_argument("--port", type=_port, default=PORT, metavar="N", help=f"default {PORT}; 0 for any free one")

    restore = _command(commands, "restore", _restore, "list the copies of a study's database, or put one back")
    restore.add_argument("number", nargs="?", type=int, metavar="N", help="the copy to put back, as it is listed")
    add_serve(commands)


def _command(commands: Any, name: str, carry_out: Callable[[Any], int | None], help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help)
    parser.set_defaults(command=carry_out)
    parser.add_argument("study", type=Path, metavar="STUDY", help="a file as 'noregret init' writes it")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, got {text!r}")
    return int(text)


def _init(args: argparse.Namespace) -> None:
    check_name(args.study)
    default_storage(args.study)
    template = files("noregret.tune.study").joinpath("template.toml").read_text("utf-8")
    tune = printable(shlex.join(["noregret", "tune", str(args.study)]))
    try:
        with open(args.study, "x", encoding="utf-8") as file:
            file.write(
                template.replace("noregret tune FILE", tune).replace("study.db", f"{printable(args.study.stem)}.db")
            )
    except FileExistsError:
        raise StudyError(f"{args.study} exists already: choose another name") from None
    except OSError as error:
        raise StudyError(f"{args.study} cannot be written: {error.strerror}") from error
    print(f"wrote {printable(str(args.study))}; to try it:  {tune}")


def _ready(args: argparse.Namespace) -> Study:
    """The study, once everything that is needed to work on it is known to be there."""
    study = load(args.study)
    if os.name != "posix":
        raise StudyError("this needs Linux or macOS; on Windows, run it in the Windows Subsystem for Linux")
    extra("optuna", "tune")
    return study


def _tune(args: argparse.Namespace) -> int | None:
    study = _ready(args)
    from noregret.tune.work.running import dry_run, tune

    if args.dry_run:
        print(dry_run(study))
        return None
    return tune(study, args.workers or study.workers)


def _report(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.tune.work.running import report

    path = args.page or args.study.with_suffix(".html")
    text = report(study).encode()
    try:
        write_atomically(path, lambda file: file.write(text))
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}") from error
    print(printable(str(path)))


def _watch(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.tune.page.watch import serve

    def ready(address: str, waiting: str) -> None:
        say(f"{address}  (end with Ctrl-C)", *([f"waiting for the study: {printable(waiting)}"] if waiting else []))

    serve(study, args.port, ready)


def _restore(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.tune.store.databases.restoring import listed, restored

    print(listed(study) if args.number is None else restored(study, args.number))
