"""What the measurements say, and what to try next."""
