"""Schedules of loops by a solver: software pipelining with warps and registers."""
