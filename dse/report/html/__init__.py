"""HTML pages of studies and comparisons."""
