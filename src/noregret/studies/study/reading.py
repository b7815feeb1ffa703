"""Reading study files: all errors at once, each with the file, the line and the key."""

from __future__ import annotations

import csv
import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noregret.extra import extra
from noregret.optimizer import COST, EXACT, VALUE, Choice, Goal, axis_of
from noregret.studies.study.checks import WORD
from noregret.studies.study.results import Pattern, Result, WallTime, sought
from noregret.studies.study.study import (
    ALL_FLAGS,
    FOLDER,
    Budget,
    Command,
    FlagWords,
    Params,
    Study,
    StudyError,
    groups,
    names_in,
)
from noregret.terminal import complain, printable

if TYPE_CHECKING:
    from noregret.studies.study.forms import StudyFile

MOST_CHARACTERS = 1 << 20
"""The largest study file, in characters."""
LONG_KEY = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")
"""A key of more than 100 parts with dots between them. The time that tomllib takes grows with their square."""

CAP_NEEDS = (
    'needs result = "wall-time" and goal = "minimize": of a run that is stopped, other results are not known, and that '
    "it takes long says nothing about them. Leave it out, or measure the time"
)
TEXT = re.compile(r"""("{3}(?:\\.|[^\\])*?"{3}|'{3}.*?'{3})|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*""", re.DOTALL)
"""Matches the texts and the comments of a TOML file."""


@dataclass
class Problems:
    """Faults of a study file, noted so that all of them are said at once."""

    path: Path
    source: str
    said: list[tuple[int, str]] = field(default_factory=list)
    """Problems with their lines."""
    places: list[tuple[str, ...]] = field(default_factory=list)

    def note(self, reason: str, *place: str | None) -> None:
        """Note a problem with a key; None as the last one stands for the table itself."""
        keys = [part for part in place if part is not None]
        problem = line_of(self.source, keys) or 0, f"{self._at(*place)}{': ' * (len(keys) == len(place))}{reason}"
        self.places.append(tuple(keys))
        if problem not in self.said:
            self.said.append(problem)

    def are_in(self, *place: str) -> bool:
        """Return True if there is a problem with this key, or in its table."""
        return any(faulty[: len(place)] == place for faulty in self.places)

    def _at(self, *place: str | None) -> str:
        """File, line, table and key."""
        keys = [part for part in place if part is not None]
        number, table = line_of(self.source, keys), ".".join(keys[: len(place) - 1])
        line, table = f":{number}" if number else "", f"[{table}] " if table else ""
        return f"{self.path}{line}: {table}{place[-1] or ''}"

    def rename(self, table: Any, *place: str, to: str) -> None:
        """Take the value of a deprecated key for that of the key that replaces it, with a warning."""
        old = place[-1]
        if not isinstance(table, dict) or old not in table:
            return
        value = table.pop(old)
        if to in table:
            return self.note(f"is the deprecated name of {to}: keep {to} only", *place)
        complain(f"noregret: {printable(self._at(*place))}: is deprecated and goes in noregret 2.0: write {to}")
        table[to] = value

    def check(self) -> None:
        """Raise StudyError with all problems in the order of their lines."""
        said = [text for _, text in sorted(self.said)]
        if said:
            many = "\n  ".join([f"{self.path} has {len(said)} problems:", *said])
            raise StudyError(said[0] if len(said) == 1 else many)


def load(path: Path) -> Study:
    """Read a study file; StudyError with every line and key at fault."""
    extra("pydantic", "tune")
    check_name(path)
    source, content = _parsed(path)
    storage = default_storage(path) if "storage" not in content else ""
    problems = Problems(path, source)
    problems.rename(content.get("budget"), "budget", "rounds", to="evaluations")
    file = _read(content, problems)
    study = _study(file, content, problems, storage)
    problems.check()
    return study


def _read(content: Mapping[str, Any], problems: Problems) -> StudyFile:
    """The file as a form, without the parts that have problems."""
    from pydantic import ValidationError

    from noregret.studies.study.forms import TABLES_OF_TABLES, StudyFile, faults

    try:
        return StudyFile.model_validate(content)
    except ValidationError as error:
        for place, said in faults(error, content).items():
            problems.note(said, *place)
    sound: dict[str, Any] = {key: value for key, value in content.items() if not problems.are_in(key)}
    for key in content.keys() - sound.keys():
        if key in TABLES_OF_TABLES and isinstance(content[key], dict):
            sound[key] = {name: entry for name, entry in content[key].items() if not problems.are_in(key, name)}
    needed = {"command": ["true"], "budget": {"seconds": 1}}
    return StudyFile.model_validate(needed | sound)


def _study(file: StudyFile, content: Mapping[str, Any], problems: Problems, storage: str) -> Study:
    """The study; what does not go together is noted."""
    defaults: Params = {}
    flags: dict[str, FlagWords] = {}
    bounds, objectives, tracked = file.constraints, file.objectives, file.measures
    safe = {name: bound.safe for name, bound in bounds.items() if bound.safe is not None} or None
    aims = {name: _sought(aim.goal, aim.result, problems, "objectives", name) for name, aim in objectives.items()}
    goal, result = _sought(file.goal, file.result, problems, "goal")
    results = {name: number.result for name, number in tracked.items()}
    results |= {name: reader for name, (_, reader) in aims.items()}
    results |= {f"constraint.{name}" if name in objectives else name: bound.result for name, bound in bounds.items()}
    given = {name: objective.possible for name, objective in objectives.items() if objective.possible is not None}
    study = Study(
        path=problems.path,
        space=_space(file, content, problems, defaults, flags),
        name=file.name or problems.path.stem,
        goal=goal,
        result=result,
        storage=file.storage or storage,
        budget=Budget(file.budget.evaluations, file.budget.seconds),
        defaults=defaults,
        flags=flags,
        constraints={name: bound.limit() for name, bound in bounds.items()},
        safe=safe,
        require=file.require,
        fidelity=file.fidelity.levels if file.fidelity else None,
        goals={name: aim for name, (aim, _) in aims.items()},
        possible=(given or None) if objectives else file.possible,
        tracked={name: number.unit or "" for name, number in tracked.items()},
        results=results,
        track={name: place for name, place in file.track or () if place is not None},
        cleanup=file.cleanup.command if file.cleanup else (),
        **file.options(),
    )
    declared = _declared(content, study)
    if study.cap and (study.goal != "minimize" or not isinstance(study.result, WallTime)):
        problems.note(CAP_NEEDS, "cap")
    if study.goals:
        _check_objectives(file, content, problems)
        study = replace(study, confirm=0)
    _check_measures(file, study, problems)
    if declared and declared.keys() == set(study.names) and not problems.are_in("require"):
        study = _with_baseline(study, file.baseline, problems)
    if study.safe:
        if "baseline" not in content:
            problems.note("safe needs a [baseline] that meets the constraints: trials start from it", "constraints")
        if study.drift is not None:
            problems.note("constraints with safe must not change: leave out drift, or safe", "drift")
        study = study if "confirm" in content else replace(study, confirm=0)
    has_command = "command" in content and not problems.are_in("command")
    if declared and has_command:
        _check_placeholders(study, declared, content, problems)
    if study.fidelity:
        _check_fidelity(study, has_command, problems)
    try:
        study.check_apart()
    except ValueError as error:
        problems.note(str(error), "fidelity" if study.fidelity else "objectives")
    return study


def _sought(goal: str, result: Result, problems: Problems, *place: str) -> tuple[Goal, Result]:
    try:
        return sought(goal, result)
    except ValueError as error:
        problems.note(str(error), *place)
        return "minimize", result


def _check_objectives(file: StudyFile, content: Mapping[str, Any], problems: Problems) -> None:
    """Note what is for one objective only, in a study with several."""
    if len(content["objectives"]) == 1:
        problems.note(
            "must be two or more: for one objective write goal and result at the top, without a table",
            "objectives",
            None,
        )
    for one, other in itertools.combinations(file.objectives, 2):
        if file.objectives[one].result == file.objectives[other].result:
            problems.note(f"has the same result as {one}: give each objective a number of its own", "objectives", other)
    for key in ("goal", "result", "possible"):
        if key in content:
            problems.note(f"is for one objective: leave it out, each [objectives.NAME] has a {key} of its own", key)
    if "stop" in content:
        problems.note("is about the best setting, and several objectives have none: leave it out, use [budget]", "stop")
    if content.get("confirm"):
        problems.note("measures the best setting, and several objectives have none: leave it out", "confirm")


def _check_measures(file: StudyFile, study: Study, problems: Problems) -> None:
    """Note constraints that contradict each other, and names that are taken."""
    for one, other in itertools.permutations(file.constraints, 2):
        most, least = file.constraints[one], file.constraints[other]
        if most.max is not None and least.min is not None and most.max < least.min and most.result == least.result:
            said = f"the same number cannot be at most {most.max:g} and at least {least.min:g}"
            problems.note(f"contradicts {other}: {said}", "constraints", one)
    for name in study.tracked:
        if name in (*study.goals, *study.constraints, VALUE, COST):
            problems.note("is the name of another number of a run: choose another one", "measures", name)


def _check_fidelity(study: Study, has_command: bool, problems: Problems) -> None:
    """Note what does not go together with a fidelity."""
    name = next(iter(study.fidelity or ()))
    if name in study.names:
        return problems.note(
            f"{name!r} is tuned, too: drop its table, as the highest fidelity is recommended", "fidelity", "parameter"
        )
    if study.runs != (1, 1) and (study.steps or study.runs[0] < study.runs[1]):
        problems.note("a trial with a fidelity runs once, and the search repeats what is worth it: drop it", "repeats")
    if has_command and study.steps is None and name not in study.used:
        steps = "" if study.goals else ", or a result with a step, such as {json = 'loss', step = 'epoch'}"
        advice = f"add {{{name}}}{steps}"
        problems.note(f"it does not know the fidelity {name!r}: {advice}", "command")
    if isinstance(study.steps, Pattern) and "value" not in re.compile(study.steps.regex).groupindex:
        problems.note("a regular expression with a group step needs a group value, too: (?P<value>...)", "result")


def _with_baseline(study: Study, given: Params | None, problems: Problems) -> Study:
    """The study with its baseline, which must be a setting of the space. Flags that it does not name add no words.

    A study of such flags alone needs no table: its baseline is the command without them. Conditions that contradict
    each other, such as circular ones, are noted.
    """
    try:
        settings = study.settings
    except ValueError as error:
        place = ("require",) if study.require and "require" in str(error) else ("parameters", None)
        problems.note(str(error).removeprefix("require "), *place)
        return study
    without = {name: value for name, value in study.defaults.items() if name in study.flags}
    if not given and set(without) != set(study.names):
        return study
    unknown = [name for name in given or () if name not in study.names]
    for name in unknown:
        problems.note(f"unknown key: parameters are {', '.join(study.names)}", "baseline", name)
    if unknown:
        return study
    try:
        checked = dict(settings.checked(study.completed(given or {}, without)))
    except ValueError as error:
        problems.note(
            f"{_plain(error)}. It must be a setting of this study: widen the ranges, or leave [baseline] out",
            "baseline",
            None,
        )
        return study
    if broken := settings.violated(checked):
        problems.note(f"violates [[require]] {broken!r}: change one of them, or leave [baseline] out", "baseline", None)
    return replace(study, baseline=checked)


def _plain(error: ValueError) -> str:
    """An error about a value, without the advice for callers of the library."""
    return str(error).partition(": widen")[0]


def _space(
    file: StudyFile, content: Mapping[str, Any], problems: Problems, defaults: Params, flags: dict[str, FlagWords]
) -> Any:
    """The sound parameters, or the rows of the table; their defaults and the words of flags are added to the dicts."""
    tables = [
        name for name, value in content.items() if isinstance(value, dict) and name not in type(file).model_fields
    ]
    is_misspelt = "parameters" not in content and get_close_matches("parameters", tables, 1)
    if ("candidates" in content) == bool(content.get("parameters") or content.get("flags")):
        if not is_misspelt:
            problems.note(
                "say what to tune: either [parameters.NAME] tables and [flags], or candidates = 'file.csv'", None
            )
        return {}
    if file.candidates is not None:
        try:
            return read_table(problems.path.parent / file.candidates)
        except ValueError as error:
            problems.note(str(error), "candidates")
    parameters = {}
    for name, table in file.parameters.items():
        parameters[name] = parameter = table.parameter()
        if table.type == "flag":
            _add_flag(name, table.words, defaults, flags)
            if table.off == table.on:
                problems.note(
                    "must differ from off: a flag adds other words if it is on than if it is off",
                    "parameters",
                    name,
                    "on",
                )
        if "default" in table.model_fields_set:
            try:
                defaults[name] = axis_of(parameter).checked(name, table.default)
            except ValueError as error:
                problems.note(_plain(error), "parameters", name, "default")
    declared = _tables(content, "parameters")
    for name, words in file.flags.items():
        if name in declared:
            problems.note(f"is a parameter too, in [parameters.{name}]: rename one of the two", "flags", name)
        parameters[name] = Choice([False, True])
        _add_flag(name, words, defaults, flags)
    if flags and ALL_FLAGS in parameters:
        problems.note(
            "no parameter can have this name where there are flags: {flags} stands for all of them",
            "flags" if ALL_FLAGS in file.flags else "parameters",
            ALL_FLAGS,
        )
    return parameters


def _add_flag(name: str, words: FlagWords, defaults: Params, flags: dict[str, FlagWords]) -> None:
    flags[name] = words
    if () in words:  # before it was tuned, the command had no words for it
        defaults[name] = words[1] == ()


def _tables(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A table of the file, empty if it is missing or no table."""
    table = content.get(key)
    return table if isinstance(table, dict) else {}


def _declared(content: Mapping[str, Any], study: Study) -> dict[str, bool]:
    """The names of all parameters in the file, also of those with problems; True for flags."""
    if not isinstance(study.space, Mapping):
        return dict.fromkeys(study.names, False)
    parameters, flags = _tables(content, "parameters"), _tables(content, "flags")
    kinds = {name: described.get("type") for name, described in parameters.items() if isinstance(described, dict)}
    return {**{name: kinds.get(name) == "flag" for name in parameters}, **dict.fromkeys(flags, True)}


def _check_placeholders(
    study: Study, declared: Mapping[str, bool], content: Mapping[str, Any], problems: Problems
) -> None:
    """Note placeholders of no parameter, and parameters without one."""
    flags = [name for name, is_flag in declared.items() if is_flag]
    texts: dict[str, Command] = {"command": study.command, "prepare": study.prepare, "env": tuple(study.env.values())}
    texts["cleanup"] = study.cleanup
    places = {"cleanup": ("cleanup", "command")}
    fidelity = _tables(content, "fidelity").get("parameter")
    for key, command in texts.items():
        for name in dict.fromkeys(names_in(word for group in groups(command) for word in group)):
            known = name in declared or name == fidelity
            if not known and "-" not in name and not (name == ALL_FLAGS and flags):
                advice = f"parameters are {', '.join(declared)}; write {{{{{name}}}}} for the text itself"
                problems.note(f"{{{name}}} is the placeholder of no parameter: {advice}", *places.get(key, (key,)))
    if not isinstance(study.space, Mapping):
        return
    without = [name for name in flags if name not in study.used]
    if without and ALL_FLAGS not in study.used:
        shown = ", ".join(without[:3]) + (f" and {len(without) - 3} more" if len(without) > 3 else "")
        problems.note(f"it has no place for the flags ({shown}): add the word {{flags}} where they belong", "command")
    for name in declared:
        if name not in study.used and name not in flags:
            problems.note(f"parameter {name!r} is not in it and can have no effect: add {{{name}}}", "command")
    for key in ("command", "prepare", "cleanup"):
        always = names_in(part for part in texts[key] if isinstance(part, str) and part[1:-1] not in study.flags)
        for name, parameter in study.space.items():
            if parameter.when and name in always:
                advice = f'put it into a group, which is dropped then, such as ["--{name}", "{{{name}}}"]'
                problems.note(f"parameter {name!r} does not always apply: {advice}", *places.get(key, (key,)))


def check_name(path: Path) -> None:
    """Refuse a path that is not UTF-8 text: neither messages nor pages could name it."""
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError:
        raise StudyError(f"{path}: the names of a study file and its folders must be UTF-8 text: rename it") from None


def default_storage(path: Path) -> str:
    """The database of a study file, in a hidden folder beside it; StudyError if a URL cannot name it.

    Earlier versions kept it beside the file, where it is still found.
    """
    if "?" in path.stem or path.stem.startswith((":memory:", "file:")):
        raise StudyError(
            f"{path}: no database can be named after {path.name!r}: rename the file, or say in it where to keep "
            "results, such as storage = 'sqlite:///study.db'"
        )
    name = f"{path.stem}.db"
    beside, hidden = path.parent / name, path.parent / FOLDER / name
    is_old = not hidden.exists() and (beside.exists() or glob(f"{escape(str(beside))}.bak*"))
    return f"sqlite:///{name}" if is_old else f"sqlite:///{FOLDER}/{name}"


def _parsed(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            source = file.read(MOST_CHARACTERS + 1)
        if len(source) > MOST_CHARACTERS:
            raise StudyError(f"{path} must have at most {MOST_CHARACTERS:,} characters, got more: is it a study file?")
        if long_key := LONG_KEY.search(source):
            line = source.count("\n", 0, long_key.start()) + 1
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


def line_of(source: str, key: list[str]) -> int | None:
    r"""Line of a key or table, else that of the enclosing table; None if neither is found.

    >>> line_of('[parameters.x]\ntype = "int"\nlow = 3', ["parameters", "x", "low"])
    3
    """
    table: list[str] = []
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(TEXT.sub(_emptied, source).split("\n"), 1):
        path: list[str] = []
        if header := re.match(r"\s*\[+([^\]]+)\]", line):
            path = table = _parts(header[1])
        elif entry := re.match(r"\s*([\w.\"' -]+?)\s*=", line):
            path = [*table, *_parts(entry[1])]
        for length in range(1, len(path) + 1):
            lines.setdefault(tuple(path[:length]), number)
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
