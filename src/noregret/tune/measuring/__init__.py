"""One run of the command, and the result read from it."""
