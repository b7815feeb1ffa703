"""Tables against numbers worked out by hand; pictures by what is in their artists."""

import math
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from noregret import ExactGP, SquaredExponential, Trace
from noregret.bandits.lab import plot
from noregret.bandits.lab.trace import Row, summarise
from noregret.extra import MissingExtra

NAMES = (
    "igp-ucb gp-ucb gp-ts gp-ei gp-pi ay-ucb amm-ucb dmm-ucb tgp-ucb ata-gp-ucb bkb bbkb mini-gp-ucb bpe reds "
    "gp-threds random"
)


def trace(regret, seconds=1.0):
    regret = np.asarray(regret, dtype=float)
    return Trace(np.zeros(len(regret), int), -regret, regret, seconds, "mine", "toy", {})


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_summary_is_the_final_regret_over_trials_best_first():
    rows = summarise({"b": [trace([1, 2], 3e-6), trace([3, 4], 5e-6)], "a": [trace([0, 1], 1e-6)]})
    assert rows[1] == Row("b", 2, 5.0, pytest.approx(math.sqrt(8)), pytest.approx(2.0))
    assert rows[0][:3] == ("a", 1, 1.0)
    assert math.isnan(rows[0].sd)


def test_an_algorithm_without_traces_is_named():
    with pytest.raises(ValueError, match="at least one trace, b has none"):
        summarise({"b": []})


def test_every_name_has_a_style_of_its_own_and_others_keep_theirs():
    named = [plot.style(name) for name in NAMES.split()]
    assert len(set(named)) == len(named)
    assert len({colour for colour, _ in map(plot.style, ("igp-ucb", "amm-ucb", "gp-ts", "gp-ei", "random"))}) == 5
    assert plot.style("my own") == plot.style("my own")
    assert plot.style("my own") not in named
    assert len({plot.style(f"name {i}") for i in range(50)}) > 5


def test_regret_draws_mean_and_band_of_one_standard_deviation():
    ax = plot.regret({"gp-ts": [trace([1, 1, 0]), trace([3, 1, 2])]})
    line = lines(ax)["gp-ts"]
    assert line.get_xdata().tolist() == [1, 2, 3]
    assert line.get_ydata().tolist() == [2.0, 3.0, 4.0]
    assert line.get_color() == plot.style("gp-ts")[0]
    corners = ax.collections[0].get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(4 + math.sqrt(8))
    assert ax.get_xlabel() == "round"
    assert ax.get_ylabel() == "cumulative regret"
    assert ax.get_legend().get_title().get_text() == "mean ± 1 sd,\n2 trials"


def test_average_regret_is_divided_by_the_rounds():
    ax = plot.regret({"mine": [trace([1, 1, 4])]}, average=True)
    assert lines(ax)["mine"].get_ydata().tolist() == [1.0, 1.0, 2.0]
    assert ax.get_ylabel() == "average regret"
    assert not ax.collections
    assert ax.get_legend().get_title().get_text() == "1 trial"


def test_long_traces_are_thinned_but_keep_their_ends():
    long = {"mine": [trace(np.ones(100_000))]}
    for log in (False, True):
        ax = plot.regret(long, log=log)
        x, y = lines(ax)["mine"].get_data()
        assert 300 < len(x) <= 500
        assert (x[0], x[-1], y[-1]) == (1, 100_000, 100_000)
        assert ax.get_yscale() == ("log" if log else "linear")


def test_the_legend_follows_the_curves_and_covers_none(tmp_path):
    traces = {"low": [trace(np.ones(9))], "high": [trace(3 * np.ones(9))], "middle": [trace(2 * np.ones(9))]}
    ax = plot.regret(traces, path=tmp_path / "x.png")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["high", "middle", "low"]
    assert ax.get_legend().get_window_extent().x0 > ax.get_window_extent().x1
    assert ax.get_legend().get_window_extent().x1 < ax.figure.bbox.x1


def test_traces_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="traces of mine must be equally long, got 3 and 5 rounds"):
        plot.regret({"mine": [trace([1] * 3), trace([1] * 5)]})
    with pytest.raises(ValueError, match="at least one algorithm"):
        plot.regret({})


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_pictures_are_saved_without_pyplot(tmp_path, ending):
    had_pyplot = "matplotlib.pyplot" in sys.modules
    plot.regret({"mine": [trace([1, 0, 0]), trace([0, 0, 0])]}, path=tmp_path / f"x.{ending}", log=True)
    assert (tmp_path / f"x.{ending}").stat().st_size > 1000
    assert ("matplotlib.pyplot" in sys.modules) == had_pyplot


def test_axes_of_ones_own_are_used():
    first, second = Figure().subplots(1, 2)
    assert plot.regret({"mine": [trace([1, 2])]}, ax=second) is second
    assert not first.lines


def test_band_draws_belief_truth_and_pulled_arms(tmp_path):
    arms = np.random.default_rng(0).random((30, 1))
    belief = ExactGP(SquaredExponential(0.2), 0.01).prior(arms)
    belief.update([3, 8], [1.0, -1.0])
    ax = plot.band(belief, arms, truth=np.sin(6 * arms[:, 0]), width=3, path=tmp_path / "band.png")
    drawn = lines(ax)
    order = np.argsort(arms[:, 0])
    np.testing.assert_allclose(drawn["mean"].get_ydata(), belief.mean[order], atol=1e-9)
    np.testing.assert_allclose(drawn["true f"].get_ydata(), np.sin(6 * arms[order, 0]))
    assert sorted(drawn["pulled arms"].get_xdata()) == sorted(arms[[3, 8], 0])
    top = ax.collections[0].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx((belief.mean + 3 * belief.std).max())
    assert "true f" not in lines(plot.band(belief, arms))


def test_band_is_for_one_variable():
    arms = np.zeros((4, 2))
    with pytest.raises(ValueError, match=r"arms must be an \(n, 1\) array, got shape \(4, 2\)"):
        plot.band(ExactGP(SquaredExponential(0.2), 0.01).prior(arms), arms)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"needs matplotlib, .*: pip install '\.\[lab\]'"):
        plot.regret({"mine": [trace([1])]})
