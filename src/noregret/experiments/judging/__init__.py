"""Figures, their panels, and how the claims of a paper are decided."""
