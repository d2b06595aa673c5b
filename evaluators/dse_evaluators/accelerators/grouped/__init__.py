"""Cost models of grouped convolutions: array utilization, memory traffic and energy."""
