"""Spaces from and for other tools: what they can say, and in words what they cannot."""
