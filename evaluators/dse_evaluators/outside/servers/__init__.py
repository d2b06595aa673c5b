"""Measurement of real inference servers: their start, their requests and their metrics."""
