"""Spaces and studies in the formats of Optuna."""
