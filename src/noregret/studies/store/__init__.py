"""Every trial, durable and shared: Optuna's tables on SQLite or PostgreSQL."""
