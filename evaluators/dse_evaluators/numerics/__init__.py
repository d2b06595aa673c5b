"""Effects of rounding on results: attention, decoding and tensors in short formats."""
