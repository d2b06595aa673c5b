"""Exact search: enumeration, decomposition and dominance pruning, with counts as proof."""
