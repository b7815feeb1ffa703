"""``noregret init``, ``tune``, ``report``, ``confirm``, ``watch`` and the other commands about studies."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noregret.extra import extra
from noregret.files import write_atomically
from noregret.studies.errors import StudyError, check_system
from noregret.terminal import complain, printable, say, show

if TYPE_CHECKING:
    from noregret.studies.learning.findings import Wish
    from noregret.studies.study.study import Study

LISTED = 20
"""Number of rows that are listed with the reason why they are kept out."""


def add_tune(commands: Any, count: Callable[[str], int]) -> None:
    """Add the commands; ``count`` reads numbers."""
    init = commands.add_parser(
        "init",
        help="write a study file to start from, or one for a command",
        usage="noregret init [options] [FILE] [-- COMMAND WORDS WITH {name:low..high[:log]} OR {name:a|b|c}]",
        epilog="Quote words with | or , for the shell. On a terminal it asks for what the options do not say.",
    )
    init.set_defaults(command=_init, words=[])
    init.add_argument(
        "study", nargs="?", type=Path, default=Path("study.toml"), metavar="FILE", help="default study.toml"
    )
    init.add_argument("--goal", metavar="GOAL", help="minimize (default) or maximize")
    init.add_argument(
        "--result",
        metavar="WHAT",
        help="last-number (default), wall-time, user-time, max-rss, json=FIELD or regex=PATTERN",
    )
    init.add_argument("--evaluations", metavar="N", help="results in all (default: 40, or 10 for each parameter)")
    init.add_argument("--baseline", metavar="SETTING", help="the setting in use now, as 'threads=4 mode=safe'")
    init.add_argument("--prepare", metavar="CMD", help="a command before each run, not measured")
    tune = _command(commands, "tune", _tune, "tune any command: measure, learn, suggest, until the budget is spent")
    tune.add_argument("--dry-run", action="store_true", help="show one command and run nothing")
    tune.add_argument("--json", action="store_true", help="print a JSON object per trial, and the best at the end")
    tune.add_argument("--migrate", action="store_true", help="continue after a change of ranges, choices or parameters")
    tune.add_argument("--workers", type=count, metavar="N", help="commands at a time (default: as the study says)")
    report = _command(commands, "report", _report, "write the findings of a study as one HTML page or as JSON")
    report.add_argument("--json", action="store_true", help="print it as JSON")
    report.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME<=NUMBER",
        help="with several objectives: pick a setting from the front that meets it; may be given more than once",
    )
    report.add_argument(
        "--weight", action="append", default=[], metavar="NAME=NUMBER", help="or pick by weights of the objectives"
    )
    report.add_argument("--against", type=Path, metavar="STUDY", help="another study to compare with, on the same page")
    _add_out(report, "an .html or .json file (default: an .html file beside the study)")
    watch = _command(commands, "watch", _watch, "show the report live, to this machine's browser only")
    watch.add_argument("--port", type=port, metavar="N", help="default: the first free one from 8765 on; 0 for any")
    confirm = _command(
        commands, "confirm", _confirm, "measure the gain of the best setting again, in pairs with the baseline"
    )
    confirm.add_argument("--pairs", type=count, metavar="N", help="pairs of runs (default 10; with --top at most 30)")
    confirm.add_argument(
        "--top", type=count, metavar="K", help="race the K best settings and the baseline, and say which one to use"
    )
    confirm.add_argument("--json", action="store_true", help="print it as JSON")
    _add_audit(commands)
    _add_versus(commands, count)
    _add_receipts(commands)
    export = _command(commands, "export", _export, "write all trials of a study as a table")
    formats = export.add_mutually_exclusive_group()
    for name in ("csv", "json", "parquet"):
        formats.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=f"as {name.upper()}")
    formats.add_argument(
        "--optuna", type=Path, metavar="FILE.db", help="into a new storage of Optuna, for its dashboard"
    )
    _add_out(export, "a .csv, .json or .parquet file (default: standard output)")
    past = _command(
        commands, "import", _import, "add existing measurements to a study (not counted against the budget)"
    )
    past.add_argument(
        "data",
        metavar="DATA",
        help="a .csv file with a column per parameter, 'value', 'noise' if known; or a file or URL of Optuna",
    )
    past.add_argument("--study", dest="name", metavar="NAME", help="the study in a storage of Optuna that has several")
    past.add_argument("--ignore", action="store_true", help="ignore columns that are not parameters")
    correct = _command(commands, "correct", _correct, "replace a result that was recorded wrongly; the old one is kept")
    correct.add_argument("number", type=int, metavar="NUMBER", help="of the trial")
    correct.add_argument("values", nargs="+", metavar="VALUE", help="the right one, or NAME=VALUE for named numbers")
    withdraw = _command(commands, "withdraw", _withdraw, "take a result out of all conclusions; it stays on record")
    withdraw.add_argument("number", type=int, metavar="NUMBER", help="of the trial")
    for parser in (correct, withdraw):
        parser.add_argument("--because", default="", metavar="TEXT", help="the reason, which is kept with it")
    _command(commands, "drop-old", _drop_old, "delete what noregret 1.0 stored, after 1.1 has taken the studies over")
    restore = _command(commands, "restore", _restore, "list the copies of a study's database, or put one back")
    restore.add_argument("number", nargs="?", type=int, metavar="N", help="the copy to put back, as it is listed")
    schema = commands.add_parser("schema", help="print the JSON Schema of study files, which editors read")
    schema.set_defaults(command=lambda args: say(_schema_text().rstrip()))


READERS = "pytest-benchmark", "criterion", "go", "google-benchmark", "jmh", "hyperfine"
"""Benchmark tools whose output `noregret.studies.readers` reads."""


def _add_audit(commands: Any) -> None:
    parser = commands.add_parser("audit", help="what the best trial of a study of another tool is really worth")
    parser.set_defaults(command=_audit)
    parser.add_argument(
        "file",
        metavar="STUDY",
        help="an Optuna storage (.db or URL), JSON of Ax, Ray or Kernel Tuner, or a CSV: of W&B, MLflow or any other",
    )
    parser.add_argument("--goal", help="minimize or maximize, where the file does not say it")
    parser.add_argument("--value", metavar="NAME", help="the result, where there are several")
    parser.add_argument("--params", metavar="A,B", help="the parameters, where a CSV has other columns too")
    parser.add_argument(
        "--study", dest="name", metavar="NAME", help="the study in a storage of Optuna that has several"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    _add_out(parser, "write the page of the findings too, an .html file")


def _add_versus(commands: Any, count: Callable[[str], int]) -> None:
    parser = commands.add_parser(
        "versus",
        help="is B really better than A? run commands in pairs until the answer is known",
        usage="noregret versus 'COMMAND A' 'COMMAND B' ['COMMAND C' ...] [options]",
        epilog="Exit codes: 0 B is better, 1 worse, 3 equal within the margin, 4 undecided, 2 an error. Of a suite: "
        "0 a name is better and none is worse, 1 a name is worse, 3 all are equal. Ctrl-C prints what is known.",
    )
    parser.set_defaults(command=_versus)
    parser.add_argument("commands", nargs="+", metavar="COMMAND", help="a command in quotes; A is the first")
    parser.add_argument("--within", metavar="X", help="margin of equality, such as 1%% (default: none)")
    parser.add_argument(
        "--gate", action="store_true", help="for CI: exit 1 only if B is worse by more than the margin, 0 otherwise"
    )
    _add_runs(parser, "5m")
    parser.add_argument("--items", type=Path, metavar="FILE", help="a line per item, for {item} in the commands")
    parser.add_argument(
        "--repeats",
        type=count,
        default=1,
        metavar="K",
        help="pairs of runs on each item, which count as one (default 1)",
    )
    parser.add_argument("--bar", type=float, metavar="NUMBER", help="compare one command with this number")
    parser.add_argument(
        "--quantile", type=float, metavar="Q", help="compare this quantile of the runs, such as 0.99, not the median"
    )
    parser.add_argument(
        "--bounds",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="the smallest and largest possible result, such as 0 1: compare means. A failed run counts as the worse",
    )
    parser.add_argument(
        "--bisect",
        action="store_true",
        help="for git bisect run: exit 1 if B is worse by more than the margin, 0 if not, 125 if undecided or failed",
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="old measurements of A, a .csv or a receipt (.json): only B is run",
    )
    parser.add_argument(
        "--reader",
        choices=READERS,
        help="a suite: the commands run this tool. {names} becomes its filter, {out} a file that it writes; "
        "--result json is for commands that print an object of several numbers",
    )
    parser.add_argument("--save", type=Path, metavar="FILE.csv", help="write the measurements, a column per command")
    parser.add_argument(
        "--receipt", type=Path, metavar="OUT.json", help="write values and statement for 'noregret verify' and 'ledger'"
    )
    parser.add_argument(
        "--ledger", type=Path, metavar="FILE", help="run until the next proposal of this ledger can be judged"
    )
    calibrate = commands.add_parser(
        "calibrate",
        help="how noisy is this machine, and how many runs will an answer take? run a command against itself",
    )
    unused = dict.fromkeys(("within", "items", "bar", "quantile", "bounds", "baseline", "ledger"), None)
    calibrate.set_defaults(command=_calibrate, repeats=1, gate=False, bisect=False, **unused)
    calibrate.add_argument("words", metavar="COMMAND", help="a command in quotes")
    _add_runs(calibrate, "30")


def _add_runs(parser: argparse.ArgumentParser, budget: str) -> None:
    """Arguments that say how commands are run and what is read."""
    parser.add_argument("--confidence", type=float, default=0.95, metavar="P", help="default 0.95")
    parser.add_argument(
        "--budget",
        default=budget,
        metavar="TIME",
        help=f"60s, 5m, 1h, or a number of pairs such as 50 (default {budget})",
    )
    parser.add_argument(
        "--result",
        default="wall-time",
        metavar="WHAT",
        help="wall-time (default), user-time, max-rss, last-number, json=FIELD or regex=PATTERN",
    )
    parser.add_argument(
        "--goal",
        default="minimize",
        help="minimize (default), maximize, or p99: a low 0.99-quantile of the samples that a run prints as JSON",
    )
    parser.add_argument(
        "--warmup", type=_from_zero, metavar="N", help="runs of each command before the first (default 1 for times)"
    )
    parser.add_argument("--prepare", metavar="COMMAND", help="a command before each run, not measured")
    parser.add_argument("--shell", action="store_true", help="run the commands by sh, for pipes, cd and variables")
    parser.add_argument("--timeout", default="1h", metavar="TIME", help="a longer run has failed (default 1h)")
    parser.add_argument("--seed", type=_from_zero, metavar="S", help="of the order of runs (default: a new one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def _add_receipts(commands: Any) -> None:
    verify = commands.add_parser(
        "verify",
        help="check that the verdict of a receipt follows from its runs",
        epilog="Exit codes: 0 it follows, 1 it does not, 2 the file is no receipt.",
    )
    verify.set_defaults(command=_verify)
    verify.add_argument("receipts", nargs="+", type=Path, metavar="RECEIPT", help="as 'versus --receipt' writes it")
    ledger = commands.add_parser(
        "ledger",
        help="keep or discard a chain of changes, few of the kept ones false",
        epilog="Exit codes of new: 0 the change may be kept, 1 discard it; 2 is an error.",
    )
    ledger.set_defaults(command=_ledger)
    ledger.add_argument("file", type=Path, metavar="FILE", help="of the ledger; the first 'new' makes it")
    ledger.add_argument(
        "action",
        choices=["new", "keep", "discard", "show"],
        help="judge the change of a receipt, keep or discard it, show all",
    )
    ledger.add_argument("receipt", nargs="?", type=Path, metavar="RECEIPT", help="for new")
    ledger.add_argument("--force", action="store_true", help="keep against the verdict, outside of the guarantee")
    ledger.add_argument("--level", type=float, metavar="P", help="of a new ledger: share of false keeps (default 0.05)")
    ledger.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def port(text: str) -> int:
    """Port that a command line names; 0 for any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, got {text!r}")
    return int(text)


def _from_zero(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 0, got {text!r}")
    return int(text)


def _audit(args: argparse.Namespace) -> None:
    from noregret.studies.audit import audit

    audit(args)


def _calibrate(args: argparse.Namespace) -> int:
    from noregret.studies.calibrate import calibrate

    return calibrate(args)


def _versus(args: argparse.Namespace) -> int:
    from noregret.studies.suites import is_suite, suite
    from noregret.studies.versus import versus

    return suite(args) if is_suite(args) else versus(args)


def _verify(args: argparse.Namespace) -> int:
    from noregret.studies.receipts import verify

    return verify(args)


def _ledger(args: argparse.Namespace) -> int:
    from noregret.studies.ledger import ledger

    return ledger(args)


def _command(commands: Any, name: str, carry_out: Callable[[Any], int | None], help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help)
    parser.set_defaults(command=carry_out)
    parser.add_argument("study", type=Path, metavar="STUDY", help="a file as 'noregret init' writes it")
    return parser


def _add_out(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--out", dest="target", type=Path, metavar="FILE", help=help)


def _init(args: argparse.Namespace) -> None:
    from noregret.studies.study.reading import check_name, default_storage, load
    from noregret.studies.study.study import FOLDER, make_folder

    extra("pydantic", "tune")
    check_name(args.study)
    default_storage(args.study)
    tune = printable(shlex.join(["noregret", "tune", str(args.study)]))
    if args.study.exists():
        raise StudyError(f"{args.study} exists already: choose another name")
    given = {
        key: getattr(args, key)
        for key in ("goal", "result", "evaluations", "baseline", "prepare")
        if getattr(args, key)
    }
    if args.words:
        content, remark = _drafted(args.words, given, tune)
    elif given:
        raise StudyError(f"--{next(iter(given))} is for the study of a command: write -- and the command after it")
    else:
        from importlib.resources import files

        template = files("noregret.studies.study").joinpath("template.toml").read_text("utf-8")
        content, remark = template.replace("noregret tune FILE", tune), ""
        content = content.replace("study.db", f"{printable(args.study.stem)}.db")
    schema = args.study.parent / FOLDER / "study.schema.json"
    try:
        with open(args.study, "x", encoding="utf-8") as file:
            file.write(f"#:schema ./{FOLDER}/{schema.name}\n{content}")
        load(args.study)
    except FileExistsError:
        raise StudyError(f"{args.study} exists already: choose another name") from None
    except StudyError:
        args.study.unlink()
        raise
    except OSError as error:
        raise StudyError(f"{args.study} cannot be written: {error.strerror}") from error
    try:
        make_folder(schema.parent)
        schema.write_text(_schema_text(), encoding="utf-8")
    except OSError as error:
        complain(printable(f"noregret: {schema} cannot be written, so editors do not check the file: {error.strerror}"))
    say(f"wrote {printable(str(args.study))}{remark}; to try it:  {tune}")


def _schema_text() -> str:
    """The JSON Schema of study files, as a file has it."""
    extra("pydantic", "tune")
    from noregret.studies.study.forms import schema

    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _drafted(words: list[str], given: dict[str, str], tune: str) -> tuple[str, str]:
    """Study file for a command, with the answers that are given, and a remark on those that were not asked for."""
    from noregret.studies.study.draft import answers, draft, table, text

    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise StudyError("the command must be UTF-8 text") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        guess = draft(words)
        said = answers(guess, given, lambda question, default, check: default)
        baseline = "a baseline" if said["baseline"] else "no baseline"
        which = f"goal {said['goal']}, result {said['result']}, {said['evaluations']} evaluations, {baseline}"
        return text(guess, said, tune), f" with {which}: edit it to change these"

    def ask(question: str, default: str, check: Callable[[str], Any]) -> str:
        while True:
            try:
                answer = input(f"{question}{f' [{default}]' if default else ''}: ").strip() or default
                check(answer)
                return answer
            except EOFError:
                raise KeyboardInterrupt from None
            except ValueError as error:
                complain(printable(str(error)))

    guess = draft(words, lambda name: ask(f"values of {name}, as 1..64, 0.1..1:log or a|b|c", "", partial(table, name)))
    return text(guess, answers(guess, given, ask), tune), ""


def _ready(args: argparse.Namespace) -> Study:
    """The study, after a check that everything needed to work on it is installed."""
    from noregret.studies.study.reading import load

    check_system(args.command.__name__.strip("_").replace("_", "-"))
    study = load(args.study)
    extra("rich", "tune")
    return study


def _tune(args: argparse.Namespace) -> int | None:
    study = _ready(args)
    from noregret.studies.running import dry_run, tune

    if args.dry_run:
        say(dry_run(study))
        return None
    return tune(study, args.workers or study.workers, as_json=args.json, migrate=args.migrate)


def _report(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.display import picked
    from noregret.studies.running import report, stored
    from noregret.studies.study.reading import load

    ending = args.target.suffix.lower() if args.target else ".json" if args.json else ".html"
    if ending not in (".html", ".htm", ".json") or (args.json and ending != ".json"):
        wanted = ".json" if args.json else ".html or .json"
        raise StudyError(f"--out {args.target}: its name must end in {wanted}, which says what it will be")
    if args.against and ending == ".json":
        raise StudyError("--against compares on a page: leave out --json, or give --out a name that ends in .html")
    findings = stored(study, _wish(study, args.limit, args.weight))
    written = report(findings, as_json=ending == ".json", against=load(args.against) if args.against else None)
    if args.json and not args.target:
        return say(written.rstrip())
    path = args.target or args.study.with_suffix(".html")
    _write(path, written.encode())
    say(*picked(findings), printable(str(path)))


def _wish(study: Study, limits: list[str], weights: list[str]) -> Wish:
    """Limits and weights that pick from the front of a study; StudyError if it has none, or they cannot be read."""
    from noregret.studies.learning.findings import Wish

    if (limits or weights) and not study.goals:
        raise StudyError("--limit and --weight pick from a front: this study has one objective, and its best setting")
    wishes: dict[str, Any] = {"limit": {}, "weight": {}}
    for option, words, pattern in (
        ("limit", limits, r"(\w+)\s*(<=|>=)\s*(\S+)"),
        ("weight", weights, r"(\w+)(=)(\S+)"),
    ):
        for word in words:
            match = re.fullmatch(pattern, word.strip())
            form = "cost<=0.3" if option == "limit" else "cost=10"
            try:
                if match is None or match[1] not in study.goals:
                    raise ValueError
                value = float(match[3])
            except ValueError:
                names = ", ".join(study.goals)
                raise StudyError(f"--{option} must be like {form}, of one of {names}, got {word!r}") from None
            wishes[option][match[1]] = (match[2], value) if option == "limit" else value
    return Wish(wishes["limit"], wishes["weight"])


def _confirm(args: argparse.Namespace) -> int:
    study = _ready(args)
    from noregret.studies.confirm import confirm

    return confirm(study, args.pairs, args.json, args.top)


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, lambda file: file.write(content))
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}") from error


def _export(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.store.store import Store
    from noregret.studies.study.exchange import exported, format_of, write_storage

    if args.optuna:
        with Store(study, readonly=True) as store:
            write_storage(study, store.records(), args.optuna)
        return say(printable(f"{args.optuna}: 'optuna-dashboard sqlite:///{args.optuna}' shows it"))
    if args.target is None and args.format is None:
        raise StudyError("export needs a format: --csv, --json, --parquet, --optuna, or --out with a name that says it")
    form = format_of(args.target) if args.target else args.format
    if args.format not in (None, form):
        raise StudyError(f"--out {args.target}: its name must end in .{args.format}, as --{args.format} says")
    if args.target is None and form == "parquet" and sys.stdout.isatty():
        raise StudyError("Parquet is nothing for a terminal: add --out FILE.parquet")
    with Store(study, readonly=True) as store:
        content = exported(study, store.records(), form)
    if args.target:
        _write(args.target, content)
        say(printable(str(args.target)))
    else:
        show(content)


def _import(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.store.store import Store
    from noregret.studies.study.exchange import read_rows, read_storage

    if "://" in args.data or Path(args.data).suffix in (".db", ".sqlite", ".sqlite3"):
        imported = read_storage(study, args.data, args.name)
    else:
        imported = read_rows(study, Path(args.data), args.ignore)
    if not imported.trials:
        raise StudyError(f"{args.data}: no row can be used; {(imported.kept_out or ['it has none'])[0]}")
    with Store(study) as store:
        new = store.add(imported.trials)
        old, bad = len(imported.trials) - new, len(imported.kept_out)
        say(f"{new} of {len(imported.trials) + bad} rows added, {old} known already, {bad} kept out")
    for reason in imported.kept_out[:LISTED]:
        complain(f"  {printable(reason)}")
    if bad > LISTED:
        complain(f"  and {bad - LISTED} more")


def _correct(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.store.store import Store

    value = _corrected(study, args.values)
    with Store(study) as store:
        record = store.correct(args.number, value, args.because)
    names = sorted(record.readings, key=lambda name: name not in study.measures.objectives)
    said = ", ".join(f"{name} {reading.value:.12g}" for name in names if (reading := record.reading(name)))
    say(f"trial {record.number} has been corrected: {printable(said)}; what it had before stays on record")


def _corrected(study: Study, words: list[str]) -> Any:
    """The value, or the numbers by name, that a command line gives; StudyError if they cannot be read."""
    try:
        if len(words) == 1 and "=" not in words[0]:
            return float(words[0])
        return {name: float(value) for name, _, value in (word.partition("=") for word in words)}
    except ValueError:
        names = " ".join(f"{name}=NUMBER" for name in study.measures.objectives)
        raise StudyError(f"the right value must be a number, or like {names}, got {' '.join(words)!r}") from None


def _withdraw(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.store.store import Store

    with Store(study) as store:
        record = store.withdraw(args.number, args.because)
    say(f"trial {record.number} has been withdrawn: it stays on record, and counts no more")


def _watch(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.page.watch import serve

    serve(study, args.port, say)


def _drop_old(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.store.store import Store

    with Store(study) as store:
        names = store.drop_old()
    said = (
        f"what noregret 1.0 stored of {', '.join(map(repr, names))} is deleted"
        if names
        else "there is nothing to delete"
    )
    say(printable(f"{store.where}: {said}"))


def _restore(args: argparse.Namespace) -> None:
    study = _ready(args)
    from noregret.studies.store.databases.database import listed, restored

    say(listed(study) if args.number is None else restored(study, args.number))
