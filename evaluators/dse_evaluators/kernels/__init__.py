"""Evaluators of compute kernels on CPUs and GPUs: time, memory traffic and tile choice."""
