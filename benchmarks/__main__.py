"""Run the benchmarks of the core: ``python -m benchmarks``."""

from benchmarks.core import main

main()
