"""How we act on what we believe."""
