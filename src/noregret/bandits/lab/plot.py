"""Pictures of runs and of beliefs: ``noregret.plot``.

Every function takes traces by the name that the legend shows, draws on ``ax`` or on a new figure, saves the picture if
``path`` is given, and returns the axes. An algorithm has the same colour and line in every picture. The colours are
those of Okabe and Ito, which colour-blind readers can tell apart.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import numpy as np

from noregret.bandits.lab.trace import Trace, summarise
from noregret.extra import extra
from noregret.gp.posterior import Floats, Ints, Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["STYLES", "active_arms", "band", "dictionary_size", "regret", "simple_regret", "style"]

Path = str | os.PathLike[str]
Legend = Literal["right", "below"]

POINTS = 500
"""Largest number of points drawn of a curve."""

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, GREY, BROWN = "#0072B2", "#D55E00", "#CC79A7", "#999999", "#8C564B"
SOLID, DASHED, DOTTED, DASHDOT = "-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))
LONG_DASHED = (0, (10, 2))

STYLES: dict[str, tuple[str, Any]] = {
    "igp-ucb": (BLUE, SOLID),
    "gp-ucb": (SKY, SOLID),
    "gp-ts": (ORANGE, SOLID),
    "gp-ei": (GREEN, SOLID),
    "gp-pi": (PURPLE, SOLID),
    "ay-ucb": (BLACK, SOLID),
    "amm-ucb": (RED, SOLID),
    "dmm-ucb": (SKY, DASHED),
    "tgp-ucb": (GREEN, DASHED),
    "ata-gp-ucb": (RED, DASHED),
    "ata-gp-ucb-nystrom": (RED, DASHED),
    "ata-gp-ucb-qff": (BLUE, DASHED),
    "mom-gp-ucb": (ORANGE, DASHDOT),
    "hvt-ucb": (BLACK, DASHED),
    "catoni-reds": (BROWN, SOLID),
    "catoni-bpe": (BROWN, DASHED),
    "bkb": (GREEN, DASHDOT),
    "bbkb": (RED, DASHDOT),
    "ada-bkb": (BROWN, DOTTED),
    "mini-gp-ucb": (PURPLE, DASHDOT),
    "mini-bkb": (BLUE, DASHDOT),
    "bpe": (ORANGE, DASHED),
    "reds": (RED, DOTTED),
    "gp-threds": (PURPLE, DASHED),
    "a-gp-ucb": (PURPLE, DOTTED),
    "lb-gp-ucb": (GREEN, DOTTED),
    "rcgp-ucb": (SKY, DASHDOT),
    "cgp-ucb": (BLUE, LONG_DASHED),
    "tv-gp-ucb": (ORANGE, LONG_DASHED),
    "sw-gp-ucb": (GREEN, LONG_DASHED),
    "r-gp-ucb": (RED, LONG_DASHED),
    "wgp-ucb": (PURPLE, LONG_DASHED),
    "random": (GREY, SOLID),
}
"""Colour and line of every algorithm, by name."""

_OTHERS = [
    style
    for style in product((BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE), (DOTTED, DASHDOT, DASHED, LONG_DASHED))
    if style not in STYLES.values()
]


def regret(
    traces_by_name: Mapping[str, Sequence[Trace]],
    *,
    path: Path | None = None,
    log: bool = False,
    ax: Axes | None = None,
    average: bool = False,
    rates: bool = False,
    legend: Legend = "right",
) -> Axes:
    """Draw the mean cumulative regret of every algorithm, with a band of one standard deviation over the trials.

    Parameters
    ----------
    traces_by_name : mapping of str to sequence of Trace
    path : str or path, optional
        Save the picture here; the suffix sets the format (.png, .pdf, .svg).
    log : bool
        Logarithmic axes, on which a regret of order T^p is a line of slope p.
    ax : Axes, optional
        Draw here instead of on a new figure.
    average : bool
        Draw regret divided by rounds.
    rates : bool
        Write the slope p of every curve, over its last ten-fold of rounds, into the legend.
    legend : 'right' or 'below'

    Returns
    -------
    Axes

    Examples
    --------
    >>> import noregret
    >>> problem = noregret.problems.NAMES["rkhs-se"](rng=0)
    >>> algorithm = noregret.algorithms.amm_ucb(problem.kernel, **{"norm": problem.norm, "noise": 0.1})
    >>> traces = [noregret.run(algorithm, problem, 50, rng=seed) for seed in range(2)]
    >>> noregret.plot.regret({"amm-ucb": traces}).get_ylabel()
    'cumulative regret'
    """
    if not traces_by_name:
        raise ValueError("traces of at least one algorithm must be given, got none")
    ax = ax or new_axes()
    for row in reversed(summarise(traces_by_name)):  # the legend in the order in which the curves end
        name, traces = row.algorithm, traces_by_name[row.algorithm]
        rounds = _thinned(_length(name, traces), log)
        curves = np.array([trace.cumulative_regret[rounds - 1] for trace in traces])
        label = f"{name} ~ T^{_slope(rounds, curves.mean(axis=0)):.2f}" if rates else name
        _curve(ax, name, rounds, curves / rounds if average else curves, label)
    if log:
        ax.set(ylim=_log_limits(ax), xscale="log", yscale="log")
    else:
        ax.set_ylim(bottom=0)
    ax.set(xlabel="round", ylabel="average regret" if average else "cumulative regret")
    finish(ax, _note(traces_by_name), path, legend)
    return ax


def simple_regret(
    traces_by_name: Mapping[str, Sequence[Trace]],
    *,
    path: Path | None = None,
    ax: Axes | None = None,
    legend: Legend = "right",
) -> Axes:
    """Draw the regret of the arm that every algorithm recommends after each round, on a logarithmic time axis.

    The arguments are as in `regret`.
    """
    regrets, missing = attrgetter("simple_regret"), "a simple regret: make them with this version of run"
    return _recorded(traces_by_name, regrets, missing, path, ax, legend, ylabel="simple regret", xscale="log")


def dictionary_size(
    traces_by_name: Mapping[str, Sequence[Trace]],
    *,
    path: Path | None = None,
    ax: Axes | None = None,
    legend: Legend = "right",
) -> Axes:
    """Draw the number of features of every algorithm: the size of its dictionary, or the arms pulled if it is exact.

    The traces must have recorded it: ``noregret.run(..., watch=["rank"])``. The other arguments are as in `regret`.
    """
    return _watched(traces_by_name, "rank", path, ax, legend, ylabel="features in use")


def active_arms(
    traces_by_name: Mapping[str, Sequence[Trace]],
    *,
    path: Path | None = None,
    ax: Axes | None = None,
    legend: Legend = "right",
) -> Axes:
    """Draw the number of arms still in play, for algorithms that eliminate arms.

    The traces must have recorded it: ``noregret.run(..., watch=["active"])``. The other arguments are as in `regret`.
    """
    return _watched(traces_by_name, "active", path, ax, legend, ylabel="arms still in play", yscale="log")


def band(
    belief: Posterior,
    arms: Any,
    *,
    width: float = 2.0,
    truth: Any = None,
    path: Path | None = None,
    ax: Axes | None = None,
    legend: Legend = "right",
) -> Axes:
    """Draw a belief about a function of one variable: its mean, its band and the pulled arms.

    Parameters
    ----------
    belief : Posterior
    arms : (n, 1) array
        The points at which to draw it.
    width : float
        The band is mean ± width · std.
    truth : (n,) array, optional
        The true f at these points.
    path : str or path, optional
        Save the picture here.
    ax : Axes, optional
        Draw here instead of on a new figure.
    legend : 'right' or 'below'

    Returns
    -------
    Axes
    """
    points = np.asarray(arms, dtype=float)
    if points.ndim != 2 or points.shape[1] != 1:
        raise ValueError(f"arms must be an (n, 1) array, got shape {points.shape}: band draws one variable only")
    ax = ax or new_axes()
    order = np.argsort(points[:, 0])
    x, (mean, std) = points[order, 0], belief.predict(points[order])
    ax.fill_between(x, mean - width * std, mean + width * std, color=BLUE, alpha=0.2, lw=0, label=f"± {width:g} std")
    ax.plot(x, mean, color=BLUE, label="mean")
    if truth is not None:
        ax.plot(x, np.asarray(truth)[order], color=BLACK, ls=DASHED, label="true f")
    pulled = belief.arms[belief.pulled, 0]
    ax.plot(
        pulled, np.zeros(len(pulled)), "|", color=RED, ms=9, transform=ax.get_xaxis_transform(), label="pulled arms"
    )
    ax.set(xlabel="x", ylabel="f(x)")
    finish(ax, None, path, legend)
    return ax


def style(name: str) -> tuple[str, Any]:
    """Colour and line style of an algorithm, computed from its name if it is not in ``STYLES``."""
    return STYLES.get(name) or _OTHERS[crc32(name.encode()) % len(_OTHERS)]


def _watched(traces_by_name: Mapping[str, Sequence[Trace]], what: str, *drawn: Any, **axes: Any) -> Axes:
    missing = f"noted {what!r}: make them with run(..., watch=[{what!r}])"
    return _recorded(traces_by_name, lambda trace: trace.watched.get(what, ()), missing, *drawn, **axes)


def _recorded(
    traces_by_name: Mapping[str, Sequence[Trace]],
    values: Callable[[Trace], Sequence[float] | Floats],
    missing: str,
    path: Path | None,
    ax: Axes | None,
    legend: Legend,
    **axes: str,
) -> Axes:
    """Draw the mean of values that every trace has recorded per round, on axes with these labels and scales."""
    ax = ax or new_axes()
    for name, traces in traces_by_name.items():
        rounds = _thinned(_length(name, traces), axes.get("xscale") == "log")
        curves = [np.asarray(values(trace)) for trace in traces]
        if any(len(curve) < rounds[-1] for curve in curves):
            raise ValueError(f"traces of {name} must have {missing}")
        _curve(ax, name, rounds, np.array([curve[rounds - 1] for curve in curves]), name)
    ax.set(xlabel="round", **axes)
    if axes.get("yscale") != "log":
        ax.set_ylim(bottom=0)
    finish(ax, _note(traces_by_name), path, legend)
    return ax


def _length(name: str, traces: Sequence[Trace]) -> int:
    lengths = sorted({len(trace.regret) for trace in traces})
    if len(lengths) > 1:
        raise ValueError(f"traces of {name} must be equally long, got {lengths[0]} and {lengths[-1]} rounds")
    return lengths[0]


def _curve(ax: Axes, name: str, rounds: Ints, curves: Floats, label: str) -> None:
    """Draw the mean of (trials, points) curves and a band of one standard deviation."""
    mean, (colour, line) = curves.mean(axis=0), style(name)
    if len(curves) > 1:
        sd = curves.std(axis=0, ddof=1)
        ax.fill_between(rounds, mean - sd, mean + sd, color=colour, alpha=0.15, lw=0)
    ax.plot(rounds, mean, color=colour, ls=line, label=label)


def _log_limits(ax: Axes) -> tuple[float, float]:
    """Limits of a logarithmic axis that show all lines; bands that reach 0 are cut off."""
    values = np.concatenate([np.asarray(line.get_ydata(), float) for line in ax.get_lines()])
    positive = values[values > 0]
    return (0.5 * positive.min(), 2 * positive.max()) if positive.size else (0.5, 2.0)


def _slope(rounds: Ints, curve: Floats) -> float:
    """Slope of a curve on logarithmic axes over its last ten-fold of rounds."""
    late = (rounds >= rounds[-1] / 10) & (curve > 0)
    if late.sum() < 2:
        return 0.0
    return float(np.polyfit(np.log(rounds[late]), np.log(curve[late]), 1)[0])


def _thinned(horizon: int, log: bool) -> Ints:
    spaced: Floats = (np.geomspace if log else np.linspace)(1, horizon, min(horizon, POINTS))
    return np.unique(spaced.round().astype(np.intp))


def _note(traces_by_name: Mapping[str, Sequence[Trace]]) -> str:
    trials = max(map(len, traces_by_name.values()))
    return f"mean ± 1 sd,\n{trials} trials" if trials > 1 else "1 trial"


def new_axes(width: float = 6.4, height: float = 4.0) -> Axes:
    """Axes on a new figure of this size in inches, without a window."""
    figure = extra("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return axes


def finish(ax: Axes, note: str | None, path: Path | None = None, legend: Legend = "right") -> None:
    """Add a light frame and a legend outside the axes, and save."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.margins(x=0)
    keywords: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.04, 1)}
    if legend == "below":
        columns = 1 if max(map(len, ax.get_legend_handles_labels()[1])) > 24 else 2
        keywords = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.16), "ncols": columns, "columnspacing": 1.2}
        note = note and note.replace("\n", " ")
    ax.legend(title=note, frameon=False, alignment="left", handlelength=2.8, **keywords)
    if path is not None:
        ax.figure.canvas.figure.savefig(path, dpi=200, bbox_inches="tight")
