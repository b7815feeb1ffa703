"""The sweeper of Hydra, with a small app in a process of its own, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import needs

pytestmark = pytest.mark.slow

needs("hydra")
OmegaConf = needs("omegaconf").OmegaConf
SOURCE = str(Path(__file__).parents[2] / "src")
APP = """
import hydra
from omegaconf import OmegaConf

@hydra.main(version_base=None, config_path=".", config_name="config")
def app(config):
    if config.n == 5:
        raise RuntimeError("five is broken")
    if config.kind == "text":
        return "no number"
    return (config.x - 0.3) ** 2 + abs(config.n - 2) + (config.kind == "b c") + config.shift

app()
"""
CONFIG = """
x: 0.5
n: 1
kind: a
shift: 0
hydra:
  sweep: {dir: sweep}
  sweeper: {params: {n: "range(1,6,2)"}}
defaults: [{override hydra/sweeper: noregret}, _self_]
"""


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "config.yaml").write_text(CONFIG)

    def run(*overrides):
        settings = {**os.environ, "PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1"}
        words = [sys.executable, "app.py", "-m", *overrides]
        return subprocess.run(words, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=120)

    return run


def test_a_sweep_saves_the_recommended_setting(app, tmp_path):
    settings = [f"hydra.sweeper.{word}" for word in ("evaluations=24", "workers=3", "seed=1")]
    done = app(*settings, "x=interval(0,1)", "kind=a,'b c'", "shift=10")
    assert done.returncode == 0, done.stderr
    found = OmegaConf.load(tmp_path / "sweep" / "optimization_results.yaml")
    assert found.name == "noregret"
    assert found.best_params.keys() == {"n", "x", "kind"}
    assert (found.best_params.kind, found.best_params.n in (1, 3)) == ("a", True)
    assert abs(found.best_params.x - 0.3) < 0.2
    assert found.lower - 1e-3 <= 11 <= found.upper
    assert found.evaluations == 24
    jobs = [OmegaConf.load(its) for its in tmp_path.glob("sweep/*/.hydra/config.yaml")]
    assert len(jobs) == 24
    assert {job.n for job in jobs} <= {1, 3, 5}
    assert {job.shift for job in jobs} == {10}
    assert found.failed == sum(job.n == 5 for job in jobs) > 0
    assert "minimum: " in done.stdout
    assert f"its overrides: n={found.best_params.n} x={found.best_params.x} kind=a" in done.stdout


def test_the_goal_and_the_last_of_two_ranges_count(app, tmp_path):
    settings = [f"hydra.sweeper.{word}" for word in ("evaluations=12", "goal=maximize", "confirm=0")]
    done = app(*settings, "n=1,3", "x=interval(0,9)", "x=int(interval(0,2))")
    assert done.returncode == 0, done.stderr
    assert OmegaConf.load(tmp_path / "sweep" / "optimization_results.yaml").best_params.x == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["n=1"], "a sweep needs a range, such as 'x=interval(0,1)' or 'kind=choice(a,b)'"),
        (["x=interval(1,0)"], "x=interval(1,0): "),
        (["n=range(3,3)"], "n=range(3,3): the range has no number"),
        (["kind=text", "n=1,3"], "the app must return a finite number, got 'no number'"),
        (["n=5", "x=interval(0,1)"], "five is broken"),
        (["hydra.sweeper.goal=best"], "goal must be"),
        (["hydra.sweeper.workers=0"], "hydra.sweeper.workers must be a whole number from 1, got 0"),
    ],
)
def test_what_is_wrong_is_said(app, words, said):
    done = app("hydra.sweeper.evaluations=4", *words)
    assert done.returncode == 1
    assert said in done.stderr


def test_an_app_with_another_sweeper_does_not_import_noregret(app, tmp_path):
    code = APP.replace(
        "    if config.n == 5", "    import sys\n    assert 'noregret' not in sys.modules\n    if config.n == 5"
    )
    (tmp_path / "app.py").write_text(code)
    done = app("hydra/sweeper=basic", "n=1,2")
    assert done.returncode == 0, done.stderr
