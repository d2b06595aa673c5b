"""Storage of studies."""
