"""Adapters for optimizers of other packages."""
