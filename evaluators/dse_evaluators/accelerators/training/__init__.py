"""Arrays that train convolutional networks: reshaped arrays, mini-batches in parts."""
