"""The study file: parameters, the command that measures them, and the budget."""
