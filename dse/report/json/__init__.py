"""Studies and comparisons as JSON and as columns."""
