"""What rounding does to results: attention, decoding and tensors in short number formats."""
