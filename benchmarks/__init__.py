"""Measurements, each a ratio against a plain reference in the same run: ``make bench``."""
