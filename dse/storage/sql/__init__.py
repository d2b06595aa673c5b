"""Studies in SQLite and PostgreSQL."""
