"""Atomic writing of files: a crash or a full disk never destroys the previous content."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Write a new file with ``write``, flush it to the disk, and only then rename it to ``path``.

    An existing file keeps its permissions; a new one gets those of the umask. If ``path`` is a link, its target is
    written.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise FileExistsError(
            errno.EEXIST, "this is not a regular file, so it cannot be replaced: write elsewhere", str(path)
        )
    handle, name = _new_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _permissions(path))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    sync_folder(path.parent)


def _new_file(path: Path) -> tuple[int, str]:
    """Make a temporary file beside ``path``: its descriptor and name. An OSError names ``path``."""
    try:
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except FileNotFoundError as error:
        reason = f"there is no folder {str(path.parent)!r}: make it first, or write elsewhere"
        raise FileNotFoundError(error.errno, reason, str(path)) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def sync_folder(folder: Path) -> None:
    """Make the new name durable, if folders can be flushed (on Windows they cannot)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _permissions(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
