"""What optimizers of every kind share."""
