"""Terminal output of studies and comparisons."""
