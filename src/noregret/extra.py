"""Packages that only the lab needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingExtra(ImportError):
    """A package of the lab is not installed."""


def extra(module: str, name: str = "lab") -> Any:
    """Import a module of an optional package, or say which extra of noregret installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"this needs {package}: pip install 'noregret[{name}]'") from error
