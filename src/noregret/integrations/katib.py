"""Katib: noregret as a suggestion service of Kubeflow Katib, over its gRPC contract (extra ``katib``).

``python -m noregret.integrations.katib --port 6789`` serves. Katib sends the experiment and all its trials with every
request, so the service keeps no state: suggestions depend on the request alone.
"""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import grpc
from kubeflow.katib import katib_api_pb2 as api
from kubeflow.katib import katib_api_pb2_grpc as contract

from noregret.optimizer import Choice, Float, Goal, Int, Optimizer

LOG = logging.getLogger("noregret")
PORT = 6789
"""Port at which Katib expects a suggestion service."""
SEED = "random_state"
"""The only setting of the algorithm, by the name that Katib's own algorithms have for it."""
GOALS: dict[int, Goal] = {api.MINIMIZE: "minimize", api.MAXIMIZE: "maximize"}
LOG_SCALES = (api.LOG_UNIFORM, api.LOG_NORMAL)
UNDER_WAY = (api.TrialStatus.CREATED, api.TrialStatus.RUNNING)
MEASURED = (api.TrialStatus.SUCCEEDED, api.TrialStatus.EARLYSTOPPED)
FAILED = (api.TrialStatus.FAILED, api.TrialStatus.METRICSUNAVAILABLE)


@dataclass(frozen=True)
class ExperimentParameter:
    """A parameter of an experiment: as the Optimizer has it, and how its values are read and written as text."""

    parameter: Float | Int | Choice
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str


class SuggestionService(contract.SuggestionServicer):  # type: ignore[misc]
    """Suggestion service of Katib."""

    def GetSuggestions(self, request: Any, context: Any) -> Any:
        """Return the requested number of assignments, chosen from all trials of the experiment."""
        try:
            chosen = suggestions(request)
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        of_one = api.GetSuggestionsReply.ParameterAssignments
        return api.GetSuggestionsReply(
            parameter_assignments=[
                of_one(assignments=[api.ParameterAssignment(name=name, value=text) for name, text in params.items()])
                for params in chosen
            ]
        )

    def ValidateAlgorithmSettings(self, request: Any, context: Any) -> Any:
        """Refuse an experiment that cannot be worked on, with the reason."""
        try:
            _optimizer(request.experiment.spec, _columns(request.experiment.spec))
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return api.ValidateAlgorithmSettingsReply()


def suggestions(request: Any) -> list[dict[str, str]]:
    """Next suggestions: the text of each parameter's value by name."""
    columns = _columns(request.experiment.spec)
    optimizer = _optimizer(request.experiment.spec, columns)
    for trial in sorted(request.trials, key=lambda trial: (trial.status.completion_time, trial.name)):
        _take_in(optimizer, columns, trial, request.experiment.spec.objective.objective_metric_name)
    asked = optimizer.ask(request.current_request_number)
    return [{name: columns[name].write(value) for name, value in trial.params.items()} for trial in asked]


def _optimizer(spec: Any, columns: dict[str, ExperimentParameter]) -> Optimizer:
    """Optimizer for an experiment, without observations."""
    if spec.objective.type not in GOALS:
        raise ValueError("the type of the objective must be minimize or maximize")
    settings = {setting.name: setting.value for setting in spec.algorithm.algorithm_settings}
    seed = settings.pop(SEED, "0")
    if settings:
        raise ValueError(f"the only setting of noregret is {SEED}, got {next(iter(settings))}: leave it out")
    if not seed.isdecimal():
        raise ValueError(f"{SEED} must be a whole number from 0, got {seed!r}")
    space = {name: column.parameter for name, column in columns.items()}
    return Optimizer(space, goal=GOALS[spec.objective.type], rng=int(seed))


def _take_in(optimizer: Optimizer, columns: dict[str, ExperimentParameter], trial: Any, metric: str) -> None:
    """Tell an optimizer the outcome of a trial, or that it is pending."""
    texts = {assignment.name: assignment.value for assignment in trial.spec.parameter_assignments.assignments}
    params = {name: column.read(texts[name]) for name, column in columns.items()}
    if trial.status.condition in UNDER_WAY:
        optimizer.expect(params)
    elif trial.status.condition in FAILED:
        optimizer.fail(params)
    elif trial.status.condition in MEASURED:
        value = _value(trial.status.observation, metric)
        optimizer.tell(params, value) if math.isfinite(value) else optimizer.fail(params)


def _value(observation: Any, metric: str) -> float:
    """The value of a metric, nan if there is none."""
    text = next((reported.value for reported in observation.metrics if reported.name == metric), "nan")
    try:
        return float(text)
    except ValueError:
        return math.nan


def _columns(spec: Any) -> dict[str, ExperimentParameter]:
    """The parameters of an experiment by name."""
    columns = {}
    for parameter in spec.parameter_specs.parameters:
        try:
            columns[parameter.name] = _column(parameter.parameter_type, parameter.feasible_space)
        except (ValueError, InvalidOperation) as error:
            said = str(error) if isinstance(error, ValueError) else "min, max and step must be numbers"
            raise ValueError(f"parameter {parameter.name}: {said}") from None
    return columns


def _column(kind: int, space: Any) -> ExperimentParameter:
    if kind == api.CATEGORICAL:
        return ExperimentParameter(Choice(list(space.list)), str)
    if kind == api.DISCRETE:
        # an Int of places: neighbours are alike, and suggestions are written as given
        texts = sorted(space.list, key=float)
        places = {float(text): place for place, text in enumerate(texts)}
        return ExperimentParameter(Int(0, len(texts) - 1), lambda text: places[float(text)], lambda place: texts[place])
    if kind not in (api.INT, api.DOUBLE):
        raise ValueError("must be int, double, discrete or categorical")
    low, high, is_log = Decimal(space.min), Decimal(space.max), space.distribution in LOG_SCALES
    step = Decimal(space.step) if space.step else None
    if step is not None and step > 0:
        high = low + (high - low) // step * step  # Katib leaves out values beyond the last step
    if kind == api.INT:
        whole = None if step in (None, 1) else int(step)
        return ExperimentParameter(Int(int(low), int(high), log=is_log, step=whole), int)
    return ExperimentParameter(
        Float(float(low), float(high), log=is_log, step=None if step is None else float(step)), float, repr
    )


class _Health(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Health check of Kubernetes, by grpc.health.v1."""

    def service(self, details: Any) -> Any:
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x08\x01")  # status: SERVING


def served(address: str) -> tuple[Any, int]:
    """A server at ``host:port`` that has been started, and its port, which the system chooses for port 0."""
    server = grpc.server(ThreadPoolExecutor(4))
    contract.add_SuggestionServicer_to_server(SuggestionService(), server)
    server.add_generic_rpc_handlers((_Health(),))
    port = server.add_insecure_port(address)
    server.start()
    return server, port


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m noregret.integrations.katib", description=__doc__)
    parser.add_argument("--host", default="0.0.0.0", help="the address to listen on (default: every one of this pod)")
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 for any free one")
    options = parser.parse_args(arguments)
    server, port = served(f"{options.host}:{options.port}")
    print(f"suggestions for Katib at {options.host}:{port}  (end with Ctrl-C)", flush=True)
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(1).wait()


if __name__ == "__main__":
    main()
