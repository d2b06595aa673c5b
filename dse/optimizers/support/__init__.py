"""Code shared by optimizers of every kind."""
