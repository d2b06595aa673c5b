"""What a design costs and yields: evaluators for compression, formats, accelerators and clusters."""
