"""Cost models of training convolutional networks: split systolic arrays and sub-batches."""
