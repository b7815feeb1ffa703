"""Seeds: one for each part of a run, from the one that the caller gives."""

from __future__ import annotations

from typing import Any

import numpy as np


def child(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Child of a seed at this key, an independent stream; the seed does not change."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def seed_sequence(rng: Any) -> np.random.SeedSequence:
    """Seed that can be saved, from None, an int, a SeedSequence or a Generator (a child of its seed)."""
    if isinstance(rng, np.random.Generator):
        parent: Any = rng.bit_generator.seed_seq
        rng = parent.spawn(1)[0]
    if isinstance(rng, np.random.SeedSequence):
        return np.random.SeedSequence(rng.entropy, spawn_key=rng.spawn_key)
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        return np.random.SeedSequence(None if rng is None else int(rng))
    raise ValueError(f"rng must be None, a whole number from 0, a SeedSequence or a Generator, got {rng!r}")
