"""A study: parameters, the command that measures them, and when to stop."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from noregret.optimizer import VALUE, Choice, Float, Int, Measures, axis_of, checked_constraints, checked_possible
from noregret.tune.study.parameters import form
from noregret.tune.study.results import JsonSteps, LastNumber, Result, Steps, possible

if TYPE_CHECKING:
    from noregret.optimizer import Fidelity, Goal, Space, StopRule

Params = dict[str, Any]
Command = tuple[str | tuple[str, ...], ...]
"""Words, and groups of words that are dropped where a parameter in them does not apply."""
FlagWords = tuple[tuple[str, ...], tuple[str, ...]]
"""The words of a flag that is off, and of one that is on."""

FOLDER = ".noregret"
"""Name of the hidden folder beside a study file that holds its database, copies, locks and logs."""
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w-]*)\}")
"""``{name}``, or a doubled brace, which stands for itself. ``{a-b}`` is text unless a flag has that name."""
ALL_FLAGS = "flags"
"""Name of the placeholder for all flags that have none of their own."""


class StudyError(ValueError):
    """The study cannot continue; the message says what must hold, what came, and what to do."""


class NotYet(StudyError):
    """The study has not started: its storage holds nothing to read."""


@dataclass(frozen=True)
class Budget:
    """Limit on the trials in all, on the seconds of this call, or on both."""

    rounds: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Stop:
    """Stopping rule: no other setting is likely to be better by more than ``within``."""

    within: float | str
    """In the units of the results; or "2%", of the size of the best estimate."""
    confidence: float = 0.95
    by: StopRule = "model"
    """By the average of the models that the results do not refute, or by the strict certificate."""


@dataclass(frozen=True)
class Constraint:
    """Bound on another number of the same run: at most ``max``, or at least ``min``; one of the two."""

    result: Result
    max: float | None = None
    min: float | None = None
    safe: float | None = None
    """Probability with which every trial meets it; None for one that trials need not meet."""

    @property
    def bound(self) -> tuple[str, float]:
        """The constraint as an Optimizer takes it."""
        if self.max is not None:
            return "<=", self.max
        assert self.min is not None
        return ">=", self.min


@dataclass(frozen=True)
class Objective:
    """One of several numbers of a run that are to be as small, or as large, as possible."""

    goal: Goal
    result: Result
    possible: tuple[float, float] | None = None
    """Least and largest value there can be; by default that of the result."""


@dataclass(frozen=True)
class Tracked:
    """A further number of a run that is kept and shown, and is no part of any decision."""

    result: Result
    unit: str = ""


@dataclass(frozen=True)
class Failure:
    """Conditions under which a run counts as failed although its result can be read, and failures end the call."""

    ok_exit_codes: tuple[int, ...] = (0,)
    output: str | None = None
    """A regular expression; a run whose output matches it has failed."""
    stop_after: int = 10
    """The number of failed trials in a row that ends the call."""
    retries: int = 0
    """Number of times a failed run is repeated at once, with the same setting, before its trial counts as failed."""


@dataclass(frozen=True)
class Study:
    """Content of a study file.

    >>> study = Study(Path("study.toml"), ("sleep", "{seconds}"), {"seconds": Float(0.0, 0.1)})
    >>> study.arguments({"seconds": 0.05})
    ['sleep', '0.05']
    """

    path: Path
    command: Command
    space: Mapping[str, Float | Int | Choice] | Sequence[Params]
    """Named parameters, or the rows of a table of candidates."""
    name: str = "study"
    goal: Goal = "minimize"
    result: Result = field(default_factory=LastNumber)
    storage: str = field(default="sqlite:///study.db", repr=False)
    """A URL; it may hold a password, so it is shown by `without_password` only."""
    workers: int = 1
    timeout: float = 3600.0
    lease: int = 60
    seed: int = 0
    confirm: int = 3
    """Number of times that the recommended setting is measured itself, at the end of the budget if not before."""
    budget: Budget = field(default_factory=lambda: Budget(rounds=100))
    failure: Failure = field(default_factory=Failure)
    stop: Stop | None = None
    baseline: Params | None = None
    """The setting in use now, which the best one is compared with."""
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    context: Mapping[str, Float | Int | Choice] | None = None
    """Parameters that are given with each trial and not chosen; the study of a file has none."""
    drift: float | Literal["auto"] | None = None
    """Half-life of observations in evaluations; "auto" to estimate it; None for no drift."""
    require: tuple[str, ...] = ()
    """Conditions on the parameters that every trial meets, such as ``threads * batch <= 4096``."""

    @property
    def weighs_costs(self) -> bool:
        """True if questions weigh improvement by cost: evaluations are not what the budget counts."""
        return self.budget.rounds is None

    defaults: Params = field(default_factory=dict)
    """The values that parameters had before they were tuned."""
    flags: Mapping[str, FlagWords] = field(default_factory=dict)
    """The words of those parameters, with the values False and True, that add words to a command."""
    prepare: Command = ()
    """A command that runs before each run and is not measured."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of both commands, with placeholders."""
    warmup: int = 0
    """The number of runs of each trial that come before the measured ones."""
    repeats: int | tuple[int, int] = 1
    """The number of measured runs of each trial, whose value is their median; or the fewest and the most of them."""
    fidelity: Mapping[str, Float | Int] | None = None
    """The parameter that says how well and at what cost to measure, such as the number of epochs."""
    cap: float | None = None
    """A run is stopped when it takes this many times as long as the best setting may; None to let all runs end."""
    objectives: Mapping[str, Objective] = field(default_factory=dict)
    """Several objectives by name, in place of ``goal`` and ``result``; empty for one."""
    tracked: Mapping[str, Tracked] = field(default_factory=dict)
    """Further numbers of each run, by name."""
    ranges: Any = None
    """Range of the values, as an Optimizer takes it; by default that of what is read, such as times from 0 on."""
    track: Mapping[str, str] = field(default_factory=dict)
    """Tracking services that trials are sent to, with the place at each; empty text for its default."""

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

    @cached_property
    def levels(self) -> Fidelity | None:
        """The fidelity as an Optimizer has it, None if there is none."""
        from noregret.optimizer import checked_fidelity

        return checked_fidelity(self.fidelity, self.names)

    @property
    def steps(self) -> Steps | None:
        """The result, if there is a fidelity and the command prints a result for each of its steps."""
        result = self.result
        if self.levels is None or not isinstance(result, Steps):
            return None
        return result if isinstance(result, JsonSteps) or result.has_steps else None

    @property
    def bounds(self) -> dict[str, tuple[str, float]]:
        """The constraints as an Optimizer takes them."""
        return {name: constraint.bound for name, constraint in self.constraints.items()}

    @cached_property
    def measures(self) -> Measures:
        """The names of the numbers of a trial, and their roles."""
        goals, bounds = self.goals or {VALUE: self.goal}, checked_possible(self.possible, self.goals or None)
        units = {name: its.unit for name, its in self.tracked.items()}
        return Measures(goals, checked_constraints(self.bounds), bounds, units)

    @cached_property
    def results_by_measure(self) -> dict[str, Result]:
        """Reader of the number of each measure."""
        found: dict[str, Result] = {name: its.result for name, its in self.objectives.items()} or {VALUE: self.result}
        found |= {name: self.constraints[its.name].result for name, its in self.measures.constraints.items()}
        return found | {name: its.result for name, its in self.tracked.items()}

    @property
    def safe(self) -> dict[str, float] | None:
        """Probability with which every trial meets each of some constraints; None if it need not meet any."""
        return {name: its.safe for name, its in self.constraints.items() if its.safe is not None} or None

    @property
    def goals(self) -> dict[str, Goal]:
        """The goals of several objectives by name, as an Optimizer takes them; empty for one."""
        return {name: objective.goal for name, objective in self.objectives.items()}

    @property
    def possible(self) -> Any:
        """Range that results can have, as an Optimizer takes it."""
        if self.ranges is not None or not self.command:
            return self.ranges
        if not self.objectives:
            return possible(self.result)
        ranges = {name: its.possible or possible(its.result) for name, its in self.objectives.items()}
        return {name: its for name, its in ranges.items() if its is not None} or None

    @cached_property
    def settings(self) -> Space:
        """The space as an Optimizer has it."""
        from noregret.optimizer import as_space

        return as_space(self.space, self.require)

    def completed(self, params: Params, values: Params) -> Params:
        """The params with the values of those parameters that apply and have none yet."""
        missing = {name: value for name, value in values.items() if name not in params}
        if not missing or not isinstance(self.space, Mapping):
            return {**missing, **params}
        from noregret.optimizer import Product

        assert isinstance(self.settings, Product)
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
        """The result, or those of several objectives."""
        return [objective.result for objective in self.objectives.values()] or [self.result]

    @property
    def results(self) -> list[Result]:
        """All results that are read from a run."""
        return list(self.results_by_measure.values())

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

    def environment(self, params: Mapping[str, Any]) -> dict[str, str]:
        """Environment variables for a setting, without those of parameters that do not apply."""
        shown = self._shown(params)
        return {key: filled(value, shown) for key, value in self.env.items() if self._applies([value], params)}

    def shell_line(self, params: Mapping[str, Any]) -> str:
        """The measurement of a setting as it would be typed into a shell, without warm-up and repeats.

        >>> study = Study(Path("study.toml"), ("./a.out",), {}, prepare=("cc", "a b.c"), env={"N": "{n}"})
        >>> study.shell_line({"n": 3})
        "N=3 cc 'a b.c' && N=3 ./a.out"
        """
        variables = [f"{key}={shlex.quote(value)}" for key, value in self.environment(params).items()]
        commands = filter(None, [self.preparation(params), self.arguments(params)])
        return " && ".join(" ".join([*variables, shlex.join(words)]) for words in commands)

    def _filled(self, command: Command, params: Mapping[str, Any]) -> list[str]:
        """The words of a command. A placeholder of flags that is a word by itself becomes all of their words."""
        found: list[str] = []
        by_placeholder = {f"{{{name}}}": words for name, words in self._flag_words(params).items()}
        shown = self._shown(params)
        for group in groups(command):
            if self._applies(group, params):
                for word in group:
                    found += by_placeholder[word] if word in by_placeholder else [filled(word, shown)]
        return found

    def _applies(self, words: Iterable[str], params: Mapping[str, Any]) -> bool:
        return all(name in params for name in names_in(words) if name in self.names)

    def _flag_words(self, params: Mapping[str, Any]) -> dict[str, list[str]]:
        """The words of each flag of a setting, and of all that have no placeholder of their own."""
        if not self.flags:
            return {}
        found = {name: list(words[params[name]]) for name, words in self.flags.items() if name in params}
        together = [word for name, words in found.items() if name not in self.used for word in words]
        return {**found, ALL_FLAGS: together}

    def _shown(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The values of placeholders inside of a word: the words of flags are joined as in a shell."""
        return {
            **(self.levels.highest if self.levels else {}),
            **params,
            **{name: shlex.join(words) for name, words in self._flag_words(params).items()},
        }

    def identity(self) -> dict[str, Any]:
        """Everything that must stay the same for observations to belong together, as JSON."""
        sought = {f"objectives.{name}": f"{its.goal} {its.result!r}" for name, its in self.objectives.items()}
        return {
            **(sought or {"goal": self.goal}),
            "command": _listed(self.command),
            **({} if sought else {"result": repr(self.result)}),
            "seed": self.seed,
            **({"prepare": _listed(self.prepare)} if self.prepare else {}),
            **({"env": [f"{key}={value}" for key, value in self.env.items()]} if self.env else {}),
            **({"warmup": self.warmup} if self.warmup else {}),
            **{f"parameters.{name}": described for name, described in self._described()},
            **{f"constraints.{name}": repr(constraint.result) for name, constraint in self.constraints.items()},
            **({"require": list(self.require)} if self.require else {}),
            **{f"fidelity.{name}": form(parameter) for name, parameter in (self.fidelity or {}).items()},
        }

    def _described(self) -> list[tuple[str, Any]]:
        if isinstance(self.space, Mapping):
            return [(name, form(parameter, self.flags.get(name))) for name, parameter in self.space.items()]
        rows = json.dumps(list(self.space), sort_keys=True)
        return [("candidates", f"{len(self.space)} rows, {hashlib.sha256(rows.encode()).hexdigest()[:16]}")]


def groups(command: Command) -> Iterator[tuple[str, ...]]:
    """The groups of words of a command; a word by itself is one."""
    return ((part,) if isinstance(part, str) else part for part in command)


def _listed(command: Command) -> list[Any]:
    return [part if isinstance(part, str) else list(part) for part in command]


def without_password(url: str) -> str:
    """A storage URL that can be shown, also if it is misspelt.

    >>> without_password("postgresql://me:secret@host/db?sslpassword=secret")
    'postgresql://me:***@host/db?sslpassword=***'
    """
    shown = re.sub(r"^(\W*+(?:[\w+.]+:/+)?+[^:@]*:).*@", r"\1***@", url)
    return re.sub(r"([?&]\w*password=)[^&]*", r"\1***", shown)


def placeholders(argument: str) -> list[str]:
    """The names in braces.

    >>> placeholders("--size={size},{{literal}},{unit}")
    ['size', 'unit']
    """
    return [found[1] for found in PLACEHOLDER.finditer(argument) if found[1]]


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


def text(value: Any) -> str:
    """A value as the command gets it: numbers so that they read back exactly, true and false in small letters.

    >>> text(0.1), text(3), text(True), text("a b")
    ('0.1', '3', 'true', 'a b')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else str(value)
