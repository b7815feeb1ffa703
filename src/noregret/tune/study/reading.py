"""Reading study files: every error names the file, the line and the key."""

from __future__ import annotations

import csv
import itertools
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from noregret.optimizer import EXACT, Choice, Float, Int, axis_of
from noregret.tune.study import checks
from noregret.tune.study.parameters import parameter
from noregret.tune.study.results import LastNumber, Result
from noregret.tune.study.study import Budget, Constraint, Failure, Params, Stop, Study, StudyError, names_in

Space = Mapping[str, Float | Int | Choice] | list[Params]

LARGEST = 1 << 20
"""The largest study file, in characters."""
LONG_KEY = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")
"""A key of more than 100 parts with dots between them. The time that tomllib takes grows with their square."""

_LAST_NUMBER: Result = LastNumber()


T = TypeVar("T")
TEXT = re.compile(r"""("{3}(?:\\.|[^\\])*?"{3}|'{3}.*?'{3})|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*""", re.DOTALL)
"""Matches the texts and the comments of a TOML file."""
WORD = r"[A-Za-z_]\w*"
"""Pattern of a parameter's name."""


def load(path: Path) -> Study:
    """Read a study file; StudyError with the line and key at fault."""
    check_name(path)
    source, content = _parsed(path)
    top = Section(path, source, "", content)
    defaults: Params = {}
    study = Study(
        path=path,
        name=top.get("name", checks.title, path.stem),
        goal=top.get("goal", checks.one_of("minimize", "maximize"), "minimize"),
        command=top.get("command", checks.command),
        result=top.get("result", checks.result, _LAST_NUMBER),
        storage=top.get("storage", checks.storage, None) or default_storage(path),
        workers=top.get("workers", checks.whole(1, 256), 1),
        timeout=top.get("timeout", checks.seconds, 3600.0),
        lease=top.get("lease", checks.whole(1, 86400), 60),
        seed=top.get("seed", checks.whole(0, EXACT), 0),
        drift=top.get("drift", checks.drift, None),
        budget=_budget(top.section("budget")),
        failure=_failure(top.section("failure")),
        stop=_stop(top.section("stop")),
        constraints=_constraints(top.section("constraints")),
        space=_space(top, defaults),
        defaults=defaults,
    )
    _check_conditions(study, top)
    study = replace(study, baseline=_baseline(study, top.section("baseline")))
    top.nothing_else()
    _check_placeholders(study, top)
    return study


def check_name(path: Path) -> None:
    """Refuse a path that is not UTF-8 text: neither messages nor pages could name it."""
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError:
        raise StudyError(f"{path}: the names of a study file and its folders must be UTF-8 text: rename it") from None


def default_storage(path: Path) -> str:
    """The database beside a study file; StudyError if a URL cannot name it."""
    if "?" in path.stem or path.stem.startswith((":memory:", "file:")):
        raise StudyError(
            f"{path}: no database can be named after {path.name!r}: rename the file, or say in it where to keep "
            "results, such as storage = 'sqlite:///study.db'"
        )
    return f"sqlite:///{path.stem}.db"


def _parsed(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            source = file.read(LARGEST + 1)
        if len(source) > LARGEST:
            raise StudyError(f"{path} must have at most {LARGEST:,} characters, got more: is it a study file?")
        if found := LONG_KEY.search(source):
            line = source.count("\n", 0, found.start()) + 1
            raise StudyError(f"{path}:{line}: a key must have at most 100 parts with dots between them, got more")
        return source, tomllib.loads(source)
    except FileNotFoundError:
        raise StudyError(f"{path} does not exist: 'noregret init {path}' writes one to start from") from None
    except StudyError:
        raise
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:  # also from numbers of thousands of digits
        raise StudyError(f"{path} is not valid TOML: {error}") from error


def _budget(section: Section) -> Budget:
    budget = Budget(
        rounds=section.get("rounds", checks.whole(1, 10**7), None),
        seconds=section.get("seconds", checks.seconds, None),
    )
    section.nothing_else()
    if budget == Budget():
        section.refuse("", "must say when to stop: rounds = 100, or seconds = 600, or both")
    return budget


def _failure(section: Section) -> Failure:
    default = Failure()
    failure = Failure(
        ok_exit_codes=section.get("ok_exit_codes", checks.exit_codes, default.ok_exit_codes),
        output=section.get("output", checks.regex, default.output),
        stop_after=section.get("stop_after", checks.whole(1, 10**7), default.stop_after),
        retries=section.get("retries", checks.whole(0, 1000), default.retries),
    )
    section.nothing_else()
    return failure


def _stop(section: Section) -> Stop | None:
    if not section.content:
        return None
    default = Stop("1%")
    stop = Stop(
        section.get("within", checks.within),
        section.get("confidence", checks.confidence, default.confidence),
        section.get("by", checks.one_of("model", "certificate"), default.by),
    )
    section.nothing_else()
    return stop


def _constraints(section: Section) -> dict[str, Constraint]:
    found = {name: _constraint(section.section(name), name) for name in section.content}
    for one, other in itertools.permutations(found, 2):
        if reason := _contradiction(found[one], found[other]):
            section.refuse(one, f"contradicts {other}: {reason}")
    return found


def _contradiction(one: Constraint, other: Constraint) -> str:
    """Reason why no number can meet both constraints; empty if one can."""
    if one.max is None or other.min is None or one.max >= other.min or one.result != other.result:
        return ""
    return f"the same number cannot be at most {one.max:g} and at least {other.min:g}"


def _constraint(section: Section, name: str) -> Constraint:
    if not re.fullmatch(WORD, name):
        section.refuse("", f"a constraint's name must be a word such as memory, got {name!r}")
    constraint = Constraint(
        section.get("result", checks.result),
        max=section.get("max", checks.number, None),
        min=section.get("min", checks.number, None),
    )
    section.nothing_else()
    if (constraint.max is None) == (constraint.min is None):
        section.refuse("", "must have either max or min: for both, write two constraints with the same result")
    return constraint


def _baseline(study: Study, section: Section) -> Params | None:
    """The baseline, which must be a setting of the space."""
    if not section.content:
        return None
    for name in section.content:
        if name not in study.names:
            section.refuse(name, f"unknown key: parameters are {', '.join(study.names)}")
    try:
        return dict(study.settings.checked(section.content))
    except ValueError as error:
        said = str(error).partition(": widen")[0]
        section.refuse("", f"{said}. It must be a setting of this study: widen the ranges, or leave [baseline] out")


def _space(top: Section, defaults: Params) -> Space:
    table = top.section("parameters")
    no_rows: list[Params] = []
    rows = top.get("candidates", lambda value: read_table(top.path.parent / checks.words(value)), no_rows)
    if bool(rows) == bool(table.content):
        top.refuse("", "say what to tune: either [parameters.NAME] tables, or candidates = 'file.csv'")
    return rows or {name: _parameter(table.section(name), name, defaults) for name in table.content}


def _parameter(section: Section, name: str, defaults: Params) -> Float | Int | Choice:
    if not re.fullmatch(WORD, name):
        section.refuse("", f"a parameter's name must be a word such as cache_size, got {name!r}")
    kind = section.get("type", checks.one_of("float", "int", "choice"))
    try:
        found = parameter({"type": kind, **(_choice(section) if kind == "choice" else _range(section, kind))})
    except StudyError:
        raise
    except ValueError as error:
        section.refuse("", str(error))
    if "default" in section.content:
        defaults[name] = section.get("default", lambda value: _default(found, name, value))
    section.nothing_else()
    return found


def _default(parameter: Float | Int | Choice, name: str, value: Any) -> Any:
    try:
        return axis_of(parameter).checked(name, value)
    except ValueError as error:
        raise ValueError(str(error).partition(": widen")[0]) from None


def _choice(section: Section) -> dict[str, Any]:
    return {"choices": section.get("choices", checks.choices), "when": section.get("when", checks.table, None)}


def _range(section: Section, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "log": section.get("log", checks.flag, False),
        "when": section.get("when", checks.table, None),
    }
    if kind == "float":
        ends = {key: section.get(key, checks.number) for key in ("low", "high")}
        return {**found, **ends, "step": section.get("step", checks.number, None)}
    found["step"] = section.get("step", checks.whole(1, EXACT), None)
    return {**found, **{key: section.get(key, checks.whole(-EXACT, EXACT)) for key in ("low", "high")}}


def _check_conditions(study: Study, top: Section) -> None:
    """Refuse conditions that contradict each other, such as circular ones."""
    try:
        study.settings  # noqa: B018
    except ValueError as error:
        top.section("parameters").refuse("", str(error))


def _check_placeholders(study: Study, top: Section) -> None:
    used = names_in(study.words)
    for name in used:
        if name not in study.names:
            advice = f"parameters are {', '.join(study.names)}; write {{{{{name}}}}} for the text itself"
            top.refuse("command", f"{{{name}}} is the placeholder of no parameter: {advice}")
    for name in study.names if isinstance(study.space, Mapping) else []:
        if name not in used:
            top.refuse("command", f"parameter {name!r} is not in it and can have no effect: add {{{name}}}")
    always = names_in(part for part in study.command if isinstance(part, str))
    for name, its in study.space.items() if isinstance(study.space, Mapping) else []:
        if its.when and name in always:
            advice = f'put it into a group, which is dropped then, such as ["--{name}", "{{{name}}}"]'
            top.refuse("command", f"parameter {name!r} does not always apply: {advice}")


@dataclass
class Section:
    """A table of the file, whose keys are taken one by one."""

    path: Path
    source: str
    name: str
    content: dict[str, Any]
    _taken: list[str] = field(default_factory=list)

    def get(self, key: str, check: Callable[[Any], T], *default: T) -> T:
        """Checked value of a key; an error if it is missing without a default."""
        self._taken.append(key)
        if key in self.content:
            try:
                return check(self.content[key])
            except ValueError as error:
                self.refuse(key, str(error))
        if not default:
            for typo in get_close_matches(key, self.content.keys() - set(self._taken), 1):
                self.refuse(typo, f"unknown key: did you mean {key!r}?")
            self.refuse("", f"{key!r} is missing")
        return default[0]

    def section(self, key: str) -> Section:
        """Table inside this one, empty if it is missing."""
        return Section(self.path, self.source, f"{self.name}.{key}".lstrip("."), self.get(key, checks.table, {}))

    def nothing_else(self) -> None:
        """Refuse keys that were not taken."""
        for key in self.content:
            if key not in self._taken:
                close = get_close_matches(key, self._taken, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(self._taken))}"
                self.refuse(key, f"unknown key: {hint}")

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise StudyError that names the place of a key, or of the table itself."""
        line = line_of(self.source, [*filter(None, self.name.split(".")), *filter(None, [key])])
        place = f"{self.path}:{line}" if line else str(self.path)
        table = f"[{self.name}] " if self.name else ""
        raise StudyError(f"{place}: {table}{key}{': ' if key else ''}{reason}")


def line_of(source: str, key: list[str]) -> int | None:
    r"""Line of a key or table, else that of the enclosing table; None if neither is found.

    >>> line_of('[parameters.x]\ntype = "int"\nlow = 3', ["parameters", "x", "low"])
    3
    """
    table: list[str] = []
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(TEXT.sub(_emptied, source).split("\n"), 1):
        found: list[str] = []
        if header := re.match(r"\s*\[+([^\]]+)\]", line):
            found = table = _parts(header[1])
        elif entry := re.match(r"\s*([\w.\"' -]+?)\s*=", line):
            found = [*table, *_parts(entry[1])]
        for length in range(1, len(found) + 1):
            lines.setdefault(tuple(found[:length]), number)
    places = (lines.get(tuple(key[:length])) for length in range(len(key), 0, -1))
    return next((number for number in places if number), None)


def _emptied(text: re.Match[str]) -> str:
    """Text of several lines, emptied; other text as it is."""
    return "\n" * text[0].count("\n") if text[0][:3] in ('"""', "'''") else text[0]


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def read_table(path: Path) -> list[Params]:
    """The rows of a CSV file with a header; columns of numbers become numbers. ValueError if it is no such table."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [row for row in csv.reader(file, strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(lines) < 2:
        raise ValueError(f"{path} must have a header and at least one row, got {len(lines)} lines")
    header, *rows = lines
    _check(path, header, rows)
    columns = [_typed([row[i] for row in rows]) for i in range(len(header))]
    return [dict(zip(header, values, strict=True)) for values in zip(*columns, strict=True)]


def _check(path: Path, header: list[str], rows: list[list[str]]) -> None:
    bad = [name for name in header if not re.fullmatch(WORD, name) or header.count(name) > 1]
    if bad:
        raise ValueError(f"{path}: names of columns must be different words such as cache_size, got {bad[0]!r}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(f"{path}: row {number} must have {len(header)} fields, got {len(row)}")
        if not all(cell.strip() and "\0" not in cell for cell in row):
            raise ValueError(f"{path}: row {number} has an empty field: fill it or drop the row")


def _typed(column: list[str]) -> list[Any]:
    for kind in (int, float):
        try:
            values = [kind(cell) for cell in column]
        except ValueError:
            continue
        if not any("_" in cell for cell in column) and all(abs(value) <= EXACT for value in values):
            return values
    return list(column)
