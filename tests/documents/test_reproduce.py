"""More of `tests.bandits.lab.test_reproduce`, nightly."""

import os
import signal

import pytest
from tests.bandits.lab.test_reproduce import ENTRANTS, PANEL, Notes, known, run, toy, trials_in

from noregret import algorithms
from noregret.bandits.lab import trials as parallel
from noregret.bandits.lab.figure import Below, Claim, Entrant, Scale
from noregret.bandits.lab.figure import ComparisonPanel as Comparison
from noregret.bandits.lab.trials import Engine, EngineFailed


def test_a_small_scale_has_verdicts_of_its_own_and_says_so(tmp_path, known):
    quick = toy(quick=Scale(50, 3))
    (report,) = run(known(quick), tmp_path, quick=True)
    assert (report.rounds, report.trials) == (50, 3)
    assert [verdict.outcome for verdict in report.verdicts] == ["as the paper says"]
    assert report.summary() == "claims: 1 as the paper says (50 rounds, 3 trials; in full: 60 rounds, 4 trials)"
    page = (tmp_path / "index.html").read_text()
    assert "At a small scale: 50 rounds, 3 trials; in full: 60 rounds, 4 trials." in page
    assert "<b>1</b> as the paper says" in page
    (report,) = run(known(quick), tmp_path, trials=5)
    assert report.summary() == "claims: 1 as the paper says"
    assert "small scale" not in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(("scale", "reason"), [({}, "It is so."), ({"quick": True}, "")])
def test_reasons_are_about_the_full_scale(tmp_path, known, scale, reason):
    claim = Claim("random beats igp-ucb", Below("toy", "random", ["igp-ucb"]), because="It is\n   so.")
    (report,) = run(known(toy(claims=[claim], quick=Scale(50, 3))), tmp_path, **scale)
    (verdict,) = report.verdicts
    assert (verdict.outcome, verdict.reason) == ("against the paper", reason)
    (report,) = run(known(toy(claims=[claim])), tmp_path, trials=1)
    assert report.verdicts[0].outcome == "undecided"


def test_a_claim_that_our_experiment_cannot_decide_is_not_comparable(tmp_path, known):
    claim = Claim("as on Mars", Below("toy", "igp-ucb", ["random"]), unlike="this is Earth")
    (report,) = run(known(toy(claims=[claim])), tmp_path)
    assert report.verdicts[0].outcome == "not comparable"
    assert report.verdicts[0].reason == "as the paper says here, but this is Earth"
    (report,) = run(known(toy(claims=[claim])), tmp_path, quick=True)
    assert report.verdicts[0].outcome == "not comparable"


def test_other_settings_are_other_trials(tmp_path, known):
    run(known(toy()), tmp_path, trials=1)
    run(known(toy()), tmp_path, trials=1, seed=1)
    run(known(toy()), tmp_path, trials=1, rounds=30)
    wider = {"igp-ucb": Entrant(algorithms.igp_ucb, {"constants": "experiment", "scale": 2.0})}
    panel = Comparison("toy", "Toy", PANEL.problem, wider | {"random": ENTRANTS["random"]})
    run(known(toy(panels=[panel])), tmp_path, trials=1)
    assert len(trials_in(tmp_path)) == 7  # random is the same in the first and the last


def test_figures_share_the_trials_of_a_panel_of_the_same_key(tmp_path, known):
    notes = Notes()
    reports = run(known(toy("toy/fig1"), toy("toy/table1")), tmp_path, notes)
    assert [report.name for report in reports] == ["toy/fig1", "toy/table1"]
    assert len(trials_in(tmp_path)) == 8
    assert notes.count(("advance", "toy/fig1")) == notes.count(("advance", "toy/table1")) == 8


def test_an_error_in_a_trial_stops_its_figure_only(tmp_path, known):
    def broken(rng):
        raise ZeroDivisionError("no such world")

    bad = toy("toy/bad", panels=[Comparison("bad", "Bad", broken, ENTRANTS)])
    reports = {report.name: report for report in run(known(bad, toy()), tmp_path)}
    assert "ZeroDivisionError: no such world" in reports["toy/bad"].failure
    assert reports["toy/fig1"].verdicts[0].outcome == "as the paper says"
    assert "no such world" in (tmp_path / "index.html").read_text()
    again = run(known(toy("toy/bad")), tmp_path)  # fixed
    assert not again[0].failure


def test_the_same_on_two_processes(tmp_path, known):
    (one,) = run(known(toy()), tmp_path / "one")
    (two,) = run(known(toy()), tmp_path / "two", engine=Engine(2))
    assert one.verdicts == two.verdicts


def test_processes_that_keep_dying_are_given_up(monkeypatch):
    monkeypatch.setattr(parallel, "DEATHS", 2)
    with pytest.raises(EngineFailed, match="killed again and again"):
        list(Engine(2).each([die, die]))


def die():
    os.kill(os.getpid(), signal.SIGKILL)
