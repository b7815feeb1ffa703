"""Plots: pictures of an `Optimizer` with matplotlib, as ``opt.plot.history()``.

Every method draws on ``ax`` or on a new figure and returns the axes. Observations far worse than most are drawn as
triangles at the edge, so that they do not squeeze everything else into a line. Colours, marks and axes are those of
the page of `noregret.report`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from noregret.extra import extra
from noregret.formatting import number
from noregret.gp.posterior import Floats
from noregret.optimizer.answers.estimate import Estimate
from noregret.optimizer.model.constraints import RECOMMEND
from noregret.optimizer.model.evidence import FEWEST_OBSERVATIONS
from noregret.optimizer.space.parameters import Choice, Int, Parameter, identity, is_same_setting
from noregret.optimizer.space.space import ParameterSpace
from noregret.optimizer.trial import OUTLYING, Measurement, Observation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOT, LINE, BEST, WRONG, GREY, FAINT = "#1b1f24", "#0072b2", "#00704f", "#b84300", "#59636e", "#d8dee4"
"""Colours of observations, of estimates, of the recommended setting, of failures and outliers, of the baseline and the
axes, and of the grid. They are those of the page."""

STYLE: dict[str, Any] = {
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), GREY),
    **{"axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 0.7},
    **{"axes.labelcolor": DOT, "font.size": 9.5, "lines.linewidth": 2},
}
"""Options of matplotlib while a picture is drawn. By taste."""

SHADES = "#eef4f9", "#2f7fb8"
"""Colours of the worst and of the best estimate on a map. They are those of the page."""

CURVE, GRID, COLUMNS = 41, 25, 3
"""Points of a curve, and of a map along each of its two sides; the largest number of panels side by side. By taste."""

SMOOTH, LEVELS = 8, 14
"""Values of both parameters from which a map has contours, and their number; with fewer values it has cells."""

NARROW = 1000
"""A logarithmic axis over a smaller factor than this has labels at 1, 2 and 5 times powers of ten. By taste."""

LONGEST_LABEL, CROWDED = 14, 24
"""Characters of a name on an axis, and of all names of an axis from which they are slanted."""

MARKS: dict[str, dict[str, Any]] = {
    "dot": {"marker": "o", "color": DOT, "alpha": 0.45, "mew": 0, "markersize": 5, "label": "observation"},
    "best": {"marker": "o", "color": BEST, "markersize": 5.5, "label": "of the recommended setting"},
    "outlier": {"marker": "o", "color": WRONG, "fillstyle": "none", "markersize": 4.5, "label": "outlier"},
    "above": {"marker": "^", "color": GREY, "markersize": 5, "clip_on": False, "label": "beyond the edge"},
    "below": {"marker": "v", "color": GREY, "markersize": 5, "clip_on": False, "label": "beyond the edge"},
    "seen": {"marker": "o", "color": "white", "mec": "black", "mew": 0.6, "ms": 4, "clip_on": False},
    "star": {"marker": "*", "color": BEST, "mec": "white", "ms": 15, "clip_on": False},
    "at_least": {"marker": "^", "color": DOT, "fillstyle": "none", "ms": 6, "label": "at least this"},
    "at_most": {"marker": "v", "color": DOT, "fillstyle": "none", "ms": 6, "label": "at most this"},
    "failed": {"marker": "x", "color": WRONG, "markersize": 6, "clip_on": False, "label": "failed"},
}
"""Marks of observations by kind: on white, and the last three on a map. By taste."""

Draw = TypeVar("Draw", bound=Callable[..., Any])


def styled(draw: Draw) -> Draw:
    """The method, which draws in `STYLE`."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        with extra("matplotlib.pyplot", "plot").rc_context(STYLE):
            return draw(*args, **kwargs)

    return cast(Draw, drawn)


class Plots:
    """Pictures of what an optimizer has observed and concluded; each method returns matplotlib's axes.

    Needs the extra ``plot``. All of them take ``ax``, the axes to draw on instead of a new figure, and all but
    `importance` the ``context`` that they are about, if there are contexts.

    Examples
    --------
    >>> from noregret import Float, Optimizer
    >>> opt = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0)
    >>> for _ in range(12):
    ...     trial = opt.ask()
    ...     opt.tell(trial, (trial.params["x"] - 0.3) ** 2)
    >>> opt.plot.history().get_xlabel()
    'evaluation'
    """

    def __init__(self, optimizer: Any) -> None:  # an Optimizer, whose file imports this one
        self._optimizer = optimizer

    def __repr__(self) -> str:
        return "<plots of an Optimizer: history, effects, contour, importance, front>"

    @styled
    def history(self, ax: Axes | None = None, context: Any = None) -> Axes:
        """Draw the observations in order, and the best setting measured so far with its interval.

        The best so far is judged by all observations, those that came later too. It ends with the recommended setting.
        """
        best, seen, own = self._best(context, "history"), self._seen, ax is None
        ax = _axes(ax, (7.0, 3.6))
        last, ends = len(self._answers), _Ends.of([measurement.value for measurement in seen.values()], best)
        steps = [*self._best_so_far(best), (last + 0.5, best)]
        along, kept = [place for place, _ in steps], [estimate for _, estimate in steps]
        ax.step(along, [point.estimate for point in kept], where="post", color=LINE, label="best so far, estimate")
        if math.isfinite(best.upper - best.lower):
            lower, upper = (
                np.clip([getattr(point, end) for point in kept], *ends.beyond) for end in ("lower", "upper")
            )
            label = f"its {100 * best.level:g}% interval"
            ax.fill_between(along, lower, upper, step="post", color=LINE, alpha=0.18, linewidth=0, label=label)
        if self._optimizer.baseline is not None:
            height = self._optimizer.predict(self._optimizer.baseline, context).estimate
            ax.axhline(height, color=GREY, linestyle="--", linewidth=1, label="baseline, estimate")
        _dots(ax, ends, seen.items(), best)
        failed = [i + 1 for i, answer in enumerate(self._answers) if answer.value is None]
        if failed:
            foot = ends.limits[self._optimizer.goal == "minimize"]
            ax.plot(failed, [foot] * len(failed), **MARKS["failed"], linestyle="none", zorder=3)
        ax.set(xlabel="evaluation", ylabel="value", xlim=(0.5, last + 0.5), ylim=ends.limits)
        ax.xaxis.set_major_locator(extra("matplotlib.ticker", "plot").MaxNLocator(integer=True))
        if own:
            ax.figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize="small")
        else:
            ax.legend(frameon=False, fontsize="small")
        return ax

    @styled
    def effects(self, ax: Any = None, context: Any = None) -> Any:
        """Draw the estimate along each parameter, with the others as in the recommended setting, and its interval.

        Dots are observations, whose other parameters differ. Parameters that do not apply to the recommended setting
        are left out.

        Parameters
        ----------
        ax : Axes or array of Axes, optional
            As many as there are panels.

        Returns
        -------
        array of Axes
            One for each panel.
        """
        space, best, seen = self._space("effects"), self._best(context, "effects"), list(self._seen.values())
        names = [name for name in space.names if name in best.params]
        panels, ends = _panels(ax, len(names)), _Ends.of([measurement.value for measurement in seen], best)
        for panel, name in zip(panels, names, strict=True):
            parameter, values = space.parameters[name], space.along(name, CURVE, best.params[name])
            curve = self._optimizer.predict_many(space.around(best.params, {name: values}), context)
            columns = [[row.estimate for row in curve], [row.lower for row in curve], [row.upper for row in curve]]
            middle, lower, upper = (np.clip(column, *ends.beyond) for column in columns)
            along = _places(parameter, values)
            if isinstance(parameter, Choice):
                panel.bar(along, upper - lower, 0.5, lower, color=LINE, alpha=0.18)
                panel.plot(along, middle, "_", color=LINE, markersize=18, markeredgewidth=2)
            else:
                panel.fill_between(along, lower, upper, color=LINE, alpha=0.18, linewidth=0)
                panel.plot(along, middle, color=LINE)
            panel.axvline(_places(parameter, [best.params[name]])[0], color=BEST, linewidth=1, linestyle=":", zorder=1)
            having = [measurement for measurement in seen if name in measurement.params]
            places = _places(parameter, [measurement.params[name] for measurement in having])
            _dots(panel, ends, zip(places, having, strict=True), best)
            _set_axis(panel.xaxis, parameter)
            panel.set(xlabel=name, ylim=ends.limits)
        for panel in panels[::COLUMNS]:
            panel.set_ylabel("value")
        return panels

    @styled
    def contour(self, a: str, b: str, ax: Axes | None = None, context: Any = None) -> Axes:
        """Draw the estimate over two parameters, with the others as in the recommended setting.

        Dots are observations, and the star is the recommended setting. Empty areas are combinations that do not exist.

        Parameters
        ----------
        a, b : str
            Names of the parameters, across and up.
        """
        space, best = self._space("contour"), self._best(context, "contour")
        settings = [*(measurement.params for measurement in self._seen.values()), best.params]
        known = {name: value for params in settings for name, value in params.items()}
        for name in (a, b):
            if name not in space.parameters or name not in known:
                raise ValueError(f"contour() needs the names of two measured parameters of {space.names}, got {name!r}")
        if a == b:
            raise ValueError(f"contour() needs two parameters that differ, got {a!r} twice")
        across, up = (space.along(name, GRID, known[name]) for name in (a, b))
        pairs = [(x, y) for y in up for x in across]
        absent = {name: [value] * len(pairs) for name, value in known.items() if name not in best.params}
        points = space.around(best.params, {**absent, a: [x for x, _ in pairs], b: [y for _, y in pairs]})
        estimates = [estimate.estimate for estimate in self._optimizer.predict_many(points, context)]
        exists = [a in params and b in params for params in points]
        if not any(exists):
            raise ValueError(f"contour() needs parameters that apply together to {best.params}, got {a!r} and {b!r}")
        ax, names = _axes(ax, (5.6, 4.2)), (a, b)
        sides = [space.parameters[name] for name in names]
        xs, ys = (_places(parameter, values) for parameter, values in zip(sides, (across, up), strict=True))
        shape = (len(ys), len(xs))
        heights = np.ma.masked_array(np.reshape(estimates, shape), ~np.reshape(exists, shape))
        shades = SHADES if self._optimizer.goal == "maximize" else SHADES[::-1]
        colours = extra("matplotlib.colors", "plot").LinearSegmentedColormap.from_list("shades", shades)
        if min(shape) >= SMOOTH and not any(isinstance(parameter, Choice) for parameter in sides):
            drawn = ax.contourf(xs, ys, heights, levels=LEVELS, cmap=colours)
        else:
            cells = [_edges(parameter, places) for parameter, places in zip(sides, (xs, ys), strict=True)]
            drawn = ax.pcolormesh(*cells, heights, cmap=colours)
        ax.figure.colorbar(drawn, ax=ax, label="estimate")
        observed = [answer.params for answer in self._optimizer.answers if answer.value is not None]
        failed = [answer.params for answer in self._optimizer.answers if answer.value is None]
        for kind, settings in (("seen", observed), ("failed", failed), ("star", [best.params])):
            having = [params for params in settings if a in params and b in params]
            if having:
                places = [_places(side, [row[name] for row in having]) for side, name in zip(sides, names, strict=True)]
                ax.plot(*places, **MARKS[kind], linestyle="none", zorder=3)
        for axis, parameter in zip((ax.xaxis, ax.yaxis), sides, strict=True):
            _set_axis(axis, parameter)
        ax.set(xlabel=a, ylabel=b)
        return ax

    @styled
    def importance(self, ax: Axes | None = None) -> Axes:
        """Draw the share of the difference between settings that each parameter accounts for, with its interval."""
        shares = self._optimizer.importance()
        if self._optimizer.goals:
            raise ValueError("importance() draws one objective, and this Optimizer has several: use opt.importance()")
        names, bars = list(shares)[::-1], list(shares.values())[::-1]
        ax = _axes(ax, (6.0, 0.9 + 0.35 * len(names)))
        middle, lower, upper = np.array([share[:3] for share in bars]).T
        errors = [middle - lower, upper - middle]
        ax.barh([_cut(name) for name in names], middle, height=0.6, color=LINE, alpha=0.45)
        ax.grid(axis="y", visible=False)
        ax.errorbar(middle, range(len(names)), xerr=errors, fmt="none", ecolor="black", elinewidth=1, capsize=3)
        level = f"{100 * bars[0].level:g}% intervals"
        ax.set(xlabel=f"share of the differences between settings ({level})", xlim=(0, 1.02))
        return ax

    @styled
    def front(self, ax: Axes | None = None, context: Any = None, *, x: str | None = None, y: str | None = None) -> Axes:
        """Draw the best compromises between two objectives, with their intervals, and the observations.

        Parameters
        ----------
        x, y : str, optional
            The objectives, across and up; by default the first two.
        """
        goals = self._optimizer.goals
        if not goals:
            raise ValueError(
                "front() needs several objectives, and this Optimizer has one: see history() and effects()"
            )
        members = self._optimizer.front(context)
        a, b = self._two(list(goals), x, y)
        ax = _axes(ax, (6.2, 4.4))
        ends = [_Ends.of_front(members, name) for name in (a, b)]
        drawn: dict[str, list[Floats]] = {}
        for measurement in list[Any](self._seen.values()):
            if {a, b} <= set(measurement.value):
                told = np.array([measurement.value[a], measurement.value[b]])
                near = np.clip(told, *np.transpose([each.limits for each in ends]))
                kind = "outlier" if min(measurement.trust[a], measurement.trust[b]) < OUTLYING else "dot"
                drawn.setdefault(kind if (near == told).all() else "above", []).append(near)
        for kind, points in drawn.items():
            ax.plot(*np.transpose(points), **{**MARKS[kind], "alpha": 0.45}, linestyle="none")
        across, up = (np.array([member.values[name] for member in members]) for name in (a, b))
        errors = [
            np.abs([[row.values[n] - end[n] for end in (row.lower, row.upper)] for row in members]).T for n in (a, b)
        ]
        label = f"front, with its {100 * members[0].level:g}% intervals"
        ax.errorbar(across, up, errors[1], errors[0], fmt="none", ecolor=LINE, elinewidth=0.7, alpha=0.5)
        shades = ax.scatter(
            across, up, c=[row.probability for row in members], cmap="Blues", vmin=-0.3, vmax=1, edgecolors=LINE, s=36,
            zorder=4, label=label,
        )  # fmt: skip
        if len(goals) == 2:
            order, is_least = np.argsort(across), goals[a] == "minimize"
            ax.step(across[order], up[order], where="post" if is_least else "pre", color=LINE, linewidth=1)
        if self._optimizer.baseline is not None:
            base = self._optimizer.predict(self._optimizer.baseline, context).values
            ax.plot(base[a], base[b], marker="D", color=GREY, linestyle="none", label="baseline, estimate", zorder=5)
        ax.set(xlabel=f"{a} ({goals[a]})", ylabel=f"{b} ({goals[b]})", xlim=ends[0].limits, ylim=ends[1].limits)
        bar = ax.figure.colorbar(shades, ax=ax, label="probability of being on the front")
        bar.ax.set_ylim(0, 1)
        ax.legend(frameon=False, fontsize="small")
        return ax

    @staticmethod
    def _two(names: list[str], x: str | None, y: str | None) -> tuple[str, str]:
        """Names of two objectives."""
        for name in (x, y):
            if name is not None and name not in names:
                raise ValueError(f"front() needs names of objectives, which are {names}, got {name!r}")
        a = x or next(name for name in names if name != y)
        b = y or next(name for name in names if name != a)
        if a == b:
            raise ValueError(f"front() needs two objectives that differ, got {a!r} twice")
        return a, b

    def _space(self, method: str) -> ParameterSpace:
        """Named parameters; ValueError for a table."""
        space = self._optimizer.space
        if not isinstance(space, ParameterSpace):
            raise ValueError(
                f"{method}() needs a space of Float, Int and Choice, got a table of candidates: use history()"
            )
        return space

    def _best(self, context: Any, method: str) -> Estimate:
        if self._optimizer.goals:
            raise ValueError(f"{method}() is about one objective, and this Optimizer has several: use front()")
        if sum(told.value is not None and told.bound is None for told in self._optimizer.answers) < FEWEST_OBSERVATIONS:
            raise ValueError(f"{method}() needs at least {FEWEST_OBSERVATIONS} values: tell more first")
        best: Estimate = self._optimizer.best(context)
        return best

    @property
    def _answers(self) -> list[Observation]:
        """One answer of each evaluation, in order."""
        return [answer for answer in self._optimizer.answers if not answer.is_report]

    @property
    def _seen(self) -> dict[int, Measurement]:
        """Observations with a value, at the highest fidelity if there is one, by their place from 1."""
        measurements = iter(self._optimizer.measurements)
        measured = [(told, None if told.value is None else next(measurements)) for told in self._optimizer.answers]
        placed = enumerate(((answer, known) for answer, known in measured if not answer.is_report), 1)
        highest = {name: parameter.high for name, parameter in (self._optimizer.fidelity or {}).items()} or None
        return {place: known for place, (answer, known) in placed if known is not None and answer.fidelity == highest}

    def _best_so_far(self, best: Estimate) -> list[tuple[float, Estimate]]:
        """Place and estimate of the best setting measured so far, whenever it changed; the last is the recommended one.

        Settings that are unlikely to meet the constraints do not count, unless the recommended one is as unlikely. Each
        context has another best setting, so there is only the recommended one with contexts.
        """
        if self._optimizer.context is not None:
            return [(0.5, best)]
        key, steps, promise = self._optimizer.space.key, list[tuple[float, Estimate]](), -math.inf
        first: dict[Any, int] = {}
        seen = {place: measurement.params for place, measurement in self._seen.items() if measurement.bound is None}
        for place, params in seen.items():
            first.setdefault(key(params), place)
        last = first.get(key(best.params), len(self._answers))
        measured = [place for place in first.values() if place < last]
        estimates = self._optimizer.predict_many([seen[place] for place in measured])
        for place, estimate in zip(measured, estimates, strict=True):
            worst = estimate.lower if self._optimizer.goal == "maximize" else -estimate.upper
            if worst > promise and estimate.feasible >= min(RECOMMEND, best.feasible):
                promise = worst
                steps.append((place, estimate))
        return [*steps, (last, best)]


class _Ends(NamedTuple):
    """Range of values that a picture shows."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float], best: Estimate) -> _Ends:
        """Range of all values but those far from most, and of the interval of the recommended setting."""
        numbers = np.array(list(values), dtype=float)
        low, high = np.quantile(numbers, [0.1, 0.9])
        margin = 3 * (high - low) or math.inf
        near = [*np.clip(numbers, low - margin, high + margin), best.lower, best.upper]
        near = [end for end in near if math.isfinite(end)]
        return cls(min(near), max(near))

    @classmethod
    def of_front(cls, front: Sequence[Any], name: str) -> _Ends:
        """Range of one objective on a front, and of the intervals as far as half of that beyond its ends."""
        middle = [member.values[name] for member in front]
        reach = 0.5 * (max(middle) - min(middle)) or math.inf
        low = max(min(member.lower[name] for member in front), min(middle) - reach)
        high = min(max(member.upper[name] for member in front), max(middle) + reach)
        return cls(low, high) if math.isfinite(high - low) else cls(min(middle), max(middle))

    @property
    def limits(self) -> tuple[float, float]:
        margin = 0.06 * (self.high - self.low) or 0.05 * abs(self.high) or 0.5
        return self.low - margin, self.high + margin

    @property
    def beyond(self) -> tuple[float, float]:
        """Ends that are outside of the picture: what is clipped at them looks as if it was not."""
        margin = self.limits[1] - self.limits[0]
        return self.limits[0] - margin, self.limits[1] + margin


def _dots(ax: Axes, ends: _Ends, placed: Iterable[tuple[float, Measurement]], best: Estimate) -> None:
    """Observations: those of the recommended setting stand out, outliers are hollow, far ones at the edge.

    A bound is a hollow triangle that points to where the value is.
    """
    drawn: dict[str, list[tuple[float, float]]] = {}
    low, high = ends.limits
    for place, measured in placed:
        edge = "above" if measured.value > high else "below" if measured.value < low else ""
        kind = "outlier" if measured.trust < OUTLYING else "best" if _is_same(measured.params, best.params) else "dot"
        kind = measured.bound or kind
        drawn.setdefault(edge or kind, []).append((place, min(max(measured.value, low), high)))
    for kind, points in drawn.items():
        ax.plot(*zip(*points, strict=True), **MARKS[kind], linestyle="none", zorder=3)


def _is_same(params: Any, other: Any) -> bool:
    """Return True if two params are the same, rows of an array too."""
    if isinstance(params, Mapping):
        return is_same_setting(params, other)
    return bool(np.array_equal(params, other))


def _places(parameter: Parameter, values: Sequence[Any]) -> list[float]:
    """Numbers on an axis: the values, or the positions of options."""
    if not isinstance(parameter, Choice):
        return [float(value) for value in values]
    positions = {identity(option): float(i) for i, option in enumerate(parameter.options)}
    return [positions[identity(value)] for value in values]


def _edges(parameter: Parameter, places: Sequence[float]) -> Floats:
    """Ends of the cells around places."""
    is_log = not isinstance(parameter, Choice) and parameter.log
    along = np.log(places) if is_log else np.array(places)
    if len(along) == 1:
        along = np.array([along[0] - 0.5, along[0] + 0.5])
    else:
        middles = (along[1:] + along[:-1]) / 2
        along = np.array([2 * along[0] - middles[0], *middles, 2 * along[-1] - middles[-1]])
    return np.asarray(np.exp(along) if is_log else along)


def _set_axis(axis: Any, parameter: Parameter) -> None:
    """Scale, ticks and limits for the values of a parameter."""
    ticker = extra("matplotlib.ticker", "plot")
    if isinstance(parameter, Choice):
        names = [_cut(option) for option in parameter.options]
        axis.set_ticks(range(len(names)), names)
        if axis.axis_name == "x" and sum(map(len, names)) > CROWDED:
            axis.set_tick_params(rotation=20)
        axis.axes.set(**{f"{axis.axis_name}lim": (-0.5, len(names) - 0.5)})
    elif parameter.log:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        if parameter.high < NARROW * parameter.low:
            axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(lambda value, _: number(value))
            axis.set_minor_locator(ticker.NullLocator())
    elif isinstance(parameter, Int):
        axis.set_major_locator(ticker.MaxNLocator(integer=True))


def _cut(name: Any) -> str:
    shown = number(name) if isinstance(name, float) else str(name)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "\u2026"


def _axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    """The axes to draw on, of a new figure if none are given."""
    pyplot = extra("matplotlib.pyplot", "plot")
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def _panels(ax: Any, count: int) -> Any:
    """As many axes as there are panels, of a new figure if none are given."""
    pyplot = extra("matplotlib.pyplot", "plot")
    if ax is not None:
        given = np.ravel(np.array(ax, dtype=object))
        if len(given) < count:
            raise ValueError(f"ax must be {count} axes, one for each parameter, got {len(given)}: leave it out")
        return given[:count]
    columns = min(count, COLUMNS)
    rows = math.ceil(count / columns)
    size = (3.2 * columns, 2.7 * rows)
    axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, sharey=True)[1]
    for spare in axes.ravel()[count:]:
        spare.remove()
    return axes.ravel()[:count]
