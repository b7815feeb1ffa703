"""Trackers, with their packages: what is written can be read back, and no error of theirs reaches the study."""

import json
import logging
import threading
import time
from pathlib import Path

import pytest
from tests.conftest import needs

from noregret import Float, Int, Optimizer, Trial, minimize
from noregret.cli import main
from noregret.integrations import trackers
from noregret.integrations.trackers import Tracker
from noregret.optimizer import Measures, Reading
from noregret.studies.study.reading import load
from noregret.studies.study.study import StudyError

# their packages warn of deprecations in each other
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

SPACE = {"x": Float(0, 1), "n": Int(1, 4)}
COUNT = 8
STUDY = """\
command = ["sh", "-c", 'test {size} != 3 && echo $(({size} * {size}))', "{size}"]
[budget]
evaluations = 6
[parameters.size]
type = "int"
low = 2
high = 4
[track]
"""


def f(x, n):
    if n == 4:
        raise ValueError("too large")
    return (x - 0.5) ** 2 + n


class Notes:
    """Writer that keeps its calls."""

    def __init__(self, broken=""):
        self.calls, self.broken, self.threads = [], broken, set()

    def __getattr__(self, name):
        def called(*args):
            self.threads.add(threading.current_thread())
            if name == self.broken:
                raise ConnectionError("the network is down\nand more")
            self.calls.append((name, *args))

        return called

    def of(self, name):
        return [args for its, *args in self.calls if its == name]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """The first run of MLflow creates a database, which takes long on a busy machine."""
    monkeypatch.setattr(trackers, "FINISH_SECONDS", 600.0)


@pytest.fixture
def notes():
    return Notes()


def tuned(tracker, evaluations=COUNT, **options):
    return minimize(f, SPACE, evaluations=evaluations, rng=0, callbacks=[tracker], **options)


def test_a_call_is_a_run_with_all_trials_and_the_recommendation(notes):
    tracker = Tracker("notes", lambda: notes, "mine")
    result = tuned(tracker, baseline={"x": 0.25, "n": 2})
    (name, study), *more = notes.of("start")
    assert (name, more, study["goal"], study["baseline.n"]) == ("mine", [], "minimize", 2)
    trials = notes.of("trial")
    assert [number for number, *_ in trials] == list(range(COUNT))
    for answer, (_, params, values, _) in zip(result.optimizer.answers, trials, strict=True):
        assert {name: params[name] for name in SPACE} == answer.params
        assert values.pop("seconds") >= 0
        assert values == ({} if answer.value is None else {"value": answer.value})
        assert params.get("failure") == ("ValueError: too large" if answer.value is None else None)
    assert any(not values for *_, values, _ in trials)
    last = trials[-1][3]
    assert last == {f"best/{name}": getattr(result.best, name) for name in ("estimate", "lower", "upper")}
    assert notes.of("finish") == [[result.params, last, False]]
    assert threading.main_thread() not in notes.threads
    tuned(tracker, 2)
    assert len(notes.of("start")) == len(notes.of("finish")) == 2


def test_trials_are_the_same_with_and_without_a_tracker(notes):
    answers = [tuned(its).optimizer.answers for its in (Tracker("notes", lambda: notes), lambda *_: None)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("broken", ["start", "trial", "finish"])
def test_a_tracker_that_fails_warns_once_and_the_study_goes_on(broken, caplog):
    with caplog.at_level(logging.ERROR):
        expected = tuned(lambda *_: None)
    caplog.clear()
    notes = Notes(broken)
    result = tuned(Tracker("Notes", lambda: notes))
    assert result.params == expected.params
    said = [record.getMessage() for record in caplog.records if "Notes" in record.getMessage()]
    why = "ConnectionError: the network is down"
    assert said == [f"Notes gets no further trials, and the study continues without it: {why}"]


def test_a_service_that_hangs_does_not_hold_up_the_study(caplog, monkeypatch):
    monkeypatch.setattr(trackers, "FINISH_SECONDS", 0.05)
    go_on = threading.Event()

    class Hanging(Notes):
        def start(self, *args):
            go_on.wait(60)

    result = tuned(Tracker("Hanging", Hanging))
    assert len(result.optimizer.answers) == COUNT
    assert "Hanging has not taken all trials yet" in caplog.text
    go_on.set()


def test_a_call_that_raises_ends_the_run_as_failed(notes):
    with pytest.raises(ZeroDivisionError):
        minimize(lambda x: 1 / 0, {"x": Float(0, 1)}, evaluations=9, callbacks=[Tracker("notes", lambda: notes)])
    assert len(notes.of("trial")) == 3  # the third ends the call
    assert notes.of("finish") == [[{}, {}, True]]


def test_a_loop_of_ones_own_with_objectives_and_constraints(notes):
    several = Optimizer({"x": Float(0, 1)}, goals={"a": "minimize", "b": "maximize"}, rng=0)
    bounded = Optimizer([[1.0], [2.0]], constraints={"memory": ("<=", 5)}, rng=0)
    with Tracker("notes", lambda: notes) as tracker:
        trial = several.ask()
        several.tell(trial, {"a": 1.0, "b": 2.0})
        tracker(several, trial, 1.0)
    with tracker:
        trial = bounded.ask()
        bounded.tell(trial, 3.0, constraints={"memory": 4})
        tracker(bounded, trial, 3.0)
    (first, second), (one, other) = notes.of("trial"), notes.of("start")
    assert all(its[2].pop("seconds") >= 0 for its in (first, second))
    assert (first[2], first[3]) == ({"value/a": 1.0, "value/b": 2.0}, {})
    assert second[1].keys() == {"0"}
    assert (second[2], second[3]) == ({"value": 3.0, "constraint/memory": 4.0}, {"best/estimate": 3.0})
    assert (one[1]["goal.b"], other[1]["space"], other[1]["constraint.memory"]) == ("maximize", "2 candidates", "<= 5")


def test_a_package_that_is_missing_is_named_before_anything_runs(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[wandb\]'"):
        trackers.wandb()


def test_mlflow_has_a_run_of_the_study_and_one_of_each_trial(tmp_path):
    package = needs("mlflow")
    is_old = package.__version__.startswith("2.")  # later versions refuse folders, and 2 needs an older SQLAlchemy
    uri = (tmp_path / "runs").as_uri() if is_old else f"sqlite:///{tmp_path}/mlflow.db"
    result = tuned(trackers.mlflow(uri, "tests"))
    client = package.MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("tests").experiment_id])
    nested = {its.data.tags["mlflow.runName"]: its for its in runs if "mlflow.parentRunId" in its.data.tags}
    (study,) = (its for its in runs if "mlflow.parentRunId" not in its.data.tags)
    assert len(nested) == COUNT
    for number, answer in enumerate(result.optimizer.answers):
        run = nested[f"trial {number}"]
        failure = {} if answer.value is not None else {"failure": "ValueError: too large"}
        assert run.data.params == {name: str(value) for name, value in answer.params.items()} | failure
        assert run.info.status == ("FAILED" if answer.value is None else "FINISHED")
        assert run.data.metrics.get("value") == answer.value
        assert run.data.tags["mlflow.parentRunId"] == study.info.run_id
    assert study.info.status == "FINISHED"
    assert study.data.params["recommended.n"] == str(result.params["n"])
    assert study.data.metrics["recommended/upper"] == pytest.approx(result.best.upper)
    steps = [its.step for its in client.get_metric_history(study.info.run_id, "value")]
    assert steps == [number for number, its in enumerate(result.optimizer.answers) if its.value is not None]


def test_mlflow_takes_many_parameters_with_odd_names(tmp_path):
    package = needs("mlflow")
    is_old = package.__version__.startswith("2.")
    uri = (tmp_path / "runs").as_uri() if is_old else f"sqlite:///{tmp_path}/mlflow.db"
    params = {f"a({number})": "x" * 1000 for number in range(150)}
    tracker = trackers.mlflow(uri)
    tracker.start("many", {})
    trial = Trial(0, params, state="done", readings={"value": (Reading(1.0),)})
    tracker.log(trial, Measures({"value": "minimize"}), None)
    tracker.finish(None)
    client = package.MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("noregret").experiment_id])
    assert max(len(its.data.params) for its in runs) == 150


def test_a_server_of_mlflow_that_is_away(caplog, monkeypatch):
    needs("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    result = tuned(trackers.mlflow("http://127.0.0.1:9"), 3)
    assert len(result.optimizer.answers) == 3
    assert caplog.text.count("MLflow gets no further trials") == 1


def test_tensorboard_has_scalars_by_trial(tmp_path):
    needs("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    result = tuned(trackers.tensorboard(tmp_path))
    (file,) = tmp_path.glob("events.*")
    found = {}
    content = file.read_bytes()
    while content:  # records: 8 bytes of length, 4 of its checksum, the record, 4 of its checksum
        length = int.from_bytes(content[:8], "little")
        event = Event()
        event.ParseFromString(content[12 : 12 + length])
        content = content[16 + length :]
        for its in event.summary.value:
            found.setdefault(its.tag, {})[event.step] = its.simple_value
    values = {number: its.value for number, its in enumerate(result.optimizer.answers) if its.value is not None}
    assert found["value"] == pytest.approx(values)
    assert found["best/lower"][COUNT - 1] == pytest.approx(result.best.lower)
    assert found["params/n"] == {number: its.params["n"] for number, its in enumerate(result.optimizer.answers)}
    assert "recommended/text_summary" in found
    assert {its.name for its in tmp_path.iterdir() if its.is_dir()} == {f"trial_{number}" for number in range(COUNT)}


def test_wandb_keeps_a_run_offline(tmp_path, monkeypatch):
    package = needs("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    result = tuned(trackers.wandb("tests", folder=tmp_path), 3)
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    (file,) = folder.glob("*.wandb")
    for _ in range(300):  # its own process writes the file, a moment after the run has ended
        rows, summary = wandb_content(package, file)
        if len(rows) == 3 and summary:
            break
        time.sleep(0.1)
    assert [row["trial"] for row in rows] == [0, 1, 2]
    assert [row.get("value") for row in rows] == [its.value for its in result.optimizer.answers]
    assert rows[-1]["params/n"] == result.optimizer.answers[-1].params["n"]
    assert summary["recommended/x"] == result.params["x"]


def wandb_content(package, file):
    """History and last summary of a file of W&B."""
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    store, rows, summary = DataStore(), [], {}
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        record = Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            rows.append({its.key or "/".join(its.nested_key): json.loads(its.value_json) for its in items})
        if record.WhichOneof("record_type") == "summary":
            items = record.summary.update
            summary |= {its.key or "/".join(its.nested_key): json.loads(its.value_json) for its in items}
    return rows, summary


@pytest.mark.parametrize("workers", ["1", "2"])
def test_tune_writes_to_the_trackers_of_the_study(tmp_path, workers, monkeypatch, notes):
    monkeypatch.setattr(trackers, "tensorboard", lambda folder: Tracker(str(folder), lambda: notes))
    path = tmp_path / "study.toml"
    path.write_text(STUDY + 'tensorboard = "events"\n')
    assert load(path).track == {"tensorboard": "events"}
    for _ in range(2):  # the second call finds nothing to do
        assert main(["tune", "--workers", workers, str(path)]) == 0
    ((name, study),) = notes.of("start")
    assert (name, study["evaluations"], study["space.size"]) == ("study", 6, "Int(low=2, high=4, log=False)")
    trials = notes.of("trial")
    assert sorted(number for number, *_ in trials) == list(range(6))
    for _, params, values, _ in trials:
        assert values.pop("seconds") > 0
        assert values == ({} if params["size"] == 3 else {"value": params["size"] ** 2})
        assert params.get("failure") == ("exit code 1" if params["size"] == 3 else None)
    ((params, best, has_failed),) = notes.of("finish")
    assert (params, has_failed) == ({"size": 2}, False)
    assert best["best/estimate"] == pytest.approx(4, rel=0.05)  # two workers: trials arrive in any order


def test_tune_goes_on_without_a_tracker_that_fails(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(trackers, "wandb", lambda project, folder: Tracker(project, lambda: Notes("start")))
    path = tmp_path / "study.toml"
    path.write_text(STUDY + 'wandb = "mine"\n')
    assert main(["tune", str(path)]) == 0
    assert caplog.text.count("mine gets no further trials") == 1


def test_places_of_a_study_are_beside_its_file(tmp_path, monkeypatch):
    from noregret.studies.running import trackers_of

    given = {}
    monkeypatch.setattr(trackers, "mlflow", lambda uri: given.setdefault("mlflow", uri))
    monkeypatch.setattr(trackers, "tensorboard", lambda folder: given.setdefault("tensorboard", folder))
    monkeypatch.setattr(trackers, "wandb", lambda project, folder: given.setdefault("wandb", (project, folder)))
    path = tmp_path / "study.toml"
    path.write_text(STUDY + 'mlflow = "sqlite:///runs.db"\ntensorboard = true\nwandb = true\n')
    trackers_of(load(path))
    folder = Path(path).resolve().parent
    assert given == {
        "mlflow": f"sqlite:///{folder}/runs.db",
        "tensorboard": folder / "tensorboard",
        "wandb": ("noregret", folder),
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mlflow = 3", "[track] mlflow: must be text that says where, or true for the default, got 3"),
        ("wandb = false", "[track] wandb: must be text that says where, or true for the default, got False"),
        ("mlfow = true", "[track] mlfow: unknown key: did you mean 'mlflow'?"),
    ],
)
def test_what_is_wrong_in_track_is_said(tmp_path, line, said):
    path = tmp_path / "study.toml"
    path.write_text(STUDY + line)
    with pytest.raises(StudyError) as refused:
        load(path)
    assert str(refused.value).endswith(said)


def test_a_trial_that_the_optimizer_does_not_know_is_written(notes):
    optimizer = Optimizer({"x": Float(0, 1)}, rng=0)
    with Tracker("notes", lambda: notes) as tracker:
        tracker(optimizer, Trial(7, {"x": 0.5}), 2.0)
    assert notes.of("trial") == [[7, {"x": 0.5}, {"value": 2.0}, {}]]
