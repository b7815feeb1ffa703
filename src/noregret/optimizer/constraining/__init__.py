"""Constraints: what must hold, what is believed about it, and what to ask for under it."""
