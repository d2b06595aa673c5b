"""Evaluators of scaling laws: cost and loss by model size, bit width and training tokens."""
