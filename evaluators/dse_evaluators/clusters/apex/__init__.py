"""Parallel execution plans of a served model, played through a trace of requests."""
