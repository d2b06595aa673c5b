"""Services for a space alone."""
