"""Runs of algorithms on problems: one, or many in parallel, and what is kept of them."""
