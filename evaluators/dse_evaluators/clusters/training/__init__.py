"""Training a transformer on many devices: plans, time, memory."""
