"""The package for OptunaHub, in ``package/samplers/noregret``: loaded from this folder, without a network."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from tests.conftest import needs

optunahub = needs("optunahub")

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "package" / "samplers" / "noregret"


@pytest.fixture
def module(monkeypatch):
    def no_network(*args):
        raise AssertionError("a local module needs no network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    return optunahub.load_local_module("samplers/noregret", registry_root=str(ROOT / "package"))


def test_it_is_the_sampler_and_the_pruner_of_noregret(module):
    study = optuna.create_study(sampler=module.NoRegretSampler(seed=0), pruner=module.NoRegretPruner())
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert module.__name__ == "optunahub_registry.package.samplers.noregret"
    assert "noregret.integrations.optuna" in {its.__module__ for its in (module.NoRegretSampler, module.NoRegretPruner)}
    assert study.sampler.best(study).params.keys() == {"x"}


def test_front_matter_has_what_the_registry_asks_for():
    _, front, text = (PACKAGE / "README.md").read_text("utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert list(fields) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert fields["tags"].startswith("[sampler, ")
    assert optuna.__version__ in fields["optuna_versions"] or not optuna.__version__.startswith("5.0")
    sections = re.findall("^## (.+)$", text, re.MULTILINE)
    assert sections == ["Abstract", "APIs", "Installation", "Example", "Others"]
    assert not re.search("<[a-z]", text)  # the registry drops HTML


@pytest.mark.slow
def test_the_example_prints_what_the_readme_shows(module, capsys):
    example = {"__name__": "example"}
    exec(compile((PACKAGE / "example.py").read_text("utf-8"), "example.py", "exec"), example)
    example["main"](module)
    printed = capsys.readouterr().out
    luckiest, recommended = (float(found) for found in re.findall(r"([\d.]+) ms in truth", printed))
    assert recommended < luckiest
    shown = (PACKAGE / "README.md").read_text("utf-8")
    assert printed.splitlines()[0] in shown


@pytest.mark.slow
def test_its_own_tests_pass_as_in_the_registry(tmp_path):
    """From the folder above ``package``, as OptunaHub runs them."""
    (tmp_path / "package").symlink_to(ROOT / "package")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "package/samplers/noregret/tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
