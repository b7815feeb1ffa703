"""Compared with the settings of today: when these are worth a measurement, and how much better others are."""
