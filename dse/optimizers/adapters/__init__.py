"""What fits optimizers of other packages to ours."""
