"""From measurements to scale, trust, kernel and noise."""
