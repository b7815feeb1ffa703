"""Comparison of a few options by repeated runs, valid at every stopping time.

===============  ================================================================================================
`sequences`      confidence sequences: of a median by counting signs, of a mean by Catoni's influence function
`comparison`     `Comparison`: which option to run next, and what the runs have shown; `versus` for Python functions
===============  ================================================================================================
"""

from noregret.comparison.comparison import Comparison, Verdict, versus
from noregret.comparison.sequences import catoni_sequence, median_sequence

__all__ = ["Comparison", "Verdict", "catoni_sequence", "median_sequence", "versus"]
