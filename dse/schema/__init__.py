"""Parsing and validation of YAML files, and their conversion to the objects of ``dse.core``."""
