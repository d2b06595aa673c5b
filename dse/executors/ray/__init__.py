"""Executor that runs evaluations on the nodes of a Ray cluster."""
