"""Loops of an agent that keeps or discards changes: ``python -m benchmarks.ledger``, in half a minute.

1,000 loops of 200 proposals: 180 in random places have no effect, 20 improve the baseline by a number of standard
deviations of one run. Each proposal is measured in pairs with the baseline of that time, to which it is added if it is
kept. All rules see the same runs:

- ledger: `Ledger`, by the e-value of the signs of the pairs, as `noregret versus` has it; a proposal ends as soon as it
  is kept, so it takes fewer runs;
- ledger (spread): the same by Catoni's e-value, for a known standard deviation;
- best of one: keep a change if the median of its runs is better than that of the baseline's;
- MAD: keep it if it is better by two median absolute deviations of the baseline's values, each a median of its runs.
  The level of the baseline is known to this rule, so that its deviations are those of noise alone.

Printed in Markdown: the mean share of false ones among the kept changes (0 if none is kept), and the share of the true
improvements that are kept.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks import markdown
from noregret.comparison import Ledger
from noregret.comparison.sequences import _rates, log_stake
from noregret.gp.influence import influence
from noregret.gp.posterior import Floats, Rng

LOOPS, PROPOSALS, TRUE = 1000, 200, 20
RUNS = (2, 5, 10, 20, 40)
Rules = dict[str, tuple[float, float]]


def calm(shape: tuple[int, ...], rng: Rng) -> Floats:
    return rng.standard_normal(shape)


def stalls(shape: tuple[int, ...], rng: Rng) -> Floats:
    """Normal noise; 3% of the runs are worse by 30 standard deviations."""
    return calm(shape, rng) - 30 * (rng.random(shape) < 0.03)


def highest(gains: Floats, has_spread: bool) -> Floats:
    """The highest logarithm of the e-value within the pairs of each proposal: where it stops if it is kept."""
    pairs = gains.shape[-1]
    if has_spread:
        rates, _ = _rates(pairs, math.sqrt(2), 0.95, 2.0)
        stakes = influence(rates * gains, 1.0) - rates**2  # (rate spread)^2 / 2 with the spread sqrt(2)
        return np.asarray(stakes.cumsum(axis=-1).max(axis=-1))
    stakes = np.array(
        [[log_stake(wins, max(count - wins, 0)) for wins in range(pairs + 1)] for count in range(pairs + 1)]
    )
    wins = (gains > 0).cumsum(axis=-1)
    return np.asarray(stakes[np.arange(1, pairs + 1), wins].max(axis=-1))


def kept_by_ledger(logs: Floats) -> Floats:
    """Decisions of `Ledger` on proposals with these logarithms of e-values."""
    ledger = Ledger()
    return np.array([ledger.judge(math.exp(min(log, 700.0))) for log in logs])


def simulated(runs: int, effect: float, noise=calm, loops: int = LOOPS, seed: int = 0) -> Rules:  # type: ignore[no-untyped-def]
    """Mean share of false keeps, and share of improvements kept, of each rule at this number of pairs a proposal."""
    rng, decided = np.random.default_rng([seed, runs]), dict[str, list[Floats]]()
    is_true = rng.random((loops, PROPOSALS)).argsort(axis=1) < TRUE
    for chunk in np.array_split(np.arange(loops), max(loops // 50, 1)):
        shape = (len(chunk), PROPOSALS, runs)
        old, new = noise(shape, rng), noise(shape, rng) + effect * is_true[chunk, :, None]
        base, gain = np.median(old, axis=-1), np.median(new, axis=-1) - np.median(old, axis=-1)
        found = {"ledger": np.stack([*map(kept_by_ledger, highest(new - old, False))])}
        if noise is calm:
            found["ledger (spread)"] = np.stack([*map(kept_by_ledger, highest(new - old, True))])
        found |= {"best of one": gain > 0, "MAD": gain > 2 * np.median(abs(base), axis=1, keepdims=True)}
        for name, kept in found.items():
            decided.setdefault(name, []).append(kept)
    rules = {name: np.concatenate(parts) for name, parts in decided.items()}
    false = {name: (kept & ~is_true).sum(axis=1) / np.maximum(kept.sum(axis=1), 1) for name, kept in rules.items()}
    return {name: (float(false[name].mean()), float(kept[is_true].mean())) for name, kept in rules.items()}


def main() -> None:
    rows = []
    for noise, effect in ((calm, 1.0), (calm, 2.0), (calm, 4.0), (stalls, 2.0)):
        found = [simulated(runs, effect, noise) for runs in RUNS]
        for name in found[0]:
            cells = [f"{100 * each[name][0]:.1f}%, {100 * each[name][1]:.0f}%" for each in found]
            rows.append([f"{effect:g}{', stalls' if noise is stalls else ''}", name, *cells])
    print(markdown.table(["improvement", "rule", *(f"{runs} pairs" for runs in RUNS)], rows))


if __name__ == "__main__":
    main()
