"""What is done with a space alone."""
