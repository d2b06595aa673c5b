"""Accelerators as analytical models."""
