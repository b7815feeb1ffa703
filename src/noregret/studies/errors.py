"""Errors that end a command with a message."""

import os

IS_POSIX = os.name == "posix"
"""True where sessions of processes can be killed."""


class StudyError(ValueError):
    """The study cannot continue; the message says what must hold, what came, and what to do."""


class NotYet(StudyError):
    """The study has not started: its storage holds nothing to read."""


def check_system(command: str) -> None:
    """Refuse a command where processes cannot be ended with all that they have started, as on Windows.

    >>> check_system("tune") if IS_POSIX else None
    """
    if not IS_POSIX:
        raise StudyError(
            f"'noregret {command}' does not run on Windows: it needs Linux or macOS. Use the Windows Subsystem for "
            "Linux; the Python library runs on Windows, such as noregret.minimize and noregret.Optimizer"
        )
