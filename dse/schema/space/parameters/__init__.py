"""Parsing, generation, narrowing and formatting of parameter domains."""
