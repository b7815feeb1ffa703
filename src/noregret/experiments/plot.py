"""Pictures of regret and of beliefs. Colours are those of Okabe and Ito, which colour-blind readers can tell apart."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from noregret.belief.posterior import Floats, Ints, Posterior
from noregret.experiments.extra import extra
from noregret.experiments.summary import summarise
from noregret.experiments.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Path = str | os.PathLike[str]

POINTS = 500
"""Points drawn of a curve, at most."""

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
SOLID, DASHED, DOTTED, DASHDOT = "-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))

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
    "bkb": (GREEN, DASHDOT),
    "bbkb": (RED, DASHDOT),
    "mini-gp-ucb": (PURPLE, DASHDOT),
    "bpe": (ORANGE, DASHED),
    "reds": (RED, DOTTED),
    "gp-threds": (PURPLE, DASHED),
    "random": (GREY, SOLID),
}
"""Colour and line of every algorithm: the same in every picture."""

_OTHERS = [
    style
    for style in product((BLACK, BLUE, GREEN, ORANGE, PURPLE), (DOTTED, DASHDOT, DASHED))
    if style not in STYLES.values()
]


def style(name: str) -> tuple[str, Any]:
    """Return the colour and the line style of an algorithm; a name not in ``STYLES`` always gets the same too."""
    return STYLES.get(name) or _OTHERS[crc32(name.encode()) % len(_OTHERS)]


def regret(
    traces_by_name: Mapping[str, Sequence[Trace]],
    *,
    path: Path | None = None,
    log: bool = False,
    ax: Axes | None = None,
    average: bool = False,
) -> Axes:
    """Draw the mean cumulative regret of every algorithm, with a band of one standard deviation over the trials.

    Parameters
    ----------
    traces_by_name : mapping of str to sequence of Trace
    path : str or path, optional
        Save the picture here; the ending says how (.png, .pdf, .svg).
    log : bool
        Logarithmic axes, on which a regret of order T^p is a line of slope p.
    ax : Axes, optional
        Draw here rather than on a figure of its own.
    average : bool
        Draw regret divided by rounds.

    Returns
    -------
    Axes
    """
    if not traces_by_name:
        raise ValueError("traces of at least one algorithm must be given, got none")
    ax = ax or _axes()
    for row in reversed(summarise(traces_by_name)):  # the legend in the order in which the curves end
        _curve(ax, row.algorithm, traces_by_name[row.algorithm], log, average)
    if log:
        ax.set(xscale="log", yscale="log")
    else:
        ax.set_ylim(bottom=0)
    trials = max(map(len, traces_by_name.values()))
    ax.set(xlabel="round", ylabel="average regret" if average else "cumulative regret")
    note = f"mean ± 1 sd,\n{trials} trials" if trials > 1 else "1 trial"
    _finish(ax, note, path)
    return ax


def band(
    belief: Posterior,
    arms: Any,
    *,
    width: float = 2.0,
    truth: Any = None,
    path: Path | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a belief about a function of one variable: its mean, its band, and which arms were pulled.

    Parameters
    ----------
    belief : Posterior
    arms : (n, 1) array
        The points to draw it at.
    width : float
        The band is mean ± width · std.
    truth : (n,) array, optional
        The true f at these points.
    path : str or path, optional
        Save the picture here.
    ax : Axes, optional
        Draw here rather than on a figure of its own.

    Returns
    -------
    Axes
    """
    points = np.asarray(arms, dtype=float)
    if points.ndim != 2 or points.shape[1] != 1:
        raise ValueError(f"arms must be an (n, 1) array, got shape {points.shape}: band draws one variable only")
    ax = ax or _axes()
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
    _finish(ax, None, path)
    return ax


def _curve(ax: Axes, name: str, traces: Sequence[Trace], log: bool, average: bool) -> None:
    lengths = sorted({len(trace.regret) for trace in traces})
    if len(lengths) > 1:
        raise ValueError(f"traces of {name} must be equally long, got {lengths[0]} and {lengths[-1]} rounds")
    rounds = _thinned(lengths[0], log)
    curves = np.array([trace.cumulative_regret[rounds - 1] for trace in traces])
    curves = curves / rounds if average else curves
    mean, (colour, line) = curves.mean(axis=0), style(name)
    if len(traces) > 1:
        sd = curves.std(axis=0, ddof=1)
        ax.fill_between(rounds, mean - sd, mean + sd, color=colour, alpha=0.15, lw=0)
    ax.plot(rounds, mean, color=colour, ls=line, label=name)


def _thinned(horizon: int, log: bool) -> Ints:
    spaced: Floats = (np.geomspace if log else np.linspace)(1, horizon, min(horizon, POINTS))
    return np.unique(spaced.round().astype(np.intp))


def _axes() -> Axes:
    figure = extra("matplotlib.figure").Figure(figsize=(6.4, 4.0), layout="constrained")
    axes: Axes = figure.add_subplot()
    return axes


def _finish(ax: Axes, note: str | None, path: Path | None) -> None:
    """Add a light frame, a legend that covers no curve, and save."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.margins(x=0)
    ax.legend(title=note, loc="upper left", bbox_to_anchor=(1.04, 1), frameon=False, alignment="left", handlelength=2.8)
    if path is not None:
        ax.figure.canvas.figure.savefig(path, dpi=200, bbox_inches="tight")
