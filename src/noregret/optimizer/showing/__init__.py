"""Showing: what was measured as a frame, and where an optimizer stands in words."""
