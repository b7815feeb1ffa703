"""Parameter: what a space must know about one thing to choose, and how its condition is written."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from noregret.belief.posterior import Floats


@runtime_checkable
class Parameter(Protocol):
    """One thing to choose."""

    @property
    def when(self) -> Mapping[str, Any] | None:
        """The values that other parameters must have for it to apply, by name; None if it always applies."""
        ...

    @property
    def width(self) -> int:
        """How many columns of the unit cube it takes."""
        ...

    @property
    def count(self) -> float:
        """How many values it has, infinite for real numbers."""
        ...

    def values(self) -> Sequence[Any]:
        """All its values, where ``count`` is finite."""
        ...

    def checked(self, name: str, value: Any) -> Any:
        """The value as this parameter returns it; ValueError, with the parameter's name, if it is none of its."""
        ...

    def key(self, value: Any) -> Hashable:
        """Equal for equal values, and only for these."""
        ...

    def encode(self, values: Sequence[Any]) -> Floats:
        """Coordinates of n values, (n, width), all in [0, 1]."""
        ...

    def decode(self, coordinates: Floats) -> list[Any]:
        """The values nearest to these (n, width) coordinates."""
        ...

    def snap(self, coordinates: Floats) -> Floats:
        """The coordinates of those values, (n, width)."""
        ...


def checked_when(when: Any) -> dict[str, list[Any]] | None:
    """The values that other parameters must have, a list for each of them; None for no condition.

    >>> checked_when({"model": "forest", "depth": [1, 2]})
    {'model': ['forest'], 'depth': [1, 2]}
    """
    if when is not None and not isinstance(when, Mapping):
        raise ValueError(f"when must be a dict from a parameter's name to a value or a list of values, got {when!r}")
    lists = {name: list(its) if isinstance(its, list) else [its] for name, its in (when or {}).items()}
    for name, values in lists.items():
        if not values:
            raise ValueError(f"when must have at least one value for {name!r}, got none: drop the condition")
    return lists or None
