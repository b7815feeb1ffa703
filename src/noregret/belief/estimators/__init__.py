"""How rewards become a mean."""
