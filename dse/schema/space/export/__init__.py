"""Serialization of a space as a single YAML space file."""
