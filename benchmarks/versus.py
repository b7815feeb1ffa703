"""False alarms and pairs needed of A against B: ``python -m benchmarks.versus``, or ``--quick``.

Run times are simulated one after the other: exp(condition of the machine + change of the option), see `CONDITIONS`.

False alarms: both options are the same. For each comparison, one of up to 200 pairs, the verdict is read after each
pair, and any "better" or "worse" at any time is a false alarm. On the same conditions:

- a paired t-test after each pair, stopped at p < 5%, as in home-made gates;
- hyperfine: 10 runs of A, then 10 of B. An alarm is a ratio of the means that differs from 1 by more than the error
  printed beside it, the standard deviations added in quadrature;
- pytest-benchmark: 5 rounds of A, then 5 of B, with ``--benchmark-compare-fail=mean:5%`` or ``min:5%``. It looks for
  slowdowns only, so half of its errors are not counted.

Pairs needed: B is slower by 1 to 10%, noise per run 1 to 5%; the median over comparisons, and the share of wrong
verdicts. Equal: pairs until "equal" for the same options and a margin.

Printed in Markdown. Each result is written to ``--out``, and read from there if it is known.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from benchmarks import markdown
from benchmarks.lines import add, stored
from noregret.bandits.lab.trace import fraction_interval
from noregret.comparison import Comparison
from noregret.gp.posterior import Floats, Rng

RESULTS = Path(__file__).parent / "results" / "versus.jsonl"
PAIRS = 200
"""Most pairs of a comparison in which nothing differs."""
MOST = 400
"""Most pairs of a comparison with a difference."""

Condition = Callable[[int, Rng], Floats]


def calm(runs: int, rng: Rng, noise: float = 0.02) -> Floats:
    """Log-normal noise of 2%."""
    return noise * rng.standard_normal(runs)


def stalls(runs: int, rng: Rng, noise: float = 0.02) -> Floats:
    """Noise of 2%; 3% of the runs take five times as long."""
    return calm(runs, rng, noise) + math.log(5) * (rng.random(runs) < 0.03)


def walk(runs: int, rng: Rng) -> Floats:
    """Noise of 2%; the machine's speed is a random walk, with steps of 0.5% per run."""
    return calm(runs, rng) + 0.005 * rng.standard_normal(runs).cumsum()


def step(runs: int, rng: Rng) -> Floats:
    """Noise of 2%; the machine becomes 10% slower at a random time in the first 100 runs."""
    return calm(runs, rng) + 0.1 * (np.arange(runs) >= rng.integers(100))


def autoregressive(runs: int, rng: Rng) -> Floats:
    """Noise of 5%, with a correlation of 0.9 from run to run."""
    shocks = 0.05 * math.sqrt(1 - 0.9**2) * rng.standard_normal(runs)
    found = [0.05 * rng.standard_normal()]
    for shock in shocks[1:]:
        found.append(0.9 * found[-1] + shock)
    return np.array(found)


def student(runs: int, rng: Rng) -> Floats:
    """Student's t with 2 degrees of freedom, times 2%: infinite variance."""
    return 0.02 * rng.standard_t(2, runs)


def clock(runs: int, rng: Rng) -> Floats:
    """Noise of 5%, by a clock with 12 ticks in a run: most pairs are tied or differ by one tick."""
    return np.log(np.round(12 * np.exp(0.05 * rng.standard_normal(runs))) / 12)


def together(runs: int, rng: Rng) -> Floats:
    """Stalls, the random walk, the step and Student's noise together."""
    return stalls(runs, rng) + walk(runs, rng) + step(runs, rng) + student(runs, rng)


CONDITIONS = [calm, stalls, walk, step, autoregressive, student, clock, together]


def compared(conditions: Floats, change: float, seed: int, within: str | None = None) -> Comparison:
    """A comparison on a machine with these conditions, up to its first verdict; B is slower by ``change``."""
    comparison, factors = Comparison(within=within, rng=seed), (1.0, 1 + change)
    times = iter(np.exp(conditions))
    for _ in range(len(conditions) // 2):
        for _ in range(2):
            option = comparison.ask()
            comparison.tell(option, factors[option] * float(next(times)))
        if comparison.decided:
            break
    return comparison


def peeking(conditions: Floats, seed: int) -> bool:
    """Paired t-test after each pair from the third on: True if p < 5% at any time. The order is random here, too."""
    pairs = conditions.reshape(-1, 2)
    differences = (pairs[:, 1] - pairs[:, 0]) * np.random.default_rng(seed).choice([-1, 1], size=len(pairs))
    n = np.arange(1, len(differences) + 1)
    means = differences.cumsum() / n
    variances = np.maximum((differences**2).cumsum() / n - means**2, 0) * n / np.maximum(n - 1, 1)
    found = np.abs(means) * np.sqrt(n) > stdtrit(np.maximum(n - 1, 1), 0.975) * np.sqrt(variances)
    return bool(found[2:].any())


def hyperfine(conditions: Floats) -> bool:
    """Rule of hyperfine's summary: the ratio of means differs from 1 by more than its printed error."""
    a, b = np.exp(conditions[:10]), np.exp(conditions[10:20])
    ratio = b.mean() / a.mean()
    error = ratio * math.hypot(a.std(ddof=1) / a.mean(), b.std(ddof=1) / b.mean())
    return bool(abs(ratio - 1) > error)


def pytest_benchmark(conditions: Floats, statistic: Callable[[Floats], float]) -> bool:
    """Rule of ``--benchmark-compare-fail``: slower by more than 5%, 5 rounds each."""
    a, b = np.exp(conditions[:5]), np.exp(conditions[5:10])
    return bool(statistic(b) > 1.05 * statistic(a))


RULES: dict[str, Callable[[Floats, int], bool]] = {
    "noregret": lambda its, seed: compared(its, 0.0, seed).decided,
    "t-test at each pair": peeking,
    "hyperfine": lambda its, seed: hyperfine(its),
    "pytest-benchmark mean:5%": lambda its, seed: pytest_benchmark(its, np.mean),
    "pytest-benchmark min:5%": lambda its, seed: pytest_benchmark(its, np.min),
}


def false_alarms(condition: Condition, comparisons: int) -> dict[str, Any]:
    """Number of false alarms of each rule."""
    counts = dict.fromkeys(RULES, 0)
    for seed in range(comparisons):
        its = condition(2 * PAIRS, np.random.default_rng([seed, 1]))
        for name, rule in RULES.items():
            counts[name] += rule(its, seed)
    return counts


def pairs_needed(condition: Condition, change: float, comparisons: int, within: str | None = None) -> dict[str, Any]:
    """Median of the pairs until the verdict, MOST + 1 for those without, and the number of wrong verdicts."""
    right, pairs, wrong = "equal" if within else "worse", [], 0
    for seed in range(comparisons):
        its = condition(2 * MOST, np.random.default_rng([seed, 2]))
        found = compared(its, change, seed, within)
        pairs.append(found.pairs if found.verdict == right else MOST + 1)
        wrong += found.verdict not in (right, "undecided")
    return {"median": float(np.median(pairs)), "decided": sum(count <= MOST for count in pairs), "wrong": wrong}


NOISES, CHANGES = (0.01, 0.02, 0.05), (0.01, 0.02, 0.05, 0.1)


def experiments(is_quick: bool) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
    """Key, number of comparisons and function of each result."""
    for condition in CONDITIONS:
        yield f"alarms {condition.__name__}", 50 if is_quick else 1000, partial(false_alarms, condition)
    for condition in (calm, stalls):
        for noise in NOISES:
            noisy = partial(condition, noise=noise)
            for change in CHANGES:
                key = f"pairs {condition.__name__} {noise} {change}"
                yield key, 20 if is_quick else 200, partial(pairs_needed, noisy, change)
            for margin in CHANGES:
                key = f"equal {condition.__name__} {noise} {margin}"
                within = f"{100 * margin:g}%"
                yield key, 20 if is_quick else 200, partial(pairs_needed, noisy, 0.0, within=within)


def show(known: dict[str, dict[str, Any]]) -> None:
    """Print the tables of all results that are known."""
    rows = []
    for condition in CONDITIONS:
        row = known.get(f"alarms {condition.__name__}")
        if row:
            shares = (fraction_interval(row[name], row["comparisons"]) for name in RULES)
            rows.append([(condition.__doc__ or "").rstrip("."), *(f"{100 * share.value:.1f}%" for share in shares)])
    print(markdown.table(["the machine", *RULES], rows))
    for kind, name in (("pairs", "difference"), ("equal", "margin")):
        head = ["noise", "stalls", *(f"{name} {100 * change:g}%" for change in CHANGES)]
        rows = []
        for condition in (calm, stalls):
            for noise in NOISES:
                cells = [known.get(f"{kind} {condition.__name__} {noise} {change}") for change in CHANGES]
                shown = [_pairs(cell) for cell in cells]
                rows.append([f"{100 * noise:g}%", "3% of runs" if condition is stalls else "none", *shown])
        print(markdown.table(head, rows))
    wrong = [(row["wrong"], row["comparisons"]) for row in known.values() if "wrong" in row]
    if wrong:
        print(
            f"{sum(w for w, _ in wrong)} wrong verdicts in the {sum(n for _, n in wrong)} comparisons of these tables."
        )


def _pairs(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    return f"{cell['median']:.0f}" if cell["median"] <= MOST else f"> {MOST}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer comparisons, nothing is stored")
    parser.add_argument("--out", type=Path, default=RESULTS, help="results, one per line")
    args = parser.parse_args()
    known = {} if args.quick else {row["key"]: row for row in stored(args.out)}
    for key, comparisons, run in experiments(args.quick):
        if key not in known:
            known[key] = {"key": key, "comparisons": comparisons, **run(comparisons)}
            if not args.quick:
                add(known[key], args.out)
    show(known)


if __name__ == "__main__":
    main()
