"""Client of a server's study, with an Optimizer's methods to ask, tell and conclude; without further packages."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Unpack, overload
from urllib.parse import quote, urlencode, urlsplit

from noregret.optimizer import (
    VALUE,
    Choice,
    Estimate,
    Float,
    Gain,
    Gains,
    Goal,
    Hypervolume,
    Int,
    JointEstimate,
    MeasuredGain,
    Optimizer,
    Options,
    Percent,
    ProblemDescription,
    Reading,
    StopRule,
    Trial,
    check_names,
    checked_bound,
    checked_cost,
    checked_noise,
    checked_value,
    dump_readings,
    is_same_setting,
    takes_options,
)
from noregret.studies.study.parameters import problem_form, problem_in

TIMEOUT_SECONDS = 120.0
"""Time limit for an answer: longer than the server itself waits for its storage."""
MOST_ROWS, MOST_BYTES = 1000, 1_000_000
"""Largest number of observations of one request, and their size: a server accepts 1 MiB."""


class ServerError(ConnectionError):
    """The server cannot be reached, or cannot answer now."""


@dataclass(frozen=True, repr=False)
class RemoteEstimate(Estimate):
    """Estimate of a server for some params.

    ``remaining`` is what is left to gain by the model, and ``changes`` has a tuple (name, from, to, gain, lower, upper)
    for each change from the baseline. An observation counts half after ``half_life`` evaluations.
    """

    gap: float = math.inf
    remaining: float = math.inf
    changes: Any = ()
    half_life: float = math.inf

    @property
    def has_gap(self) -> bool:
        """True if the server has a bound for the other settings."""
        return math.isfinite(self.gap)


def connect(url: str, study: str, token: str | None = None, *, space: Any = None, **options: Any) -> Connection:
    """Connect to a study of a server that ``noregret serve`` runs.

    It has an `Optimizer`'s methods `ask`, `tell`, `tell_many`, `fail`, `correct`, `withdraw`, `report`, `should_stop`,
    `best`, `predict`, `gain`, `done`, `front` and `hypervolume`, with one difference: the same observation twice
    counts once. `describe` returns the study, `trials` lists all trials, and `delete` deletes the study. An
    `Optimizer`'s other methods and properties, such as `importance` and `to_frame`, are not available.

    Parameters
    ----------
    url : str
        Address of the server, such as ``"http://127.0.0.1:8420"``.
    study : str
        Its name.
    token : str, optional
        The server's token, if it has one; by default the environment variable NOREGRET_TOKEN.
    space : dict, or list of dicts, optional
        As for `Optimizer`, parameters or the rows of a table: the study is created if it does not exist, and must be
        the same if it does.
    options
        ``goal`` or ``goals``, ``baseline``, ``constraints``, ``require``, ``context``, ``drift``, ``safe``,
        ``fidelity`` and ``possible`` of a new study.
    """
    connection = Connection(url, study, token)
    if space is not None:
        connection.create(space, **options)
    elif options:
        raise ValueError(f"{next(iter(options))} is for a new study: give its space too")
    return connection


class Connection:
    """One study of a server; see `connect`. Several threads may use it."""

    def __init__(self, url: str, study: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be like 'http://127.0.0.1:8420', got {url!r}")
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._place, self._base = (parts.hostname, parts.port), parts.path.rstrip("/")
        self.url, self.study, self._path = url, study, f"/studies/{quote(study, safe='')}"
        self._token = token or os.environ.get("NOREGRET_TOKEN")
        self._stopped: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"connect({self.url!r}, {self.study!r})"

    @takes_options
    def create(
        self,
        space: Mapping[str, Float | Int | Choice] | Sequence[Mapping[str, Any]],
        *,
        goal: Goal | None = None,
        context: Mapping[str, Float | Int | Choice] | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Create the study if it does not exist; ValueError if another one of its name does."""
        check_names(self.create, options)
        if not isinstance(space, Mapping):
            space = [_params(row) for row in space]
        given: dict[str, Any] = {name: option for name, option in options.items() if option is not None}
        problem = ProblemDescription(space=space, goal=goal or "minimize", context=context, **given)
        form = problem_form(problem) | {"goal": goal} if goal else problem_form(problem)  # the server refuses both
        self._send("POST", "/studies", {"name": self.study, **form})

    @overload
    def ask(self, count: None = None, context: Any = None, *, client: str | None = None) -> Trial: ...
    @overload
    def ask(self, count: int, context: Any = None, *, client: str | None = None) -> list[Trial]: ...

    def ask(self, count: int | None = None, context: Any = None, *, client: str | None = None) -> Trial | list[Trial]:
        """Next trial to measure; with a ``count``, a list of that many.

        A ``client`` is a name of your own, such as that of a machine. Asking again with the same name, after a crash
        for example, returns the pending trials of that client.
        """
        body = {"count": 1 if count is None else count, "context": context, "client": client}
        asked = self._send("POST", f"{self._path}/ask", body)["trials"]
        trials = [Trial(row["id"], row["params"], context=context, fidelity=row.get("fidelity")) for row in asked]
        return trials[0] if count is None else trials

    def tell(
        self,
        trial: Trial | Any,
        value: float | Mapping[str, Any] | None = None,
        noise: float | None = None,
        constraints: Mapping[str, float | None] | None = None,
        context: Any = None,
        cost: float | None = None,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        fidelity: Any = None,
        readings: Mapping[str, Any] | None = None,
        block: Mapping[str, str | int] | None = None,
    ) -> None:
        """Report the value of a trial, or of params measured in the past, in this context if there are contexts.

        With several objectives the value is a dict with a number for each, or None for one that was not measured. It
        may have other numbers, too: they are kept with the trial. So may ``readings``, beside the value; each is a
        number, a `noregret.Reading`, or a list of them of several runs. In place of the value, ``at_least`` or
        ``at_most`` is a bound beyond which it lies. The same one twice counts once. On return it is on the server's
        disk. The ``fidelity`` is by default that of the trial, or of its last report if it was to be stopped; for
        params the highest. The ``block`` is that of `Optimizer.tell`; where a trial was asked for with a ``client``,
        its "machine" is that, unless it is given.
        """
        told, bound = checked_bound(value, at_least, at_most)
        if told is None and not readings:
            checked_value(told)
        body = _told(told, bound, noise, constraints, readings) | _cost(cost)
        body |= {} if fidelity is None else {"fidelity": fidelity}
        body |= {"block": block} if block else {}
        if isinstance(trial, Trial):
            self._send("POST", f"{self._path}/trials/{trial.id}/tell", body)
        else:
            self._send_past([{"params": _params(trial), "context": context, **body}])

    def correct(self, trial: Trial | int, value: Any, *, constraints: Any = None, reason: str = "") -> None:
        """Replace what is stored of a trial that has an outcome; numbers that are not named stay: `Optimizer.correct`.

        The value is one that `tell` takes. What was stored before stays listed as ``earlier``, with the reason.
        """
        body = _told(value, None, None, constraints, None) | {"because": reason}
        self._send("PUT", f"{self._path}/trials/{_id(trial)}", body)

    def withdraw(self, trial: Trial | int, reason: str = "") -> None:
        """Take a trial that has an outcome out of all conclusions: `Optimizer.withdraw`."""
        self._send("DELETE", f"{self._path}/trials/{_id(trial)}", {"because": reason})

    def report(self, trial: Trial, fidelity: Any, value: float) -> None:
        """Report an intermediate value of a trial that is running: ``study.report(trial, {"epochs": 9}, value)``."""
        body = {"fidelity": fidelity, "value": checked_value(_number(value))}
        answer = self._send("POST", f"{self._path}/trials/{trial.id}/report", body)
        self._stopped = self._stopped | {trial.id} if answer["stop"] else self._stopped - {trial.id}

    def should_stop(self, trial: Trial) -> bool:
        """Return True if the server said after the last report of a trial that it is to be stopped.

        Stop it then, and `tell` its last value.
        """
        return trial.id in self._stopped

    def tell_many(self, frame: Any) -> None:
        """Report measurements of the past, as `Optimizer.tell_many` takes them; all are checked before one is sent.

        Equal rows of a frame are repeated measurements. The same frame twice counts once. More than 1,000 rows are sent
        in several requests: after an error, call it again.
        """
        checking = Optimizer(**problem_in(self.describe()).for_optimizer())
        checking.tell_many(frame)
        measures = checking.measures
        counts: Counter[str] = Counter()
        rows: list[dict[str, Any]] = []
        for trial in checking.trials:
            row: dict[str, Any] = {"params": trial.params, "context": trial.context}
            if trial.state == "failed":
                row |= {"failed": True, **_cost(trial.value(measures.cost))}
            elif trial.state == "done":
                row |= {} if trial.fidelity is None else {"fidelity": trial.fidelity}
                row |= {} if trial.block is None else {"block": trial.block}
                known = {name: dump_readings(trial.runs(name)) for name in trial.readings if trial.runs(name)}
                row |= {"readings": {**dict.fromkeys((*measures.objectives, *measures.constraints)), **known}}
            else:
                continue
            text = json.dumps(row, sort_keys=True)
            counts[text] += 1
            rows.append(row if counts[text] == 1 else {**row, "key": f"{counts[text]}"})
        for some in _portions(rows):
            self._send_past(some)

    def fail(self, trial: Trial | Any, context: Any = None, cost: float | None = None, *, reason: str = "") -> None:
        """Report that a trial failed, or params tried in the past, in this context if there are contexts."""
        if isinstance(trial, Trial):
            body = _cost(cost) | ({"reason": reason} if reason else {})
            self._send("POST", f"{self._path}/trials/{trial.id}/fail", body or None)
        else:
            self._send_past([{"params": _params(trial), "context": context, "failed": True, **_cost(cost)}])

    def best(self, context: Any = None, *, limits: Any = None, weights: Any = None) -> Any:
        """The params with the best bound, in this context if there are contexts: not the luckiest measurement.

        With several objectives, ``limits`` or ``weights`` say which of the front are wanted, as for `Optimizer.best`.
        """
        return _estimate(self._send("GET", f"{self._path}/best?{_query(context, **_wish(limits, weights))}"))

    def front(self, context: Any = None) -> list[JointEstimate]:
        """The params that are likely best in some trade-off of several objectives: `Optimizer.front`."""
        return [_estimate(member) for member in self._send("GET", f"{self._path}/front?{_query(context)}")["front"]]

    def hypervolume(self, reference: Mapping[str, float] | None = None, context: Any = None) -> Hypervolume:
        """Volume between the front and a reference point, with its interval: `Optimizer.hypervolume`."""
        wish = {} if reference is None else {"reference": json.dumps(reference)}
        answer = self._send("GET", f"{self._path}/front?{_query(context, **wish)}")["hypervolume"]
        return Hypervolume(**{key: _bound(key, value) for key, value in answer.items()})

    def predict(self, params: Any, context: Any = None) -> Any:
        """Estimate for these params, in this context if there are contexts."""
        return _estimate(self._send("POST", f"{self._path}/predict", {"params": params, "context": context}))

    def gain(self, context: Any = None, *, limits: Any = None, weights: Any = None) -> Any:
        """Difference between `best` and the baseline, with its interval, or in each of several objectives."""
        answer = self._send("GET", f"{self._path}/gain?{_query(context, **_wish(limits, weights))}")
        if "gains" in answer:
            return Gains({name: _gain(gain) for name, gain in answer["gains"].items()})
        return _gain(answer)

    def done(self, within: float | str, confidence: float = 0.95, by: StopRule = "model", context: Any = None) -> bool:
        """Return True if no setting is likely to be better than `best` by more than ``within``: `Optimizer.done`."""
        asked = _query(context, within=within, confidence=confidence, by=by)
        return bool(self._send("GET", f"{self._path}/done?{asked}")["done"])

    def describe(self) -> dict[str, Any]:
        """The study: ``name``, ``goal``, ``goals``, ``space`` and so on as JSON, the number of ``trials``, ``best``."""
        return dict(self._send("GET", self._path))

    def delete(self) -> None:
        """Delete the study and all its trials on the server, for good."""
        self._send("DELETE", self._path)

    def trials(self) -> list[dict[str, Any]]:
        """All trials, each with ``id``, ``params``, ``value``, ``state``, ``readings`` and all else that is stored."""
        return list(self._send("GET", f"{self._path}/trials")["trials"])

    def _send_past(self, rows: Sequence[Any]) -> None:
        self._send("POST", f"{self._path}/tell", {"trials": rows})

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        """Answer to a request, on a connection of its own that is closed at once."""
        headers = {"Content-Type": "application/json", "Connection": "close"}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        sent = None if body is None else json.dumps(body, allow_nan=False).encode()
        try:
            with closing(self._kind(*self._place, timeout=TIMEOUT_SECONDS)) as line:
                line.request(method, self._base + path, sent, headers)
                answer = line.getresponse()
                status, text = answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise ServerError(f"{self.url} does not answer: {error}") from error
        return _read(status, text)


def _estimate(answer: Mapping[str, Any]) -> Any:
    """Estimate of one objective or of several, out of an answer."""
    if "values" in answer:
        known = answer.keys() & {field.name for field in fields(JointEstimate)}
        ends = {key: {name: _bound(key, end) for name, end in answer[key].items()} for key in ("lower", "upper")}
        return JointEstimate(**{key: answer[key] for key in known} | ends)
    known = answer.keys() & {field.name for field in fields(RemoteEstimate)} - {"changes"}  # newer servers send more
    changes = [
        (moved["name"], moved["from"], moved["to"], *(_bound(key, moved[key]) for key in ("gain", "lower", "upper")))
        for moved in answer.get("changes", ())
    ]
    return RemoteEstimate(**{key: _bound(key, answer[key]) for key in known}, changes=changes)


def _gain(found: Mapping[str, Any]) -> Gain:
    baseline, best = _estimate(found["baseline"]), _estimate(found["best"])
    best = baseline if is_same_setting(best.params, baseline.params) else best
    numbers = {name: _bound(name, found[name]) for name in ("estimate", "lower", "upper", "goal", "level")}
    more: dict[str, Any] = {"relative": found["relative"] and tuple(found["relative"])}
    more["is_positive"] = found.get("is_positive", False)
    if measured := found.get("measured"):  # older servers do not send it
        names = "estimate", "lower", "upper"
        known = {name: _bound(name, measured[name]) for name in (*names, "pairs", "level")}
        percent = measured["percent"] and Percent(*map(_bound, names, measured["percent"]))
        more["measured"] = MeasuredGain(**known, goal=found["goal"], percent=percent)
    return Gain(**numbers, best=best, baseline=baseline, **more)


def _bound(key: str, value: Any) -> Any:
    """Value of a field of an answer: JSON has no infinity, so null stands for it."""
    return value if value is not None else -math.inf if key == "lower" else math.inf


def _wish(limits: Any, weights: Any) -> dict[str, str]:
    return {name: json.dumps(wish) for name, wish in (("limits", limits), ("weights", weights)) if wish is not None}


def _query(context: Any, **values: Any) -> str:
    return urlencode(values | ({} if context is None else {"context": json.dumps(context)}))


def _number(value: Any) -> Any:
    """Value as a float; an int stays, so that one too large for a float is refused like any other bad number."""
    return value if value is None or isinstance(value, int) else float(value)


def _cost(cost: Any) -> dict[str, float]:
    return {} if cost is None else {"cost": checked_cost(_number(cost))}


def _told(value: Any, bound: str | None, noise: Any, constraints: Any, readings: Any) -> dict[str, Any]:
    """Fields of a request with what was measured; those that older servers do not know only where they are needed."""
    body: dict[str, Any] = {"noise": None if noise is None else checked_noise(_number(noise))}
    body["constraints"] = constraints and {
        name: _sent(f"constraint {name!r}", number) for name, number in constraints.items()
    }
    more = {name: _sent(repr(name), number) for name, number in (readings or {}).items()}
    if isinstance(value, Reading):
        value = {VALUE: value}
    if isinstance(value, Mapping):
        named = {name: _sent(repr(name), number) for name, number in value.items()}
        is_plain = all(number is None or isinstance(number, float) for number in named.values())
        more = more if is_plain else {**named, **more}
        body |= {"value": named} if is_plain else {}
    elif value is not None:
        body[bound or "value"] = checked_value(_number(value))
    return body | ({"readings": more} if more else {})


def _sent(name: str, given: Any) -> Any:
    """A number that was measured, as JSON; ValueError if it is bad."""
    if isinstance(given, Reading):
        return dump_readings([given])
    if isinstance(given, list | tuple):
        return [_sent(name, part) for part in given]
    try:
        return None if given is None else checked_value(_number(given))
    except ValueError:
        raise ValueError(f"{name} must be a finite number, got {given!r}") from None


def _id(trial: Trial | int) -> int:
    return trial.id if isinstance(trial, Trial) else trial


def _params(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError(f"trial must be one of ask(), or the params of a past measurement as a dict, got {given!r}")
    return {name: value.item() if hasattr(value, "item") else value for name, value in given.items()}  # of NumPy


def _portions(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Rows in requests that a server accepts, by their number and their size."""
    some: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        bytes_needed = len(json.dumps(row)) + 2
        if some and (len(some) == MOST_ROWS or size + bytes_needed > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(row)
        size += bytes_needed
    if some:
        yield some


def _read(status: int, text: bytes) -> Any:
    if status == 204:
        return None
    try:
        answer = json.loads(text)
    except ValueError:
        raise ServerError(f"the server answered {status}, and no JSON") from None
    if status < 300:
        return answer
    said = answer.get("detail") if isinstance(answer, dict) else None
    if isinstance(said, list):
        said = "; ".join(f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}" for fault in said)
    if status == 401:
        raise PermissionError(f"{said}; connect(..., token=...) or NOREGRET_TOKEN")
    raise (ServerError if status >= 500 or status == 429 else ValueError)(f"{said}")
