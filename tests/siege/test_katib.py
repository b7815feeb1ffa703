"""Katib's own messages over a real gRPC channel."""

import pytest
from tests.conftest import needs

api = needs("kubeflow.katib.katib_api_pb2")
grpc = needs("grpc")
SuggestionStub = needs("kubeflow.katib.katib_api_pb2_grpc").SuggestionStub
katib = needs("noregret.integrations.katib")

SPACES = [
    ("rate", api.DOUBLE, {"min": "0.001", "max": "1", "distribution": api.LOG_UNIFORM}),
    ("drop", api.DOUBLE, {"min": "0.1", "max": "0.55", "step": "0.1"}),
    ("layers", api.INT, {"min": "1", "max": "8"}),
    ("width", api.INT, {"min": "16", "max": "100", "step": "16"}),
    ("batch", api.DISCRETE, {"list": ["128", "32", "64"]}),
    ("kind", api.CATEGORICAL, {"list": ["sgd", "adam", "ftrl"]}),
]
STATUS = api.TrialStatus


@pytest.fixture(scope="module")
def channel():
    server, port = katib.served("127.0.0.1:0")
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    server.stop(0).wait()


@pytest.fixture(scope="module")
def stub(channel):
    return SuggestionStub(channel)


def experiment(spaces=SPACES, goal=api.MINIMIZE, **settings):
    parameters = [
        api.ParameterSpec(name=name, parameter_type=kind, feasible_space=api.FeasibleSpace(**space))
        for name, kind, space in spaces
    ]
    chosen = [api.AlgorithmSetting(name=name, value=value) for name, value in settings.items()]
    return api.Experiment(
        name="e",
        spec=api.ExperimentSpec(
            parameter_specs=api.ExperimentSpec.ParameterSpecs(parameters=parameters),
            objective=api.ObjectiveSpec(type=goal, objective_metric_name="loss"),
            algorithm=api.AlgorithmSpec(algorithm_name="noregret", algorithm_settings=chosen),
        ),
    )


def trial(number, params, condition, value=None):
    assignments = [api.ParameterAssignment(name=name, value=text) for name, text in params.items()]
    metrics = [api.Metric(name="time", value="7")]
    metrics += [] if value is None else [api.Metric(name="loss", value=str(value))]
    return api.Trial(
        name=f"trial{number}",
        spec=api.TrialSpec(parameter_assignments=api.TrialSpec.ParameterAssignments(assignments=assignments)),
        status=STATUS(
            completion_time=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
            condition=condition,
            observation=api.Observation(metrics=metrics),
        ),
    )


def asked(stub, its_experiment, trials=(), count=1):
    request = api.GetSuggestionsRequest(experiment=its_experiment, trials=trials, current_request_number=count)
    reply = stub.GetSuggestions(request)
    return [{its.name: its.value for its in one.assignments} for one in reply.parameter_assignments]


def test_as_many_suggestions_as_are_asked_for_lie_in_the_space(stub):
    found = asked(stub, experiment(), count=30)
    assert len(found) == 30
    for params in found:
        assert list(params) == [name for name, *_ in SPACES]
        assert 0.001 <= float(params["rate"]) <= 1
        assert params["drop"] in {"0.1", "0.2", "0.3", "0.4", "0.5"}
        assert int(params["layers"]) in range(1, 9)
        assert int(params["width"]) in range(16, 97, 16)
        assert params["batch"] in {"128", "32", "64"}
        assert params["kind"] in {"sgd", "adam", "ftrl"}
    assert len({params["kind"] for params in found}) == len({params["batch"] for params in found}) == 3
    rates = sorted(float(params["rate"]) for params in found)
    assert rates[len(rates) // 2] < 0.2  # the middle of a log scale is 0.03


def test_nothing_is_kept_between_requests_and_the_seed_is_a_setting(stub):
    trials = [trial(i, params, STATUS.SUCCEEDED, i) for i, params in enumerate(asked(stub, experiment(), count=12))]
    again = [asked(stub, experiment(random_state=seed), trials, 3) for seed in ("1", "1", "2")]
    assert again[0] == again[1] != again[2]
    assert asked(stub, experiment(random_state="1"), reversed(trials), 3) == again[0]


@pytest.mark.slow
@pytest.mark.parametrize(("goal", "sign"), [(api.MINIMIZE, 1), (api.MAXIMIZE, -1)])
def test_an_experiment_finds_the_best(stub, goal, sign):
    spaces, trials = SPACES[:1] + SPACES[4:5], []
    for _ in range(8):
        for params in asked(stub, experiment(spaces, goal), trials, 4):
            loss = (float(params["rate"]) - 0.1) ** 2 + 0.3 * (params["batch"] != "64")
            trials.append(trial(len(trials), params, STATUS.SUCCEEDED, sign * loss))
    last = [{its.name: its.value for its in t.spec.parameter_assignments.assignments} for t in trials[-4:]]
    assert sum(params["batch"] == "64" and abs(float(params["rate"]) - 0.1) < 0.1 for params in last) >= 2


def test_failed_trials_are_not_suggested_again_and_those_under_way_count():
    spaces = [("k", api.CATEGORICAL, {"list": ["a", "b", "c", "d"]})]
    done = [trial(i, {"k": "abc"[i % 3]}, STATUS.SUCCEEDED, i % 3) for i in range(12)]
    for condition in (STATUS.FAILED, STATUS.METRICSUNAVAILABLE):
        failed = [trial(20 + i, {"k": "d"}, condition) for i in range(3)]
        request = {"experiment": experiment(spaces), "trials": done + failed, "current_request_number": 5}
        assert {"k": "d"} not in katib.suggestions(api.GetSuggestionsRequest(**request))
    (first,) = katib.suggestions(api.GetSuggestionsRequest(experiment=experiment(), current_request_number=1))
    for condition in (STATUS.CREATED, STATUS.RUNNING):
        under_way = [trial(0, first, condition)]
        request = {"experiment": experiment(), "trials": under_way, "current_request_number": 1}
        assert katib.suggestions(api.GetSuggestionsRequest(**request)) != [first]


@pytest.mark.parametrize("value", [None, "nan", "unavailable"])
def test_a_trial_without_a_number_has_failed(stub, value):
    params = asked(stub, experiment(), count=1)[0]
    assert asked(stub, experiment(), [trial(0, params, STATUS.SUCCEEDED, value)]) != [params]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (experiment(acq_func="EI"), "the only setting of noregret is random_state"),
        (experiment(random_state="-1"), "whole number"),
        (experiment(goal=api.UNKNOWN), "minimize or maximize"),
        (experiment([]), "at least one parameter"),
        (experiment([("x", api.DOUBLE, {"min": "2", "max": "1"})]), "parameter x"),
        (experiment([("x", api.DOUBLE, {"min": "low", "max": "1"})]), "parameter x: min, max and step must be numbers"),
        (experiment([("x", api.UNKNOWN_TYPE, {})]), "parameter x: must be int"),
        (experiment([("x", api.DISCRETE, {"list": ["big"]})]), "parameter x"),
    ],
)
def test_what_cannot_be_worked_on_is_refused_with_the_reason(stub, bad, said):
    for call, request in (
        (stub.ValidateAlgorithmSettings, api.ValidateAlgorithmSettingsRequest(experiment=bad)),
        (stub.GetSuggestions, api.GetSuggestionsRequest(experiment=bad, current_request_number=1)),
    ):
        with pytest.raises(grpc.RpcError) as error:
            call(request)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert said in error.value.details()


def test_a_good_experiment_is_valid_and_the_service_says_that_it_runs(stub, channel):
    stub.ValidateAlgorithmSettings(api.ValidateAlgorithmSettingsRequest(experiment=experiment()))
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"\n\x1amanager.v1beta1.Suggestion") == b"\x08\x01"
