"""The life of a study: its loop, the drivers that share it, and what is done with its record."""
