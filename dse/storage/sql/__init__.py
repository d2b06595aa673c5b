"""Storage of studies in SQLite and PostgreSQL databases."""
