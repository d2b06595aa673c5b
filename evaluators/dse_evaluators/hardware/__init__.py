"""Evaluators of hardware components: dies, technology nodes, multipliers and DRAM."""
