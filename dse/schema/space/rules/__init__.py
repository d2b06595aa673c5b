"""Checks of a space's rules: definedness, exact integers, units of literals, satisfiability."""
