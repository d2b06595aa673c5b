"""Simulation of parallel LLM serving plans on a request trace (APEX)."""
