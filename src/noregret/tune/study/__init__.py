"""The study file: what to tune, the command that measures it, when to stop."""
