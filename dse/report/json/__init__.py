"""JSON and column exports of studies and comparisons."""
