"""Questions: the settings to measure next, the rules that score them, and the balance that explores."""
