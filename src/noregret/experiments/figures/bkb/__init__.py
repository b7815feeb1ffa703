"""Figures of the BKB paper."""
