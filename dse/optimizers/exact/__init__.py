"""Parts of optimizers that prove their front."""
