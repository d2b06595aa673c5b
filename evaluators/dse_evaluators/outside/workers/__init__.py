"""What runs in the other environments: each file by itself, with that environment's Python."""
