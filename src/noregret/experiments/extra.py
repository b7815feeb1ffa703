"""Packages that only the lab needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingExtra(ImportError):
    """A package of the lab is not installed."""


def extra(module: str) -> Any:
    """Import a module of the lab's packages, or say how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"this needs {package}: pip install 'noregret[lab]'") from error
