"""The language of formulas and rules."""
