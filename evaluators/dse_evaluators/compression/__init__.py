"""Evaluators that compress real models and measure the result."""
