"""Analytical cost models of accelerators, GPUs and single circuits."""
