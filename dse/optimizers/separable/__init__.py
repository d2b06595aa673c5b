"""Separable grey box: surrogates that are sums of parts, and exact fronts of such sums."""
