"""Construction of a search space from space files, and serialization back to YAML."""
