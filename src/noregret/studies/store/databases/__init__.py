"""Databases, SQLite files and PostgreSQL servers, so that what they acknowledge is on the disk."""
