"""Comparison of a few options by repeated runs, valid at every stopping time.

===============  ================================================================================================
`sequences`      confidence sequences: of a median by counting signs, of a mean by betting or by Catoni's function
`carryover`      test for an option that changes the run after it
`comparison`     `Comparison`: which option to run next, and what the runs have shown; `versus` for Python functions
===============  ================================================================================================
"""

from noregret.comparison.comparison import Comparison, Verdict, versus
from noregret.comparison.sequences import bounded_sequence, catoni_sequence, median_sequence

__all__ = ["Comparison", "Verdict", "bounded_sequence", "catoni_sequence", "median_sequence", "versus"]
