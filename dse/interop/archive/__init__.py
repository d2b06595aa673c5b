"""A study as one file."""
