"""Optimizers, one method per file; no state but the trials told."""
