"""Environments that generate training data for an agent, and the agent's updates."""
