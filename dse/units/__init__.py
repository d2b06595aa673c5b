"""Units of metrics and parameters, and the dimensions of formulas."""

from dse.units.units import converted, factor, quantity, shown

__all__ = ["converted", "factor", "quantity", "shown"]
