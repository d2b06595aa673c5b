"""Many devices that work on one model: communication, training and serving."""
