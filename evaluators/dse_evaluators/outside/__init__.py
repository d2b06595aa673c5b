"""Evaluators that run third-party models, each in its own Python environment."""
