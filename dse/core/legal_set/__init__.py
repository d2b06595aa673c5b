"""Exact solver for a space's legal set: counting, uniform sampling, ranking, neighbours."""
