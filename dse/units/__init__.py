"""Units of metrics and parameters, and the dimensions of formulas."""
