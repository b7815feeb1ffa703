"""Watched properties of runs and their pictures; rates, legends and limits."""

import math

import numpy as np
import pytest

import noregret
from noregret import Trace, algorithms, plot
from noregret.bandits.lab.plot import STYLES
from noregret.problems import rkhs

KERNEL = noregret.SquaredExponential(0.2)
PROBLEM = rkhs(KERNEL, points=40, rng=0)


def made(regret, **watched):
    regret = np.asarray(regret, float)
    watched = {name: np.asarray(values, float) for name, values in watched.items()}
    return Trace(np.zeros(len(regret), int), -regret, regret, 1.0, "mine", "toy", {}, watched=watched)


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_a_run_watches_the_posterior_that_chose_every_round(tmp_path):
    algorithm = algorithms.igp_ucb(KERNEL, norm=2, noise=0.1)
    trace = noregret.run(algorithm, PROBLEM, 50, rng=0, watch=["rank", "gain", "active"])
    distinct = [len(set(trace.arms[:t].tolist())) for t in range(50)]
    assert trace.watched["rank"].tolist() == distinct
    assert trace.watched["gain"][0] == 0
    assert (np.diff(trace.watched["gain"]) > 0).all()
    assert set(trace.watched["active"]) == {40}
    trace.save(tmp_path / "run")
    loaded = Trace.load(tmp_path / "run")
    assert list(loaded.watched) == ["rank", "gain", "active"]
    assert (loaded.watched["gain"] == trace.watched["gain"]).all()
    assert noregret.run(algorithm, PROBLEM, 10, rng=0).watched == {}


def test_an_epoch_is_watched_as_a_whole():
    reds = algorithms.reds(KERNEL, norm=2, noise=0.1, first_epoch=10, constants="experiment")
    active = noregret.run(reds, PROBLEM, 70, rng=0, watch=["active"]).watched["active"]
    assert set(active[:10]) == {40}
    assert len(set(active[10:30])) == len(set(active[30:])) == 1
    assert active[-1] <= active[10] < 40


def test_only_what_can_be_watched_is():
    with pytest.raises(
        ValueError, match="watch must be of active, gain, rank, or a dict of functions of a pull, got 'colour'"
    ):
        noregret.run(algorithms.random(KERNEL), PROBLEM, 5, watch=["colour"])


def test_dictionary_size_and_active_arms_draw_what_was_watched():
    traces = [made([1, 1, 1], rank=[1, 2, 2], active=[9, 9, 3]), made([1, 1, 1], rank=[1, 2, 4], active=[9, 9, 5])]
    ax = plot.dictionary_size({"bkb": traces})
    assert lines(ax)["bkb"].get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert ax.get_ylabel() == "features in use"
    ax = plot.active_arms({"reds": traces})
    assert lines(ax)["reds"].get_ydata().tolist() == [9.0, 9.0, 4.0]
    assert ax.get_yscale() == "log"
    with pytest.raises(ValueError, match=r"traces of bkb must have noted 'rank': .* watch=\['rank'\]"):
        plot.dictionary_size({"bkb": [made([1])]})


def test_rates_are_the_slopes_of_the_last_ten_fold():
    t = np.arange(1, 10_001)
    half, one = np.diff(np.sqrt(t), prepend=0), np.ones(len(t))
    ax = plot.regret({"a": [made(half)], "b": [made(one)]}, log=True, rates=True)
    assert set(lines(ax)) == {"a ~ T^0.50", "b ~ T^1.00"}
    still = plot.regret({"c": [made([3.0, *[0.0] * 999])], "d": [made(np.zeros(10))]}, rates=True)
    assert set(lines(still)) == {"c ~ T^0.00", "d ~ T^0.00"}


def test_logarithmic_axes_follow_the_lines_and_cut_the_bands():
    ax = plot.regret({"a": [made([1.0] * 50), made([1e-3] * 50)]}, log=True)
    low, high = ax.get_ylim()
    assert low == pytest.approx(0.25, rel=0.01)
    assert high == pytest.approx(50.0, rel=0.01)
    plot.regret({"a": [made([0.0] * 5)]}, log=True)  # no value above 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["short", "a name that is really rather long"])
def test_a_legend_below_lies_below_and_inside_the_picture(name, tmp_path):
    ax = plot.regret({name: [made([1, 2])], "other": [made([2, 2])]}, legend="below", path=tmp_path / "x.png")
    box = ax.get_legend().get_window_extent()
    assert box.y1 < ax.get_window_extent().y0
    assert box.x1 < ax.figure.bbox.x1


def test_every_algorithm_has_a_style_of_its_own():
    missing = [name for name in algorithms.NAMES if name not in STYLES]
    styles = [plot.style(name) for name in (*algorithms.NAMES, "ata-gp-ucb-qff")]
    assert len(set(styles)) == len(styles), missing
    assert plot.style("ata-gp-ucb-nystrom") == plot.style("ata-gp-ucb")  # Nystrom is its default


def test_numbers_of_the_picture_are_finite():
    ax = plot.regret({"a": [made([1.0, 0.5])]}, average=True)
    assert all(math.isfinite(value) for value in lines(ax)["a"].get_ydata())
