"""`noregret.report`: the page of an optimizer in memory, and of an Optuna study of any sampler."""

import re
import subprocess
import sys
from html import unescape

import numpy as np
import optuna
import pytest

from noregret import Choice, Float, Int, Optimizer, report

optuna.logging.set_verbosity(optuna.logging.WARNING)


def written(subject, path):
    report(subject, path)
    return unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script)>.*?</\1>", "", path.read_text(), flags=re.S)))


def measured(space, rounds=25, value=lambda params: params["x"], rng=0, failing=()):
    optimizer, noise = Optimizer(space, rng=rng), np.random.default_rng(rng)
    for i in range(rounds):
        trial = optimizer.ask()
        if i in failing:
            optimizer.fail(trial)
        else:
            optimizer.tell(trial, float(value(trial.params) + 0.05 * noise.standard_normal()))
    return optimizer


def test_an_optimizer_with_parameters_of_every_kind(tmp_path):
    space = {"x": Float(0.001, 1, log=True), "n": Int(1, 64), "kind": Choice(["<b>", None, 3])}
    optimizer = measured(space, failing=(3, 9))
    text = written(optimizer, tmp_path / "mine.html")
    assert "23 measurements, 2 failed runs" in text
    assert "told as a failure" in text
    assert "Best setting, lowest expected result" in text
    assert "mine" in text
    assert "How it was measured" not in text  # nobody has said so
    assert "<b>" in text
    assert "seconds" not in text
    assert len(optimizer.answers) == 25  # and it was not touched


def test_optimizers_that_know_nothing_or_little(tmp_path):
    optimizer = Optimizer({"x": Float(0, 1)}, rng=0)
    assert "Nothing has been measured yet." in written(optimizer, tmp_path / "p.html")
    optimizer.tell({"x": 0.5}, 1.0)
    assert "measured once, so nobody knows" in written(optimizer, tmp_path / "p.html")


def test_tables_with_and_without_names(tmp_path):
    rows = [{"x": float(i), "name": str(i)} for i in range(12)]
    assert "Of 12 candidates" in written(measured(rows), tmp_path / "p.html")
    array = np.arange(24.0).reshape(12, 2)
    text = written(measured(array, value=lambda row: row[0]), tmp_path / "p.html")
    assert "Of 12 candidates" in text
    assert "column 0" in text


def objective(trial):
    x, kind = trial.suggest_float("x", 0.01, 1, log=True), trial.suggest_categorical("kind", ["a", None, 2])
    n = trial.suggest_int("n", 0, 100)
    if trial.number == 7:
        raise RuntimeError
    if trial.number == 8:
        trial.report(3.0, 1)
        raise optuna.TrialPruned
    return x + (kind is None) + 0.01 * n


@pytest.mark.parametrize("sampler", [optuna.samplers.TPESampler(seed=0), optuna.samplers.RandomSampler(seed=0)])
def test_an_optuna_study_of_any_sampler(tmp_path, sampler):
    study = optuna.create_study(study_name="<mine>", direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=30, catch=RuntimeError)
    text = written(study, tmp_path / "p.html")
    assert "29 measurements, 1 failed run" in text
    assert "Best setting, highest expected result" in text
    assert "<mine>" in text
    assert "Which parameters matter" in text


def test_what_not_all_trials_have_is_left_out_with_a_warning(tmp_path):
    study = optuna.create_study()
    for x in range(6):
        own = {"y": optuna.distributions.FloatDistribution(0, 9)} if x == 3 else {}
        space = {"x": optuna.distributions.FloatDistribution(0, 9), **own}
        study.add_trial(optuna.create_trial(params=dict.fromkeys(space, x), distributions=space, value=float(x)))
    with pytest.warns(UserWarning, match="leaves out what not all completed trials have in common: y"):
        text = written(study, tmp_path / "p.html")
    assert "6 measurements" in text


def test_what_is_refused(tmp_path):
    page = tmp_path / "p.html"
    with pytest.raises(ValueError, match="takes an Optimizer or an Optuna study, got dict"):
        report({}, page)
    with pytest.raises(ValueError, match=r"path must end in \.html"):
        report(measured({"x": Float(0, 1)}, 2), tmp_path / "p.pdf")
    with pytest.raises(ValueError, match="one objective, got 2"):
        report(optuna.create_study(directions=["minimize", "minimize"]), page)
    with pytest.raises(ValueError, match="must have a completed trial with a parameter"):
        report(optuna.create_study(), page)
    assert list(tmp_path.iterdir()) == []


def test_an_optimizer_needs_no_optuna(tmp_path):
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from noregret import Float, Optimizer, report\n"
        "optimizer = Optimizer({'x': Float(0, 1)}, rng=0)\n"
        "for x in (0.1, 0.2, 0.3): optimizer.tell({'x': x}, x)\n"
        f"report(optimizer, {str(tmp_path / 'p.html')!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "Best setting" in (tmp_path / "p.html").read_text()
