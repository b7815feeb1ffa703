"""Drift in `tune`: set in the study file, and reported by displays and pages."""

import math

import numpy as np
import pytest
from tests.studies.made import record

from noregret.studies.display import conclusion
from noregret.studies.learning.findings import Findings, summary
from noregret.studies.learning.suggest import believed, replay_of
from noregret.studies.page.page import content
from noregret.studies.running import suggester_of
from noregret.studies.study.reading import load
from noregret.studies.study.study import StudyError

FILE = '{}command = ["echo", "{{x}}"]\n[budget]\nevaluations = 100\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
SAID = "half of what was learnt is out of date after about 15 evaluations"


def study_with(tmp_path, drift):
    path = tmp_path / "study.toml"
    path.write_text(FILE.format(drift))
    return load(path)


def records(count):
    """Trials of a problem that jumps in the middle; the number of a trial is its time."""
    rng = np.random.default_rng(0)
    for number, x in enumerate(rng.random(count)):
        best = 0.2 if number < count // 2 else 0.8
        yield record(number, {"x": float(x)}, "done", (x - best) ** 2 + 0.02 * rng.standard_normal())


@pytest.mark.parametrize(("line", "drift"), [("", None), ('drift = "auto"\n', "auto"), ("drift = 60\n", 60.0)])
def test_a_study_file_may_ask_for_drift(tmp_path, line, drift):
    study = study_with(tmp_path, line)
    assert study.drift == drift
    assert replay_of(study)([]).drift == drift


@pytest.mark.parametrize("bad", ["0", "true", '"fast"', "nan", "[60]"])
def test_a_bad_half_life_is_refused_with_its_line(tmp_path, bad):
    with pytest.raises(StudyError, match=r"(?s)drift.*must be 'auto' or a half-life, which must be a number of evalu"):
        study_with(tmp_path, f"drift = {bad}\n")


def test_displays_say_how_fast_things_change(tmp_path):
    told = list(records(60))
    study = study_with(tmp_path, "drift = 15\n")
    found = Findings(study, told, believed(study, told))
    assert abs(found.best.params["x"] - 0.8) < 0.2
    assert SAID in conclusion(found)
    assert f"{SAID}. All findings are about the present." in content(found)
    assert summary(found)["half_life"] == pytest.approx(15)


def test_displays_say_nothing_where_nothing_changes(tmp_path):
    told = list(records(20))[:10]
    study = study_with(tmp_path, 'drift = "auto"\n')
    found = Findings(study, told, believed(study, told))
    assert found.optimizer.half_life == math.inf
    assert "out of date" not in conclusion(found) + content(found)
    assert summary(found)["half_life"] is None


@pytest.mark.slow
def test_a_worker_that_begins_anew_asks_what_the_old_one_would_have(tmp_path):
    told = list(records(70))
    study = study_with(tmp_path, 'drift = "auto"\n')
    old = suggester_of(study)
    for count in (30, 40, 50, 60, 65, 70):
        asked = old(told[:count])
    assert old.latest[1].half_life < math.inf
    assert suggester_of(study)(told).params["x"] == pytest.approx(asked.params["x"])


def test_the_page_of_a_study_whose_beginning_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("noregret.optimizer.optimizer.REMEMBERED", 20)
    told = list(records(50))
    study = study_with(tmp_path, "drift = 15\n")
    found = Findings(study, told, believed(study, told))
    assert len(found.weights) == 50 > len(found.optimizer.measurements)
    assert SAID in content(found)
