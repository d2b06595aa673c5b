"""Workloads: layer tables of models with shapes, and trained models that can be run."""
