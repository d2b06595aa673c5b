"""Batching of sequences by their predicted output lengths."""
