"""Many devices that work on one model: what they say to one another, training and serving."""
