"""Judges from outside: problems and methods of other libraries, ``python -m benchmarks.judges``."""
