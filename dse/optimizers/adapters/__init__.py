"""Adapters for third-party optimizers (Ax, Optuna)."""
