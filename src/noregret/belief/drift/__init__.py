"""Beliefs about a function that changes: what is old counts less, or not at all."""
