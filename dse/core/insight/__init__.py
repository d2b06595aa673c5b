"""What can be said of a space: why, how much, what changed."""
