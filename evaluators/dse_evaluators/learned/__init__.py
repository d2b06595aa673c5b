"""Evaluators that are learned from runs, with their held-out error."""
