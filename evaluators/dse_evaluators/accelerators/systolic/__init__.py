"""Cost model of systolic arrays: cycles, memory traffic, energy and area of a workload."""
