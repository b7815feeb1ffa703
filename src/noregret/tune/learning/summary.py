"""What a study has found, as JSON for scripts."""

from __future__ import annotations

import math
from typing import Any

from noregret.optimizer.estimate import Estimate
from noregret.tune.learning.findings import Findings
from noregret.tune.store.records import Record


def summary(found: Findings) -> dict[str, Any]:
    """Everything that was found; numbers that are not finite are None."""
    return {
        **ending(found),
        "baseline": baseline(found),
        "half_life": _finite(found.half_life),
        "trials": [trial(record) for record in found.records],
    }


def ending(found: Findings) -> dict[str, Any]:
    """The best setting, and why nothing more is measured."""
    return {"best": found.best and estimate(found.best), "stopped": found.stopped}


def estimate(believed: Estimate) -> dict[str, Any]:
    """What is believed about a setting."""
    numbers = {name: getattr(believed, name) for name in ("estimate", "lower", "upper", "level", "gap", "feasible")}
    return {"params": believed.params, **{name: _finite(number) for name, number in numbers.items()}}


def baseline(found: Findings) -> dict[str, Any] | None:
    """What is believed about the setting in use now, and the gain over it in percent."""
    if found.gain is None:
        return None
    percent = found.gain.percent
    gain = {name: _finite(getattr(percent, name)) if percent else None for name in ("estimate", "lower", "upper")}
    return {**estimate(found.gain.baseline), "gain": gain}


def trial(record: Record) -> dict[str, Any]:
    """One trial, finished or not."""
    described = {
        "trial": record.number,
        "params": record.params,
        "value": record.value,
        "failed": record.state == "failed",
        "state": record.state,
    }
    if record.constraints:
        described["constraints"] = dict(record.constraints)
    return described


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
