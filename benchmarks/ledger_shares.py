"""Which g_t a ledger of e-LOND should have: ``python -m benchmarks.ledger_shares``. Share of improvements kept."""

import math

import numpy as np
from scipy.special import zeta

from benchmarks.ledger import highest

t = np.arange(1, 1001)
SHARES = {
    "1 / ((t + 1) ln^2(t + 1)) / 2.1097": 1 / ((t + 1) * np.log(t + 1) ** 2) / 2.1097,
    "6 / (pi t)^2": 6 / (np.pi * t) ** 2,
    "t^-1.1 / 10.58": t**-1.1 / zeta(1.1),
    "t^-1.5 / 2.612": t**-1.5 / zeta(1.5),
} | {f"c = {c}": np.sqrt(c / (c + t - 1)) - np.sqrt(c / (c + t)) for c in (2, 5, 10, 20, 50)}

print("| g_t |", *(f"{T} |" for T in (20, 200, 1000)))
kept: dict[str, list[str]] = {}
for T, loops in ((20, 1000), (200, 300), (1000, 60)):
    found: dict[str, list[float]] = {}
    for pairs, effect in ((20, 2.0), (40, 1.0), (40, 1.5)):
        rng = np.random.default_rng([T, pairs])
        is_true = rng.random((loops, T)).argsort(axis=1) < T // 10
        logs = np.stack(
            [highest(math.sqrt(2) * rng.standard_normal((T, pairs)) + effect * row[:, None], False) for row in is_true]
        )
        for name, g in SHARES.items():
            before, true = np.zeros(loops), 0
            for step in range(T):
                is_kept = logs[:, step] >= -np.log(0.05 * g[step] * (before + 1))
                before += is_kept
                true += (is_kept & is_true[:, step]).sum()
            found.setdefault(name, []).append(true / is_true.sum())
    for name, shares in found.items():
        kept.setdefault(name, []).append(" / ".join(f"{100 * share:.0f}%" for share in shares))
for name, cells in kept.items():
    print(f"| {name} | {' | '.join(cells)} |")
