"""The commands about assets and environments."""
