"""Import of optional packages, with a message that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingExtra(ImportError):
    """Error for an optional package that is not installed."""


def extra(module: str, name: str = "lab") -> Any:
    """Import a module of an optional package, or raise MissingExtra with the extra of noregret that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"this needs {package}: pip install 'noregret[{name}]'") from error
