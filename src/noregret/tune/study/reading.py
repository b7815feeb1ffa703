"""Reading study files: all errors at once, each with the file, the line and the key."""

from __future__ import annotations

import csv
import itertools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from noregret.optimizer import COST, EXACT, VALUE, Choice, Float, Int, axis_of, check_apart, checked_fidelity
from noregret.terminal import complain, printable
from noregret.tune.study import checks
from noregret.tune.study.parameters import parameter
from noregret.tune.study.results import LastNumber, Pattern, Result, WallTime
from noregret.tune.study.study import (
    ALL_FLAGS,
    FOLDER,
    Budget,
    Constraint,
    Failure,
    FlagWords,
    Objective,
    Params,
    Stop,
    Study,
    StudyError,
    Tracked,
    groups,
    names_in,
)

if TYPE_CHECKING:
    from noregret.optimizer import Goal

Space = Mapping[str, Float | Int | Choice] | list[Params]

LARGEST = 1 << 20
"""The largest study file, in characters."""
LONG_KEY = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")
"""A key of more than 100 parts with dots between them. The time that tomllib takes grows with their square."""

CAP_NEEDS = (
    'needs result = "wall-time" and goal = "minimize": of a run that is stopped, other results are not known, and that '
    "it takes long says nothing about them. Leave it out, or measure the time"
)

_LAST_NUMBER: Result = LastNumber()
_ONCE: int | tuple[int, int] = 1


T = TypeVar("T")
TEXT = re.compile(r"""("{3}(?:\\.|[^\\])*?"{3}|'{3}.*?'{3})|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*""", re.DOTALL)
"""Matches the texts and the comments of a TOML file."""
WORD = r"[A-Za-z_]\w*"
"""Pattern of a parameter's name."""
FLAG = r"[A-Za-z_][\w-]*"
"""Pattern of a flag's name, which may have hyphens."""


def load(path: Path) -> Study:
    """Read a study file; StudyError with every line and key at fault."""
    check_name(path)
    source, content = _parsed(path)
    storage = default_storage(path) if "storage" not in content else ""
    top = Section(path, source, "", content)
    with suppress(Refused):
        study = _study(top, storage)
    if top.problems:
        raise StudyError(_listed(path, top.problems))
    return study


def _study(top: Section, storage: str) -> Study:
    """The study, with defaults in place of the parts that have problems."""
    defaults: Params = {}
    flags: dict[str, FlagWords] = {}
    study = Study(
        path=top.path,
        name=top.get("name", checks.title, top.path.stem),
        goal=top.get("goal", checks.one_of("minimize", "maximize"), "minimize"),
        command=top.get("command", checks.command) or (),
        prepare=top.get("prepare", checks.command, ()),
        env=top.get("env", checks.environment, {}),
        warmup=top.get("warmup", checks.whole(0, 1000), 0),
        repeats=top.get("repeats", checks.repeats, _ONCE),
        cap=top.get("cap", checks.cap, None),
        result=top.get("result", checks.result, _LAST_NUMBER),
        storage=top.get("storage", checks.storage, storage),
        workers=top.get("workers", checks.whole(1, 256), 1),
        timeout=top.get("timeout", checks.seconds, 3600.0),
        lease=top.get("lease", checks.whole(1, 86400), 60),
        seed=top.get("seed", checks.whole(0, EXACT), 0),
        drift=top.get("drift", checks.drift, None),
        confirm=top.get("confirm", checks.whole(0, 1000), Study.confirm),
        budget=top.part("budget", _budget, Budget()),
        failure=top.part("failure", _failure, Failure()),
        stop=top.part("stop", _stop, None),
        constraints=top.part("constraints", _constraints, {}),
        require=top.get("require", checks.require, ()),
        fidelity=top.part("fidelity", _fidelity, None),
        space=_space(top, defaults, flags),
        defaults=defaults,
        flags=flags,
        objectives=top.part("objectives", _objectives, {}),
        track=top.part("track", _track, {}),
        tracked=top.part("measures", _measures, {}),
        ranges=top.get("possible", checks.possible, None),
    )
    if study.cap and (study.goal != "minimize" or not isinstance(study.result, WallTime)):
        top.note("cap", CAP_NEEDS)
    if study.objectives:
        study = _with_objectives(study, top)
    for name in study.tracked:
        if name in (*study.objectives, *study.constraints, VALUE, COST):
            top.section("measures").note(name, "is the name of another number of a run: choose another one")
    declared = _declared(top, study)
    baseline = top.section("baseline")
    if declared and declared.keys() == set(study.names):
        with suppress(Refused):
            _check_conditions(study, top)
            study = replace(study, baseline=_baseline(study, baseline))
    if study.safe:
        study = _safe(study, top)
    if declared and study.command:
        _check_placeholders(study, declared, top)
    if study.fidelity:
        _check_fidelity(study, top)
    try:
        check_apart(fidelity=study.fidelity, drift=study.drift, goals=study.goals, safe=study.safe)
    except ValueError as error:
        top.note("fidelity" if study.fidelity else "objectives", str(error))
    top.nothing_else()
    return study


def _listed(path: Path, problems: Sequence[tuple[int, str]]) -> str:
    """Message with all problems in the order of their lines."""
    said = [text for _, text in sorted(problems)]
    return said[0] if len(said) == 1 else "\n  ".join([f"{path} has {len(said)} problems:", *said])


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
    section.rename("rounds", "evaluations")
    evaluations = section.get("evaluations", checks.whole(1, 10**7), None)
    budget = Budget(evaluations, seconds=section.get("seconds", checks.seconds, None))
    section.nothing_else()
    if budget == Budget():
        section.refuse("", "must say when to stop: evaluations = 100, or seconds = 600, or both")
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


def _fidelity(section: Section) -> dict[str, Float | Int] | None:
    if not section.content:
        return None
    name = section.get("parameter", checks.words)
    low, high = (section.get(key, checks.number) for key in ("low", "high"))
    log = section.get("log", checks.boolean, True)
    section.nothing_else()
    if not re.fullmatch(WORD, name):
        section.refuse("parameter", f"must be a word such as epochs, got {name!r}")
    is_whole = all(isinstance(section.content[key], int) for key in ("low", "high"))
    try:
        found = {name: Int(int(low), int(high), log=log) if is_whole else Float(low, high, log=log)}
        checked_fidelity(found, [])
    except ValueError as error:
        section.refuse("", str(error))
    return found


def _check_fidelity(study: Study, top: Section) -> None:
    """Note what does not go together with a fidelity."""
    name, section = next(iter(study.fidelity or ())), top.section("fidelity")
    if name in study.names:
        section.note("parameter", f"{name!r} is tuned, too: drop its table, as the highest fidelity is recommended")
        return
    if study.runs != (1, 1) and (study.steps or study.runs[0] < study.runs[1]):
        top.note("repeats", "a trial with a fidelity runs once, and the search repeats what is worth it: drop it")
    if study.steps is None and name not in study.used:
        advice = f"add {{{name}}}, or a result with a step, such as {{json = 'loss', step = 'epoch'}}"
        top.note("command", f"it does not know the fidelity {name!r}: {advice}")
    if isinstance(study.steps, Pattern) and "value" not in re.compile(study.steps.regex).groupindex:
        top.note("result", "a regular expression with a group step needs a group value, too: (?P<value>...)")


def _constraints(section: Section) -> dict[str, Constraint]:
    read = {name: section.part(name, partial(_constraint, name), None) for name in section.content}
    found = {name: constraint for name, constraint in read.items() if constraint}
    for one, other in itertools.permutations(found, 2):
        if reason := _contradiction(found[one], found[other]):
            section.refuse(one, f"contradicts {other}: {reason}")
    return found


def _objectives(section: Section) -> dict[str, Objective]:
    read = {name: section.part(name, partial(_objective, name), None) for name in section.content}
    if len(read) == 1:
        section.refuse("", "must be two or more: for one objective write goal and result at the top, without a table")
    found = {name: objective for name, objective in read.items() if objective}
    for one, other in itertools.combinations(found, 2):
        if found[one].result == found[other].result:
            section.refuse(other, f"has the same result as {one}: give each objective a number of its own")
    return found


def _measures(section: Section) -> dict[str, Tracked]:
    read = {name: section.part(name, partial(_measure, name), None) for name in section.content}
    return {name: its for name, its in read.items() if its}


def _measure(name: str, section: Section) -> Tracked:
    if not re.fullmatch(WORD, name):
        section.refuse("", f"a measure's name must be a word such as energy, got {name!r}")
    found = Tracked(section.get("result", checks.result), section.get("unit", checks.words, ""))
    section.nothing_else()
    return found


def _objective(name: str, section: Section) -> Objective:
    if not re.fullmatch(WORD, name):
        section.refuse("", f"an objective's name must be a word such as latency, got {name!r}")
    goals: Callable[[Any], Goal] = checks.one_of("minimize", "maximize")
    possible = section.get("possible", checks.possible, None)
    objective = Objective(section.get("goal", goals, "minimize"), section.get("result", checks.result), possible)
    section.nothing_else()
    return objective


def _track(section: Section) -> dict[str, str]:
    read = {name: section.get(name, checks.place, None) for name in ("mlflow", "tensorboard", "wandb")}
    section.nothing_else()
    return {name: place for name, place in read.items() if place is not None}


def _with_objectives(study: Study, top: Section) -> Study:
    """The study, after a check that nothing in it is for one objective only."""
    for key in ("goal", "result", "possible"):
        if key in top.content:
            top.note(key, f"is for one objective: leave it out, each [objectives.NAME] has a {key} of its own")
    if "stop" in top.content:
        top.note("stop", "is about the best setting, and several objectives have none: leave it out, use [budget]")
    if top.content.get("confirm"):
        top.note("confirm", "measures the best setting, and several objectives have none: leave it out")
    return replace(study, confirm=0)


def _contradiction(one: Constraint, other: Constraint) -> str:
    """Reason why no number can meet both constraints; empty if one can."""
    if one.max is None or other.min is None or one.max >= other.min or one.result != other.result:
        return ""
    return f"the same number cannot be at most {one.max:g} and at least {other.min:g}"


def _constraint(name: str, section: Section) -> Constraint:
    if not re.fullmatch(WORD, name):
        section.refuse("", f"a constraint's name must be a word such as memory, got {name!r}")
    constraint = Constraint(
        section.get("result", checks.result),
        max=section.get("max", checks.number, None),
        min=section.get("min", checks.number, None),
        safe=section.get("safe", checks.safe, None),
    )
    section.nothing_else()
    if (constraint.max is None) == (constraint.min is None):
        section.refuse("", "must have either max or min: for both, write two constraints with the same result")
    return constraint


def _safe(study: Study, top: Section) -> Study:
    """Study with safe trials: what is recommended is safe less surely, and is not measured unasked."""
    if "baseline" not in top.content:
        top.note("constraints", "safe needs a [baseline] that meets the constraints: trials start from it")
    if study.drift is not None:
        top.note("drift", "constraints with safe must not change: leave out drift, or safe")
    return study if "confirm" in top.content else replace(study, confirm=0)


def _baseline(study: Study, section: Section) -> Params | None:
    """The baseline, which must be a setting of the space. Flags that it does not name add no words.

    A study of such flags alone needs no table: its baseline is the command without them.
    """
    without = {name: value for name, value in study.defaults.items() if name in study.flags}
    if not section.content and set(without) != set(study.names):
        return None
    for name in section.content:
        if name not in study.names:
            section.note(name, f"unknown key: parameters are {', '.join(study.names)}")
    section.settle()
    try:
        checked = dict(study.settings.checked(study.completed(section.content, without)))
    except ValueError as error:
        said = str(error).partition(": widen")[0]
        section.refuse("", f"{said}. It must be a setting of this study: widen the ranges, or leave [baseline] out")
    if broken := study.settings.violated(checked):
        section.refuse("", f"violates [[require]] {broken!r}: change one of them, or leave [baseline] out")
    return checked


def _space(top: Section, defaults: Params, flags: dict[str, FlagWords]) -> Space:
    """The sound parameters, or the rows of the table; their defaults and the words of flags are added to the dicts."""
    parameters, short = top.section("parameters"), top.section("flags")
    no_rows: list[Params] = []
    rows = top.get("candidates", lambda value: read_table(top.path.parent / checks.words(value)), no_rows)
    if ("candidates" in top.content) == bool(parameters.content or short.content):
        if not parameters.is_misspelt:
            top.note("", "say what to tune: either [parameters.NAME] tables and [flags], or candidates = 'file.csv'")
        return {}
    found: dict[str, Float | Int | Choice | None] = {}
    for name in parameters.content:
        found[name] = parameters.part(name, partial(_parameter, name, defaults, flags), None)
    for name in short.content:
        if name in found:
            short.note(name, f"is a parameter too, in [parameters.{name}]: rename one of the two")
        elif words := short.get(name, checks.flag, None):
            found[name] = _flag(name, words, defaults, flags, short)
    if flags and ALL_FLAGS in found:
        place = short if ALL_FLAGS in short.content else parameters
        place.note(ALL_FLAGS, "no parameter can have this name where there are flags: {flags} stands for all of them")
    return rows or {name: parameter for name, parameter in found.items() if parameter}


def _flag(name: str, words: FlagWords, defaults: Params, flags: dict[str, FlagWords], section: Section) -> Choice:
    if not re.fullmatch(FLAG, name):
        section.note(name, f"a flag's name must be a word such as unroll-loops, got {name!r}")
    flags[name] = words
    if () in words:  # before it was tuned, the command had no words for it
        defaults[name] = words[1] == ()
    return Choice([False, True])


def _parameter(name: str, defaults: Params, flags: dict[str, FlagWords], section: Section) -> Float | Int | Choice:
    if not re.fullmatch(WORD, name):
        section.note("", f"a parameter's name must be a word such as cache_size, got {name!r}")
    kind = section.get("type", checks.one_of("float", "int", "choice", "bool", "flag"))
    section.settle()
    described: dict[str, Any] = {"type": kind, "when": section.get("when", checks.table, None)}
    if kind == "choice":
        described["choices"] = section.get("choices", checks.choices)
    elif kind == "flag":
        nothing: tuple[str, ...] = ()
        on, off = section.get("on", checks.flag_words), section.get("off", checks.flag_words, nothing)
    elif kind != "bool":
        described |= _range(section, kind)
    section.get("default", lambda value: value, None)
    section.nothing_else()
    try:
        found = parameter(described)
    except ValueError as error:
        section.refuse("", str(error))
    if kind == "flag":
        if on == off:
            section.refuse("on", "must differ from off: a flag adds other words if it is on than if it is off")
        _flag(name, (off, on), defaults, flags, section)
    if "default" in section.content:
        defaults[name] = section.get("default", lambda value: _default(found, name, value))
    section.settle()
    return found


def _default(parameter: Float | Int | Choice, name: str, value: Any) -> Any:
    try:
        return axis_of(parameter).checked(name, value)
    except ValueError as error:
        raise ValueError(str(error).partition(": widen")[0]) from None


def _range(section: Section, kind: str) -> dict[str, Any]:
    number, step = (
        (checks.number, checks.number) if kind == "float" else (checks.whole(-EXACT, EXACT), checks.whole(1, EXACT))
    )
    return {
        "log": section.get("log", checks.boolean, False),
        "step": section.get("step", step, None),
        **{key: section.get(key, number) for key in ("low", "high")},
    }


def _declared(top: Section, study: Study) -> dict[str, bool]:
    """The names of all parameters in the file, also of those with problems; True for flags."""
    if not isinstance(study.space, Mapping):
        return dict.fromkeys(study.names, False)
    parameters, flags = (top.section(key).content for key in ("parameters", "flags"))
    kinds = {name: described.get("type") for name, described in parameters.items() if isinstance(described, dict)}
    return {**{name: kinds.get(name) == "flag" for name in parameters}, **dict.fromkeys(flags, True)}


def _check_conditions(study: Study, top: Section) -> None:
    """Refuse conditions that contradict each other, such as circular ones."""
    try:
        study.settings  # noqa: B018
    except ValueError as error:
        if study.require and "require" in str(error):
            top.refuse("require", str(error).removeprefix("require "))
        top.section("parameters").refuse("", str(error))


def _check_placeholders(study: Study, declared: Mapping[str, bool], top: Section) -> None:
    """Note placeholders of no parameter, and parameters without one."""
    flags = [name for name, is_flag in declared.items() if is_flag]
    texts = {"command": study.command, "prepare": study.prepare, "env": tuple(study.env.values())}
    for key, command in texts.items():
        for name in dict.fromkeys(names_in(word for group in groups(command) for word in group)):
            known = name in declared or name == top.section("fidelity").content.get("parameter")
            if not known and "-" not in name and not (name == ALL_FLAGS and flags):
                advice = f"parameters are {', '.join(declared)}; write {{{{{name}}}}} for the text itself"
                top.note(key, f"{{{name}}} is the placeholder of no parameter: {advice}")
    if not isinstance(study.space, Mapping):
        return
    without = [name for name in flags if name not in study.used]
    if without and ALL_FLAGS not in study.used:
        shown = ", ".join(without[:3]) + (f" and {len(without) - 3} more" if len(without) > 3 else "")
        top.note("command", f"it has no place for the flags ({shown}): add the word {{flags}} where they belong")
    for name in declared:
        if name not in study.used and name not in flags:
            top.note("command", f"parameter {name!r} is not in it and can have no effect: add {{{name}}}")
    for key in ("command", "prepare"):
        always = names_in(part for part in texts[key] if isinstance(part, str) and part[1:-1] not in study.flags)
        for name, its in study.space.items():
            if its.when and name in always:
                advice = f'put it into a group, which is dropped then, such as ["--{name}", "{{{name}}}"]'
                top.note(key, f"parameter {name!r} does not always apply: {advice}")


class Refused(Exception):
    """A table of the file has problems, which are noted; nothing can be read from it."""


@dataclass
class Section:
    """A table of the file, whose keys are taken one by one. Problems are noted, so that all are found."""

    path: Path
    source: str
    name: str
    content: dict[str, Any]
    problems: list[tuple[int, str]] = field(default_factory=list)
    """Problems of the whole file, with their lines."""
    is_misspelt: bool = False
    """True if the table is missing and another one has nearly its name."""
    _taken: list[str] = field(default_factory=list)
    _is_sound: bool = True

    def get(self, key: str, check: Callable[[Any], T], *default: T) -> T:
        """Checked value of a key, else its default. Without one, None: `settle` must follow before it is used."""
        self._taken.append(key)
        if key in self.content:
            try:
                return check(self.content[key])
            except ValueError as error:
                self.note(key, str(error))
        elif not default:
            typos = get_close_matches(key, self.content.keys() - set(self._taken), 1)
            self._taken += typos
            if typos:
                self.note(typos[0], f"unknown key: did you mean {key!r}?")
            else:
                self.note("", f"{key!r} is missing")
        return default[0] if default else cast(T, None)

    def rename(self, deprecated: str, key: str) -> None:
        """Take the value of a deprecated key for that of the key that replaces it, with a warning."""
        if deprecated not in self.content:
            return
        if key in self.content:
            self.refuse(deprecated, f"is the deprecated name of {key}: keep {key} only")
        complain(f"noregret: {printable(self._at(deprecated))}: is deprecated and goes in noregret 2.0: write {key}")
        self.content[key] = self.content.pop(deprecated)

    def section(self, key: str) -> Section:
        """Table inside this one, empty if it is missing."""
        tables = [name for name, value in self.content.items() if isinstance(value, dict)]
        is_misspelt = key not in tables and bool(get_close_matches(key, tables, 1))
        content: dict[str, Any] = self.get(key, checks.table, {})
        name = f"{self.name}.{key}".lstrip(".")
        return Section(self.path, self.source, name, content, self.problems, is_misspelt)

    def part(self, key: str, read: Callable[[Section], T], default: T) -> T:
        """Content of the table inside this one; the default if it has problems."""
        section = self.section(key)
        if section.is_misspelt or not isinstance(self.content.get(key, {}), dict):
            return default
        try:
            return read(section)
        except Refused:
            return default

    def nothing_else(self) -> None:
        """Note keys that were not taken; Refused if the table has problems."""
        for key, value in self.content.items():
            if key not in self._taken:
                kind, shown = ("table", "[{}]") if isinstance(value, dict) and not self.name else ("key", "{!r}")
                close = get_close_matches(key, self._taken, 1)
                hint = (
                    f"did you mean {shown.format(close[0])}?"
                    if close
                    else f"known are {', '.join(sorted(set(self._taken)))}"
                )
                self.note(key, f"unknown {kind}: {hint}")
        self.settle()

    def settle(self) -> None:
        """Raise Refused if the table has problems."""
        if not self._is_sound:
            raise Refused

    def note(self, key: str, reason: str) -> None:
        """Note a problem with a key, or with the table itself."""
        self._is_sound = False
        problem = self._line(key) or 0, f"{self._at(key)}{': ' if key else ''}{reason}"
        if problem not in self.problems:
            self.problems.append(problem)

    def _line(self, key: str) -> int | None:
        return line_of(self.source, [*filter(None, self.name.split(".")), *filter(None, [key])])

    def _at(self, key: str) -> str:
        """File, line, table and key."""
        line = self._line(key)
        return f"{self.path}{f':{line}' if line else ''}: {f'[{self.name}] ' if self.name else ''}{key}"

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Note a problem that is the last of this table."""
        self.note(key, reason)
        raise Refused


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
