"""Client of a server's study, with an Optimizer's methods to ask, tell and conclude; without further packages."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, overload
from urllib.parse import quote, urlencode, urlsplit

from noregret.optimizer import (
    Choice,
    Estimate,
    Float,
    Gain,
    Int,
    Trial,
    checked_noise,
    checked_reading,
    checked_value,
    is_same_setting,
)
from noregret.tune.study.parameters import form

TIMEOUT_SECONDS = 120.0
"""Time limit for an answer: longer than the server itself waits for its storage."""


class ServerError(ConnectionError):
    """The server cannot be reached, or cannot answer now."""


@dataclass(frozen=True, repr=False)
class RemoteEstimate(Estimate):
    """Estimate of a server for some params.

    ``half_life`` is the number of evaluations after which an observation counts half.
    """

    gap: float = math.inf
    half_life: float = math.inf

    @property
    def has_gap(self) -> bool:
        """True if the server has a bound for the other settings."""
        return math.isfinite(self.gap)


def connect(url: str, study: str, token: str | None = None, *, space: Any = None, **options: Any) -> Connection:
    """Connect to a study of a server that ``noregret serve`` runs.

    It has an `Optimizer`'s methods `ask`, `tell`, `fail`, `best`, `predict`, `gain` and `done`, with one difference:
    `tell` and `fail` take a trial of `ask`, not params of the past. `trials` lists all trials. An `Optimizer`'s other
    methods and properties, such as `tell_many`, `importance` and `to_frame`, are not available.

    Parameters
    ----------
    url : str
        Address of the server, such as ``"http://127.0.0.1:8420"``.
    study : str
        Its name.
    token : str, optional
        The server's token, if it has one; by default the environment variable NOREGRET_TOKEN.
    space : dict, optional
        As for `Optimizer`: the study is created if it does not exist, and must be the same if it does.
    options
        ``goal``, ``baseline``, ``constraints``, ``context`` and ``drift`` of a new study.
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
        self.url, self.study = url, study
        self._token = token or os.environ.get("NOREGRET_TOKEN")

    def __repr__(self) -> str:
        return f"connect({self.url!r}, {self.study!r})"

    def create(
        self,
        space: Mapping[str, Float | Int | Choice],
        *,
        goal: str = "minimize",
        baseline: Any = None,
        constraints: Mapping[str, tuple[str, float]] | None = None,
        context: Mapping[str, Float | Int | Choice] | None = None,
        drift: Any = None,
    ) -> None:
        """Create the study if it does not exist; ValueError if another one of its name does."""
        sides = {"<=": "max", ">=": "min"}
        body = {
            "name": self.study,
            "goal": goal,
            "space": {name: form(parameter) for name, parameter in space.items()},
            "context": None if context is None else {name: form(parameter) for name, parameter in context.items()},
            "baseline": baseline,
            "constraints": {name: {sides[side]: bound} for name, (side, bound) in (constraints or {}).items()},
        }
        body |= {} if drift is None else {"drift": drift}  # older servers refuse the field
        self._send("POST", "/studies", body)

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
        asked = self._send("POST", self._path("/ask"), body)["trials"]
        trials = [Trial(found["id"], found["params"], context=context) for found in asked]
        return trials[0] if count is None else trials

    def tell(
        self,
        trial: Trial,
        value: float,
        noise: float | None = None,
        constraints: Mapping[str, float | None] | None = None,
    ) -> None:
        """Report the value of a trial; the same one twice counts once. On return it is on the server's disk."""
        numbers = None if constraints is None else {name: _reading(name, its) for name, its in constraints.items()}
        deviation = None if noise is None else checked_noise(_number(noise))
        body = {"value": checked_value(_number(value)), "noise": deviation, "constraints": numbers}
        self._send("POST", self._path(f"/trials/{_id(trial)}/tell"), body)

    def fail(self, trial: Trial) -> None:
        """Report that a trial failed."""
        self._send("POST", self._path(f"/trials/{_id(trial)}/fail"))

    def best(self, context: Any = None) -> Estimate:
        """The params with the best bound, in this context if there are contexts: not the luckiest measurement."""
        return _estimate(self._send("GET", self._path(f"/best?{_query(context)}")))

    def predict(self, params: Any, context: Any = None) -> Estimate:
        """Estimate for these params, in this context if there are contexts."""
        return _estimate(self._send("POST", self._path("/predict"), {"params": params, "context": context}))

    def gain(self, context: Any = None) -> Gain:
        """Difference between `best` and the baseline, with its interval."""
        found = self._send("GET", self._path(f"/gain?{_query(context)}"))
        baseline = _estimate(found["baseline"])
        best = _estimate(found["best"])
        best = baseline if is_same_setting(best.params, baseline.params) else best
        return Gain(
            found["estimate"],
            _bound("lower", found["lower"]),
            _bound("upper", found["upper"]),
            best,
            baseline,
            found["goal"],
            found["level"],
            None if found["relative"] is None else (found["relative"][0], found["relative"][1]),
        )

    def done(self, within: float | str, confidence: float = 0.95, context: Any = None) -> bool:
        """Return True if no setting is likely to be better than `best` by more than ``within``."""
        asked = _query(context, within=within, confidence=confidence)
        return bool(self._send("GET", self._path(f"/done?{asked}"))["done"])

    def trials(self) -> list[dict[str, Any]]:
        """All trials, each with its ``id``, ``params``, ``value``, ``state`` and ``context``."""
        return list(self._send("GET", self._path("/trials"))["trials"])

    def _path(self, rest: str) -> str:
        return f"/studies/{quote(self.study, safe='')}{rest}"

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        sent = None if body is None else json.dumps(body, allow_nan=False).encode()
        status, text = self._exchanged(method, self._base + path, sent, headers)
        return _read(status, text)

    def _exchanged(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        """Status and body of the answer, on a connection of its own that is closed at once."""
        try:
            with closing(self._kind(*self._place, timeout=TIMEOUT_SECONDS)) as line:
                line.request(method, path, body, headers | {"Connection": "close"})
                answer = line.getresponse()
                return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise ServerError(f"{self.url} does not answer: {error}") from error


def _estimate(found: Mapping[str, Any]) -> RemoteEstimate:
    known = found.keys() & {its.name for its in fields(RemoteEstimate)}  # newer servers send more fields
    return RemoteEstimate(**{key: _bound(key, found[key]) for key in known})


def _bound(key: str, value: Any) -> Any:
    """Value of a field of an answer: JSON has no infinity, so null stands for it."""
    return value if value is not None else -math.inf if key == "lower" else math.inf


def _query(context: Any, **values: Any) -> str:
    return urlencode(values | ({} if context is None else {"context": json.dumps(context)}))


def _number(value: Any) -> Any:
    """Value as a float; an int stays, so that one too large for a float is refused like any other bad number."""
    return value if value is None or isinstance(value, int) else float(value)


def _reading(name: str, value: Any) -> float | None:
    return None if value is None else checked_reading(name, _number(value))


def _id(trial: Any) -> int:
    if not isinstance(trial, Trial):
        raise ValueError(f"trial must be one of this server, got {trial!r}: pass one of ask()")
    return trial.id


def _read(status: int, text: bytes) -> Any:
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
