"""What a design costs and yields: compression, formats, accelerators and clusters."""
