"""Parsing and checks of a study file, which result in a plan (see ``plan``)."""
