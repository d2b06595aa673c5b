"""Tables of legal combinations, and data."""
