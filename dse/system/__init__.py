"""Lowest layer: operating-system processes, output pipes, and sanitizing of output texts."""
