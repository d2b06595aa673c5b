"""Serving a transformer in steady state: plans, steps, memory, energy."""
