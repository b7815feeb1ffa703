"""How far off an estimate may be, how much better another setting may be, and whether that is enough to stop."""
