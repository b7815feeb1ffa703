"""Trackers: the trials of a study in MLflow, TensorBoard or Weights & Biases.

``mlflow()``, ``tensorboard()`` and ``wandb()`` return a `Tracker`, which is a callback of `minimize` and `maximize`.
Study files name them in ``[track]``. Another place is a class with the three methods of `Writer`.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Thread
from time import time
from typing import Any, Literal, Protocol, Self

from noregret.extra import extra, version
from noregret.optimizer import VALUE, CandidateTable, Estimate, Measures, Optimizer, ParameterSpace, Trial

LOG = logging.getLogger("noregret")
FINISH_SECONDS = 60.0
"""Longest time that the end of a study waits for a tracker."""
NAME = "noregret"
"""Name of the MLflow experiment or W&B project, and of a run, unless another one is given."""
TEXT, BATCH = 500, 100
"""Longest text of a param of MLflow, in characters, and most params in one of its requests; servers refuse more."""


Facts = Mapping[str, Any]
"""Params, or other things that are known, by name."""
Numbers = Mapping[str, float]


class Writer(Protocol):
    """A place that trials are written to. Its methods are called in a thread of their own, one after another."""

    def start(self, name: str, study: Facts) -> None:
        """Begin a run. ``study`` describes what is tuned: goal, parameters, baseline."""

    def trial(self, number: int, params: Facts, values: Numbers, best: Numbers) -> None:
        """Write a trial.

        Parameters
        ----------
        number : int
        params : mapping
            Also ``failure`` (the reason), ``bound.NAME`` and ``context.NAME``, where they are text.
        values : mapping
            ``value``, or ``value/NAME`` of each of several objectives, ``constraint/NAME``, ``cost``, ``measure/NAME``
            of tracked numbers, ``noise/NAME``, ``seconds``, ``context/NAME`` and ``fidelity/NAME``; of a failure what
            there is, without a value.
        best : mapping
            ``best/estimate``, ``best/lower`` and ``best/upper`` of the setting that is recommended now, if known.
        """

    def finish(self, params: Facts, best: Numbers, has_failed: bool) -> None:
        """Write the recommended setting, if there is one, and end the run."""


KINDS = {"objective": "value", "constraint": "constraint", "cost": "cost", "tracked": "measure"}
"""Beginning of the name of a number of a trial, by its role."""


class Tracker:
    """Callback of `minimize` and `maximize` that writes each trial to a tracking service.

    It writes in a thread of its own, and never stops or slows a study: after the first error it logs one warning
    and writes nothing more. A call of `minimize` is a run. In a loop of your own, call it after each ``tell`` and use
    ``with``, which ends the run.

    Parameters
    ----------
    service : str
        Name of the service, for the warning.
    writer : callable
        Returns the `Writer` of a new run.
    name : str
        Name of the runs.

    Examples
    --------
    >>> from noregret import Float, minimize
    >>> class Printer:
    ...     def start(self, name, study):
    ...         print(name, study["goal"], study["space.x"])
    ...     def trial(self, number, params, values, best):
    ...         print(number, params, values["value"])
    ...     def finish(self, params, best, has_failed):
    ...         print("best", params)
    >>> tracker = Tracker("paper", Printer)
    >>> result = minimize(lambda x: x, {"x": Float(0, 1, step=0.5)}, evaluations=2, rng=0, callbacks=[tracker])
    noregret minimize Float(low=0, high=1, log=False, step=0.5)
    0 {'x': 0.5} 0.5
    1 {'x': 0.0} 0.0
    best {'x': 0.0}
    """

    def __init__(self, service: str, writer: Callable[[], Writer], name: str = NAME) -> None:
        self._service, self._writer, self._name = service, writer, name
        self._jobs: SimpleQueue[tuple[str, tuple[Any, ...]]] | None = None
        """Calls of the writer that are not made yet, None between two runs."""
        self._ended = Event()
        """Set when the thread of the run has ended: after the last call, or the first error."""
        self._last: tuple[Optimizer, Any] | None = None
        """Optimizer and context of the last trial."""

    def __call__(self, optimizer: Optimizer, trial: Trial, value: Any = None) -> None:
        """Write a trial whose outcome the optimizer knows."""
        if self._jobs is None:
            self.start(self._name, described(optimizer))
        if not self._ended.is_set():
            self._last = optimizer, trial.context
            known = (own for own in optimizer.trials if own.number == trial.number)
            told = trial if trial.is_finished else next(known, None)
            if told is None:
                readings = {} if value is None else optimizer.measures.readings(value)
                told = replace(trial, state="done" if readings else "failed", readings=readings)
            self.log(told, optimizer.measures, recommended(optimizer, trial.context))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *more: object) -> None:
        self.finish(recommended(*self._last) if self._last else None, error is not None)

    def start(self, name: str, study: Facts) -> None:
        """Begin a run with a description of the study."""
        self._jobs, self._ended = SimpleQueue(), Event()
        Thread(target=self._work, args=(self._writer, self._jobs, self._ended), daemon=True).start()
        self._jobs.put(("start", (name, study)))

    def log(self, trial: Trial, measures: Measures, best: Estimate | None) -> None:
        """Write a trial, with the recommendation at that time; see `Writer.trial`."""
        if self._jobs is not None and not self._ended.is_set():
            values = _finite(measured(trial, measures))
            self._jobs.put(("trial", (trial.number, _named(trial.params) | _facts(trial), values, _numbers(best))))

    def finish(self, best: Estimate | None, has_failed: bool = False) -> None:
        """End the run, if there is one, with the recommendation; wait until it is written, a minute at most."""
        jobs, self._jobs, self._last = self._jobs, None, None
        if jobs is None:
            return
        jobs.put(("finish", ({} if best is None else _named(best.params), _numbers(best), has_failed)))
        if not self._ended.wait(FINISH_SECONDS):
            LOG.warning("%s has not taken all trials yet: they are lost if the program ends now", self._service)

    def _work(self, writer: Callable[[], Writer], jobs: SimpleQueue[Any], ended: Event) -> None:
        """Make the calls of one run, in a thread of their own, until one fails."""
        try:
            run, name = writer(), ""
            while name != "finish":
                name, args = jobs.get()
                getattr(run, name)(*args)
        except Exception as error:
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            LOG.warning("%s gets no further trials, and the study continues without it: %s", self._service, said)
        finally:
            ended.set()


def described(optimizer: Optimizer) -> dict[str, Any]:
    """Goal, parameters, baseline and constraints of an optimizer, as text by name."""
    space, bounds = optimizer.space, optimizer.constraints.items()
    goals = {f"goal.{name}": goal for name, goal in (optimizer.goals or {}).items()} or {"goal": optimizer.goal}
    if isinstance(space, ParameterSpace):
        parameters = {f"space.{name}": repr(parameter) for name, parameter in space.parameters.items()}
    else:
        assert isinstance(space, CandidateTable)
        parameters = {"space": f"{len(space.rows)} candidates"}
    baseline = {} if optimizer.baseline is None else _named(optimizer.baseline)
    return {
        **goals,
        **parameters,
        **{f"baseline.{name}": value for name, value in baseline.items()},
        **{f"constraint.{name}": f"{measure.operator} {measure.bound:g}" for name, measure in bounds},
        "noregret": version(),
    }


def recommended(optimizer: Optimizer, context: Any = None) -> Estimate | None:
    """The recommended setting; None before the first value, and with several objectives."""
    is_known = any(map(optimizer.measures.has_value, optimizer.trials))
    return None if optimizer.goals or not is_known else optimizer.best(context)


def _finite(numbers: Mapping[str, float | None]) -> dict[str, float]:
    """The numbers that are known and finite."""
    return {name: float(number) for name, number in numbers.items() if number is not None and math.isfinite(number)}


def measured(trial: Trial, measures: Measures) -> dict[str, float | None]:
    """Numbers of a trial by name, for `Writer.trial`."""
    numbers: dict[str, Any] = {}
    for name in trial.readings:
        measure, reading = measures.get(name), trial.reading(name)
        role = "tracked" if measure is None else measure.role
        shown = f"{KINDS[role]}/{measure.name if measure else name}"
        is_plain = role == "cost" or (name == VALUE and measures.is_single)
        numbers[KINDS[role] if is_plain else shown] = reading and reading.value
        numbers[f"noise/{name}"] = reading and reading.noise
    numbers |= {f"context/{name}": given for name, given in (trial.context or {}).items()}
    numbers |= {f"fidelity/{name}": given for name, given in (trial.fidelity or {}).items()}
    numbers["seconds"] = trial.seconds
    return {n: value for n, value in numbers.items() if isinstance(value, int | float) and not isinstance(value, bool)}


def _facts(trial: Trial) -> dict[str, str]:
    """Facts about a trial that are text: why it failed, in which direction its numbers are bounds, its context."""
    read = {name: trial.reading(name) for name in trial.readings}
    bounds = {f"bound.{name}": reading.bound for name, reading in read.items() if reading is not None and reading.bound}
    context = {f"context.{name}": given for name, given in (trial.context or {}).items() if isinstance(given, str)}
    block = {f"block.{name}": str(level) for name, level in (trial.block or {}).items()}
    return {**bounds, **context, **block, **({"failure": trial.failure} if trial.failure else {})}


def has_value(values: Mapping[str, float]) -> bool:
    """Return True if the numbers of a trial have a value: it did not fail."""
    return any(name == VALUE or name.startswith(f"{VALUE}/") for name in values)


def _named(params: Any) -> dict[str, Any]:
    """Params by name; those of a row of numbers are named by their places."""
    items = params.items() if isinstance(params, Mapping) else enumerate(params)
    return {str(name): value for name, value in items}


def _numbers(best: Estimate | None) -> dict[str, float]:
    return _finite({f"best/{name}": getattr(best, name) for name in ("estimate", "lower", "upper")}) if best else {}


def mlflow(uri: str | None = None, experiment: str = NAME, name: str = NAME) -> Tracker:
    """Tracker for MLflow: a run for the study, with a nested run for each trial (extra ``mlflow``).

    Parameters
    ----------
    uri : str, optional
        Server, database or folder, such as "http://localhost:5000" or "sqlite:///mlflow.db". By default as MLflow
        chooses it, by ``MLFLOW_TRACKING_URI``.
    experiment, name : str
        Names of the experiment, which is created if it does not exist, and of the run.
    """
    package = extra("mlflow", "mlflow")
    return Tracker("MLflow", lambda: _MLflow(package, uri, experiment), name)


class _MLflow:
    """Writer for MLflow, by its client, which leaves an active run of the caller alone."""

    def __init__(self, package: Any, uri: str | None, experiment: str) -> None:
        self._entities, self._client = package.entities, package.MlflowClient(tracking_uri=uri)
        known = self._client.get_experiment_by_name(experiment)
        self._experiment = known.experiment_id if known else self._client.create_experiment(experiment)

    def start(self, name: str, study: Facts) -> None:
        self._run = self._begin(name)
        self._write(self._run, study, {}, 0)

    def trial(self, number: int, params: Facts, values: Numbers, best: Numbers) -> None:
        nested = self._begin(f"trial {number}", {"mlflow.parentRunId": self._run})
        self._write(nested, params, values, number)
        self._client.set_terminated(nested, "FINISHED" if has_value(values) else "FAILED")
        self._write(self._run, {}, {**values, **best}, number)

    def finish(self, params: Facts, best: Numbers, has_failed: bool) -> None:
        numbers = {f"recommended/{name.partition('/')[2]}": number for name, number in best.items()}
        self._write(self._run, {f"recommended.{name}": value for name, value in params.items()}, numbers, 0)
        self._client.set_terminated(self._run, "FAILED" if has_failed else "FINISHED")

    def _begin(self, name: str, tags: Mapping[str, str] | None = None) -> str:
        """Begin a run and return its id."""
        made = self._client.create_run(self._experiment, tags={"mlflow.runName": name, **(tags or {})})
        return str(made.info.run_id)

    def _write(self, run: str, params: Mapping[str, Any], numbers: Mapping[str, float], step: int) -> None:
        now = int(1000 * time())
        metrics = [self._entities.Metric(_allowed(name), number, now, step) for name, number in numbers.items()]
        texts = [self._entities.Param(_allowed(name), str(value)[:TEXT]) for name, value in params.items()]
        for first in range(0, max(len(texts), len(metrics)), BATCH):
            batch = slice(first, first + BATCH)
            self._client.log_batch(run, metrics=metrics[batch], params=texts[batch])


def _allowed(name: str) -> str:
    """Name with an underscore for each character that MLflow does not allow."""
    return re.sub(r"[^\w\-. /]", "_", name)


def tensorboard(folder: str | os.PathLike[str], name: str = NAME) -> Tracker:
    """Tracker for TensorBoard: scalars by trial, and the table of the HPARAMS tab (extra ``tensorboard``).

    Parameters
    ----------
    folder : path
        Folder of the event files; those of each trial are in a folder inside it.
    name : str
        Title of the study in the TEXT tab.
    """
    package = extra("tensorboardX", "tensorboard")
    return Tracker("TensorBoard", lambda: _TensorBoard(package, os.fspath(folder)), name)


class _TensorBoard:
    """Writer of event files."""

    def __init__(self, package: Any, folder: str) -> None:
        self._events = package.SummaryWriter(folder)

    def start(self, name: str, study: Facts) -> None:
        self._events.add_text(name, _markdown(study), 0)

    def trial(self, number: int, params: Facts, values: Numbers, best: Numbers) -> None:
        for tag, value in {**values, **best}.items():
            self._events.add_scalar(tag, value, number)
        shown = {name: given if isinstance(given, bool | int | float) else str(given) for name, given in params.items()}
        for name, param in shown.items():
            if not isinstance(param, str):
                self._events.add_scalar(f"params/{name}", param, number)
        self._events.add_hparams(shown, dict(values), f"trial_{number}", number)
        self._events.flush()

    def finish(self, params: Facts, best: Numbers, has_failed: bool) -> None:
        if params:
            self._events.add_text("recommended", _markdown({**params, **best}), 0)
        self._events.close()


def _markdown(table: Mapping[str, Any]) -> str:
    return "\n".join(["| name | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in table.items())])


def wandb(
    project: str = NAME,
    mode: Literal["offline", "online", "disabled"] | None = None,
    folder: str | os.PathLike[str] | None = None,
    name: str = NAME,
) -> Tracker:
    """Tracker for Weights & Biases: one run, with a row of its history for each trial (extra ``wandb``).

    Parameters
    ----------
    project : str
    mode : "offline", "online" or "disabled", optional
        "offline" keeps the run in a folder, which ``wandb sync`` uploads. By default as ``WANDB_MODE`` says, else
        "offline".
    folder : path, optional
        Folder in which W&B makes its folder ``wandb``; the present one by default.
    name : str
        Name of the run.
    """
    package = extra("wandb", "wandb")
    chosen = mode or os.environ.get("WANDB_MODE") or "offline"
    place = None if folder is None else os.fspath(folder)
    return Tracker("Weights & Biases", lambda: _Wandb(package, project, chosen, place), name)


class _Wandb:
    """Writer of one run of W&B, beside an active run of the caller."""

    def __init__(self, package: Any, project: str, mode: str, folder: str | None) -> None:
        settings = package.Settings(console="off", silent=True)
        self._begin: Callable[..., Any] = lambda **more: package.init(
            project=project, mode=mode, dir=folder, reinit="create_new", settings=settings, **more
        )

    def start(self, name: str, study: Facts) -> None:
        self._run = self._begin(name=name, config=dict(study))
        self._run.define_metric("*", step_metric="trial")

    def trial(self, number: int, params: Facts, values: Numbers, best: Numbers) -> None:
        named = {f"params/{name}": value for name, value in params.items()}
        self._run.log({"trial": number, "failed": not has_value(values), **named, **values, **best})

    def finish(self, params: Facts, best: Numbers, has_failed: bool) -> None:
        self._run.summary.update({f"recommended/{name}": value for name, value in params.items()} | dict(best))
        self._run.finish(exit_code=int(has_failed))
