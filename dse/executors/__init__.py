"""Executors that run evaluations."""
