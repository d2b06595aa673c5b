"""Studies and comparisons as text for the terminal."""
