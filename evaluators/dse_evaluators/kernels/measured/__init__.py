"""Compute kernels that are compiled and timed on this machine, by a C compiler or by numba."""
