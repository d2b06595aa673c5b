"""Laws of how cost and loss go with size, bits and tokens."""
