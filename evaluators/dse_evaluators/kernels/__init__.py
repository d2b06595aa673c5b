"""Kernels on a processor: what they move, how long they take, and which way is the best one."""
