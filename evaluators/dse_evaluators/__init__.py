"""Costs and results of a design: compression, formats, accelerators and clusters."""
