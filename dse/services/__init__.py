"""What the command line, Python and the live view share."""
