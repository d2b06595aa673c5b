"""Shared engine, survival rules and reference directions of the evolutionary optimizers."""
