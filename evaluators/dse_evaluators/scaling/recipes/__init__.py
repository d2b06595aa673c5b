"""Training recipes: optimizer, learning rate, batch sizes, precision; measured, and counted."""
