"""Evaluators of rounding errors: attention, decoding and tensors in low-precision formats."""
