"""The interface between a run and what it optimises, drawn, measured or simulated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

from numpy.random import Generator


class Task(ABC):
    """Space to search with noisy measurements, and the truth by which a search is judged."""

    space: Any
    goal: Literal["maximize", "minimize"]

    @abstractmethod
    def measured(self, params: Any, rng: Generator) -> float | None:
        """One measurement, or None if it fails."""

    @abstractmethod
    def expected(self, params: Any) -> float:
        """Mean of the measurements, which an interval should contain."""

    @abstractmethod
    def regret(self, params: Any) -> float:
        """Regret, 0 for the best params."""

    def trial_regret(self, params: Any) -> float:
        """Regret of one of many trials: it may be a cheap estimate, as errors average out."""
        return self.regret(params)
