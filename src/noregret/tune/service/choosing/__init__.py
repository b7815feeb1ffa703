"""What to measure next: studies at work, for all threads of a server and beside other servers."""
