"""Parsing and checks of a study file; the result is a plan, the specification ready to run."""
