"""Optimizers, one method per file; their state follows from the finished trials alone."""
