"""Storage of studies: in memory, in SQLite or PostgreSQL, and retries during outages."""
