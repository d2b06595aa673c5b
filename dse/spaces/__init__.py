"""What can be asked of a space, by commands and Python alike."""
