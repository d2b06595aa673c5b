"""Optimizers, one method per file; their state is computed from the finished trials alone."""
