"""The figures of the papers: their names, data and looks, and one of them at a tiny scale (all: tests/documents)."""

import re
from pathlib import Path

import pytest

from noregret.bandits.lab.commands import chosen, missing
from noregret.bandits.lab.figure import Scale, Setting
from noregret.bandits.lab.figures import FIGURES, PAPERS
from noregret.bandits.lab.plot import style
from noregret.bandits.lab.reproduce import Lines, Order, reproduce
from noregret.bandits.lab.trials import Engine
from noregret.cli import main

ISSUE = (
    "kernelized/fig1 kernelized/fig2 kernelized/fig3 kernelized/fig4 kernelized/linear "
    "heavy-tails/fig1a heavy-tails/fig1b "
    "heavy-tails/fig1c heavy-tails/fig1d heavy-tails/fig1e heavy-tails/fig1f heavy-tails/random-fourier "
    "bkb/fig1 bkb/scaling reds/fig1 "
    "reds/table1 reds/random-exploration reds/noise-free beyond/widths beyond/sketching beyond/robust beyond/unknown "
    "beyond/contexts beyond/drift beyond/lower-bound beyond/catoni"
)


def test_the_figures_are_those_of_the_papers():
    assert list(FIGURES) == ISSUE.split()
    assert {name.partition("/")[0] for name in FIGURES} == set(PAPERS)


@pytest.mark.slow
def test_a_figure_runs_is_judged_and_drawn(tmp_path):
    order = Order([FIGURES["bkb/fig1"]], tmp_path, rounds=20, trials=2, engine=Engine(1))
    (report,) = reproduce(order, Lines())
    check_report(report, tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert text.count('src="data:image/svg+xml;base64,') == len(report.pictures)


def check_report(report, out):
    """Raise AssertionError unless a figure was run, judged and drawn."""
    figure = FIGURES[report.name]
    assert not report.failure
    assert report.verdicts
    unlike = [bool(claim.unlike) for claim in figure.claims]
    assert [verdict.outcome == "not comparable" for verdict in report.verdicts] == unlike
    assert report.pictures
    for picture in report.pictures:
        assert (out / report.name / f"{picture.file}.png").stat().st_size > 5000
        assert b"<svg" in (out / report.name / f"{picture.file}.svg").read_bytes()
    assert {curve.panel for curve in report.curves} == {panel.title for panel in figure.panels}


@pytest.mark.parametrize("figure", FIGURES.values(), ids=list(FIGURES))
def test_every_figure_says_what_it_is(figure):
    assert len(figure.says) > 40
    assert len(figure.how) > 80
    assert figure.quick.rounds <= figure.scale.rounds
    assert figure.quick.trials <= figure.scale.trials
    assert 0 < figure.minutes < 10


def test_the_times_are_those_of_the_documentation(capsys):
    assert sum(figure.minutes for figure in FIGURES.values()) <= 30
    page = (Path(__file__).parents[3] / "docs" / "lab.md").read_text(encoding="utf-8")
    assert re.search(r"noregret reproduce  .*: half an hour on two cores\n", page)
    assert re.search(r"noregret reproduce --quick .*: two minutes\n", page)
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    assert "in two minutes" in capsys.readouterr().out


def test_keys_of_panels_are_unique_but_for_shared_trials():
    panels = {id(panel): panel for figure in FIGURES.values() for panel in figure.panels}
    keys = [panel.key for panel in panels.values()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=list(FIGURES))
def test_no_two_curves_of_a_comparison_look_the_same(figure):
    for panel in figure.panels:
        looks = [str(style(label)) for label in getattr(panel, "entrants", ())]
        assert len(set(looks)) == len(looks)


def test_figures_are_chosen_by_name_and_by_paper():
    assert [figure.name for figure in chosen(["bkb", "kernelized/fig2"])] == [
        "kernelized/fig2",
        "bkb/fig1",
        "bkb/scaling",
    ]
    assert len(chosen([])) == len(FIGURES)


def test_missing_data_are_named(tmp_path):
    figure = FIGURES["heavy-tails/fig1d"]
    assert missing(figure, tmp_path) == f"stocks_dow29.csv not found in {tmp_path}"
    (tmp_path / "stocks_dow29.csv.gz").touch()
    assert not missing(figure, tmp_path)
    assert not missing(FIGURES["bkb/fig1"], tmp_path)
    assert not any(missing(figure, None) for figure in FIGURES.values())


def test_trials_on_other_data_are_kept_apart(tmp_path):
    scale = Scale(20, 1)
    (panel,) = FIGURES["heavy-tails/fig1d"].panels
    kept = {task.path for task in panel.tasks(Setting(scale, 0))}
    assert kept.isdisjoint(task.path for task in panel.tasks(Setting(scale, 0, tmp_path)))
