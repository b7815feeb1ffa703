"""Parameters, spaces of them, tables of candidates, and contexts, as points of the unit cube."""
