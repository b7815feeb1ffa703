"""The command line. Each command imports its code when it runs, so that ``--help`` is fast."""

from __future__ import annotations

import argparse
import ast
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from noregret.extra import MissingExtra, extra, version
from noregret.service.command import add_mcp, add_serve
from noregret.studies.command import add_tune
from noregret.studies.errors import StudyError
from noregret.terminal import OutputLost, Refused, complain, drop_output, printable, say, show_log


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Returns
    -------
    int
        0, 1 if a figure failed, 2 if the command is at fault or its output cannot be written, 3 if a study has no
        result, 130 if stopped by Ctrl-C, 141 if the reader of the output has gone. ``versus`` returns 0, 1, 3 or 4 by
        its verdict, or 125 for ``git bisect``; ``verify`` 1 if a statement does not follow, and ``ledger new`` 1 if the
        change is to be discarded.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _carry_out(_parsed(words))
        except SystemExit as error:  # git would take the 2 of argparse for a bad commit
            raise SystemExit(125 if error.code == 2 and "--bisect" in words else error.code) from None
        finally:
            say()
    except (OutputLost, BrokenPipeError) as error:
        drop_output()
        if isinstance(error.__cause__ or error, BrokenPipeError):
            return 141
        complain(f"noregret: standard output cannot be written: {error}")
        return 2


def _parsed(argv: list[str]) -> argparse.Namespace:
    """The arguments. Those of ``init`` after ``--`` are a command; argparse would take its first word for the file."""
    parser = _parser()
    is_init = next((word for word in argv if not word.startswith("-")), "") == "init"
    if is_init:
        argv = _with_one_baseline(argv)
    if is_init and "--" not in argv and any(re.search(r"\{\w+:", word) for word in argv):
        parser.error("init: write -- before the command, as in: noregret init -- ./bench {threads:1..64}")
    if not is_init or "--" not in argv:
        return parser.parse_args(argv)
    place = argv.index("--")
    args = parser.parse_args(argv[:place])
    args.words = argv[place + 1 :]
    if not args.words:
        parser.error("init: -- must be followed by a command")
    return args


def _with_one_baseline(argv: list[str]) -> list[str]:
    """The words, those of a baseline without quotes as one: ``--baseline a=1 b=2``."""
    joined: list[str] = []
    for word in argv:
        if joined[-2:-1] == ["--baseline"] and re.match(r"[^-=\s][^=\s]*=", word):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def _carry_out(args: argparse.Namespace) -> int:
    if getattr(args, "verbose", False):
        show_log()
    try:
        return int(args.command(args) or 0)
    except (Refused, StudyError, MissingExtra) as error:
        complain(f"noregret: {printable(str(error), keep=chr(10))}")
        return 2
    except KeyboardInterrupt:
        kept = f"; finished trials are kept in {printable(str(args.out))}" if getattr(args, "out", None) else ""
        complain(f"\nnoregret: stopped{kept}")
        return 130


class Parser(argparse.ArgumentParser):
    """A parser that shows its arguments safely in errors, and takes -v at any position."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_argument(
            "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="show progress details"
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments here, so that the usage shown is that of the command."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class Main(Parser):
    """The parser of all commands, whose help lists them in groups."""

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        (commands,) = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        listed = {action.dest: action for action in commands._choices_actions}
        rest = [name for name in listed if name not in itertools.chain(*GROUPS.values())]
        for title, names in {**GROUPS, "more": rest}.items():
            formatter.start_section(title)
            formatter.add_arguments(listed[name] for name in names)
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(action for action in self._actions if action is not commands)
        formatter.end_section()
        formatter.add_text("'noregret COMMAND --help' shows the options of a command.")
        return formatter.format_help()


class Version(argparse.Action):
    """The option ``--version``: the version is read when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        try:
            say(f"noregret {version()}")
        except MissingExtra as error:
            parser.error(str(error))
        parser.exit()


OUT = Path("reproduction")
"""Folder of the trials and of the page of ``reproduce``."""

GROUPS = {
    "tune a command": ("init", "tune", "report"),
    "compare two commands": ("versus", "calibrate", "verify", "ledger"),
    "while a study runs, and after it": ("watch", "confirm", "export", "import", "restore"),
    "for other programs": ("serve", "mcp"),
    "compare algorithms": ("run", "bound", "list", "reproduce"),
}
"""Commands in the order of the help; all others are listed after them."""


def _parser() -> argparse.ArgumentParser:
    parser = Main(prog="noregret", description="Find the best of many options from noisy measurements.")
    parser.add_argument("--version", action=Version, nargs=0, help="show program's version number and exit")
    parser.set_defaults(command=lambda args: say(parser.format_help().rstrip()))
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    add_tune(commands, _count)
    add_serve(commands)
    add_mcp(commands)
    _add_reproduce(commands)
    commands.add_parser("list", help="show algorithms and problems").set_defaults(command=_list)
    diagnosis = commands.add_parser("diagnose", help="check whether measurements are heavy-tailed")
    diagnosis.set_defaults(command=_diagnose)
    diagnosis.add_argument(
        "file",
        type=Path,
        metavar="FILE.csv",
        help="one column of rewards per arm, or one named value or reward; with a header or without",
    )
    which = diagnosis.add_mutually_exclusive_group()
    which.add_argument(
        "--value", metavar="COLUMN", help="the column of rewards; rows with the same settings are an arm"
    )
    which.add_argument("--arms", action="store_true", help="each column holds the rewards of an arm")
    completion = commands.add_parser("completion", help="print a script that completes commands in a shell")
    completion.set_defaults(command=_completion)
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    run = commands.add_parser("run", help="compare algorithms on a problem")
    run.set_defaults(command=_run)
    run.add_argument("algorithms", nargs="+", metavar="ALGORITHM", help="names as in 'noregret list'")
    run.add_argument("--problem", required=True, metavar="NAME", help="a name as in 'noregret list'")
    run.add_argument("--rounds", type=_count, default=1000, metavar="T", help="rewards per trial (default 1000)")
    run.add_argument("--trials", type=_count, default=10, metavar="N", help="trials per algorithm (default 10)")
    run.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="trials are the same on the same seed (default 0)"
    )
    run.add_argument("--jobs", type=_count, metavar="N", help="processes (default: one per core)")
    run.add_argument(
        "--constants", choices=["theory", "experiment"], help="the theorem's widths, or those the authors ran"
    )
    run.add_argument("--scale", type=float, metavar="X", help="a factor on the noise part of the widths")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a keyword of the builders, such as delta=0.1; may be repeated",
    )
    run.add_argument("--plot", type=Path, metavar="FILE", help="draw the regret here (.png, .pdf, .svg)")
    run.add_argument(
        "--out", type=Path, metavar="FOLDER", help="keep every finished trial here; those found here are not run again"
    )
    bound = commands.add_parser("bound", help="show the regret that a theorem promises")
    bound.set_defaults(command=_bound)
    bound.add_argument("algorithm", metavar="ALGORITHM", help="a name such as igp-ucb")
    bound.add_argument("--kernel", default="matern-2.5", metavar="NAME", help="se or matern-NU (default matern-2.5)")
    bound.add_argument("--lengthscale", type=float, default=0.2, metavar="L", help="of the kernel (default 0.2)")
    bound.add_argument("--arms", type=_count, default=100, metavar="N", help="number of arms (default 100)")
    bound.add_argument("--dimension", type=_count, default=1, metavar="D", help="of the arms (default 1)")
    bound.add_argument("--rounds", type=_count, default=1000, metavar="T", help="length of the run (default 1000)")
    bound.add_argument(
        "--within", type=float, default=0.1, metavar="X", help="show how many rounds this regret takes (default 0.1)"
    )
    bound.add_argument("--run", action="store_true", help="also play five functions of the largest norm")
    bound.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a keyword of the builder, such as norm=2; may be repeated",
    )
    bound.add_argument("--plot", type=Path, metavar="FILE", help="draw the bound here (.png, .pdf, .svg)")
    return parser


def _add_reproduce(commands: Any) -> None:
    parser = commands.add_parser("reproduce", help="run the papers' figures again and compare with their claims")
    parser.set_defaults(command=_reproduce)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="names as in --list, or papers (default: all)")
    parser.add_argument("--list", action="store_true", help="show the figures with their scale and time")
    parser.add_argument("--quick", action="store_true", help="run everything in two minutes, judged at a small scale")
    parser.add_argument("--rounds", type=_count, metavar="T", help="rounds per trial (default: the paper's)")
    parser.add_argument("--trials", type=_count, metavar="N", help="trials (default: the paper's)")
    parser.add_argument("--seed", type=_seed, default=0, metavar="S", help="the same seed, the same trials (default 0)")
    parser.add_argument("--jobs", type=_count, metavar="N", help="processes (default: one per core)")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help=f"trials, pictures and page (default {OUT}, or {OUT / 'quick'})"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="your own measured data (default: NOREGRET_DATA, or the data of the package)",
    )
    parser.add_argument("--backend", choices=["loky", "dask"], default="loky", help="local processes, or dask workers")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="the dask scheduler, such as tcp://10.0.0.1:8786")


def _count(text: str) -> int:
    return _whole(text, 1)


def _seed(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least {least}, got {text!r}")
    return int(text)


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key.isidentifier() and equals):
        raise argparse.ArgumentTypeError(f"must have the form KEY=VALUE, got {text!r}")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def _list(args: argparse.Namespace) -> None:
    from noregret.bandits import algorithms, problems

    for title, names in (("algorithms", algorithms.NAMES), ("problems", problems.NAMES)):
        width = max(map(len, names))
        lines = [f"  {name:<{width}}  {_description(builder)}".rstrip() for name, builder in names.items()]
        say(f"{title}:", *lines)


def _description(builder: Callable[..., Any]) -> str:
    """Return the first line of its docstring up to a colon; if some arguments are settled already, with these."""
    from inspect import getdoc

    if not isinstance(builder, partial):
        return (getdoc(builder) or "").partition("\n")[0].partition(":")[0]
    settled = [getattr(value, "__name__", repr(value)) for value in builder.args]
    settled += [f"{key}={value!r}" for key, value in builder.keywords.items()]
    return f"{_description(builder.func).rstrip('.')} [{', '.join(settled)}]"


def _diagnose(args: argparse.Namespace) -> None:
    from noregret.diagnosis import diagnose, read_rewards

    try:
        say(str(diagnose(read_rewards(args.file, args.value, args.arms))))
    except (OSError, ValueError) as error:
        raise Refused(str(error)) from error


def _completion(args: argparse.Namespace) -> None:
    shtab = extra("shtab", "completion")
    parser = _parser()
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    say(shtab.complete(parser, args.shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser, and of the parsers of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _run(args: argparse.Namespace) -> None:
    from noregret.bandits.lab.commands import run_algorithms

    run_algorithms(args)


def _bound(args: argparse.Namespace) -> None:
    from noregret.bandits.lab.commands import bound

    bound(args)


def _reproduce(args: argparse.Namespace) -> int | None:
    from noregret.bandits.lab.commands import reproduce_figures

    args.out = args.out or (OUT / "quick" if args.quick else OUT)
    return reproduce_figures(args)
