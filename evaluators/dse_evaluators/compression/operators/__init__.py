"""Compression operators: encoding of arrays as records with exact bit counts, and decoding."""
