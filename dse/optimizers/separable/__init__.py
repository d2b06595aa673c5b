"""Separable grey box: surrogates that are sums of terms, and exact fronts of such sums."""
