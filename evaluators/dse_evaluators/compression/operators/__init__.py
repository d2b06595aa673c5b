"""Compression operators: arrays encoded as records with exact bit counts, and decoded."""
