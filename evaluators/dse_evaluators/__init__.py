"""Evaluators: cost models and measurements of compression, formats, accelerators and clusters."""
