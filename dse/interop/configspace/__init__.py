"""Spaces in ConfigSpace's JSON."""
