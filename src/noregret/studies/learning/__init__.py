"""Findings from the observations, and the next suggestion."""
