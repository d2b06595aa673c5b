"""Studies and comparisons as pages."""
