"""Export and import of a complete study as one file."""
