"""Data that a study inherits from earlier ones, and the contents of its record."""
