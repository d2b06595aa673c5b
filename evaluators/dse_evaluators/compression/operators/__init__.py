"""Compression operators: arrays in, a record of exactly counted bits out, and back."""
