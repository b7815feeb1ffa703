"""Estimate, gain, certificate and importance: what the observations say, with intervals."""
