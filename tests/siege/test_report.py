"""More of `tests.studies.test_report`, nightly."""

import re

import optuna
import pytest
from tests.studies.test_report import check_pruned, downloaded, html_of, with_contexts, written

from noregret.integrations.optuna import NoRegretSampler
from noregret.studies import words


def test_constraints_of_an_optuna_study(tmp_path):
    sampler = NoRegretSampler(seed=0, constraints_func=lambda trial: (0.5 - trial.params["x"],))
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=30)
    text = written(study, tmp_path / "p.html")
    assert "a measurement that breaks a constraint" in text
    assert "It meets all constraints (probability" in text
    assert "constraint 0" in text


def test_a_page_has_the_best_setting_in_a_few_contexts(tmp_path):
    opt = with_contexts(baseline={"x": 0.5, "y": 0.5})
    text = html_of(opt, tmp_path)
    part = text[text.index('id="contexts"') : text.index('id="history"')]
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", part)[1:]]
    contexts = [{"load": float(load), "region": region} for load, region, *_ in rows]
    assert {"load": 1.0, "region": "us"} in contexts, "the last one"
    assert len(rows) == 6
    assert "Of the 10 measured contexts" in part
    assert contexts == sorted(contexts, key=lambda its: (its["load"], its["region"]))
    assert {its["load"] for its in contexts} >= {0.0, 1.0}
    for context, (_, _, result, _, x, _, gain) in zip(contexts, rows, strict=True):
        best = opt.best(context)
        assert float(result) == pytest.approx(best.estimate, rel=1e-3)
        assert float(x) == pytest.approx(best.params["x"], rel=1e-3)
        assert gain == str(opt.gain(context))


def test_the_rest_of_the_page_is_about_the_context_of_the_last_measurement(tmp_path):
    opt = with_contexts(29)
    text, last = html_of(opt, tmp_path), {"load": 0.75, "region": "us"}
    assert "expected result, where load=0.75, region=us" in text
    assert words.number(opt.best(last).estimate) in text
    assert "Estimates are for load=0.75, region=us" in text
    assert "<th>context.load</th><th>context.region</th>" in text
    assert '"context":["context.load","context.region"]' in text, "a dot says where it was measured"
    table = downloaded(tmp_path / "page.html")
    assert table[0].split(",")[4:8] == ["x", "y", "context.load", "context.region"]
    assert table[-1].split(",")[6:8] == ["0.75", "us"]
    assert 'id="importance"' not in text
    assert "matter most" not in text


def test_a_pruned_trial_counts_at_its_step_as_for_the_sampler(tmp_path):
    check_pruned(tmp_path, 1)
