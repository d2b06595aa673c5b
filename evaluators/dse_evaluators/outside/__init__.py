"""Programs of others that measure designs, each in an environment of its own."""
