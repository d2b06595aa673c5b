"""Memories that forget: what training keeps, for how long, and in which cells."""
