"""Where trials are kept: rows of tables, read on as far as they are new."""
