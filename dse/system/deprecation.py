"""First version that no longer accepts the old names of things that this version has renamed."""

UNTIL = "0.3"
"""The first version without the old names of things that this version has renamed."""
