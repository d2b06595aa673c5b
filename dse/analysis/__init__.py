"""What trials say: indicators and comparisons."""
