"""Terminal display of a running study."""
