"""The distribution that noregret is installed as: its version, its extras, and another one in the same folder."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

DISTRIBUTION = "noregret-tuner"
"""Name on a package index. The name of the import and of the command belongs to another project there."""


class MissingExtra(ImportError):
    """Error for an optional package that is not installed."""


def extra(module: str, name: str = "lab") -> Any:
    """Import a module of an optional package, or raise MissingExtra with the extra of noregret that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(missing(module.partition(".")[0], name)) from error


def missing(package: str, name: str) -> str:
    """Sentence about a package that is not installed.

    >>> missing("rich", "tune")
    "this needs rich, of the extra noregret-tuner[tune]: pip install '.[tune]' in a clone of noregret"
    """
    return f"this needs {package}, of the extra {DISTRIBUTION}[{name}]: pip install '.[{name}]' in a clone of noregret"


@cache
def version() -> str:
    """Return the version that is installed, or raise MissingExtra if noregret runs from a folder without it."""
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise MissingExtra(f"{DISTRIBUTION} is not installed: run pip install . in the clone of noregret") from error


def clash(package: Path = Path(__file__).parent) -> str:
    """Sentence about another distribution that writes to the folder of this package; empty if there is none."""
    installed = [info.stem.replace("-", " ") for info in package.parent.glob("noregret-[0-9]*-info")]
    if not installed and not is_overwritten():
        return ""
    other = installed[0] if installed else "another distribution"
    return (
        f"{other} has written to the folder of {DISTRIBUTION}, and one replaces or removes files of the other: "
        f"pip uninstall noregret {DISTRIBUTION}, then pip install . in a clone of noregret"
    )


def is_overwritten() -> bool:
    """Return True if ``noregret/__init__.py`` is missing or that of another distribution."""
    return not hasattr(sys.modules["noregret"], "moved")
