"""Model of distributed transformer training: plans, step time, memory, energy and cost."""
