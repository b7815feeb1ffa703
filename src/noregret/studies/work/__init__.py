"""Workers that run trials, and their display."""
