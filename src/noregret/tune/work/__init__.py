"""The work itself, and what is seen of it while it runs."""
