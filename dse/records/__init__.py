"""What can be asked of stored studies and done with them, by commands and Python alike."""
