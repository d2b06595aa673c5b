"""Steady-state model of transformer serving: plans, iteration times, memory and energy."""
