"""Readers of the tables of a space file: allowed or forbidden combinations, and data records."""
