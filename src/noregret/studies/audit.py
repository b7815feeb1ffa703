"""``noregret audit``: the worth of the best trial of a study of any tool, and of the settings that may be as good.

A stored study reports its luckiest trial. One `Optimizer` that knows all of its trials says how good that trial
really is, which of the measured settings to use, and which are not separated from it. Nothing is measured.

Optuna says which values its parameters may have. Of other tools the measured settings are taken as a table.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from noregret.files import write_atomically
from noregret.formatting import as_precise_as, finite, number, shown
from noregret.optimizer import (
    FEWEST_OBSERVATIONS,
    MOST_OPTIONS,
    RECOMMEND,
    VALUE,
    Estimate,
    Gain,
    Goal,
    Optimizer,
    Reading,
    State,
    Trial,
)
from noregret.studies.learning.findings import Findings, estimate_json
from noregret.studies.page.page import page
from noregret.studies.page.reporting import findings
from noregret.studies.study.exchange import storage_study
from noregret.studies.study.study import Params, StudyError
from noregret.terminal import printable, say

LISTED = 5
"""Number of settings that are not separated from the recommended one that the text lists, and that runs are for."""
SHOWN_BY = 2.8
"""Standard errors of a difference that is shown, at 95%, in four of five cases: 1.96 + 0.84."""
MOST_RUNS = 30
"""Largest number of further runs of a setting: what takes more is under 0.72 standard deviations of the noise."""

FAILED = re.compile("fail(ed)?|crashed|killed|error|abandoned", re.I)
UNFINISHED = re.compile(
    "running|waiting|pending|scheduled|paused|pruned|staged|candidate|withdrawn|early_stopped|stopped|reported|run",
    re.I,
)
"""States of the tools and of our own tables; a pruned trial has no value of a whole run."""
PREFIXES = (("params_", ""), ("params.", "metrics."), ("config/", ""))
"""Beginnings of columns of parameters and of results: Optuna's data frame, MLflow's runs and Ray's results."""
ABOUT = re.compile(
    "|trial|number|state|status|name|((run|trial|experiment)[ _])?id|notes|user|tags|created|(start|end)[ _]time"
    "|started|ended|updated|runtime|sweep|duration|seconds|timestamp|noise|failure|cost|bound|pair|group|host(name)?|commit"
    "|description|github|jobtype|source (name|type)|(_|user_attrs_|system_attrs_|unnamed).*"
    r"|(tags|measure|noise|bound|block|trial)\..*",
    re.I,
)
"""Columns that are about a trial: neither a parameter nor a result."""


class Export(NamedTuple):
    """A study of another tool: its trials, with params as they were written, and its goal if the file says it."""

    name: str
    trials: list[Trial]
    goal: Goal | None = None


class Audit(Findings):
    """Findings about a stored study; the best setting is one that was measured.

    ``note`` says which trials and columns are left out.
    """

    note = ""

    @cached_property
    def measured(self) -> list[Estimate]:
        """Estimate of each setting that has a value and likely meets the constraints, the best first."""
        settings = {self._key(record.params): record.params for record in self.done}
        known: list[Estimate] = self.optimizer.predict_many(settings.values())
        likely = [estimate for estimate in known if estimate.feasible >= RECOMMEND] or known
        return sorted(likely, key=lambda estimate: self._sign * estimate.estimate, reverse=True)

    @cached_property
    def best(self) -> Estimate:
        """The recommended setting: the one with the best estimate."""
        return self.measured[0]

    @cached_property
    def reported(self) -> Trial:
        """The trial with the best value, which the tool reports; one that was stopped early has no value of its own."""
        whole = [record for record in self.done if not record.is_stopped] or self.done
        whole = [record for record in whole if record.number not in self.infeasible] or whole
        return max(whole, key=lambda record: self._sign * float(cast(float, record.value(VALUE))))

    @cached_property
    def worth(self) -> Estimate:
        """The value of the reported trial's setting, by all trials."""
        return self.optimizer.predict(self.reported.params)

    @property
    def optimism(self) -> tuple[float, float, float]:
        """Amount by which the reported value is too good, and its interval."""
        value, ends = float(cast(float, self.reported.value(VALUE))), (self.worth.lower, self.worth.upper)
        low, high = sorted(self._sign * (value - end) for end in ends)
        return self._sign * (value - self.worth.estimate), low, high

    def _key(self, params: Params) -> Any:
        return self.study.settings.key(params)

    @property
    def _sign(self) -> int:
        return 1 if self.study.goal == "maximize" else -1

    @cached_property
    def differences(self) -> list[Gain]:
        """Gain of the recommended setting over each other one, the best of these first."""
        best = self._key(self.best.params)
        others = [estimate.params for estimate in self.measured if self._key(estimate.params) != best]
        return self.optimizer.gains_over(self.best.params, others)

    @cached_property
    def rivals_of_best(self) -> list[Gain]:
        """Gains over the settings that are not separated from the recommended one: 0 is in the interval.

        Those that may be better by most come first.
        """
        return sorted((gain for gain in self.differences if gain.lower <= 0 <= gain.upper), key=lambda gain: gain.lower)

    @cached_property
    def plan(self) -> list[tuple[Params, int]]:
        """Settings to measure again, and how often each, the recommended one first; empty if that is not worth it."""
        first, more = self.rivals_of_best[:LISTED], self.rivals_of_best[LISTED:]
        first += [gain for gain in more if self._key(gain.baseline.params) == self._key(self.reported.params)]
        runs = [(gain.baseline.params, self.runs(-gain.lower)) for gain in first]
        runs = [(params, count) for params, count in runs if count <= MOST_RUNS]
        return [(self.best.params, max(count for _, count in runs)), *runs] if runs else []

    def runs(self, difference: float) -> int:
        """Further runs of each of two settings that show this difference in four of five cases."""
        return max(math.ceil(2 * (SHOWN_BY * min(self.noise_std / max(difference, 1e-300), 1e6)) ** 2), 2)

    @cached_property
    def numbers(self) -> dict[Any, list[int]]:
        """Numbers of the trials of each setting."""
        numbers: dict[Any, list[int]] = {}
        for record in self.done:
            numbers.setdefault(self._key(record.params), []).append(record.number)
        return numbers

    def as_json(self) -> dict[str, Any]:
        """All numbers; those that are not finite are None."""
        amount, low, high = self.optimism

        def about(its: Estimate) -> dict[str, Any]:
            ends = {name: each for name, each in estimate_json(its).items() if name != "gap"}
            return {"trials": self.numbers[self._key(its.params)], **ends}

        return {
            "study": self.study.name,
            "goal": self.study.goal,
            "trials": {"done": len(self.done), "failed": len(self.failed), "settings": len(self.numbers)},
            "note": self.note or None,
            "noise": finite(self.noise_std),
            "reported": {"trial": self.reported.number, "value": self.reported.value(VALUE), **about(self.worth)},
            "optimism": {"estimate": finite(amount), "lower": finite(low), "upper": finite(high)},
            "recommended": about(self.best),
            "not_separated": [
                about(gain.baseline)
                | {"worse_by": {name: finite(getattr(gain, name)) for name in ("estimate", "lower", "upper")}}
                for gain in self.rivals_of_best
            ],
            "runs": [
                {"params": params, "trials": self.numbers[self._key(params)], "runs": k} for params, k in self.plan
            ],
        }

    def __str__(self) -> str:
        worth, best, value = self.worth, self.best, float(cast(float, self.reported.value(VALUE)))
        amount, low, high = self.optimism
        failed = f", {len(self.failed)} failed" if self.failed else ""
        settings = len(self.numbers)
        lines = [f"{self.study.name}: {len(self.done)} results of {settings} settings{failed}, to {self.study.goal}"]
        lines += [self.note] if self.note else []
        said = "too good by" if amount > 0 else "too bad by"
        shown_by = "" if low > 0 or high < 0 else ", which may be chance"
        lines += [
            "",
            f"Reported   trial {self.reported.number}: {_number(worth, value)}; really about {_interval(worth)}: "
            f"{said} {_number(worth, abs(amount))}{shown_by}",
            f"           {shown(self.reported.params)}",
        ]
        if self._key(best.params) == self._key(self.reported.params):
            lines += ["Recommended  the same setting"]
        else:
            lines += [
                f"Recommended  {self._trials(best.params)}: about {_interval(best)}",
                f"           {shown(best.params)}",
            ]
        rivals = self.rivals_of_best
        if not rivals:
            return "\n".join([*lines, "", "It is shown to be better than every other setting that was measured."])
        if len(rivals) == settings - 1:
            lines += ["", "No setting is shown to be worse than it: noise alone may explain the differences."]
        else:
            lines += ["", f"Not separated from it: {len(rivals)} of the other {settings - 1} settings"]
        reported = self._key(self.reported.params)
        listed = [rival for n, rival in enumerate(rivals) if n < LISTED or self._key(rival.baseline.params) == reported]
        for gain in listed:
            other, ends = gain.baseline.params, (gain.lower, gain.upper)
            better, worse = (as_precise_as(*ends, abs(end)) for end in ends)
            lines.append(f"  {self._trials(other)}: from {better} better to {worse} worse  {shown(other)}")
        lines += [f"  and {len(rivals) - len(listed)} more"] * (len(rivals) > len(listed))
        if self.plan:
            total = ", ".join(f"{self._trials(params)} {count} times" for params, count in self.plan)
            lines += ["", f"To settle it, {sum(count for _, count in self.plan)} runs in mixed order: {total}."]
        close = _rounded(SHOWN_BY * self.noise_std * math.sqrt(2 / MOST_RUNS))
        lines.append(
            f"Differences under {close} take more than {MOST_RUNS} runs of each to show, as one run has a noise of "
            f"{_rounded(self.noise_std)}: choose by taste."
        )
        return "\n".join(lines)

    def _trials(self, params: Params) -> str:
        numbers = self.numbers[self._key(params)]
        listed = ", ".join(map(str, numbers[:3])) + ", ..." * (len(numbers) > 3)
        return f"trial{'s' * (len(numbers) > 1)} {listed}"


def _rounded(value: float) -> str:
    return number(value, 2)


def _number(its: Estimate, value: float) -> str:
    return as_precise_as(its.lower, its.upper, value)


def _interval(its: Estimate) -> str:
    return f"{_number(its, its.estimate)} ({_number(its, its.lower)} to {_number(its, its.upper)})"


def audit(args: Namespace) -> None:
    """Print the audit of a stored study, and write its page if one is asked for."""
    if args.target and args.target.suffix.lower() not in (".html", ".htm"):
        raise StudyError(f"--out {args.target}: its name must end in .html")
    study_audit = audited(args.file, goal=args.goal, value=args.value, params=args.params, name=args.name)
    if args.target:
        content = page(study_audit).encode()
        try:
            write_atomically(args.target, lambda file: file.write(content))
        except OSError as error:
            raise StudyError(f"{args.target} cannot be written: {error.strerror}") from error
    say(json.dumps(study_audit.as_json(), default=str) if args.json else printable(str(study_audit), keep="\n"))


def audited(
    subject: Any,
    *,
    goal: str | None = None,
    value: str | None = None,
    params: str | None = None,
    name: str | None = None,
) -> Audit:
    r"""Audit of a stored study.

    Parameters
    ----------
    subject : str, path, or optuna.Study
        A file or folder, or the URL of a storage of Optuna.
    goal : "minimize" or "maximize", optional
        For files that do not say it.
    value : str, optional
        Name of the result, where there are several.
    params : str, optional
        Names of the parameters, with commas between them; by default all columns that may be some.
    name : str, optional
        Name of the study in a storage of Optuna that has several.

    >>> path = getfixture("tmp_path") / "runs.csv"
    >>> rows = [f"{x},{(x - 3) ** 2 + 0.1 * (-1) ** (x + repeat)}" for x in range(8) for repeat in range(4)]
    >>> _ = path.write_text("\n".join(["x,value", *rows]))
    >>> found = audited(str(path), goal="minimize")
    >>> found.best.params, found.reported.params
    ({'x': 3}, {'x': 3})
    """
    if goal not in (None, "minimize", "maximize"):
        raise StudyError(f"--goal must be minimize or maximize, got {goal!r}")
    where = str(subject)
    path = Path(where)
    is_study = hasattr(subject, "get_trials")
    if is_study or "://" in where or path.suffix.lower() in (".db", ".sqlite", ".sqlite3"):
        if params:
            raise StudyError(f"{where}: --params is for tables, and a storage names its parameters: leave it out")
        loaded, note = _of_optuna(subject if is_study else storage_study(where, name), goal, value)
    elif not path.exists():
        raise StudyError(f"{where} does not exist: give a file, a folder of Ray, or the URL of a storage of Optuna")
    else:
        wanted = [part.strip() for part in params.split(",")] if params else None
        loaded, note = _of_export(where, _read(path, value, wanted), goal)
    if len(loaded.done) < FEWEST_OBSERVATIONS:
        raise StudyError(f"{where}: an audit takes at least {FEWEST_OBSERVATIONS} results, got {len(loaded.done)}")
    if len(loaded.points) < 2:
        raise StudyError(f"{where}: an audit takes at least two different settings, and all results are of one")
    study_audit = Audit(loaded.study, loaded.records, loaded.optimizer)
    study_audit.note = note
    return study_audit


def _of_optuna(theirs: Any, goal: str | None, value: str | None) -> tuple[Findings, str]:
    """Findings of a study of Optuna, and a note on what is left out."""
    from noregret.integrations.optuna import goals_of, informed

    where = f"study {theirs.study_name!r}"
    goals = [direction.name.lower() for direction in theirs.directions]
    if len(goals) > 1:
        raise StudyError(
            f"{where}: an audit is of one objective, and this has {len(goals)}: "
            "noregret.report(study, 'page.html') shows its front"
        )
    if value not in (None, VALUE, *goals_of(theirs)):
        raise StudyError(f"{where}: --value {value}: there is no such result, it has one objective: leave out --value")
    if goal not in (None, goals[0]):
        raise StudyError(f"{where} is to {goals[0]}: leave out --goal")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            known = findings(*informed(theirs))
    except ValueError as error:
        raise StudyError(f"{where}: {error}") from error
    return known, "; ".join(str(warning.message).replace("the page leaves out", "left out:") for warning in caught)


def _of_export(where: str, export: Export, goal: str | None) -> tuple[Findings, str]:
    """Findings of the rows of an export, and a note on what is left out."""
    if goal is None and export.goal is None:
        raise StudyError(f"{where} does not say whether its result is to be small or large: add --goal minimize")
    given = [trial for trial in export.trials if trial.state != "waiting"]
    table, left = _table([trial.params for trial in given])
    if not table or not table[0]:
        came = "; ".join(left) or "no column"
        raise StudyError(f"{where}: no parameter has two values: {len(export.trials)} rows, {came}")
    is_numbered = len({trial.number for trial in given}) == len(given)
    trials = [
        replace(trial, id=trial.number if is_numbered else place, params=params)
        for place, (trial, params) in enumerate(zip(given, table, strict=True))
    ]
    optimizer = Optimizer(table, goal=cast(Goal, goal or export.goal), rng=0)
    optimizer.add(trials)
    if len(export.trials) > len(given):
        left.append(f"{len(export.trials) - len(given)} trials without a final result")
    note = f"parameters: {', '.join(table[0])}" + (f"; left out: {', '.join(left)}" if left else "")
    return findings(table, optimizer, trials, export.name), note


def _trial(number: int, params: Params, value: Any, noise: Any = None, said: str = "") -> Trial:
    """A row of an export: a trial has failed if its state says so, or if it has no finite value."""
    result, spread = _float(value), _float(noise)
    is_failed = result is None or bool(FAILED.fullmatch(said))
    state: State = "waiting" if UNFINISHED.fullmatch(said) else "failed" if is_failed else "done"
    readings = (
        {VALUE: (Reading(result, noise=spread if spread and spread > 0 else None),)} if result is not None else {}
    )
    known = readings if state == "done" else {}
    return Trial(number, params, state=state, readings=known, failure=(said or "no result") if is_failed else "")


def _float(cell: Any) -> float | None:
    """Finite number of a cell, None if it is none."""
    with suppress(TypeError, ValueError, OverflowError):
        return parsed if not isinstance(cell, bool) and math.isfinite(parsed := float(cell)) else None
    return None


def _table(settings: Sequence[Params]) -> tuple[list[Params], list[str]]:
    """Settings with the same columns, of numbers or of text, and what is left out.

    A parameter that a setting lacks has its median there, or empty text. Parameters with one value are left out, and
    texts with too many: these name the runs.
    """
    names = dict.fromkeys(name for setting in settings for name in setting)
    columns, left, fixed = dict[str, list[Any]](), list[str](), list[str]()
    for name in names:
        cells = [setting.get(name, "") for setting in settings]
        cells = [
            "" if cell is None else cell if isinstance(cell, str | int | float) else json.dumps(cell, default=str)
            for cell in cells
        ]
        given = [_float(cell) for cell in cells if cell != ""]
        if given and None not in given:
            numbers = [value for value in given if value is not None]
            middle = sorted(numbers)[len(numbers) // 2]
            values: list[Any] = [middle if cell == "" else float(cell) for cell in cells]
            values = (
                list(map(int, values)) if all(value.is_integer() and abs(value) < 2**53 for value in values) else values
            )
        else:
            values = [str(cell) for cell in cells]
        different = len(set(values))
        if different < 2:
            fixed.append(name)
        elif isinstance(values[0], str) and different > min(MOST_OPTIONS, max(len(values) // 2, 10)):
            left.append(f"{name} (text, {different} different)")
        else:
            columns[name] = values
    left += [f"{', '.join(fixed)} (one value)"] if fixed else []
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)], left


def _read(path: Path, value: str | None, params: Sequence[str] | None) -> Export:
    """A file or a folder, by what it contains; StudyError if it is none of the formats."""
    if path.is_dir():
        return _ray(path.name, _last_results(path), value, params)
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} cannot be read as text: {getattr(error, 'strerror', None) or error}") from error
    if content.lstrip()[:1] not in ("{", "["):
        return _csv(path, content, value, params)
    try:
        data = _json(content)
    except ValueError as error:
        raise StudyError(f"{path} is no JSON: {error}") from error
    if isinstance(data, Mapping) and "tune_params_keys" in data:
        return _kernel_tuner(path.stem, data, value)
    experiment = data.get("experiment", data) if isinstance(data, Mapping) else None
    if isinstance(experiment, Mapping) and {"trials", "optimization_config"} <= experiment.keys():
        return _ax(path, experiment, value)
    if isinstance(data, list) and all(isinstance(result, Mapping) and "config" in result for result in data):
        last = {result.get("trial_id", place): result for place, result in enumerate(data)}
        return _ray(path.stem, list(last.values()), value, params)
    raise StudyError(
        f"{path} is JSON of no known tool: it must be a cache of Kernel Tuner, an experiment of Ax, or results of Ray "
        "with a config each. Write a .csv with a column per parameter and one for the result"
    )


def _json(content: str) -> Any:
    """JSON, JSON lines as a list, or an open cache of Kernel Tuner, which lacks its end."""
    for text in (content, content.rstrip().rstrip(",") + "}\n}", f"[{','.join(content.split(chr(10)))}]"):
        with suppress(ValueError):
            return json.loads(text)
    lines = [line for line in content.splitlines() if line.strip()]
    return [json.loads(line) for line in lines]


def _kernel_tuner(name: str, data: Mapping[str, Any], value: str | None) -> Export:
    """Cache of Kernel Tuner; a configuration that did not run has text in the place of its result, or an error."""
    result = value or data.get("objective", "time")
    is_better_high = data.get("objective_higher_is_better")
    goal: Goal | None = "minimize" if result == "time" else None
    if is_better_high is not None:
        goal = "maximize" if is_better_high else "minimize"
    rows = []
    for place, entry in enumerate(data["cache"].values()):
        params = {key: entry[key] for key in data["tune_params_keys"] if key in entry}
        rows.append(_trial(place, params, entry.get(result), said="failed" if "__error__" in entry else ""))
    return Export(str(data.get("kernel_name", name)), rows, goal)


def _ax(path: Path, experiment: Mapping[str, Any], value: str | None) -> Export:
    """Experiment of Ax. Its objective is a metric and a direction, or since version 1.2 an expression such as -loss."""
    objective = (experiment["optimization_config"] or {}).get("objective") or {}
    metric, is_low = (objective.get("metric") or {}).get("name"), objective.get("minimize")
    if single := re.fullmatch(r"(-?)(?:1(?:\.0)?\s*\*\s*)?([^-+*/,()]+)", objective.get("expression") or ""):
        metric, is_low = single[2].strip(), bool(single[1])
    if metric is None and value is None:
        raise StudyError(f"{path}: an audit is of one objective: add --value METRIC --goal minimize")
    means: dict[tuple[int, str], Mapping[str, Any]] = {}
    for table in _tables(experiment):
        for place in table.get("mean", {}):
            row = {column: cells.get(place) for column, cells in table.items()}
            if row["metric_name"] == (value or metric):
                means[int(row["trial_index"]), str(row["arm_name"])] = row
    rows = []
    for trial in experiment.get("trials", {}).values():
        state = str((trial.get("status") or {}).get("name", ""))
        runs = [trial.get("generator_run"), *(trial.get("generator_run_structs") or [])]
        for run in runs:
            for arm in ((run or {}).get("generator_run", run) or {}).get("arms", []):
                known = means.get((int(trial["index"]), arm["name"]), {})
                rows.append(_trial(int(trial["index"]), arm["parameters"], known.get("mean"), known.get("sem"), state))
    goal: Goal | None = ("minimize" if is_low else "maximize") if value in (None, metric) else None
    return Export(str(experiment.get("name") or path.stem), rows, goal)


def _tables(part: Any) -> Iterator[Mapping[str, Any]]:
    """Data frames of Ax anywhere in its JSON, each a dict of columns by row."""
    if isinstance(part, Mapping):
        text = part.get("value")
        if part.get("__type") == "DataFrame" and isinstance(text, str):
            yield json.loads(text)
        for each in part.values():
            yield from _tables(each)
    elif isinstance(part, list):
        for each in part:
            yield from _tables(each)


def _last_results(folder: Path) -> list[Mapping[str, Any]]:
    """Last result of each trial of an experiment of Ray, whose folders are below this one."""
    results = []
    for file in sorted(folder.rglob("result.json")):
        with suppress(ValueError, OSError, IndexError):
            results.append(json.loads(file.read_text(encoding="utf-8").strip().splitlines()[-1]))
    if not results:
        raise StudyError(f"{folder} has no result.json below it: give the folder of an experiment of Ray, or a file")
    return results


def _ray(name: str, results: Sequence[Mapping[str, Any]], value: str | None, params: Sequence[str] | None) -> Export:
    """Results of Ray, the last one of each trial."""
    header = dict.fromkeys(key for run in results for key in run if _float(run[key]) is not None)
    result = _result(name, list(header), value)
    rows = [
        _trial(place, {key: each for key, each in _flat(run["config"]) if not params or key in params}, run.get(result))
        for place, run in enumerate(results)
    ]
    return Export(name, rows)


def _flat(config: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    """Values of a nested config, by names with a slash."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{start}{name}/")
        else:
            yield f"{start}{name}", value


def _csv(path: Path, content: str, value: str | None, params: Sequence[str] | None) -> Export:
    """A table with a row per trial, as Optuna, MLflow, Ray and W&B write it, or of anything else."""
    try:
        lines = list(csv.DictReader(content.splitlines(), strict=True))
    except csv.Error as error:
        raise StudyError(f"{path} cannot be read as CSV: {error}") from error
    if not lines or None in lines[0] or any(None in line.values() for line in lines):
        raise StudyError(
            f"{path} must be a CSV with a header and a row per trial, each with as many cells as the header"
        )
    lines = [_opened(line) for line in lines]
    header = list(dict.fromkeys(name for line in lines for name in line))
    prefix, results = next(((p, r) for p, r in PREFIXES if any(name.startswith(p) for name in header)), ("", ""))
    own = [n for n in header if (n.startswith(prefix) if prefix else not ABOUT.fullmatch(n))]
    numeric = [n for n in header if any(_float(line.get(n)) is not None for line in lines) and not ABOUT.fullmatch(n)]
    rest = [n for n in numeric if n not in own and n.startswith(results)] if prefix else numeric
    named = value and next((n for n in (value, f"{results}{value}") if n in header), value)
    result = _result(str(path), [*rest, named] if named and named in header else rest, named)
    own = [n for n in own if n != result]
    if params:
        known = {n.removeprefix(prefix): n for n in own}
        if unknown := [n for n in params if n not in known and n not in header]:
            raise StudyError(f"{path}: --params: there is no column {unknown[0]!r}, it has {', '.join(header)}")
        own = [known.get(n, n) for n in params]
    low = {name.lower(): name for name in header}

    def cell(line: Mapping[str, str], *names: str) -> str:
        return next((line.get(low[name], "") for name in names if name in low), "")

    rows = [
        _trial(
            int(n) if (n := cell(line, "number", "trial")).isdecimal() else place,
            {name.removeprefix(prefix): line[name] for name in own if name in line},
            line.get(result),
            cell(line, "noise"),
            cell(line, "state", "status"),
        )
        for place, line in enumerate(lines)
    ]
    return Export(path.stem, rows)


def _opened(line: Mapping[str, str]) -> dict[str, str]:
    """A row with the dicts of its cells config and summary as columns, as W&B's API writes them; others as they are."""
    if not {"config", "summary"} <= line.keys():
        return dict(line)
    cells = {name: cell for name, cell in line.items() if name not in ("config", "summary")}
    for part, start in (("config", "config/"), ("summary", "")):
        with suppress(ValueError, SyntaxError):
            inside = ast.literal_eval(re.sub(r"\b(nan|inf)\b", "None", line[part]))
            cells |= {f"{start}{name}": str(value) for name, value in _flat(inside) if not name.startswith("_")}
    return cells


def _result(where: str, names: Sequence[str], value: str | None) -> str:
    """Column of the result: the one that is named, or "value", or the only one."""
    if value is not None:
        if value not in names:
            raise StudyError(f"{where}: --value {value}: there is no such result, it has {', '.join(names)}")
        return value
    if "value" in names or len(names) == 1:
        return "value" if "value" in names else names[0]
    raise StudyError(f"{where}: say which column is the result: --value NAME, one of {', '.join(names)}")
