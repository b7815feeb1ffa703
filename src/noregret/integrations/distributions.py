"""Parameters as Optuna's distributions, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from noregret.optimizer import EXACT, Choice, Float, Int


def distribution(parameter: Float | Int | Choice) -> BaseDistribution:
    """Distribution with the values of a parameter."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.options)
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step or 1)


def column_distribution(values: list[Any]) -> BaseDistribution:
    """Distribution that holds the values of one column of a table."""
    if all(isinstance(value, int) for value in values):
        return IntDistribution(min(values), max(values))
    if all(isinstance(value, float) for value in values):
        return FloatDistribution(min(values), max(values))
    return CategoricalDistribution(list(dict.fromkeys(values)))


def parameter(its: BaseDistribution, when: Mapping[str, Any] | None = None) -> Float | Int | Choice:
    """Parameter with the values of a distribution, on this condition."""
    if isinstance(its, CategoricalDistribution):
        return Choice(its.choices, when=when)
    assert isinstance(its, FloatDistribution | IntDistribution)
    step = None if its.log else its.step
    if isinstance(its, FloatDistribution):
        return Float(its.low, its.high, its.log, step, when)
    return Int(its.low, its.high, its.log, None if step is None else int(step), when)


@dataclass(frozen=True)
class Parameter:
    """One of Optuna's distributions as the optimizer's parameter: choices by index, steps as whole numbers."""

    distribution: BaseDistribution

    @property
    def parameter(self) -> Float | Int | Choice:
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return Choice(list(range(len(d.choices))))
        assert isinstance(d, FloatDistribution | IntDistribution)
        if self._step is not None:
            return Int(0, round((d.high - d.low) / self._step))
        return Float(d.low, d.high, d.log) if isinstance(d, FloatDistribution) else Int(d.low, d.high, d.log)

    def value(self, ours: Any) -> Any:
        """The value as Optuna has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return d.choices[ours]
        assert isinstance(d, FloatDistribution | IntDistribution)
        return ours if self._step is None else min(d.low + self._step * ours, d.high)

    def ours(self, value: Any) -> Any:
        """The value as the optimizer has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return int(d.to_internal_repr(value))
        assert isinstance(d, FloatDistribution | IntDistribution)
        return value if self._step is None else round((value - d.low) / self._step)

    @property
    def _step(self) -> float | None:
        d = self.distribution
        if isinstance(d, FloatDistribution):
            return d.step
        if not isinstance(d, IntDistribution) or d.log:
            return None
        is_exact = d.low >= -EXACT and d.high <= EXACT
        coarser = 1 + (d.high - d.low) // d.step // EXACT
        return None if d.step == 1 and is_exact else d.step * coarser
