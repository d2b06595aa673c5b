"""Optimizers, one method per file; their only state is the finished trials they were given."""
