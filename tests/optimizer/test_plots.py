"""Pictures of an Optimizer: what they show, and what they say where there is nothing to show."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer import plots

mpl.use("Agg")
SPACE = {
    "rate": Float(1e-4, 1, log=True),
    "layers": Int(1, 8),
    "model": Choice(["line", "forest", "a name that is long"]),
    "depth": Int(1, 30, log=True, when={"model": "forest"}),
}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def learnt(space=SPACE, goal="minimize", count=25, context=None, **options):
    rng = np.random.default_rng(0)
    opt = Optimizer(space, goal=goal, rng=0, context=context, **options)
    for i in range(count):
        trial = opt.ask(context={"load": float(rng.random())} if context else None)
        if i % 8 == 3:
            opt.fail(trial)
            continue
        values = [v for v in dict(trial.params).values() if not isinstance(v, str)]
        loss = sum(abs(np.log(v + 1e-3)) for v in values) + (trial.params.get("model") == "line")
        opt.tell(trial, (1 if goal == "minimize" else -1) * (loss + 0.1 * rng.standard_normal()) + 1000 * (i == 9))
    return opt


@pytest.fixture(scope="module", params=["minimize", "maximize"])
def optimizer(request):
    baseline = {"rate": 0.5, "layers": 2, "model": "line"}
    return learnt(goal=request.param, baseline=baseline)


@pytest.mark.slow
def test_history_shows_all_observations_the_best_so_far_and_the_baseline(optimizer):
    ax = optimizer.plot.history()
    drawn = {line.get_label(): line for line in ax.get_lines()}
    assert len(drawn["failed"].get_xdata()) == 3
    marks = ("observation", "of the recommended setting", "outlier", "beyond the edge")
    assert sum(len(drawn[kind].get_xdata()) for kind in marks if kind in drawn) == 22
    assert "beyond the edge" in drawn  # the outlier of 1000
    assert ax.get_ylim()[1] < 500
    assert drawn["best so far, estimate"].get_ydata()[-1] == optimizer.best().estimate
    assert drawn["baseline, estimate"].get_ydata()[0] == optimizer.predict(optimizer.baseline).estimate
    assert len(ax.figure.legends) == 1


@pytest.mark.slow
def test_effects_have_a_panel_for_each_parameter_of_the_recommended_setting(optimizer):
    best = optimizer.best()
    panels = optimizer.plot.effects()
    assert [panel.get_xlabel() for panel in panels] == [name for name in SPACE if name in best.params]
    assert panels[0].get_xscale() == "log"
    line = panels[0].get_lines()[0]
    at_best = list(line.get_xdata()).index(best.params["rate"])
    assert line.get_ydata()[at_best] == pytest.approx(best.estimate)
    with pytest.raises(ValueError, match=r"ax must be \d axes, one for each parameter, got 1: leave it out"):
        optimizer.plot.effects(mpl.pyplot.subplots()[1])


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [("rate", "layers"), ("model", "depth"), ("model", "rate")])
def test_contour_shows_two_parameters_and_the_recommended_setting(optimizer, a, b):
    ax = optimizer.plot.contour(a, b, ax=mpl.pyplot.subplots()[1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == (a, b)
    assert (ax.get_xscale(), ax.get_yscale()) == tuple(
        "log" if name in ("rate", "depth") else "linear" for name in (a, b)
    )
    shown = ax.get_lines()[-1].get_xydata()
    if a in optimizer.best().params and b in optimizer.best().params and a == "rate":
        assert shown.tolist() == [[optimizer.best().params[a], optimizer.best().params[b]]]


@pytest.mark.slow
def test_importance_has_a_bar_for_each_parameter_and_its_interval(optimizer):
    shares = optimizer.importance()
    ax = optimizer.plot.importance()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(shares)[::-1]
    assert [bar.get_width() for bar in ax.patches] == [share.estimate for share in shares.values()][::-1]


@pytest.mark.slow
def test_contexts_need_a_context_and_tables_have_a_history_only():
    opt = learnt({"x": Float(0, 1), "n": Int(1, 4)}, context={"load": Float(0, 1)})
    with pytest.raises(ValueError, match="pass context="):
        opt.plot.history()
    opt.plot.history(context={"load": 0.3})
    assert len(opt.plot.effects(context={"load": 0.3})) == 2
    opt.plot.contour("x", "n", context={"load": 0.3})
    for table in ([{"n": float(n)} for n in range(1, 9)], np.arange(1.0, 9.0)[:, None]):
        opt = Optimizer(table, rng=0)
        for _ in range(6):
            trial = opt.ask()
            opt.tell(trial, float(trial.params["n"] if isinstance(trial.params, dict) else trial.params[0]))
        opt.plot.history()
        for draw in (opt.plot.effects, opt.plot.importance, lambda: opt.plot.contour("n", "m")):  # noqa: B023
            with pytest.raises(ValueError, match="needs a space of Float, Int and Choice"):
                draw()


def test_pictures_have_the_style_of_the_page_and_leave_that_of_others_alone():
    """Both have the same colours by name in the page's style sheet."""
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    for x in (0.1, 0.4, 0.9):
        opt.tell({"x": x}, x)
    before = dict(mpl.rcParams)
    ax = opt.plot.history()
    assert dict(mpl.rcParams) == before
    css = (Path(plots.__file__).parents[1] / "studies/page/page.css").read_text().partition("@media")[0]
    colours = dict(re.findall(r"--(\w+): (#\w{6})", css))
    assert [plots.DOT, plots.LINE, plots.BEST, plots.WRONG, plots.GREY, plots.FAINT, *plots.SHADES] == [
        colours[name] for name in ("ink", "blue", "green", "orange", "soft", "line", "worst", "bestshade")
    ]
    for drawn in (ax, opt.plot.effects()[0]):
        assert not drawn.spines["top"].get_visible()
        assert mpl.colors.to_hex(drawn.spines["left"].get_edgecolor()) == plots.GREY
        assert next(line for line in drawn.get_lines() if len(line.get_xdata()) > 2).get_color() == plots.LINE


def test_errors_say_what_is_needed():
    opt = Optimizer(SPACE, rng=0)
    with pytest.raises(ValueError, match=r"history\(\) needs at least 3 values: tell more first"):
        opt.plot.history()
    with pytest.raises(ValueError, match=r"front\(\) needs several objectives"):
        opt.plot.front()
    for rate in (0.1, 0.2, 0.3):
        opt.tell({"rate": rate, "layers": 1, "model": "line"}, rate)
    with pytest.raises(ValueError, match=r"two measured parameters .* got 'speed'"):
        opt.plot.contour("speed", "rate")
    with pytest.raises(ValueError, match="got 'rate' twice"):
        opt.plot.contour("rate", "rate")
    assert "history, effects, contour" in repr(opt.plot)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    for x in (0.1, 0.5, 0.9):
        opt.tell({"x": x}, x)
    with pytest.raises(ImportError, match=r"this needs matplotlib, .*: pip install '\.\[plot\]'"):
        opt.plot.history()
