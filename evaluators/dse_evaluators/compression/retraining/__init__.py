"""Compression that trains again: what a network is reduced to, and how it recovers."""
