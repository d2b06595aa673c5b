"""From the space file to a space."""
