"""Training of a network whose weights are rounded in the forward pass."""
