"""A study: parameters, the command that measures them, and when to stop."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from noregret.optimizer import EXACT, VALUE, Choice, Float, Int, ParameterSpace, ProblemDescription, StopRule, axis_of
from noregret.studies.errors import NotYet as NotYet
from noregret.studies.errors import StudyError as StudyError
from noregret.studies.study import checks
from noregret.studies.study.checks import Command as Command
from noregret.studies.study.checks import FlagWords as FlagWords
from noregret.studies.study.checks import text as text
from noregret.studies.study.checks import without_password as without_password
from noregret.studies.study.parameters import form
from noregret.studies.study.results import JsonSteps, LastNumber, Result, Steps, possible

Params = dict[str, Any]

SERVICE = "service"
"""The part of an identity that describes a study of the service."""
FOLDER = ".noregret"
"""Name of the hidden folder beside a study file that holds its database, copies, locks and logs."""
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w-]*)\}")
"""``{name}``, or a doubled brace, which stands for itself. ``{a-b}`` is text unless a flag has that name."""
ALL_FLAGS = "flags"
"""Name of the placeholder for all flags that have none of their own."""


@dataclass(frozen=True)
class Budget:
    """Limit on the trials in all, on the seconds of this call, or on both."""

    rounds: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Stop:
    """Stopping rule: no other setting is likely to be better by more than ``within``."""

    within: Annotated[checks.Within, 'In the units of the results; or "2%", of the size of the best estimate']
    confidence: Annotated[checks.Confidence, "Level of the statement"] = 0.95
    by: Annotated[
        StopRule,
        checks.one_of("model", "certificate"),
        "By the average of the models that the results do not refute, or by the strict certificate",
    ] = "model"


@dataclass(frozen=True)
class FailureRules:
    """Conditions under which a run counts as failed although its result can be read, and failures end the call."""

    ok_exit_codes: Annotated[checks.ExitCodes, "Exit codes of runs that have not failed"] = (0,)
    output: Annotated[checks.Regex | None, "A run whose output matches this regular expression has failed"] = None
    stop_after: Annotated[int, checks.whole(1, 10**7), "Failed trials in a row that end the call"] = 10
    retries: Annotated[
        int, checks.whole(0, 1000), "Times that a failed run is repeated at once before its trial counts as failed"
    ] = 0


@dataclass(frozen=True)
class Study(ProblemDescription):
    """A problem, how it is measured, and when it ends: the content of a study file.

    Text beside a type describes the key in forms and schemas; fields without it have no key of their own.

    >>> study = Study(Path("study.toml"), ("sleep", "{seconds}"), space={"seconds": Float(0.0, 0.1)})
    >>> study.arguments({"seconds": 0.05})
    ['sleep', '0.05']
    """

    path: Path
    command: Annotated[checks.Words, "The command that makes one measurement, with {name} for a parameter's value"]
    _: KW_ONLY
    space: Mapping[str, Float | Int | Choice] | Sequence[Params]
    """Named parameters, or the rows of a table of candidates."""
    name: Annotated[checks.Title, "Name of the study in its storage; by default that of the file"] = "study"
    result: Annotated[checks.Reader, "How the result of a run is read"] = field(default_factory=LastNumber)
    storage: Annotated[checks.Storage, "URL of the database of all measurements"] = field(
        default="sqlite:///study.db", repr=False
    )
    """It may hold a password, so it is shown by `without_password` only."""
    workers: Annotated[int, checks.whole(1, 256), "Commands at a time"] = 1
    timeout: Annotated[checks.Seconds, "Seconds after which a run is ended and counts as failed"] = 3600.0
    lease: Annotated[
        int, checks.whole(1, 86400), "Seconds after which the trial of a worker that died goes to another one"
    ] = 60
    seed: Annotated[int, checks.whole(0, EXACT), "The same seed and the same results give the same questions"] = 0
    confirm: Annotated[
        int,
        checks.whole(0, 1000),
        "Number of times that the recommended setting is measured itself, at the end of the budget if not before",
    ] = 3
    budget: Budget = field(default_factory=lambda: Budget(rounds=100))
    failure: FailureRules = field(default_factory=FailureRules)
    stop: Stop | None = None
    results: Mapping[str, Result] = field(default_factory=dict)
    """Readers of named measures: several objectives, constraints, and tracked numbers. Others read the last number."""
    defaults: Params = field(default_factory=dict)
    """The values that parameters had before they were tuned."""
    flags: Mapping[str, FlagWords] = field(default_factory=dict)
    """The words of those parameters, with the values False and True, that add words to a command."""
    prepare: Annotated[checks.Words, "A command that runs before each run and is not measured"] = ()
    cleanup: Command = ()
    """A command that runs once after the last trial of a call, with the setting to keep."""
    env: Annotated[checks.Environment, "Environment variables of both commands, with placeholders"] = field(
        default_factory=dict
    )
    warmup: Annotated[int, checks.whole(0, 1000), "Runs of each trial that come before the measured ones"] = 0
    repeats: Annotated[
        checks.Repeats,
        "Measured runs of each trial, whose value is their median; or the fewest and the most of them, as [1, 10]",
    ] = 1
    cap: Annotated[
        checks.Cap | None, "A run is stopped when it takes this many times as long as the best setting may"
    ] = None
    track: Mapping[str, str] = field(default_factory=dict)
    """Tracking services that trials are sent to, with the place at each; empty text for its default."""
    description: Mapping[str, Any] | None = None
    """Request that created a study of the service: it is its identity. None for other studies."""

    @property
    def weighs_costs(self) -> bool:
        """True if questions weigh improvement by cost: evaluations are not what the budget counts."""
        return self.budget.rounds is None

    @property
    def folder(self) -> Path:
        """The folder in which the command runs; relative paths start from it."""
        return self.path.resolve().parent

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return list(self.space) if isinstance(self.space, Mapping) else list(self.space[0])

    @property
    def runs(self) -> tuple[int, int]:
        """The fewest and the most measured runs of a trial."""
        return (self.repeats, self.repeats) if isinstance(self.repeats, int) else self.repeats

    @property
    def steps(self) -> Steps | None:
        """The result, if there is a fidelity and the command prints a result for each of its steps."""
        result = self.result
        if self.levels is None or not isinstance(result, Steps):
            return None
        return result if isinstance(result, JsonSteps) or result.has_steps else None

    @cached_property
    def results_by_measure(self) -> dict[str, Result]:
        """Reader of the number of each measure but the cost."""
        names = (name for name in self.measures if name != self.measures.cost)
        return {name: self._reader(name) for name in names}

    def _reader(self, name: str) -> Result:
        return self.result if name == VALUE and not self.goals else self.results.get(name, LastNumber())

    @property
    def value_range(self) -> Any:
        """Range that results can have, as ``possible``; by default that of their readers, such as times from 0 on."""
        if not self.command or (self.possible is not None and not self.goals):
            return self.possible
        if not self.goals:
            return possible(self.result)
        given = self.possible or {}
        ranges = {name: given.get(name) or possible(self._reader(name)) for name in self.goals}
        return {name: limits for name, limits in ranges.items() if limits is not None} or None

    def completed(self, params: Params, values: Params) -> Params:
        """The params with the values of those parameters that apply and have none yet."""
        missing = {name: value for name, value in values.items() if name not in params}
        if not missing or not isinstance(self.space, Mapping):
            return {**missing, **params}
        assert isinstance(self.settings, ParameterSpace)
        known = {name: value for name, value in {**missing, **params}.items() if name in self.space}
        applicable = self.settings.applicable(
            {n: axis_of(self.space[n]).checked(n, value) for n, value in known.items()}
        )
        return {**params, **{name: value for name, value in missing.items() if name in applicable}}

    @property
    def words(self) -> list[str]:
        """All words of the command, with their placeholders."""
        return [word for group in groups(self.command) for word in group]

    @property
    def sought(self) -> list[Result]:
        """Readers of the objectives."""
        return [self.results_by_measure[name] for name in self.measures.objectives]

    @cached_property
    def used(self) -> list[str]:
        """The names in braces in the commands and the environment."""
        return names_in([*itertools.chain(*groups((*self.command, *self.prepare))), *self.env.values()])

    def arguments(self, params: Mapping[str, Any]) -> list[str]:
        """The command with its placeholders filled in: an argument list, which no shell ever sees."""
        return self._filled(self.command, params)

    def preparation(self, params: Mapping[str, Any]) -> list[str]:
        """The command that comes before each run, as `arguments`; empty if there is none."""
        return self._filled(self.prepare, params)

    def cleaning(self, params: Mapping[str, Any]) -> list[str]:
        """The command that comes after the last trial, as `arguments`; empty if there is none."""
        return self._filled(self.cleanup, params)

    def environment(self, params: Mapping[str, Any]) -> dict[str, str]:
        """Environment variables for a setting, without those of parameters that do not apply."""
        shown = self._shown(params)
        return {key: filled(value, shown) for key, value in self.env.items() if self._applies([value], params)}

    def shell_line(self, params: Mapping[str, Any]) -> str:
        """The measurement of a setting as it would be typed into a shell, without warm-up and repeats.

        >>> study = Study(Path("study.toml"), ("./a.out",), space={}, prepare=("cc", "a b.c"), env={"N": "{n}"})
        >>> study.shell_line({"n": 3})
        "N=3 cc 'a b.c' && N=3 ./a.out"
        """
        variables = [f"{key}={shlex.quote(value)}" for key, value in self.environment(params).items()]
        commands = filter(None, [self.preparation(params), self.arguments(params)])
        return " && ".join(" ".join([*variables, shlex.join(words)]) for words in commands)

    def _filled(self, command: Command, params: Mapping[str, Any]) -> list[str]:
        """The words of a command. A placeholder of flags that is a word by itself becomes all of their words."""
        filled_words: list[str] = []
        by_placeholder = {f"{{{name}}}": words for name, words in self._flag_words(params).items()}
        shown = self._shown(params)
        for group in groups(command):
            if self._applies(group, params):
                for word in group:
                    filled_words += by_placeholder[word] if word in by_placeholder else [filled(word, shown)]
        return filled_words

    def _applies(self, words: Iterable[str], params: Mapping[str, Any]) -> bool:
        return all(name in params for name in names_in(words) if name in self.names)

    def _flag_words(self, params: Mapping[str, Any]) -> dict[str, list[str]]:
        """The words of each flag of a setting, and of all that have no placeholder of their own."""
        if not self.flags:
            return {}
        by_flag = {name: list(words[params[name]]) for name, words in self.flags.items() if name in params}
        together = [word for name, words in by_flag.items() if name not in self.used for word in words]
        return {**by_flag, ALL_FLAGS: together}

    def _shown(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The values of placeholders inside of a word: the words of flags are joined as in a shell."""
        return {
            **(self.levels.highest if self.levels else {}),
            **params,
            **{name: shlex.join(words) for name, words in self._flag_words(params).items()},
        }

    def identity(self) -> dict[str, Any]:
        """Everything that must stay the same for observations to belong together, as JSON."""
        if self.description is not None:
            return {SERVICE: dict(self.description)}
        readers, limited = self.results_by_measure, self.measures.limited
        sought = {f"objectives.{name}": f"{goal} {readers[name]!r}" for name, goal in self.goals.items()}
        return {
            **(sought or {"goal": self.goal}),
            "command": _listed(self.command),
            **({} if sought else {"result": repr(self.result)}),
            "seed": self.seed,
            **({"prepare": _listed(self.prepare)} if self.prepare else {}),
            **({"env": [f"{key}={value}" for key, value in self.env.items()]} if self.env else {}),
            **({"warmup": self.warmup} if self.warmup else {}),
            **{f"parameters.{name}": described for name, described in self._described()},
            **{f"constraints.{name}": repr(readers[limited[name]]) for name in self.constraints},
            **({"require": list(self.require)} if self.require else {}),
            **{f"fidelity.{name}": form(parameter) for name, parameter in (self.fidelity or {}).items()},
        }

    def _described(self) -> list[tuple[str, Any]]:
        if isinstance(self.space, Mapping):
            return [(name, form(parameter, self.flags.get(name))) for name, parameter in self.space.items()]
        rows = json.dumps(list(self.space), sort_keys=True)
        return [("candidates", f"{len(self.space)} rows, {hashlib.sha256(rows.encode()).hexdigest()[:16]}")]


def make_folder(folder: Path) -> None:
    """Make the hidden folder of a study, which git ignores; add the file for git to one that has none."""
    folder.mkdir(exist_ok=True)
    if not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def groups(command: Command) -> Iterator[tuple[str, ...]]:
    """The groups of words of a command; a word by itself is one."""
    return ((part,) if isinstance(part, str) else part for part in command)


def _listed(command: Command) -> list[Any]:
    return [part if isinstance(part, str) else list(part) for part in command]


def placeholders(argument: str) -> list[str]:
    """The names in braces.

    >>> placeholders("--size={size},{{literal}},{unit}")
    ['size', 'unit']
    """
    return [match[1] for match in PLACEHOLDER.finditer(argument) if match[1]]


def names_in(words: Iterable[str]) -> list[str]:
    """The names of the parameters in some words."""
    return [name for word in words for name in placeholders(word)]


def filled(argument: str, params: Mapping[str, Any]) -> str:
    """The argument with a value for each placeholder.

    >>> filled("--size={size}{{kb}}", {"size": 8})
    '--size=8{kb}'
    """

    def value(found: re.Match[str]) -> str:
        if not found[1]:
            return found[0][0]
        return text(params[found[1]]) if found[1] in params else found[0]

    return PLACEHOLDER.sub(value, argument)
