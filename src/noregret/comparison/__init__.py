"""Comparison of a few options by repeated runs, valid at every stopping time.

===============  ================================================================================================
`sequences`      confidence sequences: of a median by counting signs, of a mean by betting or by Catoni's function
`eprocess`       `EProcess`: evidence of runs of options: intervals, and e-values of claims
`comparison`     `Comparison`: which option to run next, and what the runs have shown; a test for carry-over from one
                 run to the next; `versus` for Python functions
`ledger`         `Ledger`: which of a chain of changes to keep, few of the kept ones false
`suite`          `Suite`: runs with many named numbers, one error budget for all of them
`receipts`       a comparison as a document that another machine can check
===============  ================================================================================================
"""

from noregret.comparison.comparison import Comparison, Verdict, versus
from noregret.comparison.eprocess import Change, EProcess
from noregret.comparison.ledger import Ledger
from noregret.comparison.sequences import bounded_sequence, catoni_sequence, median_sequence, quantile_sequence
from noregret.comparison.suite import NamedChange, Suite

__all__ = [
    "Change",
    "Comparison",
    "EProcess",
    "Ledger",
    "NamedChange",
    "Suite",
    "Verdict",
    "bounded_sequence",
    "catoni_sequence",
    "median_sequence",
    "quantile_sequence",
    "versus",
]
