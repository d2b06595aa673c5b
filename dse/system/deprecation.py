"""Version until which old names are read."""

UNTIL = "0.3"
"""The first version without the names that this one has renamed."""
