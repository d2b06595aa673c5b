"""Compression measured on real models."""
