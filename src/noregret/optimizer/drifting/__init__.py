"""When what is best changes: how fast it does, and what is out of date."""
