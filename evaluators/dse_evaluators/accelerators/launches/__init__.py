"""Launches of kernels by the host, and what the device waits for."""
