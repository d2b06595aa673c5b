"""A workload on one systolic array or several: cycles, traffic, energy and area."""
