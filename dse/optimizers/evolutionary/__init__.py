"""Parts of evolutionary optimizers."""
