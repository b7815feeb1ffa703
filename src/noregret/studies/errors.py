"""Errors that end a command with a message."""


class StudyError(ValueError):
    """The study cannot continue; the message says what must hold, what came, and what to do."""


class NotYet(StudyError):
    """The study has not started: its storage holds nothing to read."""
