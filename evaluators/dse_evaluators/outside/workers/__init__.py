"""Programs of the other environments: each file alone, with that environment's Python."""
