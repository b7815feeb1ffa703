"""Every trial, durable and shared: documents in a table of SQLite or PostgreSQL."""
