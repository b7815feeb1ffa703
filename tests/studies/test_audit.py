"""`noregret audit`: every format, the statements, and bad input."""

import csv
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import optuna
import pytest

from noregret.cli import main
from noregret.studies.audit import MOST_RUNS, audited
from noregret.studies.study.study import StudyError

optuna.logging.set_verbosity(optuna.logging.WARNING)
RNG = np.random.default_rng(5)
SETTINGS = [{"lr": float(10 ** RNG.uniform(-4, 0)), "width": int(RNG.integers(1, 64)), "kind": k} for k in "ab" * 15]
NOISE = RNG.standard_normal(len(SETTINGS))


def truth(params):
    return 1 + 3 * (math.log10(params["lr"]) + 2) ** 2 + 0.3 * (params["kind"] == "b")


VALUES = [float(truth(its) + 0.2 * noise) for its, noise in zip(SETTINGS, NOISE, strict=True)]
LUCKIEST = int(np.argmin(VALUES))


def written(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def optuna_study(count=None, storage=None, **options):
    study = optuna.create_study(study_name="mine", storage=storage, sampler=optuna.samplers.RandomSampler(), **options)
    forms = {
        "lr": optuna.distributions.FloatDistribution(1e-4, 1, log=True),
        "width": optuna.distributions.IntDistribution(1, 64),
        "kind": optuna.distributions.CategoricalDistribution(["a", "b"]),
    }
    values = [[each] * len(study.directions) for each in VALUES[:count]]
    for params, value in zip(SETTINGS, values, strict=False):
        study.add_trial(optuna.trial.create_trial(params=params, distributions=forms, values=value))
    return study


def mlflow(folder):
    header = ["", "run_id", "status", "start_time", "metrics.val_loss", "metrics.train_loss"]
    header += ["params.lr", "params.width", "params.kind", "tags.mlflow.user"]
    rows = [
        [n, f"{n:032x}", "FINISHED", "2026-01-02 03:04:05.006+00:00", value, 0.5, *its.values(), "root"]
        for n, (its, value) in enumerate(zip(SETTINGS, VALUES, strict=True))
    ]
    rows.append([30, "f" * 32, "FAILED", "2026-01-02 03:04:05.006+00:00", "", "", 0.1, 3, "a", "root"])
    return [written(folder / "runs.csv", header, rows), "--goal", "minimize", "--value", "val_loss"]


def wandb(folder):
    header = ["Name", "State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep", "kind", "lr", "width", "loss"]
    rows = [
        [f"run-{n}", "finished", "-", "me", "", "2026", n, "s", its["kind"], its["lr"], its["width"], value]
        for n, (its, value) in enumerate(zip(SETTINGS, VALUES, strict=True))
    ]
    rows.append(["run-x", "crashed", "-", "me", "", "2026", 1, "s", "a", 0.1, 3, ""])
    return [written(folder / "wandb.csv", header, rows), "--goal", "minimize", "--value", "loss"]


def wandb_api(folder):
    rows = [
        [n, {"loss": value, "_step": 3}, {**its, "_wandb": 1}, f"run-{n}"]
        for n, (its, value) in enumerate(zip(SETTINGS, VALUES, strict=True))
    ]
    rows.append([30, {"_step": 1}, {"lr": 0.1, "width": 3, "kind": "a"}, "run-x"])
    path = written(folder / "project.csv", ["", "summary", "config", "name"], rows)
    return [path, "--goal", "minimize", "--value", "loss"]


def ray_results():
    found = [
        {"loss": value, "training_iteration": 4, "done": True, "trial_id": f"t{n:02}", "config": dict(its)}
        for n, (its, value) in enumerate(zip(SETTINGS, VALUES, strict=True))
    ]
    return [*found, {"loss": math.nan, "training_iteration": 1, "trial_id": "t30", "config": dict(SETTINGS[0])}]


def ray_folder(folder):
    for its in ray_results():
        trial = folder / "exp" / f"train_{its['trial_id']}"
        trial.mkdir(parents=True)
        lines = [json.dumps({**its, "loss": 99.0}), json.dumps(its)]
        (trial / "result.json").write_text("\n".join(lines) + "\n")
    return [str(folder / "exp"), "--goal", "minimize", "--value", "loss"]


def ray_csv(folder):
    names = [f"config/{name}" for name in SETTINGS[0]]
    rows = [[its["loss"], 4, True, its["trial_id"], *its["config"].values()] for its in ray_results()]
    path = written(folder / "ray.csv", ["loss", "training_iteration", "done", "trial_id", *names], rows)
    return [path, "--goal", "minimize", "--value", "loss"]


def kernel_tuner(folder, is_open=False):
    cache = {
        ",".join(map(str, its.values())): {**its, "time": value, "times": [value] * 7, "compile_time": 9.0}
        for its, value in zip(SETTINGS, VALUES, strict=True)
    }
    cache["9,9,a"] = {"lr": 0.1, "width": 3, "kind": "a", "time": "RuntimeFailedConfig", "compile_time": 1.0}
    header = {"device_name": "GPU", "kernel_name": "vector_add", "tune_params_keys": ["lr", "width", "kind"]}
    whole = json.dumps({**header, "tune_params": {}, "objective": "time", "cache": cache}, indent=0)
    (folder / "cache.json").write_text(f"{whole[:-4]},\n" if is_open else whole)
    return [str(folder / "cache.json")]


def ax(folder, is_old=False):
    frame = {"arm_name": {}, "metric_name": {}, "mean": {}, "sem": {}, "trial_index": {}}
    trials = {}
    for n, (its, value) in enumerate(zip(SETTINGS, VALUES, strict=True)):
        arms = [{"__type": "Arm", "parameters": its, "name": f"{n}_0"}]
        run = {"__type": "GeneratorRun", "arms": arms}
        status = {"__type": "TrialStatus", "name": "COMPLETED"}
        trials[str(n)] = {"__type": "Trial", "index": n, "status": status, "generator_run": run}
        row = {"arm_name": f"{n}_0", "metric_name": "loss", "mean": value, "sem": None, "trial_index": n}
        for column, cell in row.items():
            frame[column][str(n)] = cell
    last = {**trials["0"], "index": 30, "status": {"__type": "TrialStatus", "name": "FAILED"}}
    metric = {"__type": "Metric", "name": "loss"}
    objective = {"__type": "Objective", **({"metric": metric, "minimize": True} if is_old else {"expression": "-loss"})}
    experiment = {
        "__type": "Experiment",
        "name": "mine",
        "optimization_config": {"__type": "OptimizationConfig", "objective": objective},
        "trials": {**trials, "30": last},
        "data_by_trial": {
            "0": {"__type": "Data", "df": {"__type": "DataFrame", "value": json.dumps(frame)}},
        },
    }
    (folder / "ax.json").write_text(json.dumps({"__type": "AxClient", "experiment": experiment}))
    return [str(folder / "ax.json")]


def optuna_file(folder):
    study = optuna_study(storage=f"sqlite:///{folder / 'study.db'}")
    study.enqueue_trial(SETTINGS[0])
    study.tell(
        study.ask(study.trials[0].distributions),
        state=optuna.trial.TrialState.FAIL,
    )
    return [str(folder / "study.db")]


def optuna_csv(folder):
    frame = optuna_study().trials_dataframe()
    failed = frame.iloc[[0]].assign(number=30, value=math.nan, state="FAIL")
    text = frame.to_csv(index=False) + failed.to_csv(index=False, header=False)
    (folder / "trials.csv").write_text(text)
    return [str(folder / "trials.csv"), "--goal", "minimize"]


def old_ax(folder):
    return ax(folder, is_old=True)


FORMATS = [mlflow, wandb, wandb_api, ray_folder, ray_csv, kernel_tuner, ax, old_ax, optuna_file, optuna_csv]


@pytest.mark.slow
@pytest.mark.parametrize("make", FORMATS)
def test_every_format_gives_the_same_audit(make, tmp_path, capsys):
    words = make(tmp_path)
    assert main(["audit", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trials"] == {"done": 30, "failed": 1, "settings": 30}
    assert found["goal"] == "minimize"
    assert found["reported"]["trial"] == LUCKIEST
    assert found["reported"]["value"] == pytest.approx(VALUES[LUCKIEST])
    assert found["reported"]["params"] == pytest.approx(SETTINGS[LUCKIEST])
    for its in (found["reported"], found["recommended"]):
        assert its["lower"] <= truth(its["params"]) <= its["upper"]
    assert found["optimism"]["estimate"] == pytest.approx(found["reported"]["estimate"] - VALUES[LUCKIEST])
    assert 0.05 < found["noise"] < 0.6
    assert 0 < len(found["not_separated"]) < 29
    assert all(its["worse_by"]["lower"] <= 0 <= its["worse_by"]["upper"] for its in found["not_separated"])
    assert all(0 < its["runs"] <= MOST_RUNS for its in found["runs"])


def constant(count=40, seed=3):
    """Rows of a function that is the same everywhere, with noise of 1."""
    rng = np.random.default_rng(seed)
    return [
        [x, n, 5 + rng.standard_normal()] for x, n in zip(rng.random(count), rng.integers(0, 9, count), strict=True)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_of_a_constant_function_nothing_is_separated(seed, tmp_path):
    found = audited(written(tmp_path / "c.csv", ["x", "n", "value"], constant(seed=seed)), goal="minimize")
    assert len(found.rivals_of_best) == 39
    assert found.worth.lower <= 5 <= found.worth.upper
    assert found.best.lower <= 5 <= found.best.upper
    assert found.optimism[0] > 0.5  # the luckiest of 40 is about 2 too good
    assert 0.25 < found.noise_std < 1.6
    assert "No setting is shown to be worse than it" in str(found)


def test_the_text_says_what_the_numbers_say(tmp_path, capsys):
    assert main(["audit", *kernel_tuner(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr().out
    found = audited(str(tmp_path / "cache.json"))
    assert said.startswith(
        "vector_add: 30 results of 30 settings, 1 failed, to minimize\nparameters: lr, width, kind\n"
    )
    assert f"Reported   trial {LUCKIEST}: " in said
    assert f"Not separated from it: {len(found.rivals_of_best)} of the other 29 settings" in said
    runs = sum(count for _, count in found.plan)
    assert f"To settle it, {runs} runs in mixed order: " in said
    page = (tmp_path / "page.html").read_text()
    assert "Best setting" in page
    assert "vector_add" in page


@pytest.mark.parametrize("seed", range(3))
def test_the_setting_with_the_best_estimate_is_recommended(seed, tmp_path):
    """Also where it is known less well than others: it was measured once, and they were three times."""
    rng = np.random.default_rng(seed)
    rows = [[x, (x - 7) ** 2 / 50 + 0.3 * rng.standard_normal()] for x in range(12) for _ in range(1 + 2 * (x < 6))]
    found = audited(written(tmp_path / "runs.csv", ["x", "value"], rows), goal="minimize")
    assert found.best.estimate == min(its.estimate for its in found.measured)


def test_clear_differences_need_no_runs(tmp_path):
    rows = [[x, 100 * x + 0.01 * (-1) ** repeat] for x in range(6) for repeat in range(4)]
    found = audited(written(tmp_path / "clear.csv", ["x", "value"], rows), goal="maximize")
    assert found.best.params == {"x": 5}
    assert found.plan == []
    assert found.rivals_of_best == []
    assert "It is shown to be better than every other setting" in str(found)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_cache_that_kernel_tuner_still_writes(is_open, tmp_path):
    found = audited(*kernel_tuner(tmp_path, is_open))
    assert len(found.done) == 30
    assert len(found.failed) == 1


def test_a_study_in_memory_and_one_that_is_maximised():
    study = optuna_study(direction="maximize")
    found = audited(study)
    assert found.reported.number == int(np.argmax(VALUES)) == study.best_trial.number
    assert found.optimism[0] == pytest.approx(max(VALUES) - found.worth.estimate)


def test_pruned_trials_and_empty_cells(tmp_path):
    rows = [[n % 5, "" if n % 5 < 2 else n % 3, n % 5 + 0.1 * (n % 2), "COMPLETE"] for n in range(40)]
    rows += [[0, 1, -99, "PRUNED"], [1, 1, -99, "RUNNING"]]
    path = written(tmp_path / "s.csv", ["params_x", "params_m", "value", "state"], rows)
    found = audited(path, goal="minimize")
    assert len(found.done) == 40
    assert found.best.params["x"] == 0
    assert "left out: 2 trials without a final result" in found.note


def test_columns_that_are_no_parameters(tmp_path):
    rows = [[f"run {n}", n % 5, 3, n % 4, n % 5 + 0.1 * (n % 2)] for n in range(40)]
    path = written(tmp_path / "s.csv", ["title", "x", "fixed", "other", "loss"], rows)
    assert audited(path, goal="minimize", value="loss").note == (
        "parameters: x, other; left out: title (text, 40 different), fixed (one value)"
    )
    assert audited(path, goal="minimize", value="loss", params="x").note == "parameters: x"
    path = written(tmp_path / "t.csv", ["x", "seconds"], [[n % 5, n % 5 + 0.1 * (n % 2)] for n in range(40)])
    assert audited(path, goal="minimize", value="seconds").best.params == {"x": 0}


BAD = {
    "missing.csv": (None, [], "does not exist: give a file"),
    "empty.csv": ("", [], "must be a CSV with a header and a row per trial"),
    "ragged.csv": ("x,value\n1,2\n1\n", [], "each with as many cells as the header"),
    "goal.csv": ("x,value\n1,2\n2,3\n", [], "add --goal minimize"),
    "wrong.csv": ("x,value\n1,2\n2,3\n", ["--goal", "low"], "must be minimize or maximize, got 'low'"),
    "few.csv": ("x,value\n1,2\n2,3\n", ["--goal", "minimize"], "results, got 2"),
    "same.csv": ("x,value\n" + "1,2\n" * 9, ["--goal", "minimize"], "no parameter has two values"),
    "which.csv": ("x,a,b\n1,2,3\n", ["--goal", "minimize"], "--value NAME, one of x, a, b"),
    "other.csv": ("x,a,b\n1,2,3\n", ["--goal", "minimize", "--value", "c"], "no such result, it has x, a, b"),
    "param.csv": ("x,value\n1,2\n", ["--goal", "minimize", "--params", "y"], "there is no column 'y'"),
    "broken.json": ('{"a": ', [], "is no JSON"),
    "unknown.json": ('{"a": 1}', [], "is JSON of no known tool"),
    "study.db": ("no database", [], "cannot be read as a storage of Optuna"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_with_advice(name, tmp_path, capsys):
    content, words, said = BAD[name]
    if content is not None:
        (tmp_path / name).write_text(content)
    assert main(["audit", str(tmp_path / name), *words, "--out", str(tmp_path / "page.html")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_a_page_needs_its_ending_and_a_folder_of_ray_a_result(tmp_path, capsys):
    assert main(["audit", "any.csv", "--out", "page.pdf"]) == 2
    assert "its name must end in .html" in capsys.readouterr().err
    with pytest.raises(StudyError, match=r"has no result.json below it"):
        audited(str(tmp_path))


def test_a_study_of_one_objective_has_no_other_result(tmp_path, capsys):
    where = optuna_file(tmp_path)[0]
    assert main(["audit", where, "--value", "loss"]) == 2
    said = "study 'mine': --value loss: there is no such result, it has one objective: leave out --value"
    assert said in capsys.readouterr().err
    assert main(["audit", where, "--params", "x"]) == 2
    assert "--params is for tables, and a storage names its parameters: leave it out" in capsys.readouterr().err
    study = optuna_study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(["loss"])
    assert audited(study, value="loss").reported.number == audited(study, value="value").reported.number


def test_several_objectives_are_refused():
    with pytest.raises(StudyError, match="an audit is of one objective, and this has 2"):
        audited(optuna_study(directions=["minimize", "maximize"]))


def test_optional_packages_are_not_needed_for_files(tmp_path):
    code = (
        "import sys\n"
        "for name in ('optuna', 'pandas', 'pydantic', 'rich', 'sqlalchemy'): sys.modules[name] = None\n"
        "from noregret.cli import main\n"
        f"sys.exit(main(['audit', {kernel_tuner(tmp_path)[0]!r}, '--out', {str(tmp_path / 'page.html')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
