"""Estimate: what is believed about some params."""

from __future__ import annotations

from typing import Any, NamedTuple


class Estimate(NamedTuple):
    """What is believed about some params: the expected value, and an interval that likely contains the true one."""

    params: Any
    estimate: float
    lower: float
    upper: float
